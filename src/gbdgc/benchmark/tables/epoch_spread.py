"""How much the error on the target differs between the last epochs, with two losses as printed and as revised."""

import math
from collections.abc import Sequence

from gbdgc.benchmark.declaration import Benchmark, Cell
from gbdgc.benchmark.layout import Line, Measures, Table, notes, pair_columns, pair_values
from gbdgc.benchmark.measures import errors_by_epoch
from gbdgc.benchmark.protocol import LAST_EPOCHS, to_every_other
from gbdgc.benchmark.tables.transfer import METHOD_ROWS

_MEASURES: Measures = {
    "mean MAE": lambda cell: math.fsum(_by_epoch(cell)) / len(_by_epoch(cell)),
    "highest − lowest": lambda cell: max(_by_epoch(cell)) - min(_by_epoch(cell)),
}


def _by_epoch(cell: Cell) -> list[float]:
    return [errors["mae"] for errors in cell["by_epoch"].values()]


def layout(benchmark: Benchmark, cells: Sequence[Cell]) -> list[Table]:
    """Show mean and range of the MAE over the last epochs; there is nothing published to compare with."""
    lines = [Line((label,), pair_values(own, _MEASURES)) for label, own in benchmark.rows(cells).items()]
    shown = notes(cells, chosen=f"none: each of the last {LAST_EPOCHS} epochs is counted")
    return [Table(benchmark.name, benchmark.caption, pair_columns(cells, _MEASURES), lines, shown)]


EPOCH_SPREAD = Benchmark(
    name="epoch_spread",
    caption="The error on the target over the last epochs",
    variants={
        # The two losses that have a trivial or a costly optimum as printed, and as we would have them.
        **METHOD_ROWS,
        "L_sem count-free": ["method.alignment=count_free"],
        "L_sty separated": ["method.style_form=separated"],
    },
    pairs=to_every_other,
    measure=errors_by_epoch,
    layout=layout,
    least_epochs=LAST_EPOCHS,
)
