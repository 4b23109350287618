"""What each benchmark runs: variants of the method as plain overrides, and which source goes to which target."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from gbdgc.errors import InputError

JOINT = {"NWPU": ("SHA", "SHB"), "drawn N": ("drawn A", "drawn B")}
"""Data sets that are targets only, of models trained on each of these two and on both together."""

K = {"SHA": 4, "SHB": 3, "QNRF": 6, "SHA+SHB": 5}
"""The paper's number of pseudo-domains; other sources take the fourth root of their size."""

MAX_SIDE = {"QNRF": 1920}
"""The protocol's limit to the longer side, in training and as a target."""

LAST_EPOCHS = 3
"""Over so many it is asked how steady a model is."""

_PAPER, _STABLE = "discovery.mode=paper", "discovery.mode=stable"
_PARTITIONS: dict[str, list[str]] = {
    "random": ["discovery.partition=random", _PAPER],
    "k-means": ["discovery.partition=kmeans", _PAPER],
    "granular balls": ["discovery.partition=balls", _PAPER],
    "k-means, stable": ["discovery.partition=kmeans", _STABLE],
    "granular balls, stable": ["discovery.partition=balls", _STABLE],
}
_METHODS: dict[str, list[str]] = {"plain regression": ["method.name=erm"], "GBDGC": []}
_WITHOUT = {name: f"method.{name}=0" for name in ("semantic", "style", "orthogonality")}

VARIANTS: dict[str, dict[str, list[str]]] = {
    "transfer": _METHODS,
    "within": _METHODS,
    "partition": _PARTITIONS,
    "separation": _PARTITIONS,
    "components": {
        # SCR is the codebook; SBR is the style branch with all three losses that speak of pseudo-domains.
        "baseline": ["method.name=erm"],
        "+SCR": list(_WITHOUT.values()),
        "+SCR+SBR": [],
        "without L_sem": [_WITHOUT["semantic"]],
        "without L_sty": [_WITHOUT["style"]],
        "without L_orth": [_WITHOUT["orthogonality"]],
    },
    "steadiness": {
        # The two losses that have a trivial or a costly optimum as printed, and as we would have them.
        **_METHODS,
        "L_sem count-free": ["method.alignment=count_free"],
        "L_sty separated": ["method.style_form=separated"],
    },
}
"""The rows of each table, under the names that the published ones have; those of `k` depend on the source."""

BENCHMARKS = ("transfer", "within", "partition", "k", "components", "separation", "steadiness")


class Job(NamedTuple):
    """A variant trained on a source, and where it is counted."""

    source: str
    """A data set, or several joined by +."""
    variant: str
    overrides: tuple[str, ...]
    targets: tuple[str, ...]
    """Empty where the question is about the source itself."""


def plan(benchmark: str, names: Sequence[str], size: Callable[[str], int]) -> list[Job]:
    """Return the jobs of a benchmark on the data sets that are there.

    Parameters
    ----------
    benchmark : one of BENCHMARKS.
    names : the data sets.
    size : from a source's name to how many pictures it has to train on.
    """
    if benchmark not in BENCHMARKS:
        raise InputError(f"no benchmark {benchmark!r}; there are: {', '.join(BENCHMARKS)}")
    targets = dict.fromkeys(_sources(names), ()) if benchmark == "separation" else _pairs(names, benchmark)
    if not targets:
        raise InputError(f"{benchmark}: nothing to run on {', '.join(names) or 'no data'}; it wants two data sets")
    return [
        Job(source, variant, tuple(overrides), targets[source])
        for source in targets
        for variant, overrides in _variants(benchmark, source, size).items()
    ]


def protocol(source: str) -> list[str]:
    """The settings that belong to a source rather than to a method."""
    overrides = [f"discovery.n_domains={K.get(source, 'null')}"]
    if source in MAX_SIDE:
        overrides.append(f"data.max_side={MAX_SIDE[source]}")
    return overrides


def _sources(names: Sequence[str]) -> list[str]:
    return [name for name in names if name not in JOINT]


def _pairs(names: Sequence[str], benchmark: str) -> dict[str, tuple[str, ...]]:
    """Every source to every other, or to its own test set; those of JOINT only in the table that has them."""
    single = _sources(names)
    if benchmark == "within":
        return {source: (source,) for source in single}
    pairs = {source: tuple(name for name in single if name != source) for source in single}
    if benchmark == "transfer":
        for target, parts in JOINT.items():
            there = [name for name in parts if name in names] if target in names else []
            for source in [*there, "+".join(parts)] if len(there) == len(parts) else there:
                pairs[source] = (*pairs.get(source, ()), target)
    return {source: targets for source, targets in pairs.items() if targets}


def _variants(benchmark: str, source: str, size: Callable[[str], int]) -> Mapping[str, list[str]]:
    return _numbers_near(size(source)) if benchmark == "k" else VARIANTS[benchmark]


def _numbers_near(size: int) -> dict[str, list[str]]:
    """K around N^(1/4): for 300, 400 and 1201 pictures the very numbers that the paper tries."""
    middle = max(3, round(size**0.25))
    return {f"K={k}": [f"discovery.n_domains={k}"] for k in (middle - 1, middle, middle + 1)}
