"""Tables in the paper's layouts: published numbers and ours side by side, from the finished cells."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gbdgc import published
from gbdgc.benchmark.protocol import rank
from gbdgc.errors import InputError

if TYPE_CHECKING:
    from gbdgc.benchmark.declaration import Benchmark, Cell

Column = tuple[str, ...]
"""The headings above a column, the outermost first."""

Measures = Mapping[str, Callable[["Cell"], float]]
"""The numbers shown of a cell, by their headings."""

ERRORS: Measures = {"MAE": lambda cell: cell["mae"]["value"], "RMSE": lambda cell: cell["rmse"]["value"]}
PUBLISHED, OURS = "published", "ours"
DECIMALS = 1
_COVERAGE = 0.95


@dataclass(frozen=True)
class Value:
    """A number, and its interval if there are several seeds."""

    mean: float
    low: float | None = None
    high: float | None = None

    @property
    def shown(self) -> float:
        """The mean with the decimals that tables print."""
        return round(self.mean, DECIMALS)


@dataclass(frozen=True)
class Line:
    """One row of a table."""

    labels: tuple[str, ...]
    values: Mapping[Column, Value]
    section: str = ""
    """Rows of one section stand together, and the best of a column is the best of its section."""


@dataclass(frozen=True)
class Table:
    """A table, independent of its output format."""

    name: str
    caption: str
    columns: Sequence[Column]
    lines: Sequence[Line]
    notes: Sequence[str]
    heads: tuple[str, ...] = ("Method",)
    """Headings of the labels."""
    levels: tuple[str, ...] = ("Source", "Target", "Measure")
    """The names of the levels of headings above a column, the outermost first."""
    lower_is_better: bool = True
    marks_best: bool = True
    """False where the columns are of different kinds."""
    best: Mapping[tuple[str, Column], float] = field(init=False)

    def __post_init__(self) -> None:
        best: dict[tuple[str, Column], float] = {}
        choose = min if self.lower_is_better else max
        for line in self.lines:
            for column, value in line.values.items():
                key = (line.section, column)
                best[key] = choose(best.get(key, value.shown), value.shown)
        object.__setattr__(self, "best", best)

    def is_best(self, line: Line, column: Column) -> bool:
        """Return whether a line has the best number of its column, as printed."""
        return (
            self.marks_best and column in line.values and line.values[column].shown == self.best[line.section, column]
        )


def check_one_setting_per_cell(cells: "Sequence[Cell]") -> None:
    """Seeds may be averaged, models trained in different ways may not."""
    from gbdgc.config import differences

    seen: dict[tuple[str, str | None, str], Cell] = {}
    for cell in cells:
        key = (cell["source"], cell["target"], cell["variant"])
        first = seen.setdefault(key, cell)
        if changed := differences(first["settings"], cell["settings"]):
            raise InputError(
                f"{cell['variant']} on {cell['source']}",
                f"seeds {first['seed']} and {cell['seed']} were trained with different settings ({', '.join(changed)})",
                "keep one setting in a folder of results",
            )


def over_seeds(values: Sequence[float]) -> Value:
    """Return the mean, with the ends for two seeds and a 95 % t-interval for more."""
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return Value(mean)
    if len(values) == 2:
        return Value(mean, min(values), max(values))
    from scipy import stats  # slow to import, and most tables have fewer seeds

    error = float(stats.sem(values))
    half = error * float(stats.t.ppf((1 + _COVERAGE) / 2, len(values) - 1))
    return Value(mean, mean - half, mean + half)


def error_table(
    benchmark: "Benchmark", cells: "Sequence[Cell]", *, name: str | None = None, caption: str | None = None
) -> Table:
    """Return MAE and RMSE of each pair of source and target, published and ours; ``name`` is the published table's."""
    name = name or benchmark.name
    pairs = by_pair(cells)
    theirs = [row for row in published.transfers(name) if (row.source, row.target) in pairs]
    with_venue = any(row.venue for row in theirs)
    ours = benchmark.rows(cells)
    lines = []
    for label in dict.fromkeys([*(row.method for row in theirs), *ours]):
        rows = [row for row in theirs if row.method == label]
        if rows:
            values: dict[Column, Value] = {(row.source, row.target, "MAE"): Value(row.mae) for row in rows}
            values |= {(row.source, row.target, "RMSE"): Value(row.rmse) for row in rows}
            lines.append(Line((label, PUBLISHED, *[rows[0].venue] * with_venue), values))
        if label in ours:
            lines.append(Line((label, OURS, *[""] * with_venue), pair_values(ours[label], ERRORS)))
    return Table(
        name=name,
        caption=caption or benchmark.caption,
        heads=("Method", "Numbers", *["Venue"] * with_venue),
        columns=pair_columns(cells, ERRORS),
        lines=lines,
        notes=[*notes(cells), 'RMSE is what papers of this field call "MSE"'],
    )


