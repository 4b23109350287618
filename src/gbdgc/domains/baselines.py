"""Baselines with the same interface: domains by K-means on the samples, at random, and by data set."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from sklearn.base import ClusterMixin
from sklearn.utils import check_random_state

from gbdgc.domains import inputs
from gbdgc.domains.clustering import cluster_distinct
from gbdgc.domains.discovery import GranularBallDomains
from gbdgc.domains.embedded import EmbeddedDomains, WarmStartDomains
from gbdgc.errors import InputError


@dataclass(eq=False, repr=False)
class KMeansDomains(ClusterMixin, WarmStartDomains):
    """Latent domains by K-means on the descriptors themselves.

    Parameters
    ----------
    mode : "paper" is plain K-means, ten starts. "stable" adds the clip, the memory and the hysteresis of
        ``GranularBallDomains(mode="stable")``, the same code.
    n_domains, n_components, random_state : as in `GranularBallDomains`, and so are the attributes; there are no balls.
    """

    n_domains: int | str = "auto"
    n_components: int | None = 256
    mode: str = "paper"
    random_state: int | RandomState | None = 0

    def fit(self, X: ArrayLike, y: Any = None, *, previous_labels: ArrayLike | None = None) -> Self:
        """Find the domains; see `GranularBallDomains.fit`."""
        asked = self._fit(X, previous_labels, cluster_distinct)
        inputs.warn_if_fewer(self.n_domains_, asked)
        return self


@dataclass(eq=False, repr=False)
class RandomDomains(EmbeddedDomains):
    """Random domains, as equal in size as possible: what any discovery has to beat.

    Not a clusterer in scikit-learn's eyes, which expects one to find clusters.

    Parameters
    ----------
    n_domains, n_components, random_state : as in `GranularBallDomains`, and so are the attributes; there are no balls
        and no memory.
    """

    n_domains: int | str = "auto"
    n_components: int | None = 256
    random_state: int | RandomState | None = 0

    def fit(self, X: ArrayLike, y: Any = None, *, previous_labels: ArrayLike | None = None) -> Self:
        """Draw the domains; names are matched to ``previous_labels`` as in the other estimators."""
        table = inputs.check_descriptors(self, X)
        previous = inputs.check_previous(previous_labels, len(table))
        asked = inputs.count_domains(self.n_domains, len(table))
        found = min(asked, len(table))
        labels = check_random_state(self.random_state).permutation(len(table)).astype(np.int64) % found
        inputs.warn_if_fewer(found, asked)
        return self._adopt(table, labels, previous)


@dataclass(eq=False, repr=False)
class SourceDomains(EmbeddedDomains):
    """The sources of the samples as their domains.

    Parameters
    ----------
    balls : divide each source further by `GranularBallDomains`, into its share of ``n_domains``.
    n_domains : used with ``balls`` only: the number over all sources together, at least one each.
    n_components, random_state : as in `GranularBallDomains`, and so are the attributes.
    """

    n_domains: int | str = "auto"
    n_components: int | None = 256
    balls: bool = False
    random_state: int | RandomState | None = 0

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, *, previous_labels: ArrayLike | None = None) -> Self:
        """Take the source of each sample from ``y``, any kind of label; without it all are of one source."""
        table = inputs.check_descriptors(self, X)
        previous = inputs.check_previous(previous_labels, len(table))
        given = np.zeros(len(table)) if y is None else np.asarray(y)
        if given.shape != (len(table),):
            raise InputError("", f"y has shape {given.shape} for {len(table)} samples", "give a source per sample")
        names, sources = np.unique(given, return_inverse=True)
        if not self.balls:
            return self._adopt(table, sources, previous)
        # Domains of the balls within each source, numbered over all of them.
        share = max(1, inputs.count_domains(self.n_domains, len(table)) // len(names))
        labels = np.empty(len(table), dtype=np.int64)
        used = 0
        for source in range(len(names)):
            members = np.flatnonzero(sources == source)
            own = GranularBallDomains(
                n_domains=min(share, len(members)), n_components=self.n_components, random_state=self.random_state
            ).fit(table[members])
            labels[members] = own.labels_ + used
            used += own.n_domains_
        return self._adopt(table, labels, previous)
