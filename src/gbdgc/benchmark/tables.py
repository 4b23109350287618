"""Tables in the paper's layouts: the published numbers and ours, side by side, from the cells that are done."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from scipy import stats

from gbdgc import published
from gbdgc.benchmark.drawn import is_drawn
from gbdgc.benchmark.grid import Cell
from gbdgc.benchmark.plan import JOINT, LAST_EPOCHS, VARIANTS
from gbdgc.config import differences
from gbdgc.errors import InputError

Column = tuple[str, ...]
"""The headings above a column, the outermost first."""

PUBLISHED, OURS = "published", "ours"
DECIMALS = 1
_ORDER = ("SHA", "SHB", "QNRF", "NWPU")
_CAPTIONS = {
    "transfer": "Errors on data sets never seen in training",
    "within": "Errors on the source's own test set",
    "nwpu": "Errors on a large benchmark never seen in training",
    "partition": "How the pseudo-domains are found",
    "k": "How many pseudo-domains there are",
    "components": "What each part of the method adds",
    "separation": "How far apart the median counts of the pseudo-domains lie",
    "steadiness": "The error on the target over the last epochs",
}
_COVERAGE = 0.95


@dataclass(frozen=True)
class Value:
    """A number, and its interval over seeds where there are several."""

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
    """A table, in no particular form yet."""

    name: str
    caption: str
    heads: tuple[str, ...]
    """Headings of the labels."""
    levels: tuple[str, ...]
    """What the headings above a column are, the outermost first."""
    columns: Sequence[Column]
    lines: Sequence[Line]
    notes: Sequence[str]
    lower_is_better: bool = True
    best: Mapping[tuple[str, Column], float] = field(init=False)

    def __post_init__(self) -> None:
        best: dict[tuple[str, Column], float] = {}
        choose = min if self.lower_is_better else max
        for line in self.lines:
            for column, value in line.values.items():
                place = (line.section, column)
                best[place] = choose(best.get(place, value.shown), value.shown)
        object.__setattr__(self, "best", best)

    def is_best(self, line: Line, column: Column) -> bool:
        """Tell whether a line has the best number of its column; what looks the same is as good."""
        return column in line.values and line.values[column].shown == self.best[line.section, column]


def build_tables(benchmark: str, cells: Sequence[Cell]) -> list[Table]:
    """Return the paper's tables of a benchmark for the data sets that the cells are about."""
    _expect_one_setting_a_cell(cells)
    if benchmark == "separation":
        return [_separation_table(cells)]
    if benchmark == "steadiness":
        return [_steadiness_table(cells)]
    if benchmark == "transfer":
        parts = {
            "transfer": [cell for cell in cells if cell["target"] not in JOINT],
            "nwpu": [cell for cell in cells if cell["target"] in JOINT],
        }
        return [_error_table(name, part) for name, part in parts.items() if part]
    if benchmark == "k":
        return [_error_table("k", group) for group in _by_rows(cells)]
    return [_error_table(benchmark, cells)]


def _expect_one_setting_a_cell(cells: Sequence[Cell]) -> None:
    """Seeds may be averaged, models trained in different ways may not."""
    seen: dict[tuple[str, str | None, str], Cell] = {}
    for cell in cells:
        place = (cell["source"], cell["target"], cell["variant"])
        first = seen.setdefault(place, cell)
        if changed := differences(first["settings"], cell["settings"]):
            raise InputError(
                f"{cell['variant']} on {cell['source']}: seeds {first['seed']} and {cell['seed']} were trained with "
                f"different settings ({', '.join(changed)}); keep one setting in a folder of results"
            )


def over_seeds(values: Sequence[float]) -> Value:
    """Return the mean, with the ends for two seeds and a 95 % t-interval for more."""
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return Value(mean)
    if len(values) == 2:
        return Value(mean, min(values), max(values))
    error = float(stats.sem(values))
    half = error * float(stats.t.ppf((1 + _COVERAGE) / 2, len(values) - 1))
    return Value(mean, mean - half, mean + half)


def _error_table(name: str, cells: Sequence[Cell]) -> Table:
    pairs = sorted({(cell["source"], cell["target"]) for cell in cells}, key=lambda pair: tuple(map(_rank, pair)))
    columns = [(*pair, metric) for pair in pairs for metric in ("MAE", "RMSE")]
    theirs = [row for row in published.transfers(name) if (row.source, row.target) in pairs]
    labels = dict.fromkeys([row.method for row in theirs] + _variants_of(cells))
    with_venue = any(row.venue for row in theirs)
    values: dict[Column, Value]
    lines = []
    for label in labels:
        rows = [row for row in theirs if row.method == label]
        if rows:
            values = {(row.source, row.target, "MAE"): Value(row.mae) for row in rows}
            values |= {(row.source, row.target, "RMSE"): Value(row.rmse) for row in rows}
            lines.append(Line((label, PUBLISHED, *[rows[0].venue] * with_venue), values))
        own = [cell for cell in cells if cell["variant"] == label]
        if own:
            values = {
                (*pair, metric): over_seeds([cell[metric.lower()]["value"] for cell in group])
                for pair, group in _grouped(own).items()
                for metric in ("MAE", "RMSE")
            }
            lines.append(Line((label, OURS, *[""] * with_venue), values))
    return Table(
        name=name,
        caption=_CAPTIONS[name],
        heads=("Method", "Numbers", *["Venue"] * with_venue),
        levels=("Source", "Target", "Measure"),
        columns=columns,
        lines=lines,
        notes=[*_notes(cells), 'RMSE is what papers of this field call "MSE"'],
    )


