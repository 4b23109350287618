"""How far apart the median counts of the pseudo-domains lie."""

import itertools
from collections.abc import Sequence

from gbdgc import published
from gbdgc.benchmark.declaration import Benchmark, Cell
from gbdgc.benchmark.layout import OURS, PUBLISHED, Column, Line, Table, Value, by_source, notes, over_seeds
from gbdgc.benchmark.measures import separation_of_counts
from gbdgc.benchmark.protocol import source_alone
from gbdgc.benchmark.tables.partition import PARTITION_ROWS

_PHASES = {"before": "before training", "after": "after training"}
_MEASURES = {"delta_median": "Δ_med", "sigma_median": "σ_med"}


def layout(benchmark: Benchmark, cells: Sequence[Cell]) -> list[Table]:
    """Show a section per source; the published numbers are those after training."""
    values: dict[Column, Value]
    lines = []
    for source, of_source in by_source(cells).items():
        theirs = {row.partition: row for row in published.separations() if row.source == source}
        ours = benchmark.rows(of_source)
        for label in dict.fromkeys([*theirs, *ours]):
            if label in theirs:
                row = theirs[label]
                values = {(_PHASES["after"], name): Value(getattr(row, key)) for key, name in _MEASURES.items()}
                lines.append(Line((source, label, PUBLISHED), values, source))
            if label in ours:
                values = {
                    (phase, name): over_seeds([cell[when][key] for cell in ours[label]])
                    for when, phase in _PHASES.items()
                    for key, name in _MEASURES.items()
                }
                lines.append(Line((source, label, OURS), values, source))
    columns = list(itertools.product(_PHASES.values(), _MEASURES.values()))
    heads, levels = ("Source", "Partition", "Numbers"), ("When", "Measure")
    table = Table(benchmark.name, benchmark.caption, columns, lines, notes(cells), heads, levels, lower_is_better=False)
    return [table]


SEPARATION = Benchmark(
    name="separation",
    caption="How far apart the median counts of the pseudo-domains lie",
    variants=PARTITION_ROWS,
    pairs=source_alone,
    measure=separation_of_counts,
    layout=layout,
)
