"""The division, compiled. The tests hold it, ball for ball, to the same in plain NumPy, an equation per function.

Z descriptors after PCA, B a ball of n of them, c its center, w its feature weights (one per axis, >= 0, sum 1),
theta_l the center of child l, D_j the within-cluster scatter on axis j, beta the sharpness, tau the split margin.

How it comes to be fast. Rows are whole numbers of 32 bits: half of what a pass would read otherwise. A ball is a
contiguous range of them, split in place as in quicksort, so that memory stays at one working copy and every pass
streams. Which of two centers is nearer under d_w is the sign of a linear function, so an assignment is one
matrix-vector product. Only rows that change sides touch the centers. And the within-cluster scatter needs no pass at
all: D_j = (scatter of the ball)_j - n_1 n_2 / n (theta_1 - theta_2)_j^2.

How it comes to be exact. Rows lie on an integer grid fine enough that sums of them have no rounding (``balls.py``):
centers do not depend on the order of rows. Where a decision could hang on the last bit, ``TIE`` makes it a tie and
ties go by value, never by position.
"""

import numba
import numpy as np
from numpy.typing import NDArray

from gbdgc.domains.tree import Floats

Rows = NDArray[np.int32]

# Two numbers closer than this (relative) are a tie: sums taken in another order must not decide.
TIE = 1e-9
# epsilon of the weight update, relative to the mean scatter, so that the unit of the descriptors does not matter.
EPSILON = 1e-8
# Scatter below this share of the ball's own is what rounding leaves of zero.
ROUNDING = 1e-12

# Columns of the integer table, and why a ball was not split: indices into tree.REASONS.
PARENT, LEFT, RIGHT, DEPTH, START, STOP, REASON, ITERATIONS = range(8)
SPLIT, MARGIN, AT_DEPTH, SIZE, EMPTY_CHILD, DUPLICATES = range(6)

# Reassociation lets a sum over axes use vector registers; its order is fixed when compiling, so bits stay the same.
_VECTOR = {"reassoc", "nsz"}


@numba.njit(cache=True, fastmath={"nnan", "nsz"})
def extremes(Z: Floats) -> tuple[Floats, Floats]:
    """Return the smallest and the largest value on each axis of finite rows, in one pass where NumPy takes two."""
    low, high = Z[0].copy(), Z[0].copy()
    for i in range(1, Z.shape[0]):
        for j in range(Z.shape[1]):
            value = Z[i, j]
            low[j] = value if value < low[j] else low[j]
            high[j] = value if value > high[j] else high[j]
    return low, high


@numba.njit(cache=True)
def round_to_grid(Z: Floats, origin: Floats, extent: float, steps: float) -> Rows:
    """Round (Z - origin) / extent to multiples of 1 / steps, counted in steps; one pass, no temporaries."""
    rows = np.empty(Z.shape, dtype=np.int32)
    for i in range(Z.shape[0]):
        for j in range(Z.shape[1]):
            rows[i, j] = np.int32(np.rint((Z[i, j] - origin[j]) / extent * steps))
    return rows


@numba.njit(cache=True)
def _nonzero_scatter(D: Floats, total: Floats, n: int) -> Floats:
    """D with 0 where it is only rounding: beside the ball's ``total`` scatter, or finer than the grid of unit 1."""
    for j in range(len(D)):
        if D[j] <= ROUNDING * total[j] or D[j] <= n:
            D[j] = 0.0
    return D


@numba.njit(cache=True)
def _feature_weights(D: Floats, beta: float) -> Floats:
    """w_j = (sum_t ((D_j + eps) / (D_t + eps))^(1 / (beta - 1)))^-1, and 0 where D_j = 0; for D with some scatter."""
    epsilon = EPSILON * D.mean()
    smallest = np.inf
    for j in range(len(D)):
        if 0.0 < D[j] < smallest:
            smallest = D[j]
    w = np.zeros_like(D)
    for j in range(len(D)):
        if D[j] > 0.0:
            w[j] = ((smallest + epsilon) / (D[j] + epsilon)) ** (1.0 / (beta - 1.0))
    w /= w.sum()
    return w


@numba.njit(cache=True, fastmath=_VECTOR)
def _measure(Z: Rows, c: Floats, w: Floats, total: Floats, distance: Floats) -> tuple[float, float]:
    """Fill the scatter on each axis and each row's d_w to the center; return compactness and radius."""
    n, d = Z.shape
    total[:] = 0.0
    deviation = 0.0
    largest = 0.0
    for i in range(n):
        weighted = 0.0
        plain = 0.0
        for j in range(d):
            square = (Z[i, j] - c[j]) ** 2
            total[j] += square
            weighted += w[j] * square
            plain += square
        distance[i] = np.sqrt(weighted)
        deviation += distance[i]
        largest = max(largest, plain)
    return deviation / n, np.sqrt(largest)


