"""What balls have to beat: domains by K-means on the samples, and domains by lot. Same interface."""

from typing import Any, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from sklearn.base import ClusterMixin
from sklearn.utils import check_random_state

from gbdgc.domains import inputs, stable
from gbdgc.domains.alignment import name_domains
from gbdgc.domains.clustering import cluster_distinct, one_thread
from gbdgc.domains.embedded import EmbeddedDomains, WarmStartDomains
from gbdgc.domains.tree import Integers


class KMeansDomains(ClusterMixin, WarmStartDomains):
    """Latent domains by K-means on the descriptors themselves.

    Parameters
    ----------
    n_domains : int or "auto", default="auto"
        How many domains, K; "auto" is max(2, round(N^(1/4))).
    n_components : int or None, default=256
        PCA axes kept at most; None takes descriptors as they are.
    mode : "paper" or "stable", default="paper"
        "paper" is plain K-means, ten starts. "stable" adds the clip, the memory and the hysteresis of
        ``GranularBallDomains(mode="stable")``, the same code.
    random_state : int, RandomState or None, default=0
        Seed of K-means.

    Attributes
    ----------
    labels_, n_domains_, domains_, domain_centers_, embedding_, memory_
        As in `GranularBallDomains`.
    """

    def __init__(
        self,
        n_domains: int | str = "auto",
        n_components: int | None = 256,
        mode: str = "paper",
        random_state: int | RandomState | None = 0,
    ) -> None:
        self.n_domains = n_domains
        self.n_components = n_components
        self.mode = mode
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: Any = None, *, previous_labels: ArrayLike | None = None) -> Self:
        """Find the domains; see `GranularBallDomains.fit`."""
        table = inputs.check_descriptors(self, X)
        inputs.check_mode(self.mode, ("paper", "stable"))
        previous = inputs.check_previous(previous_labels, len(table))
        asked = inputs.count_domains(self.n_domains, len(table))
        random_state = check_random_state(self.random_state)
        with one_thread():
            if self.mode == "stable":
                self._embed_averaged(table, previous)
                found = cluster_distinct(self.embedding_, asked, random_state)
                partition = stable.refine(self.embedding_, found.centers, previous)
            else:
                self._embed(table)
                found = cluster_distinct(self.embedding_, asked, random_state)
                partition = name_domains(found.labels, found.centers, previous)
        self.labels_, self.domains_, self.domain_centers_ = partition
        self.n_domains_ = len(self.domains_)
        inputs.warn_if_fewer(self.n_domains_, asked)
        return self


class RandomDomains(EmbeddedDomains):
    """Domains by lot, as equal in size as can be: what any discovery has to beat.

    Not a clusterer in scikit-learn's eyes, which expects one to find clusters.

    Parameters
    ----------
    n_domains : int or "auto", default="auto"
        How many domains, K; "auto" is max(2, round(N^(1/4))).
    n_components : int or None, default=256
        PCA axes kept at most, for ``domain_centers_``; None takes descriptors as they are.
    random_state : int, RandomState or None, default=0
        Seed of the lot.

    Attributes
    ----------
    labels_, n_domains_, domains_, domain_centers_, embedding_
        As in `GranularBallDomains`.
    """

    def __init__(
        self,
        n_domains: int | str = "auto",
        n_components: int | None = 256,
        random_state: int | RandomState | None = 0,
    ) -> None:
        self.n_domains = n_domains
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: Any = None, *, previous_labels: ArrayLike | None = None) -> Self:
        """Draw the domains; names are matched to ``previous_labels`` like everybody's."""
        table = inputs.check_descriptors(self, X)
        previous = inputs.check_previous(previous_labels, len(table))
        asked = inputs.count_domains(self.n_domains, len(table))
        found = min(asked, len(table))
        labels = check_random_state(self.random_state).permutation(len(table)).astype(np.int64) % found
        with one_thread():
            self._embed(table)
        centers = np.stack([self.embedding_[labels == k].mean(axis=0) for k in range(found)])
        self.labels_, self.domains_, self.domain_centers_ = name_domains(labels, centers, previous)
        self.n_domains_ = found
        inputs.warn_if_fewer(found, asked)
        return self

    def fit_predict(self, X: ArrayLike, y: Any = None, **fit_arguments: Any) -> Integers:
        """Draw the domains and return them."""
        return self.fit(X, y, **fit_arguments).labels_