def one_error_table(benchmark: "Benchmark", cells: "Sequence[Cell]") -> list[Table]:
    """Lay all cells out in one table of errors."""
    return [error_table(benchmark, cells)]


def pair_columns(cells: "Sequence[Cell]", measures: Measures) -> list[Column]:
    """Return the columns of each pair of source and target, in the paper's order."""
    pairs = sorted(by_pair(cells), key=lambda pair: tuple(map(rank, pair)))
    return [(*pair, name) for pair in pairs for name in measures]


def pair_values(cells: "Sequence[Cell]", measures: Measures) -> dict[Column, Value]:
    """Return the values of one row by column: each measure, averaged over the seeds."""
    return {
        (*pair, name): over_seeds([measure(cell) for cell in group])
        for pair, group in by_pair(cells).items()
        for name, measure in measures.items()
    }


def by_pair(cells: "Iterable[Cell]") -> "dict[tuple[str, str], list[Cell]]":
    """Group cells by source and target."""
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell["source"], cell["target"]), []).append(cell)
    return groups


def by_source(cells: "Iterable[Cell]") -> "dict[str, list[Cell]]":
    """Group cells by source, in the paper's order."""
    groups: dict[str, list[Cell]] = {}
    for cell in sorted(cells, key=lambda cell: rank(cell["source"])):
        groups.setdefault(cell["source"], []).append(cell)
    return groups


def notes(cells: "Sequence[Cell]", chosen: str | None = None) -> list[str]:
    """Return the notes below a table: what to know before comparing our numbers with published ones."""
    seeds = sorted({cell["seed"] for cell in cells})
    numbers = sorted(set(Counter((cell["source"], cell["target"], cell["variant"]) for cell in cells).values()))
    spread = {1: "one seed, so no interval over seeds", 2: "mean of 2 seeds, and both ends"}
    shown = spread.get(numbers[-1], f"mean of {numbers[-1]} seeds with a 95 % t-interval over them")
    if len(numbers) > 1:
        shown = f"means of {numbers[0]} to {numbers[-1]} seeds: no interval for one, both ends for two, 95 % for more"
    made = {f"{cell['config']} ({cell['backbone']}, epochs: {cell['epochs']})" for cell in cells}
    lines = [
        f"ours: {shown} ({', '.join(map(str, seeds))}); {', '.join(sorted(made))}",
        f"models chosen by: {chosen or ', '.join(sorted({cell['selection'] for cell in cells}))}",
    ]
    counted = {_counted(cell): rank(cell["target"]) for cell in cells if cell["target"]}
    if counted:
        engines = sorted({cell.get("engine", "torch") for cell in cells})
        pictures = ", ".join(sorted(counted, key=lambda text: (counted[text], text)))
        lines.append(f"pictures counted: {pictures}, by {' and '.join(engines)}")
    if any(name.startswith("drawn") for cell in cells for name in (cell["source"], cell["target"] or "")):
        lines.append("drawn data: to try the machinery out, not to be compared with published numbers")
    return lines


def _counted(cell: "Cell") -> str:
    """Return how many pictures of a target were counted, and at what size."""
    size = f"longer side up to {cell['max_side']}" if cell["max_side"] else "full size"
    unread = f", {cell['unreadable']} NOT READ" if cell["unreadable"] else ""
    return f"{cell['target']} {cell['images']} ({cell['split']}, {size}{unread})"
