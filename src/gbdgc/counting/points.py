"""Heads as points: turning a density into one position per person."""

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gbdgc.counting.tiling import sum_cells

HeadPoints = NDArray[np.float32]
"""One row (x, y, confidence) per head, in pixels of the picture."""

_STEP = 4  # side, in pixels, of the cells that points are sought in: half of what the network tells apart
_SMOOTHING = 0.75
_NEAR, _FAR = 8, 32
"""Cells around a peak that a person is gathered from, and those beyond where these hold less than one."""
_ROUNDS, _SHARPNESS = 2, 3
_NEIGHBOURS = 3


def find_points(cells: NDArray[np.float32], stride: int, width: int, height: int) -> HeadPoints:
    """Return ``round(cells.sum())`` points, where the density has its people.

    One person after another is taken out of the density: the highest peak of what is left gets a point, and the
    people nearest to it, up to one whole, are removed. Then each point moves to the centre of what is nearest to it,
    weighted by the third power of the density, which draws it to the peak. The confidence is how much of a person
    the density has close to the point, nearer than half the mean distance to its three nearest neighbours: near 1 at
    a peak that stands out, low where people were spread over an area and the point could as well be elsewhere in it.
    """
    number = round(float(cells.sum(dtype=np.float64)))
    if number < 1:
        return np.empty((0, 3), dtype=np.float32)
    step = max(1, _STEP // stride)
    people = np.maximum(sum_cells(cells, step).astype(np.float64), 0)
    points = _take_people(people, number)

    from scipy.spatial import KDTree

    row, column = np.nonzero(people > 0)
    places, mass = np.column_stack([column, row]) + 0.5, people[row, column]
    weight = mass**_SHARPNESS
    for _ in range(_ROUNDS):
        _, owner = KDTree(points).query(places)
        total = np.bincount(owner, weight, number)
        centre = np.column_stack([np.bincount(owner, weight * axis, number) for axis in places.T])
        points = np.where(total[:, None] > 0, centre / np.maximum(total, np.finfo(float).tiny)[:, None], points)
    distance, owner = KDTree(points).query(places)
    close = distance <= half_spacing(points)[owner]
    confidence = np.minimum(np.bincount(owner, mass * close, number), 1)
    in_pixels = np.clip(points * (step * stride), 0, (width, height))
    return np.column_stack([in_pixels, confidence]).astype(np.float32)


def half_spacing(points: ArrayLike) -> NDArray[np.float64]:
    """Return for each point half its mean distance to its three nearest neighbours; infinity for a lone one.

    The tolerance of P2PNet's nAP (Song et al., ICCV 2021, delta = 0.5), for labels without boxes.
    """
    from scipy.spatial import KDTree

    points = np.asarray(points, dtype=np.float64)
    if len(points) < 2:
        return np.full(len(points), np.inf)
    nearest = range(2, min(len(points), _NEIGHBOURS + 1) + 1)
    return np.asarray(np.mean(KDTree(points).query(points, k=nearest)[0], axis=1) / 2)


def _take_people(people: NDArray[np.float64], number: int) -> NDArray[np.float64]:
    """Return the peaks, in cells, at each of which one person was taken out of the density."""
    from scipy.ndimage import gaussian_filter

    left = np.pad(people, _FAR)
    # A peak of eight pixels is flat on its top: smoothed, it has one highest cell.
    level = np.pad(gaussian_filter(people, _SMOOTHING), _FAR)
    across = left.shape[1]
    flat_left, flat_level = left.reshape(-1), level.reshape(-1)
    highest = level.argmax(axis=1)
    heights = np.take_along_axis(level, highest[:, None], axis=1)[:, 0]
    peaks = np.empty((number, 2))
    for index in range(number):
        row = int(heights.argmax())
        centre = row * across + int(highest[row])
        for radius in (_NEAR, _FAR):
            around = _disc(radius, across) + centre
            gathered = flat_left[around].cumsum()
            if gathered[-1] >= 1:
                break
        last = min(int(gathered.searchsorted(1)), len(around) - 1)
        whole = around[:last]
        # Of the last cell only what is missing to one person.
        kept = max(gathered[last] - 1, 0.0) / max(flat_left[around[last]], np.finfo(float).tiny)
        flat_left[whole] = flat_level[whole] = 0
        flat_left[around[last]] *= kept
        flat_level[around[last]] *= kept
        peaks[index] = centre % across - _FAR + 0.5, row - _FAR + 0.5
        reach = radius if radius == _FAR else int(np.sqrt(last / 3)) + 1
        rows = slice(row - reach, row + reach + 1)
        highest[rows] = level[rows].argmax(axis=1)
        heights[rows] = np.take_along_axis(level[rows], highest[rows, None], axis=1)[:, 0]
    return peaks


@lru_cache(maxsize=8)
def _disc(radius: int, across: int) -> NDArray[np.int64]:
    """Return the steps from a cell to those around it, the nearest first, in a flattened array of this width."""
    down, right = np.mgrid[-radius : radius + 1, -radius : radius + 1]
    distance = (down**2 + right**2).ravel()
    nearest = np.argsort(distance, kind="stable")
    nearest = nearest[distance[nearest] <= radius**2]
    steps: NDArray[np.int64] = (down * across + right).ravel()[nearest]
    return steps
