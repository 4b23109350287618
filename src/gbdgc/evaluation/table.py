"""The per-image table: a row a picture, written as it is counted, read back as it was."""

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from gbdgc.errors import InputError

PREDICTIONS = "predictions.csv"
COLUMNS = ("data", "id", "truth", "count", "error", "width", "height", "milliseconds", "domain", "novelty")
_TAG = "tag_"


@dataclass(frozen=True)
class Row:
    """One counted picture."""

    id: str
    truth: int | None
    """How many people there are; None where nobody has labelled the picture."""
    count: float
    width: int
    height: int
    milliseconds: float | None = None
    data: str = ""
    """The name of the data set."""
    domain: int | None = None
    """The latent domain of the source that the picture is nearest to."""
    novelty: float | None = None
    """How far the picture lies out of the source's cloud: 0 well inside, 1 far out."""
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def error(self) -> float | None:
        """How many too many."""
        return None if self.truth is None else self.count - self.truth


class TableWriter:
    """Append rows to a CSV file, each on disk before the next is counted."""

    def __init__(self, file: IO[str], tags: Sequence[str]) -> None:
        self._file = file
        self._tags = tags
        self._writer = csv.writer(file, lineterminator="\n")

    def header(self) -> None:
        """Write the names of the columns."""
        self._write([*COLUMNS, *(_TAG + tag for tag in self._tags)])

    def row(self, row: Row) -> None:
        """Write a picture."""
        values = (getattr(row, column) for column in COLUMNS)
        self._write(
            ["" if value is None else value for value in values] + [row.tags.get(tag, "") for tag in self._tags]
        )

    def _write(self, values: Iterable[object]) -> None:
        self._writer.writerow(values)
        self._file.flush()


def tag_names(rows: Iterable[Mapping[str, str]]) -> list[str]:
    """Return the tags that occur, in the order of the alphabet."""
    return sorted({name for tags in rows for name in tags})


def read_table(path: str | os.PathLike[str]) -> list[Row]:
    """Return the rows of a predictions.csv, or of the run folder that holds one.

    A last line that was cut off while it was written is left out.
    """
    path = Path(path)
    path = path / PREDICTIONS if path.is_dir() else path
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise InputError(f"{path}: no table of predictions that can be read ({error})") from error
    whole = text[: text.rfind("\n") + 1]
    lines = csv.DictReader(io.StringIO(whole, newline=""))
    if missing := [column for column in COLUMNS if column not in (lines.fieldnames or ())]:
        raise InputError(
            f"{path}: no column {missing[0]!r}; give the {PREDICTIONS} that `gbdgc eval` wrote, or its folder"
        )
    try:
        return [_from_strings(line) for line in lines]
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}: line {lines.line_num} is damaged ({error})") from error


def _from_strings(line: Mapping[str, str]) -> Row:
    return Row(
        data=line["data"],
        id=line["id"],
        truth=int(line["truth"]) if line["truth"] else None,
        count=float(line["count"]),
        width=int(line["width"]),
        height=int(line["height"]),
        milliseconds=float(line["milliseconds"]) if line["milliseconds"] else None,
        domain=int(line["domain"]) if line["domain"] else None,
        novelty=float(line["novelty"]) if line["novelty"] else None,
        tags={name.removeprefix(_TAG): value for name, value in line.items() if name.startswith(_TAG) and value},
    )
