"""How much the error on the target differs between the last epochs, with two losses as printed and as revised."""

import math
from collections.abc import Callable, Sequence

from gbdgc.benchmark.declaration import Benchmark, Cell
from gbdgc.benchmark.layout import Column, Line, Table, Value, by_pair, notes, over_seeds
from gbdgc.benchmark.measures import errors_by_epoch
from gbdgc.benchmark.protocol import LAST_EPOCHS, rank, to_every_other
from gbdgc.benchmark.tables.transfer import METHODS

_MEASURES: dict[str, Callable[[list[float]], float]] = {
    "mean MAE": lambda errors: math.fsum(errors) / len(errors),
    "highest − lowest": lambda errors: max(errors) - min(errors),
}


def layout(benchmark: Benchmark, cells: Sequence[Cell]) -> list[Table]:
    """Show mean and range of the MAE over the last epochs; there is nothing published to compare with."""
    values: dict[Column, Value]
    lines = []
    for label in benchmark.ordered(cells):
        values = {
            (*pair, name): over_seeds(
                [measure([errors["mae"] for errors in cell["by_epoch"].values()]) for cell in group]
            )
            for pair, group in by_pair(cell for cell in cells if cell["variant"] == label).items()
            for name, measure in _MEASURES.items()
        }
        lines.append(Line((label,), values))
    pairs = sorted(by_pair(cells), key=lambda pair: tuple(map(rank, pair)))
    table = Table(
        name=benchmark.name,
        caption=benchmark.caption,
        heads=("Method",),
        levels=("Source", "Target", "Measure"),
        columns=[(*pair, name) for pair in pairs for name in _MEASURES],
        lines=lines,
        notes=notes(cells, chosen=f"none: each of the last {LAST_EPOCHS} epochs is counted"),
    )
    return [table]


EPOCH_SPREAD = Benchmark(
    name="epoch_spread",
    caption="The error on the target over the last epochs",
    variants={
        # The two losses that have a trivial or a costly optimum as printed, and as we would have them.
        **METHODS,
        "L_sem count-free": ["method.alignment=count_free"],
        "L_sty separated": ["method.style_form=separated"],
    },
    pairs=to_every_other,
    measure=errors_by_epoch,
    layout=layout,
    least_epochs=LAST_EPOCHS,
)
