"""The estimators of latent domains, by the names used in settings and on the command line."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, Self

from numpy.typing import ArrayLike

from gbdgc.domains.baselines import KMeansDomains, RandomDomains, SourceDomains
from gbdgc.domains.discovery import GranularBallDomains
from gbdgc.domains.tree import Floats, Integers


class Partition(Protocol):
    """An estimator of latent domains; see `GranularBallDomains` for what each attribute is."""

    labels_: Integers
    n_domains_: int
    domains_: Integers
    domain_centers_: Floats
    embedding_: Floats

    def fit(self, X: ArrayLike, y: Any = None, *, previous_labels: ArrayLike | None = None) -> Self:
        """Find the domains, under the names of ``previous_labels`` where they are given; ``y`` has their sources."""


PARTITIONS: dict[str, Callable[..., Partition]] = {
    "balls": GranularBallDomains,
    "kmeans": KMeansDomains,
    "random": RandomDomains,
    "source": SourceDomains,
    "source+balls": partial(SourceDomains, balls=True),
}


def build_partition(name: str, **options: Any) -> Partition:
    """Return the estimator of that name; options that are None, or that it does not have, are left out."""
    known = inspect.signature(PARTITIONS[name]).parameters
    return PARTITIONS[name](**{key: value for key, value in options.items() if key in known and value is not None})
