"""The division in plain NumPy, as the paper tells it: slow, short, and what the compiled kernel is held to."""

from collections import deque
from dataclasses import dataclass

import numpy as np
from equations import (
    Array,
    center,
    child_compactness,
    compactness,
    feature_weights,
    nonzero_scatter,
    scatter,
    sharpness,
    split_accepted,
    weighted_distance,
    within_scatter,
)
from numpy.typing import NDArray

from gbdgc.domains.balls import DivisionRules, on_grid
from gbdgc.domains.kernels import TIE


@dataclass(frozen=True, eq=False)
class PlainBall:
    """A final ball of the reference."""

    members: NDArray[np.int64]
    center: Array
    weights: Array
    compactness: float
    radius: float
    depth: int
    reason: str


def divide(Z: Array, rules: DivisionRules) -> list[PlainBall]:
    """Algorithm 1 up to the final balls."""
    whole, origin, unit = on_grid(np.ascontiguousarray(Z))
    rows = whole.astype(np.float64)
    n, d = rows.shape
    queue = deque([(np.arange(n), np.full(d, 1 / d), 0)])
    final = []
    while queue:
        members, w, depth = queue.popleft()
        attempt = split(rows[members], w, depth, rules)
        if isinstance(attempt, str):
            c = center(rows[members])
            final.append(
                PlainBall(
                    members=members,
                    center=origin + unit * c,
                    weights=w,
                    compactness=unit * compactness(rows[members], c, w),
                    radius=unit * float(np.sqrt(((rows[members] - c) ** 2).sum(axis=1)).max()),
                    depth=depth,
                    reason=attempt,
                )
            )
        else:
            first, w = attempt
            queue.append((members[first], w, depth + 1))
            queue.append((members[~first], w, depth + 1))
    return final


def split(B: Array, w_B: Array, depth: int, rules: DivisionRules) -> tuple[NDArray[np.bool_], Array] | str:
    """Members of child 1 and the children's weights, or why the ball is not split."""
    n, c = len(B), center(B)
    if n < 2 * rules.min_ball_size:
        return "size"
    if depth >= rules.max_depth:
        return "depth"
    if not (scatter(B, c) > n).any() or not weighted_distance(B, c, w_B).any():
        return "duplicates"
    first, w, spread = weighted_two_means(B, w_B, rules)
    if first.all() or not first.any():
        return "empty child"
    if min(first.sum(), (~first).sum()) < rules.min_ball_size:
        return "size"
    B_1, B_2 = B[first], B[~first]
    child = child_compactness(len(B_1), compactness(B_1, center(B_1), w), len(B_2), compactness(B_2, center(B_2), w))
    if spread and not split_accepted(child, compactness(B, c, w_B), rules.split_margin):
        return "margin"
    return first, w


def weighted_two_means(B: Array, w: Array, rules: DivisionRules) -> tuple[NDArray[np.bool_], Array, bool]:
    """Alternate assignment, centers and weights until nobody moves; also tell whether any scatter is left."""
    n, total, beta = len(B), scatter(B, center(B)), sharpness(len(B), rules.beta)
    theta_1, theta_2 = farthest_point_seeds(B, w)
    before = np.zeros(n, dtype=bool)
    for _ in range(rules.max_iter + 1):
        v = (w / w.max()) ** beta if rules.weight_power == "objective" else w
        first = nearer_to_first(B, theta_1, theta_2, v)
        if first.all() or not first.any() or (first == before).all():
            break
        theta_1, theta_2 = center(B[first]), center(B[~first])
        D = nonzero_scatter(within_scatter(B, first, theta_1, theta_2), total, n)
        if not D.any():
            return first, w, False
        w, before = feature_weights(D, beta), first
    return first, w, True


def farthest_point_seeds(B: Array, w: Array) -> tuple[Array, Array]:
    """Return the member farthest from the center, and the one farthest from that."""
    seed_1 = farthest(B, center(B), w)
    return seed_1, farthest(B, seed_1, w)


def farthest(B: Array, point: Array, w: Array) -> Array:
    """Farthest member from a point; ties go to the one farther from the center axis by axis, then to larger values."""
    distance = weighted_distance(B, point, w)
    tied = B[distance >= distance.max() * (1 - TIE)]
    keys = np.hstack([abs(tied - center(B)), tied])
    return np.asarray(tied[np.lexsort(keys.T[::-1])[-1]])


def nearer_to_first(B: Array, theta_1: Array, theta_2: Array, w: Array) -> NDArray[np.bool_]:
    """d_w(z, theta_1) <= d_w(z, theta_2): the sign of a linear function of z; a tie goes to child 1."""
    slope, middle = w * (theta_1 - theta_2), (theta_1 + theta_2) / 2
    tie = TIE * (slope * (theta_1 - middle)).sum()
    return np.asarray(((B - middle) * slope).sum(axis=1) >= -tie)
