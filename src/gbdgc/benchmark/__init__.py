"""The paper's tables, filled by our own runs: what to run (plan), running it (grid), and the tables (tables, text)."""

from gbdgc.benchmark.drawn import draw_benchmark_data
from gbdgc.benchmark.grid import Settings, read_cells, run_benchmark
from gbdgc.benchmark.plan import BENCHMARKS
from gbdgc.benchmark.tables import Line, Table, Value, build_tables
from gbdgc.benchmark.text import FORMS, write_tables

__all__ = [
    "BENCHMARKS",
    "FORMS",
    "Line",
    "Settings",
    "Table",
    "Value",
    "build_tables",
    "draw_benchmark_data",
    "read_cells",
    "run_benchmark",
    "write_tables",
]