@numba.njit(cache=True, fastmath=_VECTOR)
def _distances(Z: Rows, c: Floats, w: Floats, distance: Floats) -> None:
    """d_w of each row to c."""
    n, d = Z.shape
    for i in range(n):
        weighted = 0.0
        for j in range(d):
            weighted += w[j] * (Z[i, j] - c[j]) ** 2
        distance[i] = np.sqrt(weighted)


@numba.njit(cache=True)
def _comes_first(a: Rows, b: Rows, c: Floats) -> bool:
    """Break a tie by value: farther from the center on the first axis that differs, then the larger value."""
    for j in range(len(c)):
        if abs(a[j] - c[j]) != abs(b[j] - c[j]):
            return bool(abs(a[j] - c[j]) > abs(b[j] - c[j]))
    for j in range(len(c)):
        if a[j] != b[j]:
            return bool(a[j] > b[j])
    return False


@numba.njit(cache=True)
def _farthest(Z: Rows, distance: Floats, c: Floats) -> int:
    """Row with the largest distance."""
    limit = distance.max() * (1.0 - TIE)
    best = -1
    for i in range(len(distance)):
        if distance[i] >= limit and (best < 0 or _comes_first(Z[i], Z[best], c)):
            best = i
    return best


@numba.njit(cache=True, fastmath=_VECTOR)
def _assign(
    Z: Rows, theta_1: Floats, theta_2: Floats, v: Floats, first: NDArray[np.bool_], sum_1: Floats
) -> tuple[int, int]:
    """Give each row to the nearer center under d_v; keep child 1's sum; return its change in size and the moves."""
    n, d = Z.shape
    slope = v * (theta_1 - theta_2)
    middle = (theta_1 + theta_2) / 2.0
    tie = -TIE * (slope * (theta_1 - middle)).sum()
    growth = 0
    moves = 0
    for i in range(n):
        score = 0.0
        for j in range(d):
            score += slope[j] * (Z[i, j] - middle[j])
        nearer = score >= tie
        if nearer != first[i]:
            first[i] = nearer
            sign = 1 if nearer else -1
            growth += sign
            moves += 1
            for j in range(d):
                sum_1[j] += sign * Z[i, j]
    return growth, moves


@numba.njit(cache=True)
def _two_means(
    Z: Rows,
    seeds: Floats,
    sum_all: Floats,
    total: Floats,
    w: Floats,
    beta: float,
    max_iter: int,
    power: bool,
    first: NDArray[np.bool_],
    sum_1: Floats,
) -> tuple[int, Floats, bool, int]:
    """Alternate assignment, centers and weights; return the size of child 1, w, if any scatter is left, and rounds."""
    n = len(Z)
    theta_1, theta_2 = seeds[0].copy(), seeds[1].copy()
    first[:] = False
    sum_1[:] = 0.0
    n_1 = 0
    spread = True
    rounds = 0
    for _ in range(max_iter + 1):
        rounds += 1
        v = (w / w.max()) ** beta if power else w
        growth, moves = _assign(Z, theta_1, theta_2, v, first, sum_1)
        n_1 += growth
        if n_1 in (0, n) or moves == 0:
            break
        theta_1, theta_2 = sum_1 / n_1, (sum_all - sum_1) / (n - n_1)
        D = _nonzero_scatter(total - n_1 * (n - n_1) / n * (theta_1 - theta_2) ** 2, total, n)
        spread = bool(D.any())
        if not spread:
            break
        w = _feature_weights(D, beta)
    return n_1, w, spread, rounds


@numba.njit(cache=True)
def _partition(Z: Rows, order: NDArray[np.int64], first: NDArray[np.bool_]) -> None:
    """Bring the members of child 1 to the front, in place."""
    i, k = 0, len(Z) - 1
    while True:
        while i < k and first[i]:
            i += 1
        while i < k and not first[k]:
            k -= 1
        if i >= k:
            return
        for j in range(Z.shape[1]):
            Z[i, j], Z[k, j] = Z[k, j], Z[i, j]
        order[i], order[k] = order[k], order[i]
        first[i], first[k] = first[k], first[i]


