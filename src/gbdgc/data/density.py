"""From head points to a density map whose sum is the number of heads.

Each head becomes a square window of a Gaussian centred on its pixel. At the image border the window is cropped and
renormalised to sum to one. A window on a grid is the outer product of its two sides, so cropping, renormalising and
pooling are all done in one dimension, and the cost depends on the heads' windows, not on the image.
"""

import numba
import numpy as np
from numpy.typing import NDArray

from gbdgc.data.sample import KERNEL, SIGMA, Points
from gbdgc.errors import InputError

Density = NDArray[np.float32]
"""People per cell, rows x columns."""


def density_map(
    points: Points, height: int, width: int, *, kernel: int = KERNEL, sigma: float = SIGMA, stride: int = 1
) -> Density:
    """Return the map of an image, of shape (ceil(height / stride), ceil(width / stride)); it sums to the heads.

    Parameters
    ----------
    points : heads (x, y). One belongs to the pixel (floor x, floor y); one outside to the nearest pixel inside.
    kernel : side of the window in pixels, odd.
    sigma : width of the Gaussian in pixels.
    stride : side of a cell. The map at stride s holds the sums of the s x s blocks of the map at stride 1.
    """
    if min(height, width, stride) < 1:
        raise InputError(f"a density map of {height} x {width} at stride {stride}", "all three must be at least 1")
    if kernel < 1 or kernel % 2 == 0:
        raise InputError(f"a density kernel of {kernel}", "must be odd, so that the head is at its centre")
    heads = np.asarray(points, dtype=np.float64).reshape(-1, 2)
    if not np.isfinite(heads).all():
        raise InputError("", "a head's position is not a finite number", "`gbdgc data check` names the sample")
    if not sigma > 0:
        raise InputError(f"a density sigma of {sigma}", "must be above 0")
    # Doubles: where thousands of heads share a pixel, adding small floats to a large one would lose people.
    density = np.zeros((-(-height // stride), -(-width // stride)))
    _add_heads(density, heads, float(sigma), kernel // 2, height, width, stride)
    return density.astype(np.float32)


@numba.njit(cache=True, nogil=True)
def _add_heads(
    density: NDArray[np.float64],
    points: NDArray[np.float64],
    sigma: float,
    reach: int,
    height: int,
    width: int,
    stride: int,
) -> None:
    """Add one window of weight one for each point."""
    across = np.empty(density.shape[1])
    down = np.empty(density.shape[0])
    for index in range(len(points)):
        first_column, columns = _side(across, points[index, 0], sigma, reach, width, stride)
        first_row, rows = _side(down, points[index, 1], sigma, reach, height, stride)
        for row in range(rows):
            for column in range(columns):
                density[first_row + row, first_column + column] += down[row] * across[column]


@numba.njit(cache=True, nogil=True)
def _side(
    cells: NDArray[np.float64], position: float, sigma: float, reach: int, size: int, stride: int
) -> tuple[int, int]:
    """Write one side of a window, cut to the image and of sum one, into ``cells``; return its first cell and length."""
    # Clamped before it becomes an integer: a position may be further out than integers reach.
    centre = int(min(max(np.floor(position), 0.0), size - 1.0))
    start = max(centre - reach, 0)
    stop = min(centre + reach + 1, size)
    first = start // stride
    length = (stop - 1) // stride - first + 1
    cells[:length] = 0.0
    total = 0.0
    for pixel in range(start, stop):
        weight = np.exp(-0.5 * ((pixel - centre) / sigma) ** 2)
        cells[pixel // stride - first] += weight
        total += weight
    cells[:length] /= total
    return first, length
