"""What balls have to beat: domains by K-means on the samples, and domains by lot. Same interface."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gbdgc.domains import inputs, stable
from gbdgc.domains.alignment import name_domains
from gbdgc.domains.clustering import cluster_distinct, nearest, one_thread
from gbdgc.domains.reduction import fit_reduction
from gbdgc.domains.tree import Floats, Integers


class KMeansDomains(ClusterMixin, BaseEstimator):
    """Latent domains by K-means on the descriptors themselves.

    Parameters
    ----------
    n_domains : int or "auto", default="auto"
        How many domains, K; "auto" is max(2, round(N^(1/4))).
    n_components : int or None, default=256
        PCA axes kept at most; None takes descriptors as they are.
    mode : "paper" or "stable", default="paper"
        "paper" is plain K-means, ten starts. "stable" adds the clip, the memory and the hysteresis of
        ``GranularBallDomains(mode="stable")``, line for line the same code.
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
            self._reduction = fit_reduction(table, inputs.check_components(self.n_components))
            Z = self._reduction(table)
            if self.mode == "stable":
                past = stable.recall(Z, None if previous is None else getattr(self, "memory_", None))
                self._frame: stable.Frame | None = past.frame
                self.memory_ = past.as_memory()
                self.embedding_ = past.descriptors
                found = cluster_distinct(self.embedding_, asked, random_state)
                partition = stable.settle(self.embedding_, found.centers, previous)
            else:
                self._frame = None
                self.embedding_ = Z
                found = cluster_distinct(Z, asked, random_state)
                partition = name_domains(found.labels, found.centers, previous)
        self.labels_, self.domains_, self.domain_centers_ = partition
        self.n_domains_ = len(self.domains_)
        inputs.warn_if_fewer(self.n_domains_, asked)
        return self

    def predict(self, X: ArrayLike) -> Integers:
        """Return the domain of the nearest domain center."""
        Z = self.reduce(X)
        with one_thread():
            return np.asarray(self.domains_[nearest(Z, self.domain_centers_)])

    def reduce(self, X: ArrayLike) -> Floats:
        """Return descriptors on the axes where ``domain_centers_`` lie."""
        check_is_fitted(self)
        table = inputs.check_descriptors(self, X, reset=False)
        with one_thread():
            Z = self._reduction(table)
            return Z if self._frame is None else self._frame(Z)

    def restore(self, memory: Mapping[str, Any]) -> Self:
        """Take up a saved ``memory_``; see `GranularBallDomains.restore`."""
        self.memory_ = stable.check_memory(memory)
        return self


class RandomDomains(BaseEstimator):
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
            self._reduction = fit_reduction(table, inputs.check_components(self.n_components))
            self.embedding_ = self._reduction(table)
        centers = np.stack([self.embedding_[labels == k].mean(axis=0) for k in range(found)])
        self.labels_, self.domains_, self.domain_centers_ = name_domains(labels, centers, previous)
        self.n_domains_ = found
        inputs.warn_if_fewer(found, asked)
        return self

    def fit_predict(self, X: ArrayLike, y: Any = None, **fit_arguments: Any) -> Integers:
        """Draw the domains and return them."""
        return self.fit(X, y, **fit_arguments).labels_

    def predict(self, X: ArrayLike) -> Integers:
        """Return the domain of the nearest domain center."""
        Z = self.reduce(X)
        with one_thread():
            return np.asarray(self.domains_[nearest(Z, self.domain_centers_)])

    def reduce(self, X: ArrayLike) -> Floats:
        """Return descriptors on the axes where ``domain_centers_`` lie."""
        check_is_fitted(self)
        table = inputs.check_descriptors(self, X, reset=False)
        with one_thread():
            return self._reduction(table)
