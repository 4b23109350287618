"""K-means as every estimator here uses it: scikit-learn's, ten starts, one thread, the same bits every time."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

import numba
import numpy as np
from numpy.random import RandomState
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances_argmin
from threadpoolctl import ThreadpoolController

from gbdgc.domains.tree import Floats, Integers

STARTS = 10


class Clusters(NamedTuple):
    """Labels 0 .. k-1, the centers, and the summed squared distance to them."""

    labels: Integers
    centers: Floats
    inertia: float


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread: how a sum is shared out between threads changes its last bits."""
    with _controller().limit(limits=1):
        yield


@cache
def _controller() -> ThreadpoolController:
    """Look the thread pools up once: the search takes longer than K-means on a few hundred rows."""
    return ThreadpoolController()


def kmeans(points: Floats, n_clusters: int, random_state: RandomState, weights: Floats | None = None) -> Clusters:
    """K-means, the best of ten k-means++ starts."""
    mass = np.ones(len(points)) if weights is None else weights
    trials = 2 + int(np.log(n_clusters))

    def seeds(centred: Floats, count: int, random_state: RandomState) -> Floats:
        chosen = _plus_plus(centred, mass, random_state.random_sample((count, trials)))
        return np.asarray(centred[chosen])

    # The seeding is the algorithm of scikit-learn, compiled: on ball centers its own spends more time in Python
    # than the iterations take.
    found = KMeans(n_clusters, init=seeds, n_init=STARTS, random_state=random_state).fit(points, sample_weight=weights)
    return Clusters(found.labels_.astype(np.int64), found.cluster_centers_, float(found.inertia_))


@numba.njit(cache=True)
def _plus_plus(X: Floats, mass: Floats, draws: Floats) -> Integers:
    """Greedy k-means++: each next seed is the best of a few drawn in proportion to their squared distance."""
    n = len(X)
    chosen = np.empty(len(draws), dtype=np.int64)
    closest = np.ones(n)
    best = np.empty(n)
    trial = np.empty(n)
    for step in range(len(draws)):
        lowest = np.inf
        running = np.cumsum(mass * closest)
        for draw in draws[step, : 1 if step == 0 else draws.shape[1]]:
            candidate = min(np.searchsorted(running, draw * running[-1], side="right"), n - 1)
            for i in range(n):
                trial[i] = ((X[i] - X[candidate]) ** 2).sum()
                if step > 0:
                    trial[i] = min(trial[i], closest[i])
            potential = (mass * trial).sum()
            if potential < lowest:
                lowest = potential
                chosen[step] = candidate
                best[:] = trial
        closest[:] = best
    return chosen


def cluster_distinct(points: Floats, n_clusters: int, random_state: RandomState) -> Clusters:
    """K-means, or as many clusters as there are different points where that is fewer."""
    distinct = np.unique(points, axis=0)
    if len(distinct) > n_clusters:
        return kmeans(points, n_clusters, random_state)
    return Clusters(nearest(points, distinct), distinct, 0.0)


def nearest(points: Floats, centers: Floats) -> Integers:
    """Index of the nearest center for each point, in plain Euclidean distance."""
    return np.asarray(pairwise_distances_argmin(points, centers), dtype=np.int64)
