"""The ball tree: every ball that was made, and why the final ones were not split."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Why a ball was not split; in the order of the constants in kernels.py.
REASONS = ("split", "margin", "depth", "size", "empty child", "duplicates")

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ball:
    """A final ball.

    Attributes
    ----------
    center, weights : mean of the members and feature weights, on the reduced axes.
    size, members : how many samples, and which rows of the input they are, ascending.
    radius : largest plain Euclidean distance of a member from the center.
    compactness : mean weighted distance of the members from the center: Dm(B; w_B).
    depth, reason : splits above it, and why it was not split further.
    domain : the latent domain it belongs to.
    """

    center: Floats
    size: int
    radius: float
    depth: int
    weights: Floats
    compactness: float
    domain: int
    members: Integers
    reason: str

    def __repr__(self) -> str:
        return (
            f"Ball(domain={self.domain}, size={self.size}, radius={self.radius:.3g}, "
            f"compactness={self.compactness:.3g}, depth={self.depth}, reason={self.reason!r})"
        )


@dataclass(frozen=True, eq=False)
class BallTree:
    """Every ball of a division, one entry per ball in each array; ball 0 holds all samples, parents before children.

    Attributes
    ----------
    parent : index of the ball it came from; -1 for ball 0.
    children : indices of the two balls it was split into, or -1, -1.
    depth, size, center, weights, radius, compactness : as in `Ball`.
    iterations : alternations of the weighted 2-means that was tried on it; 0 where none was.
    reason : "split", or why not: "margin", "depth", "size", "empty child", "duplicates".
    order, start : the members of ball i are ``order[start[i] : start[i] + size[i]]``; ascending in final balls.
    """

    parent: Integers
    children: Integers
    depth: Integers
    size: Integers
    center: Floats
    weights: Floats
    radius: Floats
    compactness: Floats
    iterations: Integers
    reason: NDArray[np.str_]
    order: Integers
    start: Integers

    def __len__(self) -> int:
        return len(self.parent)

    def __repr__(self) -> str:
        return (
            f"BallTree(balls={len(self)}, final={len(self.leaves)}, depth={self.depth.max()}, samples={self.size[0]})"
        )

    @property
    def leaves(self) -> Integers:
        """Indices of the final balls, neighbours in the tree side by side."""
        final = np.flatnonzero(self.children[:, 0] < 0)
        return final[np.argsort(self.start[final])]

    def members(self, ball: int) -> Integers:
        """Rows of the input in this ball, ascending."""
        return np.sort(self.order[self.start[ball] : self.start[ball] + self.size[ball]])

    def spread(self, labels: Integers) -> Integers:
        """Give each sample the label of its final ball: one for each of the leaves."""
        # As small numbers, since they are as many as the samples.
        small = labels.astype(np.min_scalar_type(labels.max()))
        spread = np.empty(len(self.order), dtype=np.int64)
        spread[self.order] = np.repeat(small, self.size[self.leaves])
        return spread
