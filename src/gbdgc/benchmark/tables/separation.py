"""How far apart the median counts of the pseudo-domains lie."""

from collections.abc import Sequence

from gbdgc import published
from gbdgc.benchmark.declaration import Benchmark, Cell
from gbdgc.benchmark.layout import OURS, PUBLISHED, Column, Line, Table, Value, notes, over_seeds
from gbdgc.benchmark.measures import separation_of_counts
from gbdgc.benchmark.protocol import rank, source_alone
from gbdgc.benchmark.tables.partition import PARTITIONS

_PHASES = {"before": "before training", "after": "after training"}
_MEASURES = {"delta_median": "Δ_med", "sigma_median": "σ_med"}


def layout(benchmark: Benchmark, cells: Sequence[Cell]) -> list[Table]:
    """Show a section per source; the published numbers are those after training."""
    values: dict[Column, Value]
    lines = []
    for source in sorted({cell["source"] for cell in cells}, key=rank):
        theirs = {row.partition: row for row in published.separations() if row.source == source}
        own = [cell for cell in cells if cell["source"] == source]
        for label in dict.fromkeys([*theirs, *benchmark.ordered(own)]):
            if label in theirs:
                values = {
                    (_PHASES["after"], name): Value(getattr(theirs[label], key)) for key, name in _MEASURES.items()
                }
                lines.append(Line((source, label, PUBLISHED), values, source))
            group = [cell for cell in own if cell["variant"] == label]
            if group:
                values = {
                    (phase, name): over_seeds([cell[when][key] for cell in group])
                    for when, phase in _PHASES.items()
                    for key, name in _MEASURES.items()
                }
                lines.append(Line((source, label, OURS), values, source))
    table = Table(
        name=benchmark.name,
        caption=benchmark.caption,
        heads=("Source", "Partition", "Numbers"),
        levels=("When", "Measure"),
        columns=[(phase, measure) for phase in _PHASES.values() for measure in _MEASURES.values()],
        lines=lines,
        notes=notes(cells),
        lower_is_better=False,
    )
    return [table]


SEPARATION = Benchmark(
    name="separation",
    caption="How far apart the median counts of the pseudo-domains lie",
    variants=PARTITIONS,
    pairs=source_alone,
    measure=separation_of_counts,
    layout=layout,
)
