"""PCA before discovery, defined for any number of rows, even if all of them are equal."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.decomposition import PCA, IncrementalPCA

from gbdgc.domains.tree import Floats

# Axes with less than this share of the first one's variance are rounding, and would be scaled up by the weights.
NEGLIGIBLE = 1e-10

_CHUNK_BYTES = 4_000_000  # of float64: small beside tables for which chunks are worth it


@dataclass(frozen=True, eq=False)
class Reduction:
    """The map z -> z~ = (z - mean) axes^T; without axes it keeps rows as they are."""

    mean: Floats
    axes: Floats | None

    def __call__(self, X: Floats) -> Floats:
        """Reduce rows into a new array, never the input itself, which its owner may change."""
        return X.copy() if self.axes is None else np.asarray((X - self.mean) @ self.axes.T)

    def in_place(self, X: Floats) -> Floats:
        """Reduce rows in the memory that holds them, contiguous and of any precision, and return them there."""
        if self.axes is None:
            return X
        # A reduced row is no longer than it was, so nothing is written over that was not read.
        reduced = X.reshape(-1)[: len(X) * len(self.axes)].reshape(len(X), -1)
        for rows in chunks(X):
            reduced[rows] = self(X[rows])
        return reduced


def chunks(X: Floats) -> Iterator[slice]:
    """Yield consecutive stretches of rows, each small and with no fewer rows than columns, the last as it comes."""
    n, d = X.shape
    size = max(d, _CHUNK_BYTES // (8 * d))
    yield from (slice(start, min(start + size, n)) for start in range(0, n, size))


def fit_reduction(X: Floats, n_components: int | None, *, in_chunks: bool = False) -> Reduction:
    """PCA to at most ``n_components`` axes, by full SVD, not whitened; ``None`` keeps the rows as they are.

    In chunks it needs little memory besides the rows; the axes are the same up to rounding.
    """
    n, d = X.shape
    if n_components is None:
        return Reduction(np.zeros(d), None)
    if n == 1 or not np.ptp(X, axis=0).any():
        return Reduction(X[0].astype(np.float64), np.eye(1, d))
    if in_chunks:
        pca = IncrementalPCA(min(n, d))  # every axis: what it leaves out of one chunk is missing in the next
        for rows in chunks(X):
            pca.partial_fit(X[rows].astype(np.float64))
    else:
        pca = PCA(min(n_components, n - 1, d), svd_solver="full").fit(X)
    kept = pca.explained_variance_ > NEGLIGIBLE * pca.explained_variance_[0]
    kept[0] = True
    kept[min(n_components, n - 1) :] = False
    return Reduction(pca.mean_, pca.components_[kept])
