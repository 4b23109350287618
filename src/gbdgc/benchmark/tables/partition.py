"""How the pseudo-domains are found: at random, by K-means, by granular balls."""

from gbdgc.benchmark.declaration import Benchmark
from gbdgc.benchmark.layout import one_error_table
from gbdgc.benchmark.measures import errors_on_target
from gbdgc.benchmark.protocol import to_every_other

_PAPER, _STABLE = "discovery.mode=paper", "discovery.mode=stable"

PARTITION_ROWS: dict[str, list[str]] = {
    "random": ["discovery.partition=random", _PAPER],
    "k-means": ["discovery.partition=kmeans", _PAPER],
    "granular balls": ["discovery.partition=balls", _PAPER],
    "k-means, stable": ["discovery.partition=kmeans", _STABLE],
    "granular balls, stable": ["discovery.partition=balls", _STABLE],
}

PARTITION = Benchmark(
    name="partition",
    caption="How the pseudo-domains are found",
    variants=PARTITION_ROWS,
    pairs=to_every_other,
    measure=errors_on_target,
    layout=one_error_table,
)
