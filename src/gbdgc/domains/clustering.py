"""K-means on samples: scikit-learn's, ten starts, on one thread, so that the bits are the same every time."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.random import RandomState
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances_argmin
from threadpoolctl import ThreadpoolController

from gbdgc.domains.tree import Floats, Integers

STARTS = 10


class Clusters(NamedTuple):
    """Labels 0 .. k-1, the centers, and the summed squared distance to them, where it was asked for."""

    labels: Integers
    centers: Floats
    inertia: float = 0.0


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread: how a sum is shared out between threads changes its last bits."""
    with _controller().limit(limits=1):
        yield


@cache
def _controller() -> ThreadpoolController:
    """Look the thread pools up once: the search takes longer than K-means on a few hundred rows."""
    return ThreadpoolController()


def kmeans(points: Floats, n_clusters: int, random_state: RandomState) -> Clusters:
    """K-means, the best of ten k-means++ starts."""
    found = KMeans(n_clusters, n_init=STARTS, random_state=random_state).fit(points)
    return Clusters(found.labels_.astype(np.int64), found.cluster_centers_, float(found.inertia_))


def cluster_distinct(points: Floats, n_clusters: int, random_state: RandomState) -> Clusters:
    """K-means, or as many clusters as there are different points where that is fewer."""
    distinct = np.unique(points, axis=0)
    if len(distinct) > n_clusters:
        return kmeans(points, n_clusters, random_state)
    return Clusters(nearest(points, distinct), distinct)


def nearest(points: Floats, centers: Floats) -> Integers:
    """Index of the nearest center for each point, in plain Euclidean distance."""
    return np.asarray(pairwise_distances_argmin(points, centers), dtype=np.int64)
