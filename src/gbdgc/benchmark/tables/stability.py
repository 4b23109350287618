"""How steady the pseudo-domains are from epoch to epoch, in real training."""

from collections.abc import Sequence

from gbdgc.benchmark.declaration import Benchmark, Cell
from gbdgc.benchmark.layout import Column, Line, Table, notes, over_seeds
from gbdgc.benchmark.measures import STABILITY_FROM, stability_over_epochs
from gbdgc.benchmark.protocol import rank, source_alone
from gbdgc.benchmark.tables.partition import PARTITIONS

_MEASURES: dict[str, Column] = {"churn": ("churn, %",), "ari": ("ARI, %",), "nmi": ("NMI, %",)}


def layout(benchmark: Benchmark, cells: Sequence[Cell]) -> list[Table]:
    """Show a section per source; nothing is published to compare with."""
    lines = []
    for source in sorted({cell["source"] for cell in cells}, key=rank):
        own = [cell for cell in cells if cell["source"] == source]
        for label in benchmark.ordered(own):
            group = [cell for cell in own if cell["variant"] == label]
            values = {column: over_seeds([100 * cell[key] for cell in group]) for key, column in _MEASURES.items()}
            lines.append(Line((source, label), values, source))
    table = Table(
        name=benchmark.name,
        caption=benchmark.caption,
        heads=("Source", "Partition"),
        levels=("Measure",),
        columns=list(_MEASURES.values()),
        lines=lines,
        notes=[*notes(cells), f"each epoch against the one before, mean over those after epoch {STABILITY_FROM}"],
        marks_best=False,
    )
    return [table]


STABILITY = Benchmark(
    name="stability",
    caption="How steady the pseudo-domains are from epoch to epoch",
    variants=PARTITIONS,
    pairs=source_alone,
    measure=stability_over_epochs,
    layout=layout,
    least_epochs=STABILITY_FROM + 2,
)
