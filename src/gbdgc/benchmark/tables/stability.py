"""How steady the pseudo-domains are from epoch to epoch, in real training."""

from collections.abc import Sequence

from gbdgc.benchmark.declaration import Benchmark, Cell
from gbdgc.benchmark.layout import Column, Line, Table, by_source, notes, over_seeds
from gbdgc.benchmark.measures import STABILITY_FROM, stability_over_epochs
from gbdgc.benchmark.protocol import source_alone
from gbdgc.benchmark.tables.partition import PARTITIONS

_MEASURES: dict[str, Column] = {"churn": ("churn, %",), "ari": ("ARI, %",), "nmi": ("NMI, %",)}


def layout(benchmark: Benchmark, cells: Sequence[Cell]) -> list[Table]:
    """Show a section per source; nothing is published to compare with."""
    lines = []
    for source, of_source in by_source(cells).items():
        for label, own in benchmark.rows(of_source).items():
            values = {column: over_seeds([100 * cell[key] for cell in own]) for key, column in _MEASURES.items()}
            lines.append(Line((source, label), values, source))
    shown = [*notes(cells), f"each epoch against the one before, mean over those after epoch {STABILITY_FROM}"]
    columns, heads, levels = list(_MEASURES.values()), ("Source", "Partition"), ("Measure",)
    return [Table(benchmark.name, benchmark.caption, columns, lines, shown, heads, levels, marks_best=False)]


STABILITY = Benchmark(
    name="stability",
    caption="How steady the pseudo-domains are from epoch to epoch",
    variants=PARTITIONS,
    pairs=source_alone,
    measure=stability_over_epochs,
    layout=layout,
    least_epochs=STABILITY_FROM + 2,
)
