"""The per-image table: one row per picture, written as it is counted, and read back unchanged."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gbdgc.errors import InputError, as_input_error
from gbdgc.files import AnyPath
from gbdgc.runs import Journal

PREDICTIONS = "predictions.csv"
COLUMNS = ("data", "id", "truth", "count", "error", "width", "height", "milliseconds", "domain", "novelty")
MATCHED = {"matched_4px": "4 px", "matched_8px": "8 px", "matched_box_free": "box-free"}
"""Columns of matches between points and labelled heads, and the names of their tolerances."""
LATER_COLUMNS = ("low", "high", "points", *MATCHED, "near_16px", "brightness")
"""Columns that tables of earlier versions do not have."""
_TAG = "tag_"
_OPTIONAL: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("truth", "domain", "points", *MATCHED), int),
    **dict.fromkeys(("milliseconds", "novelty", "low", "high", "near_16px", "brightness"), float),
}
"""The types of the cells that may be empty."""


@dataclass(frozen=True)
class Row:
    """One counted picture."""

    id: str
    truth: int | None
    """The true number of people; None where nobody has labelled the picture."""
    count: float
    width: int
    height: int
    milliseconds: float | None = None
    data: str = ""
    """The name of the data set."""
    domain: int | None = None
    """The latent domain of the source that the picture is nearest to."""
    novelty: float | None = None
    """How far the picture lies outside the source's cloud: 0 well inside, 1 far outside."""
    low: float | None = None
    high: float | None = None
    """The ends of the count's interval; None where the model is not calibrated."""
    tags: Mapping[str, str] = field(default_factory=dict)
    points: int | None = None
    """How many heads were placed; like the matches, None where nobody has labelled the picture."""
    matched_4px: int | None = None
    matched_8px: int | None = None
    matched_box_free: int | None = None
    near_16px: float | None = None
    """The people counted within 16 pixels of a labelled head."""
    brightness: float | None = None
    """The mean luminance of the picture: 0 is black, 255 white."""

    @property
    def key(self) -> tuple[str, str]:
        """The picture's identity: its data set and its id."""
        return self.data, self.id

    @property
    def error(self) -> float | None:
        """The signed error: positive where too many are counted."""
        return None if self.truth is None else self.count - self.truth


def table_columns(tags: Sequence[str]) -> list[str]:
    """Return the columns of the table of pictures with these tags."""
    return [*COLUMNS, *LATER_COLUMNS, *(_TAG + tag for tag in tags)]


def cells(row: Row) -> dict[str, object]:
    """Return the cells of a row by column."""
    values = {name: getattr(row, name) for name in (*COLUMNS, *LATER_COLUMNS)}
    return values | {_TAG + tag: value for tag, value in row.tags.items()}


def tag_names(rows: Iterable[Mapping[str, str]]) -> list[str]:
    """Return the tags that occur, in alphabetical order."""
    return sorted({name for tags in rows for name in tags})


def read_table(path: AnyPath) -> list[Row]:
    """Return the rows of a predictions.csv, or of the run folder that holds one.

    A last line that was cut off while it was written is left out.
    """
    path = Path(path)
    path = path / PREDICTIONS if path.is_dir() else path
    with as_input_error(OSError, path, "no table of predictions that can be read ({error})"):
        path.stat()
        lines = Journal(path, COLUMNS).rows()
    if missing := [column for column in COLUMNS if lines and column not in lines[0]]:
        reason = f"no column {missing[0]!r}"
        raise InputError(path, reason, f"give the {PREDICTIONS} that `gbdgc eval` wrote, or its folder")
    rows = []
    for number, line in enumerate(lines, start=2):
        with as_input_error(ValueError, path, f"line {number} is damaged ({{error}})"):
            required = {"count": float(line["count"]), "width": int(line["width"]), "height": int(line["height"])}
            given = {name: kind(line[name]) for name, kind in _OPTIONAL.items() if line.get(name)}
            tags = {name.removeprefix(_TAG): value for name, value in line.items() if name.startswith(_TAG) and value}
            rows.append(Row(**({"truth": None} | required | given), id=line["id"], data=line["data"], tags=tags))
    return rows