@numba.njit(cache=True)
def restore_order(Z: Rows, order: NDArray[np.int64]) -> None:
    """Bring rows that were reordered along with ``order`` back to where they were, in place, cycle by cycle."""
    done = np.zeros(len(order), dtype=np.bool_)
    for begin in range(len(order)):
        if done[begin]:
            continue
        row, i = Z[begin].copy(), begin
        while not done[begin]:
            i = order[i]
            for j in range(Z.shape[1]):
                row[j], Z[i, j] = Z[i, j], row[j]
            done[i] = True


@numba.njit(cache=True)
def divide_rows(
    Z: Rows,
    order: NDArray[np.int64],
    tau: float,
    beta: float,
    max_depth: int,
    min_size: int,
    max_iter: int,
    power: bool,
) -> tuple[NDArray[np.int64], Floats, Floats, Floats]:
    """Divide the rows of Z, which is reordered along with ``order``; return the ball tree as four tables.

    The tables are: whole numbers (parent, left, right, depth, start, stop, reason, iterations), centers, weights, and
    (compactness, radius). Balls are worked through in the order they are made: the table is the queue of Algorithm 1.
    """
    n_all, d = Z.shape
    table = np.full((64, 8), -1, dtype=np.int64)
    sums = np.zeros((64, d))
    weights = np.zeros((64, d))
    totals = np.zeros((64, d))
    shape = np.zeros((64, 2))
    distance = np.empty(n_all)
    first = np.empty(n_all, dtype=np.bool_)
    sum_1 = np.empty(d)
    seeds = np.empty((2, d))

    for i in range(n_all):
        for j in range(d):
            sums[0, j] += Z[i, j]
    weights[0] = 1.0 / d
    shape[0] = _measure(Z, sums[0] / n_all, weights[0], totals[0], distance)
    table[0, DEPTH], table[0, START], table[0, STOP] = 0, 0, n_all
    made = 1
    ball = 0
    while ball < made:
        start, stop, depth = table[ball, START], table[ball, STOP], table[ball, DEPTH]
        n = stop - start
        table[ball, ITERATIONS] = 0
        if n < 2 * min_size:
            table[ball, REASON] = SIZE
        elif depth >= max_depth:
            table[ball, REASON] = AT_DEPTH
        elif not (totals[ball] > n).any() or distance[start:stop].max() == 0.0:
            table[ball, REASON] = DUPLICATES
        else:
            rows, c, w = Z[start:stop], sums[ball] / n, weights[ball]
            seeds[0] = rows[_farthest(rows, distance[start:stop], c)]
            _distances(rows, seeds[0], w, distance[start:stop])
            seeds[1] = rows[_farthest(rows, distance[start:stop], c)]
            n_1, w, spread, table[ball, ITERATIONS] = _two_means(
                rows,
                seeds,
                sums[ball],
                totals[ball],
                w,
                beta if beta > 0 else max(2.0, np.sqrt(n)),
                max_iter,
                power,
                first[start:stop],
                sum_1,
            )
            if n_1 in (0, n):
                table[ball, REASON] = EMPTY_CHILD
            elif min(n_1, n - n_1) < min_size:
                table[ball, REASON] = SIZE
            else:
                if made + 2 > len(table):
                    table, shape = _doubled(table, -1), _doubled(shape, 0.0)
                    sums, weights, totals = _doubled(sums, 0.0), _doubled(weights, 0.0), _doubled(totals, 0.0)
                _partition(rows, order[start:stop], first[start:stop])
                left, right, cut = made, made + 1, start + n_1
                sums[left] = sum_1
                sums[right] = sums[ball] - sum_1
                for child, begin, end in ((left, start, cut), (right, cut, stop)):
                    table[child, PARENT], table[child, DEPTH] = ball, depth + 1
                    table[child, START], table[child, STOP] = begin, end
                    weights[child] = w
                    shape[child] = _measure(
                        Z[begin:end], sums[child] / (end - begin), w, totals[child], distance[begin:end]
                    )
                inside = (n_1 * shape[left, 0] + (n - n_1) * shape[right, 0]) / n
                if not spread or inside < tau * shape[ball, 0] * (1.0 - TIE):
                    table[ball, LEFT], table[ball, RIGHT], table[ball, REASON] = left, right, SPLIT
                    made += 2
                else:
                    table[ball, REASON] = MARGIN
        ball += 1
    sizes = (table[:made, STOP] - table[:made, START]).astype(np.float64)
    return table[:made], sums[:made] / sizes.reshape(-1, 1), weights[:made], shape[:made]


@numba.njit(cache=True)
def _doubled(table, filler):  # type: ignore[no-untyped-def]
    """Make room: the same rows, and as many new ones."""
    larger = np.full((2 * len(table), table.shape[1]), filler, dtype=table.dtype)
    larger[: len(table)] = table
    return larger
