"""Keeping the labels of domains consistent from one epoch to the next."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from gbdgc.domains.tree import Integers
from gbdgc.errors import InputError


def align_labels(labels: ArrayLike, previous: ArrayLike) -> Integers:
    """Rename domains so that as many samples as possible keep the label they had.

    Parameters
    ----------
    labels, previous : a whole number for each sample, the same samples in the same order.

    Returns
    -------
    ndarray of int64
        The partition of ``labels`` under the names of ``previous``, matched by maximum overlap (Hungarian method).
        Domains without a counterpart get names that ``previous`` does not use.

    Examples
    --------
    >>> align_labels([0, 0, 1, 1, 2], [5, 5, 3, 3, 3])
    array([5, 5, 3, 3, 6])
    """
    new, old = as_labels(labels, "labels"), as_labels(previous, "previous")
    if len(new) != len(old):
        reason = f"previous has {len(old)} labels for {len(new)} samples"
        raise InputError("", reason, "both must speak of the same samples")
    domains, position = np.unique(new, return_inverse=True)
    return matching_names(position, len(domains), old)[position]


def matching_names(labels: Integers, n_domains: int, previous: Integers) -> Integers:
    """Return the name for each of the domains 0 .. n_domains - 1 by maximum overlap with ``previous``."""
    old_names, old = np.unique(previous, return_inverse=True)
    overlap = np.zeros((n_domains, len(old_names)), dtype=np.int64)
    np.add.at(overlap, (labels, old), 1)
    matched, to = linear_sum_assignment(overlap, maximize=True)
    unmatched = np.setdiff1d(np.arange(n_domains), matched)
    names = np.empty(n_domains, dtype=np.int64)
    names[matched] = old_names[to]
    names[unmatched] = np.arange(len(unmatched)) + (old_names.max(initial=-1) + 1)
    return names


class NamedClusters(NamedTuple):
    """Clusters with names: each sample's domain, the domains' names ascending, and a center for each name."""

    labels: Integers
    names: Integers
    centers: NDArray[np.float64]


def name_domains(labels: Integers, centers: NDArray[np.float64], previous: Integers | None) -> NamedClusters:
    """Give the domains 0 .. K-1 the names they had in the previous epoch, if there was one."""
    if previous is None:
        return NamedClusters(labels, np.arange(len(centers)), centers)
    names = matching_names(labels, len(centers), previous)
    order = np.argsort(names)
    return NamedClusters(names[labels], names[order], centers[order])


def as_labels(values: ArrayLike, name: str) -> Integers:
    """Check that these are labels: one whole number per sample."""
    labels = np.asarray(values)
    if labels.ndim != 1:
        raise InputError("", f"{name} has shape {labels.shape}", "give one label per sample, a flat list")
    if labels.dtype.kind not in "iub" and not (
        labels.dtype.kind == "f" and np.isfinite(labels).all() and (labels == np.rint(labels)).all()
    ):
        reason = f"{name} holds something else than whole numbers ({labels.dtype})"
        raise InputError("", reason, "number the domains first")
    return labels.astype(np.int64)
