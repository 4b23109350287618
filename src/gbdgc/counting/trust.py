"""How far a picture lies from a counter's training data, and which of its latent domains is nearest."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from gbdgc.errors import InputError

_AXES = 32
_NEIGHBOURS = 3
_MOST = 1e30  # in a file's arrays: their sums and squares must not overflow

FAR = 0.99
"""The novelty above which to warn: one in a hundred training pictures would exceed it; with fewer than a hundred, only
pictures farther out than all of them."""


class Verdict(NamedTuple):
    """The position of a descriptor relative to the training cloud."""

    domain: int
    """The latent domain of the nearest training picture."""
    novelty: float
    """The share of training pictures that lie nearer to the rest of the cloud than this one: 0 inside, 1 far out."""


Shapes = Mapping[str, tuple[int | str, ...]]


class PlainArrays:
    """A dataclass of plain arrays, as a model file keeps them."""

    shapes: ClassVar[Shapes]
    """The shape of each array; a letter stands for any size above 0, the same one everywhere."""
    whole: ClassVar[frozenset[str]] = frozenset()
    """The arrays of whole numbers; all others hold floating-point ones."""

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the arrays by name."""
        return dict(vars(self))

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[np.generic]]) -> Self:
        """Return what ``to_arrays`` took apart; an error says which array of a file cannot be one of those."""
        if strange := sorted(arrays.keys() ^ cls.shapes.keys()):
            names = ", ".join(strange)
            raise _wrong(f"{names}: {'missing' if strange[0] in cls.shapes else 'not known'}")
        sizes: dict[str, int] = {}
        for name, shape in cls.shapes.items():
            array, kind = arrays[name], "i" if name in cls.whole else "f"
            if array.dtype.kind != kind:
                raise _wrong(
                    f"{name}: {array.dtype} in place of {'whole' if kind == 'i' else 'floating-point'} numbers"
                )
            fitting = len(shape) == array.ndim and array.size > 0
            for side, size in zip(shape, array.shape, strict=False):
                fitting &= size == (sizes.setdefault(side, size) if isinstance(side, str) else side)
            if not fitting:
                wanted = " x ".join(str(sizes.get(side, side) if isinstance(side, str) else side) for side in shape)
                raise _wrong(f"{name}: of shape {' x '.join(map(str, array.shape)) or 'none'}, not {wanted}")
            if not (np.abs(array.astype(np.float64)) < _MOST).all():  # a NaN is not below it either
                raise _wrong(f"{name}: holds numbers that are not finite, or beyond {_MOST:g}")
        made = cls(**arrays)
        if problem := made.problem():
            raise _wrong(problem)
        return made

    def problem(self) -> str:
        """Say what is wrong with the numbers themselves; empty where nothing is."""
        return ""


def _wrong(reason: str) -> InputError:
    return InputError("", reason, "take another copy of the model, or make it again")


@dataclass(frozen=True)
class Trust(PlainArrays):
    """The cloud of training descriptors on its main axes.

    A picture's distance is the mean of those to its nearest training pictures. Training pictures have distances to each
    other too, each left out in turn; the rank among those makes the novelty a calibrated share between 0 and 1,
    whatever the network and its scale.
    """

    shapes: ClassVar[Shapes] = {
        "mean": ("D",),
        "axes": ("D", "K"),
        "cloud": ("N", "K"),
        "labels": ("N",),
        "distances": ("N",),
    }
    whole = frozenset({"labels"})

    mean: NDArray[np.float32]
    axes: NDArray[np.float32]
    cloud: NDArray[np.float32]
    labels: NDArray[np.int64]
    distances: NDArray[np.float32]
    """The distance of each training picture to its neighbours, in ascending order."""

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

    def problem(self) -> str:
        """Say what is wrong with the numbers themselves; empty where nothing is."""
        if self.labels.min() < 0:
            return "labels: a domain below 0"
        if self.distances[0] < 0 or (np.diff(self.distances) < 0).any():
            return "distances: below 0, or not in ascending order"
        return ""

    def check_fits(self, z_D: NDArray[np.float32]) -> None:
        """Refuse a cloud whose descriptors do not match the network's."""
        if z_D.shape != self.mean.shape:
            raise _wrong(f"mean: of {len(self.mean)} numbers, and the network describes a picture by {len(z_D)}")

    def judge(self, z_D: ArrayLike) -> Verdict:
        """Return where one descriptor lies."""
        place = (np.asarray(z_D, dtype=np.float32) - self.mean) @ self.axes
        distance = np.sqrt(((self.cloud - place) ** 2).sum(axis=1))
        nearest = np.argsort(distance, kind="stable")[:_NEIGHBOURS]
        rank = np.searchsorted(self.distances, distance[nearest].mean(), side="left")
        return Verdict(int(self.labels[nearest[0]]), float(rank / len(self.distances)))
