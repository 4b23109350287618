"""PCA before discovery, defined for any number of rows and for rows that are all equal."""

from dataclasses import dataclass

import numpy as np
from sklearn.decomposition import PCA

from gbdgc.domains.tree import Floats

# Axes with less than this share of the first one's variance are rounding, and would be scaled up by the weights.
NEGLIGIBLE = 1e-10


@dataclass(frozen=True, eq=False)
class Reduction:
    """The map z -> z~ = (z - mean) axes^T; without axes it keeps rows as they are."""

    mean: Floats
    axes: Floats | None

    def __call__(self, X: Floats) -> Floats:
        """Reduce rows; the result is never the input itself, which its owner may change."""
        return X.copy() if self.axes is None else np.asarray((X - self.mean) @ self.axes.T)


def fit_reduction(X: Floats, n_components: int | None) -> Reduction:
    """PCA to at most ``n_components`` axes, by full SVD, not whitened; ``None`` keeps the rows as they are."""
    n, d = X.shape
    if n_components is None:
        return Reduction(np.zeros(d), None)
    if n == 1 or not np.ptp(X, axis=0).any():
        return Reduction(X[0].copy(), np.eye(1, d))
    pca = PCA(min(n_components, n - 1, d), svd_solver="full").fit(X)
    kept = pca.explained_variance_ > NEGLIGIBLE * pca.explained_variance_[0]
    kept[0] = True
    return Reduction(pca.mean_, pca.components_[kept])
