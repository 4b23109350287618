"""The equations of granular-ball division, each under its own name.

Legend
------
Z, z     descriptors after PCA, one row per sample; z_j is one axis
B, n     a granular ball (a set of descriptors) and its size
c        the ball's center
w        feature weights: one a axis, none negative, sum 1
theta_l  center of child l = 1, 2 during the weighted 2-means
u_il     1 where sample i belongs to child l, else 0
D_j      within-cluster scatter on axis j
beta     sharpness of the feature weights, > 1
tau      split margin

Plain NumPy, as printed. ``kernels.py`` is the compiled twin; ``plain_division.py`` uses these as they are.
"""

import numpy as np
from numpy.typing import NDArray

from gbdgc.domains.kernels import EPSILON, ROUNDING, TIE

Array = NDArray[np.float64]


def center(Z: Array) -> Array:
    """c_B = 1/|B| sum z."""
    return np.asarray(Z.sum(axis=0) / len(Z))


def weighted_distance(Z: Array, c: Array, w: Array) -> Array:
    """d_w(z, c) = sqrt(sum_j w_j (z_j - c_j)^2), for each row of Z."""
    return np.asarray(np.sqrt(((Z - c) ** 2 * w).sum(axis=1)))


def scatter(Z: Array, c: Array) -> Array:
    """sum_z (z_j - c_j)^2 on each axis j."""
    return np.asarray(((Z - c) ** 2).sum(axis=0))


def within_scatter(Z: Array, first: NDArray[np.bool_], theta_1: Array, theta_2: Array) -> Array:
    """D_j = sum_l sum_i u_il (z_ij - theta_lj)^2; ``first`` marks the members of child 1."""
    return scatter(Z[first], theta_1) + scatter(Z[~first], theta_2)


def objective(Z: Array, first: NDArray[np.bool_], theta_1: Array, theta_2: Array, w: Array, beta: float) -> float:
    """sum_l sum_i sum_j u_il w_j^beta (z_ij - theta_lj)^2, what the weighted 2-means makes small."""
    return float((w**beta * within_scatter(Z, first, theta_1, theta_2)).sum())


def sharpness(n: int, beta: float) -> float:
    """Return beta as given, or sqrt(n), at least 2, where 0 stands for "sqrt"."""
    return beta if beta > 0 else max(2.0, np.sqrt(n))


def nonzero_scatter(D: Array, total: Array, n: int) -> Array:
    """D with 0 where it is only rounding: beside the ball's ``total`` scatter, or finer than the grid of unit 1."""
    return np.where((ROUNDING * total < D) & (n < D), D, 0.0)


def feature_weights(D: Array, beta: float) -> Array:
    """w_j = (sum_t ((D_j + eps) / (D_t + eps))^(1 / (beta - 1)))^-1, and 0 where D_j = 0.

    The sum runs over the axes with scatter, so that the weights sum to 1. With no scatter at all there is nothing
    to weigh: all zeros.
    """
    spread = D > 0.0
    if not spread.any():
        return np.zeros_like(D)
    epsilon = EPSILON * D.mean()
    smallest = D[spread].min()
    # Relative to the smallest scatter every power is at most 1: nothing overflows however sharp beta is.
    ratio = np.where(spread, (smallest + epsilon) / (D + epsilon), 0.0) ** (1.0 / (beta - 1.0))
    ratio = np.where(spread, ratio, 0.0)
    return np.asarray(ratio / ratio.sum())


def compactness(Z: Array, c: Array, w: Array) -> float:
    """Dm(B; w) = 1/|B| sum_z d_w(z, c_B), the mean weighted deviation."""
    return float(weighted_distance(Z, c, w).mean())


def child_compactness(n_1: int, compactness_1: float, n_2: int, compactness_2: float) -> float:
    """Dm_child = (|B_1| Dm(B_1; w) + |B_2| Dm(B_2; w)) / (|B_1| + |B_2|)."""
    return (n_1 * compactness_1 + n_2 * compactness_2) / (n_1 + n_2)


def split_accepted(child: float, parent: float, tau: float) -> bool:
    """Dm_child < tau Dm(B; w_B); a tie is a refusal."""
    return child < tau * parent * (1.0 - TIE)
