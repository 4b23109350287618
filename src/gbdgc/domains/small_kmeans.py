"""K-means on the few hundred centers of balls, compiled.

The algorithm is scikit-learn's: ten greedy k-means++ starts, Lloyd's steps until nobody moves, the least inertia wins;
a test holds each start to it. But on so few points scikit-learn spends ten times the arithmetic on checks and calls.
"""

import numba
import numpy as np
from numpy.random import RandomState

from gbdgc.domains.clustering import STARTS, Clusters
from gbdgc.domains.tree import Floats, Integers

MAX_ITER = 300


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
