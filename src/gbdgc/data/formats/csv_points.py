"""A CSV of points: one row per head, ``image,x,y``; a picture without people is one row with x and y left empty.

With a header line the columns may stand in any order, the separator may be a comma, a semicolon or a tab, and two
more columns are read: ``id`` (otherwise the picture's name is its id) and ``split``. Without one the columns are
image, x, y. Names of pictures are relative to the file's folder, or to ``images`` in it. An apostrophe stands before a
name that a spreadsheet would run as a formula.
"""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from io import StringIO
from pathlib import Path

from gbdgc.data.formats.entry import Entry, find_picture, label_files_in, name_beneath, only_file, read_text
from gbdgc.data.manifest import Dataset
from gbdgc.errors import InputError, as_input_error, noted_in
from gbdgc.files import atomic_write, csv_line, is_number, plain_cell

TITLE = "a CSV of points"

_IMAGE_COLUMNS = ("image", "file", "filename", "file_name", "path", "image_path", "name")
_LONGEST_LINE = 4096  # of what may be a header
_NOT_IN_CELLS = re.compile(r"[\0\r\n\ud800-\udfff]")


@dataclass(slots=True)
class _Picture:
    id: str
    split: str | None
    rows: list[tuple[int, str, str]] = field(default_factory=list)


def looks_like(path: Path) -> str | None:
    """Recognise a .csv file of three columns or more, of which the second and third, or x and y, are numbers."""
    files = label_files(path)
    return f"{files[0].name} with columns image, x, y" if len(files) == 1 else None


def read(path: Path, problems: list[str]) -> Iterator[Entry]:
    """Yield the pictures in the order in which the file first names them."""
    file = path if path.is_file() else only_file(path, label_files(path), ".csv file with the columns image, x, y")
    for name, picture in _pictures(file, problems).items():
        with noted_in(problems):
            image = find_picture(name, file.parent, (".", "images"), file)
            yield Entry(picture.id, image, partial(_points, picture, file), split=picture.split)


def write(dataset: Dataset, path: Path) -> None:
    """Write image, x, y, id, split; tags have no place here, and neither have pictures without labels."""
    with atomic_write(path, "w") as file:
        file.write(csv_line(["image", "x", "y", "id", "split"]))
        for sample in dataset:
            if sample.points is None:
                raise InputError(sample.id, "has no labels, which a CSV cannot say", "write a manifest or COCO")
            name, id, split = map(check_text, (name_beneath(path.parent, sample.image), sample.id, sample.split or ""))
            # float32 prints as the shortest decimal that reads back to the same bits
            for x, y in sample.points.astype(str).tolist() or [("", "")]:
                file.write(csv_line([name, x, y, id, split]))


def check_text(text: str) -> str:
    """Return a name, or refuse one that would be read back as another, or not at all."""
    if text != text.strip() or _NOT_IN_CELLS.search(text):
        reason = "a CSV of points cannot hold this name: blanks at its ends, line breaks, or bytes that are not text"
        raise InputError(ascii(text), reason, "rename it")
    return text


def label_files(path: Path) -> list[Path]:
    """Return the CSVs of points directly in a folder."""
    return label_files_in(path, ".csv", lambda opening: _columns(_first_row(opening)[0]))


def _first_row(text: str) -> tuple[list[str], str]:
    """The cells of the first line, and what separates them."""
    line = text[:_LONGEST_LINE].splitlines()[0] if text.strip() else ""
    separator = max(",;\t", key=line.count)
    return next(csv.reader([line], delimiter=separator), []), separator


def _columns(first: list[str]) -> dict[str, int] | None:
    """Where the columns are; None when the first row is neither a header with them nor a row of data."""
    names = [name.strip().lower() for name in first]
    image = next((name for name in _IMAGE_COLUMNS if name in names), None)
    if image is not None and "x" in names and "y" in names:
        return {"image": names.index(image)} | {
            name: names.index(name) for name in ("x", "y", "id", "split") if name in names
        }
    if len(first) >= 3 and all(is_number(cell) or not cell.strip() for cell in first[1:3]):
        return {"image": 0, "x": 1, "y": 2}
    return None


def _pictures(file: Path, problems: list[str]) -> dict[str, _Picture]:
    text = read_text(file)
    first, separator = _first_row(text)
    columns = _columns(first)
    if columns is None:
        raise InputError(file, f"no columns image, x, y (its first row is {', '.join(first) or 'empty'})")
    has_header = not (is_number(first[columns["x"]]) or not first[columns["x"]].strip())
    pictures: dict[str, _Picture] = {}
    table = csv.reader(StringIO(text), delimiter=separator, strict=True)
    while True:
        # A quote that is never closed would swallow all that follows.
        where, reason = f"{file}, line {table.line_num + 1}", "not CSV from there on ({error})"
        with as_input_error(csv.Error, where, reason, "look for a quote that is not closed"):
            row = next(table, None)
        if row is None:
            return pictures
        line = table.line_num
        if not any(cell.strip() for cell in row) or (has_header and line == 1):
            continue
        if len(row) <= max(columns.values()):
            problems.append(f"{file}, line {line}: {len(row)} columns, too few")
            continue
        cells = {name: plain_cell(row[index].strip()) for name, index in columns.items()}
        name = cells["image"]
        picture = pictures.setdefault(name, _Picture(cells.get("id") or name, cells.get("split") or None))
        picture.rows.append((line, cells["x"], cells["y"]))


def _points(picture: _Picture, file: Path) -> list[tuple[float, float]]:
    points = []
    for line, x, y in picture.rows:
        if x or y:
            with as_input_error(ValueError, f"{file}, line {line}", f"x {x!r}, y {y!r} are not two numbers"):
                points.append((float(x), float(y)))
    return points
