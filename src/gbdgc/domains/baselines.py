"""What balls have to beat: domains by K-means on the samples, and domains by lot. Same interface."""

from typing import Any, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from sklearn.base import ClusterMixin
from sklearn.utils import check_random_state

from gbdgc.domains import inputs
from gbdgc.domains.alignment import name_domains
from gbdgc.domains.clustering import cluster_distinct, one_thread
from gbdgc.domains.embedded import EmbeddedDomains, WarmStartDomains
from gbdgc.domains.tree import Integers


class KMeansDomains(ClusterMixin, WarmStartDomains):
    """Latent domains by K-means on the descriptors themselves.

    Parameters
    ----------
    mode : "paper" or "stable", default="paper"
        "paper" is plain K-means, ten starts. "stable" adds the clip, the memory and the hysteresis of
        ``GranularBallDomains(mode="stable")``, the same code.
    n_domains, n_components, random_state : as in `GranularBallDomains`, and so are the attributes; there are no balls.
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
        asked = self._fit(X, previous_labels, cluster_distinct)
        inputs.warn_if_fewer(self.n_domains_, asked)
        return self


class RandomDomains(EmbeddedDomains):
    """Domains by lot, as equal in size as can be: what any discovery has to beat.

    Not a clusterer in scikit-learn's eyes, which expects one to find clusters.

    Parameters
    ----------
    n_domains, n_components, random_state : as in `GranularBallDomains`, and so are the attributes; there are no balls
        and no memory.
    """

    def __init__(
        self, n_domains: int | str = "auto", n_components: int | None = 256, random_state: int | RandomState | None = 0
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
