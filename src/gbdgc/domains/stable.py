"""mode="stable": discovery that is robust to outliers and stable from epoch to epoch.

1. `average_with_past`: clip descriptors radially, rotate them onto those of past epochs, and average.
2. The estimator proposes domain centers: those of balls (`ball_domains`) or of K-means.
3. `refine`: move the centers to the means of their samples; start warm, from last epoch's domains, where these fit
   nearly as well; and let a sample change its domain only where another is clearly nearer.

Balls and K-means share all of this code, so that the comparison between them is fair.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import RandomState
from scipy.spatial.distance import cdist

from gbdgc.domains.alignment import NamedClusters, matching_names, name_domains
from gbdgc.domains.clustering import Clusters, small_kmeans
from gbdgc.domains.tree import BallTree, Floats, Integers
from gbdgc.errors import InputError

CLIP_RADIUS = 2.0  # in medians of the radius
MOMENTUM = 0.7  # weight of past epochs in the running average, once there are enough of them
WARM_START_COST = 1.02  # inertia that last epoch's domains may have, relative to the new ones'
HYSTERESIS = 0.3  # how much nearer another domain must be, in medians of the distance
LLOYD_STEPS = 10
WARD_LIMIT = 1024  # balls up to which Ward's method is tried: its cost grows with their square

Memory = dict[str, Any]
"""The state for the next epoch, as plain arrays: "descriptors", and the number of "epochs" averaged in them."""


@dataclass(frozen=True, eq=False)
class Normalization:
    """The frame of comparison: about the median, in medians of the radius, rotated to match past epochs."""

    median: Floats
    radius: float
    rotation: Floats

    def __call__(self, Z: Floats) -> Floats:
        """Clip radially and rotate."""
        return np.asarray(clip_radially((Z - self.median) / self.radius, CLIP_RADIUS) @ self.rotation)


def average_with_past(Z: Floats, memory: Mapping[str, Any] | None) -> tuple[Normalization, Memory]:
    """Clip this epoch's descriptors, rotate them to match the past and average; return how, and the average."""
    median = np.median(Z, axis=0)
    radius = float(np.median(np.sqrt(((Z - median) ** 2).sum(axis=1)))) or 1.0
    normalization = Normalization(median, radius, np.eye(Z.shape[1]))
    if memory is None:
        return normalization, {"descriptors": normalization(Z), "epochs": np.array(1)}
    past = np.asarray(memory["descriptors"], dtype=np.float64)
    if len(past) != len(Z):
        reason = f"memory_ is of {len(past)} samples, there are {len(Z)} now"
        raise InputError("", reason, "rows correspond by position")
    past = np.pad(past, ((0, 0), (0, max(0, Z.shape[1] - past.shape[1]))))
    normalization = Normalization(median, radius, procrustes(normalization(Z), past))
    epochs = int(memory["epochs"]) + 1
    weight = min(MOMENTUM, 1 - 1 / epochs)
    return normalization, {"descriptors": weight * past + (1 - weight) * normalization(Z), "epochs": np.array(epochs)}


def check_memory(memory: Mapping[str, Any]) -> Memory:
    """Return a copy of a memory, or say what it lacks."""
    if missing := {"descriptors", "epochs"} - set(memory):
        raise InputError("", f"the memory lacks {', '.join(sorted(missing))}", "give what an estimator had in memory_")
    return {"descriptors": np.array(memory["descriptors"], dtype=np.float64), "epochs": np.array(int(memory["epochs"]))}


def clip_radially(Z: Floats, limit: float) -> Floats:
    """Pull rows that lie farther from the origin than ``limit`` back to it, direction kept."""
    radius = np.sqrt((Z**2).sum(axis=1, keepdims=True))
    return np.asarray(Z * np.minimum(1.0, limit / np.maximum(radius, limit)))


def procrustes(Z: Floats, target: Floats) -> Floats:
    """Return the rotation R, R R^T = 1, that brings Z R nearest to the target."""
    u, _, vt = np.linalg.svd(Z.T @ target, full_matrices=False)
    return np.asarray(u @ vt)


