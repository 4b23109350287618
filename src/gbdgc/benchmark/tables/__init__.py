"""The benchmarks: one file each, and one line here."""

from gbdgc.benchmark.declaration import Benchmark
from gbdgc.benchmark.tables.components import COMPONENTS
from gbdgc.benchmark.tables.domains import USE_OF_DOMAINS
from gbdgc.benchmark.tables.epoch_spread import EPOCH_SPREAD
from gbdgc.benchmark.tables.k import NUMBER_OF_DOMAINS
from gbdgc.benchmark.tables.partition import PARTITION
from gbdgc.benchmark.tables.separation import SEPARATION
from gbdgc.benchmark.tables.stability import STABILITY
from gbdgc.benchmark.tables.transfer import TRANSFER
from gbdgc.benchmark.tables.within import WITHIN
from gbdgc.errors import UsageError

_ALL = (TRANSFER, WITHIN, USE_OF_DOMAINS, STABILITY, PARTITION, NUMBER_OF_DOMAINS, COMPONENTS, SEPARATION, EPOCH_SPREAD)
BENCHMARKS: dict[str, Benchmark] = {each.name: each for each in _ALL}


def find_benchmark(name: str) -> Benchmark:
    """Return the benchmark of that name."""
    if name not in BENCHMARKS:
        raise UsageError("", f"no benchmark {name!r}", f"there are: {', '.join(BENCHMARKS)}")
    return BENCHMARKS[name]
