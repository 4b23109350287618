"""mode="stable": discovery that outliers do not bend and that does not jump from epoch to epoch.

In order: clip descriptors radially; average them with past epochs' after a Procrustes rotation; let the estimator
propose domains (balls or K-means) and polish them on the samples; prefer last epoch's domains where they fit nearly
as well; keep a sample's domain unless another is clearly nearer. Balls and K-means share every line of this, so that
they compare fairly.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import RandomState
from scipy.spatial.distance import cdist

from gbdgc.domains.alignment import Partition, matching_names, name_domains
from gbdgc.domains.clustering import Clusters
from gbdgc.domains.few_points import kmeans_of_few
from gbdgc.domains.tree import BallTree, Floats, Integers
from gbdgc.errors import InputError

CLIP = 2.0  # radius kept, in medians of the radius
MEMORY = 0.7  # weight of past epochs in the running average, once there are enough of them
AFFORDABLE = 1.02  # inertia that last epoch's domains may cost, against the best found anew
HYSTERESIS = 0.3  # how much nearer another domain must be, in medians of the distance
POLISH = 10  # Lloyd steps on the samples
WARD_LIMIT = 1024  # balls up to which Ward's method is tried: its cost grows with their square

Memory = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Frame:
    """Where descriptors are compared: about their median, in medians of the radius, turned to match past epochs."""

    median: Floats
    radius: float
    rotation: Floats

    def __call__(self, Z: Floats) -> Floats:
        """Clip radially and turn."""
        return np.asarray(clip_radially((Z - self.median) / self.radius, CLIP) @ self.rotation)


@dataclass(frozen=True, eq=False)
class Recalled:
    """This epoch's descriptors averaged with the past ones, in which frame, and how many epochs are in them."""

    descriptors: Floats
    frame: Frame
    epochs: int

    def as_memory(self) -> Memory:
        """Return what the next epoch has to know, as plain arrays."""
        return {"descriptors": self.descriptors, "epochs": np.array(self.epochs)}


def settle(Z: Floats, centers: Floats, previous: Integers | None) -> Partition:
    """Polish proposed centers into domains, and stay with last epoch's domains and labels where that is reasonable."""
    fresh = polish(Z, centers)
    if previous is None:
        return name_domains(fresh.labels, fresh.centers, None)
    names, clusters = familiar(Z, fresh, previous)
    labels = hold(cdist(Z, clusters.centers), names, previous)
    order = np.argsort(names)
    return Partition(labels, names[order], clusters.centers[order])


def clip_radially(Z: Floats, limit: float) -> Floats:
    """Pull rows that lie farther from the origin than ``limit`` back to it, direction kept."""
    radius = np.sqrt((Z**2).sum(axis=1, keepdims=True))
    return np.asarray(Z * np.minimum(1.0, limit / np.maximum(radius, limit)))


def recall(Z: Floats, memory: Mapping[str, Any] | None) -> Recalled:
    """Clip this epoch's descriptors, turn them to match the past and average."""
    median = np.median(Z, axis=0)
    radius = float(np.median(np.sqrt(((Z - median) ** 2).sum(axis=1)))) or 1.0
    upright = Frame(median, radius, np.eye(Z.shape[1]))
    clipped = upright(Z)
    if memory is None:
        return Recalled(clipped, upright, 1)
    past = np.asarray(memory["descriptors"], dtype=np.float64)
    if len(past) != len(Z):
        raise InputError(
            "", f"memory_ is of {len(past)} samples, there are {len(Z)} now", "rows correspond by position"
        )
    width = max(past.shape[1], Z.shape[1])
    past = np.pad(past, ((0, 0), (0, width - past.shape[1])))
    frame = Frame(median, radius, procrustes(clipped, past))
    epochs = int(memory["epochs"]) + 1
    keep = min(MEMORY, 1 - 1 / epochs)
    return Recalled(keep * past + (1 - keep) * frame(Z), frame, epochs)


def check_memory(memory: Mapping[str, Any]) -> Memory:
    """Return a memory as `Recalled.as_memory` makes it, or say what is missing."""
    if missing := {"descriptors", "epochs"} - set(memory):
        raise InputError("", f"the memory lacks {', '.join(sorted(missing))}", "give what an estimator had in memory_")
    return {"descriptors": np.array(memory["descriptors"], dtype=np.float64), "epochs": np.array(int(memory["epochs"]))}


def procrustes(Z: Floats, target: Floats) -> Floats:
    """Return the rotation R, R R^T = 1, that brings Z R nearest to the target."""
    u, _, vt = np.linalg.svd(Z.T @ target, full_matrices=False)
    return np.asarray(u @ vt)


def polish(Z: Floats, centers: Floats) -> Clusters:
    """A few Lloyd steps from these centers; a domain that loses all its samples keeps its center."""
    centers = centers.copy()
    labels = np.full(len(Z), -1)
    for _ in range(POLISH):
        before, labels = labels, cdist(Z, centers).argmin(axis=1)
        if (labels == before).all():
            break
        for k in np.unique(labels):
            centers[k] = Z[labels == k].mean(axis=0)
    to_center = cdist(Z, centers)
    return Clusters(to_center.argmin(axis=1), centers, float((to_center.min(axis=1) ** 2).sum()))


def familiar(Z: Floats, fresh: Clusters, previous: Integers) -> tuple[Integers, Clusters]:
    """Last epoch's domains, polished, where they are as many and cost at most 2 % of inertia; else the fresh ones."""
    known = np.unique(previous)
    if len(known) == len(fresh.centers):
        last = polish(Z, np.stack([Z[previous == name].mean(axis=0) for name in known]))
        if last.inertia <= AFFORDABLE * fresh.inertia and len(np.unique(last.labels)) == len(known):
            return known, last
    return matching_names(fresh.labels, len(fresh.centers), previous), fresh


def hold(to_center: Floats, names: Integers, previous: Integers) -> Integers:
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
    by_kmeans = kmeans_of_few(points, n_domains, random_state, weights)
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
