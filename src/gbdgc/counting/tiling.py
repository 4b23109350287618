"""Counting in overlapping windows, which bounds the memory for pictures of any size and keeps the count."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gbdgc.data.images import RGB
from gbdgc.data.transforms import STRIDE, normalise
from gbdgc.errors import InputError

MARGIN = 128
"""Pixels of context around the core of a window.

Chosen by measurement: how far the count in cores of 256 x 256 is from that of the whole picture (the bundled model, six
pictures of ShanghaiTech A and B, the worst of them). Margin 0: 3 %; 32: 2.5 %; 64: 0.4 %; 96: 0.08 %; 128: 0.013 %.
Beyond 192 there is no difference. 128 stays far below the half per cent that we promise; with 192, windows of 1024
would process 1.4 times as many pixels in total.
"""

TILE = 1024
"""The side of the largest window, margins included."""


class Span(NamedTuple):
    """One window along one axis, in pixels of the picture."""

    start: int
    stop: int
    core_start: int
    core_stop: int
    """From ``core_start`` to here is the window's own part; the cores of all windows tile the axis."""

    @property
    def window(self) -> slice:
        """The pixels that the network sees."""
        return slice(self.start, self.stop)

    @property
    def core(self) -> slice:
        """The part of the window's map that is kept."""
        return slice(self.core_start - self.start, self.core_stop - self.start)


def spans(length: int, tile: int) -> list[Span]:
    """Cut an axis into windows of at most ``tile`` pixels, nearly equal; in one where it fits."""
    if length <= tile:
        return [Span(0, length, 0, length)]
    # On the grid of the whole picture, as the network samples it.
    core = STRIDE * math.ceil(length / math.ceil(length / (tile - 2 * MARGIN)) / STRIDE)
    return [
        Span(max(0, start - MARGIN), min(length, start + core + MARGIN), start, min(length, start + core))
        for start in range(0, length, core)
    ]


def check_tile(tile: int) -> int:
    """Return the side to cut windows by: a multiple of 16 with a core at least as wide as a margin."""
    if tile < 3 * MARGIN:
        reason = f"windows have a margin of {MARGIN} pixels each side"
        raise InputError(f"tile={tile}", reason, f"give at least {3 * MARGIN}")
    return tile // STRIDE * STRIDE


def count_cells(
    engine: Callable[[NDArray[np.float32]], NDArray[np.float32]],
    images: Sequence[RGB],
    *,
    stride: int = 1,
    tile: int = TILE,
    check: Callable[[], None] | None = None,
) -> NDArray[np.float32]:
    """Return the people in each cell of ``stride`` x ``stride`` pixels, for pictures of one size, one map each.

    The stride is a divisor of 16; the last row and column of cells end at the picture's border. Pictures with a longer
    side than ``tile`` are counted in windows; ``check`` is called before each, and what it raises ends the count.
    """
    height, width = images[0].shape[:2]
    cells = np.zeros((len(images), math.ceil(height / stride), math.ceil(width / stride)), dtype=np.float32)
    for rows in spans(height, tile):
        for columns in spans(width, tile):
            if check is not None:
                check()
            windows = [image[rows.window, columns.window] for image in images]
            density_BHW = engine(stack(windows))[:, 0, rows.core, columns.core]
            down = slice(rows.core_start // stride, math.ceil(rows.core_stop / stride))
            across = slice(columns.core_start // stride, math.ceil(columns.core_stop / stride))
            cells[:, down, across] = sum_cells(density_BHW, stride)
    return cells


def sum_cells(density: NDArray[np.float32], step: int) -> NDArray[np.float32]:
    """Return the sums over squares of ``step`` a side, along the last two axes; those at the end may be smaller."""
    if step == 1:
        return density
    rows = np.add.reduceat(density, np.arange(0, density.shape[-2], step), axis=-2, dtype=np.float64)
    return np.add.reduceat(rows, np.arange(0, density.shape[-1], step), axis=-1).astype(np.float32)


def stack(images: Sequence[RGB]) -> NDArray[np.float32]:
    """Return pictures of one size normalised, as (B, 3, H, W) with sides filled up to multiples of 16.

    They are filled with zeros, the mean colour, at the right and at the bottom: convolutions see the same around an
    image, in training too, so heads at the edge keep their whole weight within it. Repeating the edge's pixels would
    draw people on into the margin that is cut. The values lie in memory pixel by pixel: torch's ``channels_last``.
    """
    height, width = images[0].shape[:2]
    batch = np.zeros((len(images), height + -height % STRIDE, width + -width % STRIDE, 3), dtype=np.float32)
    for row, image in zip(batch, images, strict=True):
        row[:height, :width] = normalise(image).transpose(1, 2, 0)
    return batch.transpose(0, 3, 1, 2)


def regrid(density: NDArray[np.float32], height: int, width: int, stride: int = 1) -> NDArray[np.float32]:
    """Bring the people per pixel of a resized picture back to the cells of a picture of ``height`` x ``width``.

    Nobody is lost: what a pixel holds is shared out to the cells it lies in, by area.
    """
    people = _pour(density.astype(np.float64), height, stride)
    return np.ascontiguousarray(_pour(people.T, width, stride).T, dtype=np.float32)


def _pour(people: NDArray[np.float64], length: int, stride: int) -> NDArray[np.float64]:
    """Share rows out to cells over ``length``: the differences, between cells' edges, of how many lie above."""
    above = np.concatenate([np.zeros_like(people[:1]), np.cumsum(people, axis=0)])
    edges = np.minimum(np.arange(math.ceil(length / stride) + 1) * stride, length) * (len(people) / length)
    row = np.minimum(edges.astype(int), len(people) - 1)
    share = (edges - row)[:, None]
    poured: NDArray[np.float64] = np.diff(above[row] * (1 - share) + above[row + 1] * share, axis=0)
    poured[poured < 0] = 0  # rounding may make the difference of two equal sums a little less than nothing
    return poured