def _separation_table(cells: Sequence[Cell]) -> Table:
    phases = {"before": "before training", "after": "after training"}
    measures = {"delta_median": "Δ_med", "sigma_median": "σ_med"}
    columns = [(phase, measure) for phase in phases.values() for measure in measures.values()]
    values: dict[Column, Value]
    lines = []
    for source in sorted({cell["source"] for cell in cells}, key=_rank):
        theirs = {row.partition: row for row in published.separations() if row.source == source}
        own = [cell for cell in cells if cell["source"] == source]
        for label in dict.fromkeys([*theirs, *_variants_of(own)]):
            if label in theirs:
                values = {(phases["after"], name): Value(getattr(theirs[label], key)) for key, name in measures.items()}
                lines.append(Line((source, label, PUBLISHED), values, source))
            group = [cell for cell in own if cell["variant"] == label]
            if group:
                values = {
                    (phases[phase], name): over_seeds([cell[phase][key] for cell in group])
                    for phase in phases
                    for key, name in measures.items()
                }
                lines.append(Line((source, label, OURS), values, source))
    return Table(
        name="separation",
        caption=_CAPTIONS["separation"],
        heads=("Source", "Partition", "Numbers"),
        levels=("When", "Measure"),
        columns=columns,
        lines=lines,
        notes=_notes(cells),
        lower_is_better=False,
    )


def _steadiness_table(cells: Sequence[Cell]) -> Table:
    pairs = sorted(_grouped(cells), key=lambda pair: tuple(map(_rank, pair)))
    measures: dict[str, Callable[[list[float]], float]] = {
        "mean MAE": lambda errors: math.fsum(errors) / len(errors),
        "highest − lowest": lambda errors: max(errors) - min(errors),
    }
    values: dict[Column, Value]
    lines = []
    for label in _variants_of(cells):
        values = {
            (*pair, name): over_seeds(
                [measure([errors["mae"] for errors in cell["by_epoch"].values()]) for cell in group]
            )
            for pair, group in _grouped(cell for cell in cells if cell["variant"] == label).items()
            for name, measure in measures.items()
        }
        lines.append(Line((label,), values))
    return Table(
        name="steadiness",
        caption=_CAPTIONS["steadiness"],
        heads=("Method",),
        levels=("Source", "Target", "Measure"),
        columns=[(*pair, name) for pair in pairs for name in measures],
        lines=lines,
        notes=_notes(cells, chosen=f"nobody: each of the last {LAST_EPOCHS} epochs is counted"),
    )


def _grouped(cells: Iterable[Cell]) -> dict[tuple[str, str], list[Cell]]:
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell["source"], cell["target"]), []).append(cell)
    return groups


def _by_rows(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Put sources together that have the same rows, as the paper does with K."""
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for source in sorted({cell["source"] for cell in cells}, key=_rank):
        own = [cell for cell in cells if cell["source"] == source]
        groups.setdefault(tuple(_variants_of(own)), []).extend(own)
    return list(groups.values())


def _variants_of(cells: Iterable[Cell]) -> list[str]:
    """The rows there are, in the order of the plan."""
    order = [variant for variants in VARIANTS.values() for variant in variants]
    found = {cell["variant"] for cell in cells}
    return sorted(found, key=lambda variant: (order.index(variant) if variant in order else len(order), variant))


def _rank(name: str) -> tuple[int, int, str]:
    """The paper's order first, joint sources after single ones, then the alphabet."""
    return name.count("+"), _ORDER.index(name) if name in _ORDER else len(_ORDER), name


def _notes(cells: Sequence[Cell], chosen: str | None = None) -> list[str]:
    """What is to be known before ours is compared with theirs."""
    seeds = sorted({cell["seed"] for cell in cells})
    numbers = sorted(set(Counter((cell["source"], cell["target"], cell["variant"]) for cell in cells).values()))
    spread = {1: "one seed, so no interval over seeds", 2: "mean of 2 seeds, and both ends"}
    shown = spread.get(numbers[-1], f"mean of {numbers[-1]} seeds with a 95 % t-interval over them")
    if len(numbers) > 1:
        shown = f"means of {numbers[0]} to {numbers[-1]} seeds: no interval for one, both ends for two, 95 % for more"
    made = {f"{cell['config']} ({cell['backbone']}, epochs: {cell['epochs']})" for cell in cells}
    notes = [
        f"ours: {shown} ({', '.join(map(str, seeds))}); {', '.join(sorted(made))}",
        f"models chosen by: {chosen or ', '.join(sorted({cell['selection'] for cell in cells}))}",
    ]
    counted = {_counted(cell): _rank(cell["target"]) for cell in cells if cell["target"]}
    if counted:
        engines = sorted({cell.get("engine", "torch") for cell in cells})
        pictures = ", ".join(sorted(counted, key=lambda text: (counted[text], text)))
        notes.append(f"pictures counted: {pictures}, by {' and '.join(engines)}")
    if any(is_drawn(name) for cell in cells for name in (cell["source"], cell["target"] or "")):
        notes.append("drawn data: to try the machinery out, not to be compared with published numbers")
    return notes


def _counted(cell: Cell) -> str:
    """Say how many pictures of a target stand behind its numbers, and at what size."""
    size = f"longer side up to {cell['max_side']}" if cell["max_side"] else "full size"
    unread = f", {cell['unreadable']} NOT READ" if cell["unreadable"] else ""
    return f"{cell['target']} {cell['images']} ({cell['split']}, {size}{unread})"
