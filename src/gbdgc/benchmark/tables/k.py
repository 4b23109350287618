"""How many pseudo-domains there are."""

from collections.abc import Sequence

from gbdgc.benchmark.declaration import Benchmark, Cell, Variants
from gbdgc.benchmark.layout import Table, by_source, error_table
from gbdgc.benchmark.measures import errors_on_target
from gbdgc.benchmark.protocol import to_every_other


def numbers_near(size: int) -> Variants:
    """Return K around N^(1/4): for 300, 400 and 1201 pictures the very numbers that the paper tries."""
    middle = max(3, round(size**0.25))
    return {f"K={k}": [f"discovery.n_domains={k}"] for k in (middle - 1, middle, middle + 1)}


def layout(benchmark: Benchmark, cells: Sequence[Cell]) -> list[Table]:
    """Show sources with the same rows in one table, as the paper does."""
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for own in by_source(cells).values():
        groups.setdefault(tuple(benchmark.rows(own)), []).extend(own)
    return [error_table(benchmark, group) for group in groups.values()]


NUMBER_OF_DOMAINS = Benchmark(
    name="k",
    caption="How many pseudo-domains there are",
    variants=numbers_near,
    pairs=to_every_other,
    measure=errors_on_target,
    layout=layout,
)
