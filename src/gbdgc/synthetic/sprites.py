"""The sprites of everything that can stand in a scene, in one block of memory."""

from functools import lru_cache
from math import pi, radians
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gbdgc.synthetic.people import WARDROBES, person
from gbdgc.synthetic.solids import CHANNELS, LEVELS, Floats, Sprite, render
from gbdgc.synthetic.things import THINGS

Indices = NDArray[np.int64]

ELEVATIONS = np.radians([4, 18, 36, 58])
"""Sprites exist for these angles of view; each figure takes the nearest."""
BODIES = 10
SIDES = 5
"""Seen from the front, three quarters, the side, ...; mirroring gives the other half."""
THING_SIDES = 2


class Atlas(NamedTuple):
    """Sprites for a kernel that paints many of them in one call.

    ``table[sprite, level]`` is (offset, height, width) in ``pixels``; the rest is as in `Sprite`.
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
    sprites = [
        render(body, pi * side / (SIDES - 1), elevation)
        for elevation in ELEVATIONS
        for body in bodies
        for side in range(SIDES)
    ]
    sprites += _things()
    blocks = [level for sprite in sprites for level in sprite.levels]
    ends = np.cumsum([block.shape[0] * block.shape[1] for block in blocks])
    table = [(end - block.shape[0] * block.shape[1], *block.shape[:2]) for end, block in zip(ends, blocks, strict=True)]
    return Atlas(
        np.concatenate([block.reshape(-1, CHANNELS) for block in blocks]),
        np.array(table, np.int64).reshape(-1, LEVELS, 3),
        np.array([sprite.pixels_per_metre for sprite in sprites]),
        np.array([sprite.anchor for sprite in sprites]),
        np.array([sprite.head for sprite in sprites]),
    )


@lru_cache(maxsize=1)
def _things() -> list[Sprite]:
    rng = np.random.default_rng(8)
    models = [thing.model(rng) for thing in THINGS.values()]
    return [
        render(model, radians(20 + 50 * side), elevation)
        for elevation in ELEVATIONS
        for model in models
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
