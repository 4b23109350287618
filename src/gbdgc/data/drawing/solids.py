"""Little solids made of ellipsoids and boxes, seen from a given side once and kept as sprites at several scales.

A sprite does not hold colours but how much of each part (skin, hair, top, ...) a pixel shows, so one sprite serves
people in any clothes. All of it is linear in the pixels, so smaller scales are plain averages of larger ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, cos, sin
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

PARTS = 6
"""Each figure has so many parts that are coloured on their own."""
CHANNELS = PARTS + 2
"""The parts, then coverage, then how far the surface turns to the right (128 is straight on)."""
LEVELS = 5
_BLOCK = 2 ** (LEVELS - 1)


class Solid(NamedTuple):
    """An axis-aligned ellipsoid or box: x to the right, y up, z to the front of the figure; in metres."""

    centre: tuple[float, float, float]
    radii: tuple[float, float, float]
    part: int
    box: bool = False


@dataclass(frozen=True, slots=True)
class Model:
    """A figure that stands on the origin; ``head`` is the middle of its head."""

    solids: tuple[Solid, ...]
    pixels_per_metre: float = 80.0
    head: tuple[float, float, float] = (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Atlas:
    """Sprites in one block of memory, for a kernel that paints many of them in one call.

    ``table[sprite, level]`` is (offset, height, width) in ``pixels``; ``anchor`` is where the feet are, in pixels of
    level 0, and ``head`` where the head is from there, in metres to the right and down.
    """

    pixels: NDArray[np.uint8]
    table: NDArray[np.int64]
    pixels_per_metre: NDArray[np.float64]
    anchor: NDArray[np.float64]
    head: NDArray[np.float64]


def build_atlas(views: Sequence[tuple[Model, float, float]]) -> Atlas:
    """Render each (model, azimuth, elevation), in radians; azimuth 0 faces the camera."""
    blocks: list[NDArray[np.uint8]] = []
    table = np.zeros((len(views), LEVELS, 3), np.int64)
    anchor, head = np.zeros((len(views), 2)), np.zeros((len(views), 2))
    offset = 0
    for index, (model, azimuth, elevation) in enumerate(views):
        sprite, anchor[index] = _render(model, azimuth, elevation)
        head[index] = _on_screen(np.array([model.head]), azimuth, elevation)[0] * (1, -1)
        for level in range(LEVELS):
            sprite = _halve(sprite) if level else sprite
            rows, columns = sprite.shape[:2]
            table[index, level] = offset, rows, columns
            blocks.append(np.rint(sprite).astype(np.uint8).reshape(-1, CHANNELS))
            offset += rows * columns
    scales = np.array([model.pixels_per_metre for model, _, _ in views])
    return Atlas(np.concatenate(blocks), table, scales, anchor, head)


def join_atlases(first: Atlas, second: Atlas) -> Atlas:
    """One atlas with the sprites of both, the first's in front."""
    shifted = second.table + np.array([len(first.pixels), 0, 0])
    return Atlas(
        np.concatenate([first.pixels, second.pixels]),
        np.concatenate([first.table, shifted]),
        np.concatenate([first.pixels_per_metre, second.pixels_per_metre]),
        np.concatenate([first.anchor, second.anchor]),
        np.concatenate([first.head, second.head]),
    )


def _axes(azimuth: float, elevation: float) -> NDArray[np.float64]:
    """Screen right, screen up and towards the camera, in the figure's own frame."""
    turn = np.array([[cos(azimuth), 0, sin(azimuth)], [0, 1, 0], [-sin(azimuth), 0, cos(azimuth)]])
    screen = np.array([[1, 0, 0], [0, cos(elevation), -sin(elevation)], [0, sin(elevation), cos(elevation)]])
    return np.asarray(screen @ turn)


def _on_screen(points: NDArray[np.float64], azimuth: float, elevation: float) -> NDArray[np.float64]:
    return np.asarray(points @ _axes(azimuth, elevation)[:2].T)


def _render(model: Model, azimuth: float, elevation: float) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """The sprite as float channels up to 255, and where in it the origin is."""
    axes = _axes(azimuth, elevation)
    shapes = np.array([[*solid.centre, *solid.radii, solid.part, solid.box] for solid in model.solids], np.float64)
    middles = shapes[:, :3] @ axes[:2].T
    reach = np.where(
        shapes[:, 7:] > 0,
        shapes[:, 3:6] @ np.abs(axes[:2].T),
        np.sqrt(shapes[:, 3:6] ** 2 @ axes[:2].T ** 2),
    )
    low, high = (middles - reach).min(axis=0), (middles + reach).max(axis=0)
    scale = model.pixels_per_metre
    columns, rows = (ceil((side * scale + 2) / _BLOCK) * _BLOCK for side in high - low)
    anchor = np.array([1 - low[0] * scale, 1 + high[1] * scale])
    sprite = np.zeros((rows, columns, CHANNELS), np.float32)
    _cast(sprite, shapes, middles, reach, axes, anchor * 2, scale * 2)
    return sprite, anchor


