"""Statistics of a data set: pictures, heads, crowding and sizes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from gbdgc.data.manifest import Dataset
from gbdgc.data.sample import Sample

T = TypeVar("T")

QUANTILES = {"min": 0.0, "5 %": 0.05, "25 %": 0.25, "median": 0.5, "75 %": 0.75, "95 %": 0.95, "max": 1.0}
"""The quantiles of the heads in a picture that a summary holds."""


@dataclass(frozen=True, slots=True)
class SplitSummary:
    """The statistics of one split, or of all; heads and counts are those of the labelled pictures."""

    images: int
    labelled: int
    empty: int
    heads: int
    mean: float | None
    quantiles: dict[str, float]
    width: tuple[int, int]
    height: tuple[int, int]
    megapixels: float


@dataclass(frozen=True, slots=True)
class Bin:
    """One bar of a histogram: pictures with ``low`` to ``high`` heads, both included."""

    low: int
    high: int
    images: int

    @property
    def label(self) -> str:
        """The range as text."""
        if self.low == self.high:
            return f"{self.low:,} head{'s' * (self.low != 1)}"
        return f"{self.low:,} to {self.high:,} heads"


def summarise_samples(samples: Sequence[Sample]) -> SplitSummary:
    """Return the statistics of some samples, at least one."""
    counts = _counts(samples)
    sizes = np.array([(sample.width, sample.height) for sample in samples])
    (narrow, low), (wide, high) = sizes.min(axis=0).tolist(), sizes.max(axis=0).tolist()
    return SplitSummary(
        images=len(samples),
        labelled=len(counts),
        empty=int((counts == 0).sum()),
        heads=int(counts.sum()),
        mean=float(counts.mean()) if len(counts) else None,
        quantiles={name: float(np.quantile(counts, q)) for name, q in QUANTILES.items()} if len(counts) else {},
        width=(narrow, wide),
        height=(low, high),
        megapixels=float(sizes.prod(axis=1).mean() / 1e6),
    )


def summarise_splits(dataset: Dataset) -> dict[str, SplitSummary]:
    """Return the statistics of each split, by its name, and of all where there are several."""
    splits = {
        split or "no split": summarise_samples([sample for sample in dataset if sample.split == split])
        for split in dataset.split_sizes()
    }
    return splits if len(splits) == 1 else {**splits, "all": summarise_samples(dataset)}


def histogram(samples: Sequence[Sample]) -> list[Bin]:
    """Return how many pictures are how crowded; the bins (1, 2, 5, 10, 20 ...) widen as crowds do."""
    counts = _counts(samples)
    if not len(counts):
        return []
    edges = [0, 1]
    while edges[-1] <= counts.max():
        edges += [edges[-1] * 2, edges[-1] * 5, edges[-1] * 10]
    bars = [Bin(low, high - 1, int(((counts >= low) & (counts < high)).sum())) for low, high in pairwise(edges)]
    used = [index for index, bar in enumerate(bars) if bar.images]
    return bars[used[0] : used[-1] + 1]


def tag_counts(samples: Sequence[Sample]) -> dict[str, dict[str, int]]:
    """Return for each tag how many pictures have which of its values, the most frequent first."""
    names = dict.fromkeys(name for sample in samples for name in sample.tags)
    return {
        name: dict(Counter(sample.tags[name] for sample in samples if name in sample.tags).most_common())
        for name in names
    }


def across_counts(samples: Sequence[Sample], number: int) -> list[Sample]:
    """Choose pictures at equal steps from the emptiest to the most crowded; without labels, in order."""
    return at_equal_steps(sorted(samples, key=lambda sample: -1 if sample.count is None else sample.count), number)


def at_equal_steps(items: Sequence[T], number: int) -> list[T]:
    """Choose ``number`` items evenly, from the first to the last; all of them if there are no more."""
    return [items[round(step)] for step in np.linspace(0, len(items) - 1, min(number, len(items)))]


def _counts(samples: Sequence[Sample]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array([sample.count for sample in samples if sample.count is not None], dtype=np.int64)
