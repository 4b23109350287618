"""Domains that are known: the data set that each sample came from, alone or divided further by balls."""

from typing import Any, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike

from gbdgc.domains import inputs
from gbdgc.domains.alignment import name_domains
from gbdgc.domains.clustering import one_thread
from gbdgc.domains.discovery import GranularBallDomains
from gbdgc.domains.embedded import EmbeddedDomains
from gbdgc.domains.tree import Integers
from gbdgc.errors import InputError


class SourceDomains(EmbeddedDomains):
    """The sources of the samples as their domains.

    Parameters
    ----------
    balls : bool, default=False
        Divide each source further by `GranularBallDomains`, into its share of ``n_domains``.
    n_domains : int or "auto"
        Used with ``balls`` only: the number over all sources together, at least one each.
    n_components, random_state
        As in `GranularBallDomains`, and so are the attributes.
    """

    def __init__(
        self,
        n_domains: int | str = "auto",
        n_components: int | None = 256,
        balls: bool = False,
        random_state: int | RandomState | None = 0,
    ) -> None:
        self.n_domains = n_domains
        self.n_components = n_components
        self.balls = balls
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, *, previous_labels: ArrayLike | None = None) -> Self:
        """Take the source of each sample from ``y``, any kind of label; without it all are of one source."""
        table = inputs.check_descriptors(self, X)
        previous = inputs.check_previous(previous_labels, len(table))
        given = np.zeros(len(table)) if y is None else np.asarray(y)
        if given.shape != (len(table),):
            raise InputError("", f"y has shape {given.shape} for {len(table)} samples", "give a source per sample")
        sources, labels = np.unique(given, return_inverse=True)
        if self.balls:
            labels = self._divide(table, labels, len(sources))
        with one_thread():
            self._embed(table)
        centers = np.stack([self.embedding_[labels == k].mean(axis=0) for k in range(labels.max() + 1)])
        self.labels_, self.domains_, self.domain_centers_ = name_domains(labels, centers, previous)
        self.n_domains_ = len(centers)
        return self

    def fit_predict(self, X: ArrayLike, y: Any = None, **fit_arguments: Any) -> Integers:
        """Return the domain of each sample."""
        return self.fit(X, y, **fit_arguments).labels_

    def _divide(self, table: Any, sources: Integers, n_sources: int) -> Integers:
        """Return labels of the balls' domains within each source, numbered over all of them."""
        share = max(1, inputs.count_domains(self.n_domains, len(table)) // n_sources)
        labels = np.empty(len(table), dtype=np.int64)
        used = 0
        for source in range(n_sources):
            members = np.flatnonzero(sources == source)
            own = GranularBallDomains(
                n_domains=min(share, len(members)), n_components=self.n_components, random_state=self.random_state
            ).fit(table[members])
            labels[members] = own.labels_ + used
            used += own.n_domains_
        return labels
