"""Base classes of the estimators: descriptors on reduced axes, and a memory for stability across epochs."""

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gbdgc.domains import inputs, stable
from gbdgc.domains.alignment import name_domains
from gbdgc.domains.clustering import Clusters, nearest, one_thread
from gbdgc.domains.reduction import Reduction, fit_reduction
from gbdgc.domains.tree import Floats, Integers
from gbdgc.errors import InputError


class EmbeddedDomains(BaseEstimator):
    """Domains with centers on the reduced axes.

    Estimators are dataclasses, whose fields are the constructor's arguments: it stores them, and ``fit`` checks them.
    """

    n_domains: int | str
    n_components: int | None
    random_state: int | RandomState | None
    labels_: Integers
    n_domains_: int
    domains_: Integers
    domain_centers_: Floats
    embedding_: Floats
    _reduction: Reduction
    _normalization: stable.Normalization | None

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
            return Z if self._normalization is None else self._normalization(Z)

    def fit_predict(self, X: ArrayLike, y: Any = None, **fit_arguments: Any) -> Integers:
        """Find the domains and return them."""
        labels: Integers = self.fit(X, y, **fit_arguments).labels_
        return labels

    def _embed(self, table: Floats, overwrite: bool = False) -> None:
        """Choose the axes and project the descriptors onto them, in place or into a copy."""
        self._reduction = fit_reduction(table, inputs.check_components(self.n_components), in_chunks=overwrite)
        self._normalization = None
        self.embedding_ = self._reduction.in_place(table) if overwrite else self._reduction(table)

    def _adopt(self, table: Floats, labels: Integers, previous: Integers | None) -> Self:
        """Use given labels 0 .. K-1, which were not found in the descriptors, as the domains."""
        with one_thread():
            self._embed(table)
        centers = np.stack([self.embedding_[labels == k].mean(axis=0) for k in range(labels.max() + 1)])
        self.labels_, self.domains_, self.domain_centers_ = name_domains(labels, centers, previous)
        self.n_domains_ = len(centers)
        return self


class WarmStartDomains(EmbeddedDomains):
    """Domains that can start from what earlier epochs found."""

    mode: str
    memory_: stable.Memory

    def restore(self, memory: Mapping[str, Any]) -> Self:
        """Load a saved ``memory_``, so that the next ``fit(X, previous_labels=...)`` continues from it.

        ``memory_`` holds plain arrays ("descriptors", "epochs"): save it with ``numpy.savez`` or in a checkpoint.
        """
        self.memory_ = stable.check_memory(memory)
        return self

    def _fit(
        self,
        X: ArrayLike,
        previous_labels: ArrayLike | None,
        find: Callable[[Floats, int, RandomState], Clusters],
        overwrite: bool = False,
    ) -> int:
        """Find clusters in checked descriptors and name them; return how many were asked for."""
        table = inputs.check_descriptors(self, X, overwrite=overwrite)
        if self.mode not in ("paper", "stable"):
            raise InputError("", f"mode is {self.mode!r}", "give 'paper' or 'stable'")
        previous = inputs.check_previous(previous_labels, len(table))
        asked = inputs.count_domains(self.n_domains, len(table))
        random_state = check_random_state(self.random_state)
        with one_thread():
            self._embed(table, overwrite)
            if self.mode == "stable":
                past = None if previous is None else getattr(self, "memory_", None)
                self._normalization, self.memory_ = stable.average_with_past(self.embedding_, past)
                self.embedding_ = self.memory_["descriptors"]
                found = find(self.embedding_, asked, random_state)
                partition = stable.refine(self.embedding_, found.centers, previous)
            else:
                found = find(self.embedding_, asked, random_state)
                partition = name_domains(found.labels, found.centers, previous)
        self.labels_, self.domains_, self.domain_centers_ = partition
        self.n_domains_ = len(self.domains_)
        return asked
