"""The sprites of everything that can stand in a scene: figures of ellipsoids and boxes, seen from several sides.

A sprite does not hold colours but how much of each part (skin, hair, top, ...) a pixel shows, so one sprite serves
people in any clothes. All of it is linear in the pixels, so smaller scales are plain averages of larger ones.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import ceil, cos, pi, radians, sin
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from gbdgc.synthetic.camera import Floats, Picture
from gbdgc.synthetic.people import HEAD, PARTS, WARDROBES, Solid, person
from gbdgc.synthetic.things import THINGS

Indices = NDArray[np.int64]
Sprite = tuple[list[NDArray[np.uint8]], float, Floats, Floats]
"""One figure seen from one side: its levels, then as in `Atlas`."""

CHANNELS = PARTS + 2
"""The parts, then coverage, then how far the surface turns to the right (128 is straight on)."""
LEVELS = 5
"""The number of scales that sprites are kept at, each half the one before."""
_BLOCK = 2 ** (LEVELS - 1)
ELEVATIONS = np.radians([4, 18, 36, 58])
"""Sprites exist for these angles of view; each figure takes the nearest."""
BODIES = 10
SIDES = 5
"""Seen from the front, three quarters, the side, ...; mirroring gives the other half."""
THING_SIDES = 2
_PERSON_SCALE = 80.0  # pixels per metre


class Atlas(NamedTuple):
    """Sprites for a kernel that paints many of them in one call.

    ``table[sprite, level]`` is (offset, height, width) in ``pixels``, ``anchor`` where a sprite's feet are, in pixels
    of the finest level, and ``head`` where its head is from there, in metres to the right and down.
    """

    pixels: NDArray[np.uint8]
    table: Indices
    pixels_per_metre: Floats
    anchor: Floats
    head: Floats


@lru_cache(maxsize=len(WARDROBES))
def atlas(wardrobe: str) -> Atlas:
    """All sprites of a wardrobe: people first, then things; see `person_sprite` and `thing_sprite`."""
    # One small set of bodies for all scenes: what varies is where each stands, how tall, turned, and in what colours.
    rng = np.random.default_rng([7, WARDROBES.index(wardrobe)])
    bodies = [person(rng, wardrobe) for _ in range(BODIES)]
    turns = [pi * side / (SIDES - 1) for side in range(SIDES)]
    sprites = [
        _render(body, turn, elevation, _PERSON_SCALE) for elevation in ELEVATIONS for body in bodies for turn in turns
    ]
    sprites += _things()
    levels, *rest = zip(*sprites, strict=True)
    blocks = [block for each in levels for block in each]
    ends = np.cumsum([block.shape[0] * block.shape[1] for block in blocks])
    table = [(end - block.shape[0] * block.shape[1], *block.shape[:2]) for end, block in zip(ends, blocks, strict=True)]
    pixels = np.concatenate([block.reshape(-1, CHANNELS) for block in blocks])
    return Atlas(pixels, np.array(table, np.int64).reshape(-1, LEVELS, 3), *map(np.array, rest))


@lru_cache(maxsize=1)
def _things() -> list[Sprite]:
    rng = np.random.default_rng(8)
    models = [thing.solids(rng) if callable(thing.solids) else thing.solids for thing in THINGS.values()]
    scales = [float(thing.pixels_per_metre) for thing in THINGS.values()]
    return [
        _render(solids, radians(20 + 50 * side), elevation, scale)
        for elevation in ELEVATIONS
        for solids, scale in zip(models, scales, strict=True)
        for side in range(THING_SIDES)
    ]


def person_sprite(elevation: Floats, body: Indices, side: Indices) -> Indices:
    """Index of each person's sprite in the atlas."""
    return (_nearest(elevation) * BODIES + body) * SIDES + side


def thing_sprite(elevation: Floats, kind: Indices, side: Indices) -> Indices:
    """Index of each thing's sprite in the atlas; kinds are positions in `THINGS`."""
    first = len(ELEVATIONS) * BODIES * SIDES
    return first + (_nearest(elevation) * len(THINGS) + kind) * THING_SIDES + side


def _nearest(elevation: Floats) -> Indices:
    return np.asarray(np.abs(elevation[:, None] - ELEVATIONS).argmin(axis=1))


def _render(solids: Sequence[Solid], azimuth: float, elevation: float, scale: float) -> Sprite:
    """Render a figure from a direction, in radians; azimuth 0 faces the camera."""
    turn = np.array([[cos(azimuth), 0, sin(azimuth)], [0, 1, 0], [-sin(azimuth), 0, cos(azimuth)]])
    tilt = np.array([[1, 0, 0], [0, cos(elevation), -sin(elevation)], [0, sin(elevation), cos(elevation)]])
    # Screen right, screen up and towards the camera, in the figure's own frame.
    axes = np.asarray(tilt @ turn)
    shapes = np.array([[*solid.centre, *solid.radii, solid.part, solid.box] for solid in solids], np.float64)
    middles = shapes[:, :3] @ axes[:2].T
    reach = np.where(
        shapes[:, 7:] > 0, shapes[:, 3:6] @ np.abs(axes[:2].T), np.sqrt(shapes[:, 3:6] ** 2 @ axes[:2].T ** 2)
    )
    low, high = (middles - reach).min(axis=0), (middles + reach).max(axis=0)
    columns, rows = (ceil((side * scale + 2) / _BLOCK) * _BLOCK for side in high - low)
    anchor = np.array([1 - low[0] * scale, 1 + high[1] * scale])
    level = np.zeros((rows, columns, CHANNELS), np.float32)
    _cast_rays(level, shapes, middles, reach, axes, anchor * 2, scale * 2)
    levels = [level]
    for _ in range(LEVELS - 1):
        upper, lower = levels[-1][::2], levels[-1][1::2]
        levels.append((upper[:, ::2] + upper[:, 1::2] + lower[:, ::2] + lower[:, 1::2]) * np.float32(0.25))
    head = (np.array([HEAD]) @ axes[:2].T)[0] * (1, -1)
    return [np.rint(level).astype(np.uint8) for level in levels], scale, anchor, head


@numba.njit(cache=True, nogil=True)
def _cast_rays(
    sprite: Picture, shapes: Floats, middles: Floats, reach: Floats, axes: Floats, anchor: Floats, scale: float
) -> None:
    """Cast parallel rays, four per pixel; the nearest solid wins, lit from above and from the camera."""
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
