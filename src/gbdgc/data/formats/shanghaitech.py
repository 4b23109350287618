"""ShanghaiTech: part_A/train_data/images/IMG_1.jpg with part_A/train_data/ground-truth/GT_IMG_1.mat.

The path may be the folder of one part, one of its ``train_data`` and ``test_data``, or the folder that holds the
parts. An id is "part_A/train/IMG_1" whichever it is: the name of the part's folder (without "_final"), the split, the
name of the picture. A file ``tags.csv`` beside the two folders, with a column ``image`` for the picture's file name,
gives the picture a tag for each further column.
"""

import csv
from collections.abc import Iterator, Mapping
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

from gbdgc.data.formats.entry import Entry, listing, pictures_in, read_text
from gbdgc.data.formats.mat import read_variable
from gbdgc.errors import InputError, as_input_error, noted_in

TITLE = "ShanghaiTech"

_LABEL_FOLDERS = ("ground-truth", "ground_truth")


def looks_like(path: Path) -> str | None:
    """Recognise a folder by images/ beside ground-truth/ with GT_*.mat files."""
    for half in _halves(path):
        labels = _label_folder(half)
        if labels is not None and any(labels.glob("GT_*.mat")):
            return f"{half.name}/images and {half.name}/{labels.name}/GT_*.mat"
    return None


def read(path: Path, problems: list[str]) -> Iterator[Entry]:
    """Yield the pictures of every ``train_data`` and ``test_data`` under the path."""
    halves = _halves(path)
    if not any(map(_label_folder, halves)):
        raise InputError(path, "no train_data or test_data folder with images/ and ground-truth/ in it")
    for half in halves:
        labels = _label_folder(half)
        if labels is None:
            problems.append(f"{half}: no ground-truth folder beside images/")
            continue
        # part_A_final/train_data is of the part "part_A" and the split "train".
        folder = half.absolute()
        part, split = folder.name, None
        if folder.name.endswith("_data"):
            part, split = folder.parent.name.removesuffix("_final"), folder.name.removesuffix("_data")
        tags = _read_tags(half / "tags.csv", problems)
        pictures = pictures_in(half / "images")
        for image in pictures:
            marks = partial(_heads, labels / f"GT_{image.stem}.mat")
            id = "/".join(filter(None, (part, split, image.stem)))
            yield Entry(id, image, marks, split=split, tags=tags.get(image.name, {}))
        expected = {f"GT_{image.stem}.mat" for image in pictures}
        for label in listing(labels):
            if label.suffix == ".mat" and label.name not in expected:
                problems.append(f"{label}: no picture for it in {half / 'images'}")


def _halves(path: Path) -> list[Path]:
    """The folders with an ``images`` folder in them: this one, or those one or two levels down by name."""
    if (path / "images").is_dir():
        return [path]
    found = [*path.glob("*_data/images"), *path.glob("*/*_data/images")]
    halves = [images.parent for images in found if images.is_dir()]
    return sorted(halves, key=lambda half: (str(half.parent), half.name != "train_data", half.name))


def _label_folder(half: Path) -> Path | None:
    return next((half / name for name in _LABEL_FOLDERS if (half / name).is_dir()), None)


def _heads(label: Path) -> Any:
    info = read_variable(label, "image_info")
    while isinstance(info, list) and len(info) == 1:
        info = info[0]
    if not isinstance(info, dict) or "location" not in info:
        raise InputError(label, "'image_info' has no field 'location'")
    return info["location"]


def _read_tags(path: Path, problems: list[str]) -> dict[str, Mapping[str, str]]:
    if not path.is_file():
        return {}
    tags: dict[str, Mapping[str, str]] = {}
    table = csv.DictReader(StringIO(read_text(path)), strict=True)
    with (
        noted_in(problems),
        as_input_error(csv.Error, path, "not CSV ({error})", "look for a quote that is not closed"),
    ):
        rows, columns = list(table), table.fieldnames or ()
        if "image" not in columns:
            raise InputError(path, f"no column 'image' (found {', '.join(columns) or 'nothing'})")
        for row in rows:
            image = row.pop("image")
            tags[image] = {name: value for name, value in row.items() if name and value}
    return tags
