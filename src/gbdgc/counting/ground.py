"""Ground calibration: square metres from four measured points, and levels of crowding."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gbdgc.errors import InputError, as_input_error

Floats = NDArray[np.float64]

CROWDING = ((2.0, "green"), (4.0, "yellow"), (5.0, "orange"), (math.inf, "red"))
"""Upper limits of crowding levels in people per square metre, as used in crowd safety: free, dense, full, dangerous."""

_CELLS = 512  # along the longer side: finer cells would not change an area
_NEAREST, _FARTHEST = 0.001, 100_000
_SMALLEST, _FLATTEST = 0.001, 1e-6
"""A patch's extent, in pixels or as a share of the picture, and the bend of its corners as a share of that squared:
with less, rounding errors would decide on the area of everything else."""
_LARGEST_CELL = 1e12
_NEXT_STEP = (
    "give four corners in order around a patch of ground, and in metres the two sides of a rectangle, or four sides in "
    "order and the diagonal from the first corner to the third"
)


def crowding(per_m2: float) -> str:
    """Return the level of crowding, as a colour, for a number of people per square metre."""
    return next(colour for most, colour in CROWDING if per_m2 <= most)


def check_ground(corners: Floats, metres: ArrayLike) -> tuple[float, ...]:
    """Return the distances between four corners, or say why no ground can be made of them."""
    no_numbers = (TypeError, ValueError, OverflowError)
    with as_input_error(no_numbers, "the ground", "its metres are not a list of numbers", _NEXT_STEP):
        distances = tuple(float(value) for value in np.asarray(metres, dtype=np.float64))
    if len(corners) != 4 or len(distances) not in (2, 5):
        raise InputError("the ground", f"{len(corners)} corners and {len(distances)} distances", _NEXT_STEP)
    if not all(_NEAREST <= distance <= _FARTHEST for distance in distances):
        limits = f"a distance must be at least {_NEAREST:g} and at most {_FARTHEST:,} metres"
        raise InputError("the ground", limits, _NEXT_STEP)
    if not _is_convex(corners):
        raise InputError("the ground", "its corners do not go around a convex patch", "give them in order around it")
    if not _is_convex(measured_corners(distances)):
        raise InputError("the ground", "its distances make no convex patch", "measure them again")
    return distances


def measured_corners(metres: Sequence[float]) -> Floats:
    """Return the four corners in metres: a rectangle of two sides, or the figure of four sides and a diagonal."""
    if len(metres) == 2:
        across, along = metres
        return np.array([(0, 0), (across, 0), (across, along), (0, along)], dtype=np.float64)
    first, second, third, fourth, diagonal = metres
    before, after = _apex(diagonal, first, second), _apex(diagonal, fourth, third)
    return np.array([(0, 0), before, (diagonal, 0), (after[0], -after[1])])


def square_metres(width: int, height: int, corners: Floats, metres: Sequence[float]) -> tuple[NDArray[np.float32], int]:
    """Return the ground's area in each cell of a picture, NaN from the horizon upwards, and a cell's side in pixels.

    The homography takes the corners to their measured places; a cell becomes a quadrilateral on the ground.
    """
    stride = -(-max(width, height) // _CELLS)
    middle = corners.mean(axis=0)
    to_ground = _homography(corners - middle, measured_corners(metres))
    x, y = (np.minimum(np.arange(-(-side // stride) + 1) * stride, side) for side in (width, height))
    grid = np.stack([*np.meshgrid(x - middle[0], y - middle[1]), np.ones((len(y), len(x)))])
    *place, depth = np.tensordot(to_ground, grid, axes=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        on_ground = np.where(depth > 0, np.stack(place) / depth, np.nan)
        falling = on_ground[:, 1:, 1:] - on_ground[:, :-1, :-1]
        rising = on_ground[:, :-1, 1:] - on_ground[:, 1:, :-1]
        area = np.abs(falling[0] * rising[1] - falling[1] * rising[0]) / 2
    return np.minimum(area, _LARGEST_CELL).astype(np.float32), stride  # next to the horizon there is no end of it


def _apex(base: float, left: float, right: float) -> tuple[float, float]:
    """Return the third corner of a triangle on a base from (0, 0)."""
    along = (base**2 + left**2 - right**2) / (2 * base)
    if left**2 <= along**2:
        raise InputError("the ground", f"no triangle has the sides {base:g}, {left:g} and {right:g} m", _NEXT_STEP)
    return along, math.sqrt(left**2 - along**2)


def _is_convex(corners: Floats) -> bool:
    sides = np.roll(corners, -1, axis=0) - corners
    following = np.roll(sides, -1, axis=0)
    turns = sides[:, 0] * following[:, 1] - sides[:, 1] * following[:, 0]
    extent = float(np.ptp(corners, axis=0).max())
    least = _FLATTEST * extent**2
    return extent >= _SMALLEST and bool((turns > least).all() or (turns < -least).all())


def _homography(source: Floats, target: Floats) -> Floats:
    """Return the 3 x 3 matrix, 1 in its last place, that takes four points around the origin to four others.

    The origin lies within the source, so it is before the horizon: there the depth is 1, and positive wherever there
    is ground.
    """
    rows = []
    for (x, y), (u, v) in zip(source, target, strict=True):
        rows += [(x, y, 1, 0, 0, 0, -u * x, -u * y), (0, 0, 0, x, y, 1, -v * x, -v * y)]
    return np.append(np.linalg.solve(np.array(rows), target.ravel()), 1).reshape(3, 3)
