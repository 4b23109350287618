"""Errors on the test set that belongs to the source."""

from gbdgc.benchmark.declaration import Benchmark
from gbdgc.benchmark.layout import one_error_table
from gbdgc.benchmark.measures import errors_on_target
from gbdgc.benchmark.protocol import to_itself
from gbdgc.benchmark.tables.transfer import METHOD_ROWS

WITHIN = Benchmark(
    name="within",
    caption="Errors on the source's own test set",
    variants=METHOD_ROWS,
    pairs=to_itself,
    measure=errors_on_target,
    layout=one_error_table,
)