def _halve(channels: NDArray[np.float32]) -> NDArray[np.float32]:
    upper, lower = channels[::2], channels[1::2]
    return (upper[:, ::2] + upper[:, 1::2] + lower[:, ::2] + lower[:, 1::2]) * np.float32(0.25)


def _cast_rays(
    sprite: NDArray[np.float32],
    shapes: NDArray[np.float64],
    middles: NDArray[np.float64],
    reach: NDArray[np.float64],
    axes: NDArray[np.float64],
    anchor: NDArray[np.float64],
    scale: float,
) -> None:
    """Parallel rays, four a pixel, against each solid, the nearest wins; light comes from above and from the camera."""
    rows, columns = 2 * sprite.shape[0], 2 * sprite.shape[1]
    nearest = np.full((rows, columns), -1e9)
    parts = np.full((rows, columns), -1)
    lights, turns = np.zeros((rows, columns)), np.zeros((rows, columns))
    right, up, towards = axes[0], axes[1], axes[2]
    normal, start = np.zeros(3), np.zeros(3)
    for index in range(len(shapes)):
        centre, shrink = shapes[index, :3], 1 / shapes[index, 3:6]
        step = towards * shrink
        a = step[0] ** 2 + step[1] ** 2 + step[2] ** 2
        part, box = int(shapes[index, 6]), shapes[index, 7] > 0
        left = max(0, int(anchor[0] + (middles[index, 0] - reach[index, 0]) * scale))
        stop = min(columns, int(anchor[0] + (middles[index, 0] + reach[index, 0]) * scale) + 2)
        top = max(0, int(anchor[1] - (middles[index, 1] + reach[index, 1]) * scale))
        bottom = min(rows, int(anchor[1] - (middles[index, 1] - reach[index, 1]) * scale) + 2)
        for row in range(top, bottom):
            for column in range(left, stop):
                across, upward = (column + 0.5 - anchor[0]) / scale, (anchor[1] - row - 0.5) / scale
                for axis in range(3):
                    start[axis] = (across * right[axis] + upward * up[axis] - centre[axis]) * shrink[axis]
                if box:
                    enter, leave, face = -1e9, 1e9, 0
                    for axis in range(3):
                        if abs(step[axis]) < 1e-9:
                            if abs(start[axis]) > 1:
                                leave = -1e9
                            continue
                        one, other = (-1 - start[axis]) / step[axis], (1 - start[axis]) / step[axis]
                        enter = max(enter, min(one, other))
                        if max(one, other) < leave:
                            leave, face = max(one, other), axis
                    if leave < enter or leave <= nearest[row, column]:
                        continue
                    distance = leave
                    normal[:] = 0
                    normal[face] = 1 if step[face] > 0 else -1
                else:
                    b = start[0] * step[0] + start[1] * step[1] + start[2] * step[2]
                    inside = b * b - a * (start[0] ** 2 + start[1] ** 2 + start[2] ** 2 - 1)
                    if inside < 0:
                        continue
                    distance = (-b + np.sqrt(inside)) / a
                    if distance <= nearest[row, column]:
                        continue
                    for axis in range(3):
                        normal[axis] = (start[axis] + distance * step[axis]) * shrink[axis]
                    length = np.sqrt(normal[0] ** 2 + normal[1] ** 2 + normal[2] ** 2)
                    for axis in range(3):
                        normal[axis] /= length
                nearest[row, column] = distance
                facing = normal[0] * towards[0] + normal[1] * towards[1] + normal[2] * towards[2]
                parts[row, column] = part
                lights[row, column] = min(1.0, max(0.12, 0.48 + 0.3 * normal[1] + 0.22 * facing))
                turns[row, column] = normal[0] * right[0] + normal[1] * right[1] + normal[2] * right[2]
    sprite[..., PARTS + 1] = 128
    for row in range(rows):
        for column in range(columns):
            if parts[row, column] >= 0:
                texel = sprite[row // 2, column // 2]
                texel[parts[row, column]] += 63.75 * lights[row, column]
                texel[PARTS] += 63.75
                texel[PARTS + 1] += 31.75 * turns[row, column]


_cast = numba.njit(cache=True, nogil=True)(_cast_rays)