def refine(Z: Floats, centers: Floats, previous: Integers | None) -> NamedClusters:
    """Turn proposed centers into domains; keep last epoch's domains and labels where that is reasonable."""
    clusters = move_centers(Z, centers)
    if previous is None:
        return name_domains(clusters.labels, clusters.centers, None)
    names = np.unique(previous)
    warm = None
    if len(names) == len(centers):
        warm = move_centers(Z, np.stack([Z[previous == name].mean(axis=0) for name in names]))
    if warm and warm.inertia <= WARM_START_COST * clusters.inertia and len(np.unique(warm.labels)) == len(names):
        clusters = warm
    else:
        names = matching_names(clusters.labels, len(clusters.centers), previous)
    labels = apply_hysteresis(cdist(Z, clusters.centers), names, previous)
    order = np.argsort(names)
    return NamedClusters(labels, names[order], clusters.centers[order])


def move_centers(Z: Floats, centers: Floats) -> Clusters:
    """A few of Lloyd's steps from these centers; a domain that loses all its samples keeps its center."""
    centers = centers.copy()
    labels = np.full(len(Z), -1)
    for _ in range(LLOYD_STEPS):
        before, labels = labels, cdist(Z, centers).argmin(axis=1)
        if (labels == before).all():
            break
        for k in np.unique(labels):
            centers[k] = Z[labels == k].mean(axis=0)
    to_center = cdist(Z, centers)
    return Clusters(to_center.argmin(axis=1), centers, float((to_center.min(axis=1) ** 2).sum()))


def apply_hysteresis(to_center: Floats, names: Integers, previous: Integers) -> Integers:
    """Return each sample's domain: the one it had, unless another is clearly nearer."""
    nearest = to_center.argmin(axis=1)
    best = to_center.min(axis=1)
    margin = HYSTERESIS * np.median(best)
    matches = previous[:, None] == names[None]
    had = np.where(matches.any(axis=1), to_center[np.arange(len(nearest)), matches.argmax(axis=1)], np.inf)
    labels = np.where(had - best <= margin, previous, names[nearest])
    # Holding on must not starve a domain that the new centers do have.
    starved = len(np.unique(labels)) < len(np.unique(nearest))
    return np.asarray(names[nearest] if starved else labels)


def ball_domains(tree: BallTree, n_domains: int, random_state: RandomState) -> Floats:
    """Return centers of domains from final balls that count by their size: the better of Ward's and K-means."""
    points, weights = tree.center[tree.leaves], tree.size[tree.leaves].astype(np.float64)
    by_kmeans = small_kmeans(points, n_domains, random_state, weights)
    if len(points) > WARD_LIMIT:
        return by_kmeans.centers
    merged = weighted_ward(points, weights, n_domains)
    by_ward = np.stack(
        [np.average(points[merged == k], axis=0, weights=weights[merged == k]) for k in range(n_domains)]
    )
    cost = (weights * ((points - by_ward[merged]) ** 2).sum(axis=1)).sum()
    return by_ward if cost < by_kmeans.inertia else by_kmeans.centers


def weighted_ward(points: Floats, weights: Floats, n_clusters: int) -> Integers:
    """Merge the two clusters whose union adds least weighted inertia, until ``n_clusters`` are left."""
    centers, mass = points.copy(), weights.copy()
    labels = np.arange(len(points))
    cost = cdist(points, points, "sqeuclidean") * mass[:, None] * mass[None] / (mass[:, None] + mass[None])
    np.fill_diagonal(cost, np.inf)
    for _ in range(len(points) - n_clusters):
        i, k = np.unravel_index(cost.argmin(), cost.shape)
        centers[i] = (mass[i] * centers[i] + mass[k] * centers[k]) / (mass[i] + mass[k])
        mass[i] += mass[k]
        labels[labels == k] = i
        cost[k, :] = cost[:, k] = np.inf
        alive = np.isfinite(cost[i])
        cost[i, alive] = (
            mass[alive] * mass[i] / (mass[alive] + mass[i]) * ((centers[alive] - centers[i]) ** 2).sum(axis=1)
        )
        cost[alive, i] = cost[i, alive]
    return np.unique(labels, return_inverse=True)[1]
