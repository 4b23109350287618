"""The sprites of everything that can stand in a scene."""

from functools import lru_cache
from math import pi, radians

import numpy as np
from numpy.typing import NDArray

from gbdgc.data.drawing.clutter import CLUTTER
from gbdgc.data.drawing.people import WARDROBES, person
from gbdgc.data.drawing.solids import Atlas, build_atlas, join_atlases

ELEVATIONS = np.radians([4, 18, 36, 58])
"""Sprites exist for these angles of view; each figure takes the nearest."""
BODIES = 10
SIDES = 5
"""Seen from the front, three quarters, the side, ...; mirroring gives the other half."""
THING_SIDES = 2

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@lru_cache(maxsize=len(WARDROBES))
def figures(wardrobe: str) -> Atlas:
    """All sprites of a wardrobe: people first, then clutter; see `person_sprite` and `clutter_sprite`."""
    # One small cast of bodies for all scenes: what varies is where each stands, how tall, turned, and in what colours.
    rng = np.random.default_rng([7, WARDROBES.index(wardrobe)])
    bodies = [person(rng, wardrobe) for _ in range(BODIES)]
    views = [(body, pi * side / (SIDES - 1), e) for e in ELEVATIONS for body in bodies for side in range(SIDES)]
    return join_atlases(build_atlas(views), _things())


@lru_cache(maxsize=1)
def _things() -> Atlas:
    rng = np.random.default_rng(8)
    things = [make(rng) for make in CLUTTER.values()]
    return build_atlas(
        [(thing, radians(20 + 50 * side), e) for e in ELEVATIONS for thing in things for side in range(THING_SIDES)]
    )


def person_sprite(elevation: Floats, body: Indices, side: Indices) -> Indices:
    """Index of each person's sprite in the atlas."""
    return (_nearest(elevation) * BODIES + body) * SIDES + side


def clutter_sprite(elevation: Floats, kind: Indices, side: Indices) -> Indices:
    """Index of each thing's sprite in the atlas; kinds are positions in `CLUTTER`."""
    first = len(ELEVATIONS) * BODIES * SIDES
    return first + (_nearest(elevation) * len(CLUTTER) + kind) * THING_SIDES + side


def _nearest(elevation: Floats) -> Indices:
    return np.asarray(np.abs(elevation[:, None] - ELEVATIONS).argmin(axis=1))
