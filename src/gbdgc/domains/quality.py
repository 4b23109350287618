"""The quality of a partition: how far apart its counts are, and how stable it is over epochs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from gbdgc.domains.alignment import align_labels, as_labels
from gbdgc.errors import InputError


@dataclass(frozen=True)
class CountSeparation:
    """How far apart the domains' median counts lie.

    Attributes
    ----------
    delta_median : max(m_d) - min(m_d).
    sigma_median : standard deviation of the m_d (over all domains, divisor K).
    medians : m_d, the median count of each domain by its name.
    """

    delta_median: float
    sigma_median: float
    medians: dict[int, float]


def count_separation(labels: ArrayLike, counts: ArrayLike) -> CountSeparation:
    """Measure whether domains are density regimes: the spread of their median counts."""
    domains, people = as_labels(labels, "labels"), np.asarray(counts, dtype=np.float64)
    if people.shape != domains.shape:
        raise InputError("", f"counts has shape {people.shape} for {len(domains)} labels", "give one count per sample")
    if len(domains) == 0:
        raise InputError("", "labels is empty", "there is nothing to separate")
    medians = {int(name): float(np.median(people[domains == name])) for name in np.unique(domains)}
    values = np.array(list(medians.values()))
    return CountSeparation(float(np.ptp(values)), float(values.std()), medians)


@dataclass(frozen=True)
class EpochStability:
    """How one epoch's partition compares with the one before.

    Attributes
    ----------
    churn : share of samples that changed domain, after the names were aligned.
    ari, nmi : adjusted Rand index and normalised mutual information to the epoch before. NaN, like churn, in the first.
    smallest_share : share of samples in the smallest domain: near 0 the partition has collapsed, and a low churn means
        nothing.
    n_domains : how many domains there are.
    """

    epoch: int
    churn: float
    ari: float
    nmi: float
    smallest_share: float
    n_domains: int


def stability(history: Sequence[ArrayLike]) -> list[EpochStability]:
    """Compare each epoch's labels with the epoch before: one row per epoch."""
    rows: list[EpochStability] = []
    previous = None
    for epoch, entry in enumerate(history):
        labels = as_labels(entry, f"history[{epoch}]")
        if len(labels) == 0:
            raise InputError("", f"history[{epoch}] is empty", "give one label per sample")
        if previous is not None and len(labels) != len(previous):
            advice = "give the same samples every epoch"
            raise InputError("", f"history[{epoch}] has {len(labels)} labels, the epoch before {len(previous)}", advice)
        churn = ari = nmi = float("nan")
        if previous is not None:
            churn = float((align_labels(labels, previous) != previous).mean())
            ari = float(adjusted_rand_score(previous, labels))
            nmi = float(normalized_mutual_info_score(previous, labels))
        sizes = np.unique(labels, return_counts=True)[1]
        rows.append(EpochStability(epoch, churn, ari, nmi, float(sizes.min() / sizes.sum()), len(sizes)))
        previous = labels
    return rows
