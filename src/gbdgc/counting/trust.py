"""How far a picture lies from a counter's training data, and which of its latent domains is nearest."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

_AXES = 32
_NEIGHBOURS = 3

FAR = 0.99
"""The novelty above which to warn: one in a hundred training pictures would exceed it; with fewer than a hundred, only
pictures farther out than all of them."""


class Verdict(NamedTuple):
    """Where a descriptor lies."""

    domain: int
    """The latent domain of the nearest training picture."""
    novelty: float
    """The share of training pictures that lie nearer to the rest of the cloud than this one: 0 inside, 1 far out."""


class PlainArrays:
    """A dataclass of plain arrays, as a model file keeps them."""

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the arrays by name."""
        return dict(vars(self))

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[np.generic]]) -> Self:
        """Return what ``to_arrays`` took apart."""
        return cls(**arrays)


@dataclass(frozen=True)
class Trust(PlainArrays):
    """The cloud of training descriptors on its main axes.

    A picture's distance is the mean of those to its nearest training pictures. Training pictures have distances to each
    other too, each left out in turn; the rank among those makes the novelty a calibrated share between 0 and 1,
    whatever the network and its scale.
    """

    mean: NDArray[np.float32]
    axes: NDArray[np.float32]
    cloud: NDArray[np.float32]
    labels: NDArray[np.int64]
    distances: NDArray[np.float32]
    """Of each training picture to its neighbours, in ascending order."""

    @classmethod
    def fit(cls, z_ND: ArrayLike, labels: ArrayLike) -> "Trust":
        """Learn the cloud from the descriptors of the training pictures and their latent domains."""
        z_ND = np.asarray(z_ND, dtype=np.float64)
        mean = z_ND.mean(axis=0)
        _, lengths, axes = np.linalg.svd(z_ND - mean, full_matrices=False)
        kept = min(_AXES, int((lengths > 1e-6 * lengths[0]).sum())) if lengths[0] > 0 else 1
        cloud = ((z_ND - mean) @ axes[:kept].T).astype(np.float32)
        neighbours = min(_NEIGHBOURS, max(1, len(cloud) - 1))
        # The nearest neighbour of a training picture is itself: so from the second on.
        found = np.atleast_2d(cKDTree(cloud).query(cloud, k=range(2, neighbours + 2))[0])
        distances = np.sort(np.where(np.isfinite(found), found, 0).mean(axis=1))
        return cls(
            mean.astype(np.float32),
            axes[:kept].T.astype(np.float32),
            cloud,
            np.asarray(labels, dtype=np.int64),
            distances.astype(np.float32),
        )

    def judge(self, z_D: ArrayLike) -> Verdict:
        """Say where one descriptor lies."""
        place = (np.asarray(z_D, dtype=np.float32) - self.mean) @ self.axes
        distance = np.sqrt(((self.cloud - place) ** 2).sum(axis=1))
        nearest = np.argsort(distance, kind="stable")[:_NEIGHBOURS]
        rank = np.searchsorted(self.distances, distance[nearest].mean(), side="left")
        return Verdict(int(self.labels[nearest[0]]), float(rank / len(self.distances)))
