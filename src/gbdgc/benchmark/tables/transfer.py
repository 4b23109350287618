"""Errors on data sets never seen in training: the paper's main table, and the one on NWPU-Crowd."""

from collections.abc import Sequence

from gbdgc.benchmark.declaration import Benchmark, Cell
from gbdgc.benchmark.layout import Table, error_table
from gbdgc.benchmark.measures import errors_on_target
from gbdgc.benchmark.protocol import JOINT, to_every_other_and_joint

METHOD_ROWS: dict[str, list[str]] = {"plain regression": ["method.name=erm"], "GBDGC": []}


def layout(benchmark: Benchmark, cells: Sequence[Cell]) -> list[Table]:
    """Show the targets that joint sources go to in a table of their own, as the paper does."""
    joint = [cell for cell in cells if cell["target"] in JOINT]
    others = [cell for cell in cells if cell["target"] not in JOINT]
    tables = [error_table(benchmark, others)] if others else []
    if joint:
        caption = "Errors on a large benchmark never seen in training"
        tables.append(error_table(benchmark, joint, name="nwpu", caption=caption))
    return tables


TRANSFER = Benchmark(
    name="transfer",
    caption="Errors on data sets never seen in training",
    variants=METHOD_ROWS,
    pairs=to_every_other_and_joint,
    measure=errors_on_target,
    layout=layout,
)
