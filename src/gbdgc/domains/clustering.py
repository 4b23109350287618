"""K-means with ten starts, on one thread so that results are reproducible to the bit.

Samples are clustered by scikit-learn. For the few hundred centres of balls the same algorithm is compiled here (greedy
k-means++ starts, Lloyd's steps until convergence, lowest inertia wins), because there scikit-learn spends ten times the
arithmetic on checks and calls; a test compares each start with scikit-learn.
"""

from contextlib import AbstractContextManager
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
MAX_ITER = 300


class Clusters(NamedTuple):
    """Labels 0 .. k-1, the centers, and the summed squared distance to them, where it was asked for."""

    labels: Integers
    centers: Floats
    inertia: float = 0.0


# Once: the search for thread pools takes longer than K-means on a few hundred rows.
_controller = cache(ThreadpoolController)


def one_thread() -> AbstractContextManager[object]:
    """Compute on one thread: splitting a sum between threads changes its last bits."""
    limited: AbstractContextManager[object] = _controller().limit(limits=1)
    return limited


def cluster_distinct(points: Floats, n_clusters: int, random_state: RandomState) -> Clusters:
    """K-means, or as many clusters as there are different points where that is fewer."""
    distinct = np.unique(points, axis=0)
    if len(distinct) <= n_clusters:
        return Clusters(nearest(points, distinct), distinct)
    found = KMeans(n_clusters, n_init=STARTS, random_state=random_state).fit(points)
    return Clusters(found.labels_.astype(np.int64), found.cluster_centers_, float(found.inertia_))


def nearest(points: Floats, centers: Floats) -> Integers:
    """Index of the nearest center for each point, in plain Euclidean distance."""
    return np.asarray(pairwise_distances_argmin(points, centers), dtype=np.int64)


def small_kmeans(points: Floats, n_clusters: int, random_state: RandomState, weights: Floats | None = None) -> Clusters:
    """K-means, the best of ten k-means++ starts; points count by their ``weights``."""
    mass = np.ones(len(points)) if weights is None else weights
    trials = 2 + int(np.log(n_clusters))
    best: Clusters | None = None
    for draws in random_state.random_sample((STARTS, n_clusters, trials)):
        found = Clusters(*lloyd(points, mass, points[plus_plus(points, mass, draws)]))
        if best is None or found.inertia < best.inertia * (1 - 1e-9):
            best = found
    assert best is not None
    return best


@numba.njit(cache=True, fastmath={"reassoc", "nsz"})
def _square_distance(a: Floats, b: Floats) -> float:
    total = 0.0
    for j in range(len(a)):
        total += (a[j] - b[j]) ** 2
    return total


@numba.njit(cache=True)
def plus_plus(points: Floats, mass: Floats, draws: Floats) -> Integers:
    """Greedy k-means++: each next seed is the best of a few drawn in proportion to their squared distance."""
    n = len(points)
    chosen = np.empty(len(draws), dtype=np.int64)
    closest = np.full(n, np.inf)
    best = np.empty(n)
    trial = np.empty(n)
    for step in range(len(draws)):
        running = np.cumsum(mass * closest) if step > 0 else np.cumsum(mass)
        lowest = np.inf
        for draw in draws[step, : draws.shape[1] if step > 0 else 1]:
            candidate = min(np.searchsorted(running, draw * running[-1], side="right"), n - 1)
            potential = 0.0
            for i in range(n):
                trial[i] = min(closest[i], _square_distance(points[i], points[candidate]))
                potential += mass[i] * trial[i]
            if potential < lowest:
                lowest = potential
                chosen[step] = candidate
                best[:] = trial
        closest[:] = best
    return chosen


@numba.njit(cache=True)
def lloyd(points: Floats, mass: Floats, seeds: Floats) -> tuple[Integers, Floats, float]:
    """Alternate nearest center and mean until nobody moves; a center without points goes to the farthest point."""
    n, k = len(points), len(seeds)
    centers = seeds.copy()
    labels = np.full(n, -1, dtype=np.int64)
    distance = np.empty(n)
    for _ in range(MAX_ITER):
        moved = False
        for i in range(n):
            nearest, least = 0, np.inf
            for c in range(k):
                square = _square_distance(points[i], centers[c])
                if square < least:
                    nearest, least = c, square
            distance[i] = least
            if labels[i] != nearest:
                labels[i] = nearest
                moved = True
        if not moved:
            break
        sums = np.zeros_like(centers)
        weight = np.zeros(k)
        for i in range(n):
            sums[labels[i]] += mass[i] * points[i]
            weight[labels[i]] += mass[i]
        for c in range(k):
            if weight[c] > 0.0:
                centers[c] = sums[c] / weight[c]
            else:
                farthest = np.argmax(distance)
                centers[c] = points[farthest]
                distance[farthest] = 0.0
    return labels, centers, (mass * distance).sum()
