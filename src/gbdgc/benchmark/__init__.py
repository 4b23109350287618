"""The paper's tables with our own results: one file per table (tables), running them (runner), showing them (text)."""

from gbdgc.benchmark.declaration import Benchmark, Settings
from gbdgc.benchmark.runner import build_tables, read_cells, run_benchmark
from gbdgc.benchmark.tables import BENCHMARKS
from gbdgc.benchmark.text import FORMS, write_tables

__all__ = [
    "BENCHMARKS",
    "FORMS",
    "Benchmark",
    "Settings",
    "build_tables",
    "read_cells",
    "run_benchmark",
    "write_tables",
]
