"""Placing people: in groups and throngs with free ground between, never inside each other."""

from typing import NamedTuple

import numpy as np

from gbdgc.synthetic.camera import Camera, Floats
from gbdgc.synthetic.domains import SceneDomain


class Crowd(NamedTuple):
    """The spots of people on the ground and how crowded it is around each, from 0 to 1."""

    x: Floats
    z: Floats
    crowding: Floats


def place_people(domain: SceneDomain, camera: Camera, wanted: int, blocked: Floats, rng: np.random.Generator) -> Crowd:
    """Choose the spots of ``wanted`` people; ``blocked`` are circles (x, z, radius) where nobody can stand.

    Candidates are the points of a jittered lattice, so that two people keep their distance; which of them are taken is
    drawn, without replacement, with chances that follow groups of several sizes and free areas.
    """
    x, z = _lattice(domain, camera, rng)
    appeal = _appeal(domain, x, z, camera, rng)
    for centre_x, centre_z, radius in blocked:
        appeal[(x - centre_x) ** 2 + (z - centre_z) ** 2 < (radius + 0.25) ** 2] = 0
    chance = _fitted(appeal, wanted)
    # The largest of random ** (1 / weight) are a weighted draw without replacement.
    keys = np.log(rng.random(len(x))) / np.maximum(-np.log1p(-chance), 1e-12)
    taken = np.argsort(-keys, kind="stable")[: min(wanted, int((chance > 0).sum()))]
    return Crowd(x[taken], z[taken], chance[taken])


def _lattice(domain: SceneDomain, camera: Camera, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Possible spots whose head, were someone there, would be in the picture."""
    seated = domain.slope > 0
    pitch = 0.62 if seated else 0.5
    far = camera.reach
    half = far * camera.width / 2 / camera.focal + 1
    depth_step = 0.8 if seated else pitch * 0.92
    rows, columns = np.arange(0.5, far * 1.1, depth_step), np.arange(-half, half, pitch)
    x, z = np.meshgrid(columns, rows)
    x[1::2] += pitch / 2
    x, z = x.ravel(), z.ravel()
    jitter = rng.uniform(-0.5, 0.5, (2, len(x)))
    x, z = x + jitter[0] * pitch * 0.5, z + jitter[1] * (0.1 if seated else 0.5 * pitch)
    if not seated:
        turn = rng.uniform(-0.6, 0.6)
        middle = far / 2
        x, z = x * np.cos(turn) + (z - middle) * np.sin(turn), (z - middle) * np.cos(turn) - x * np.sin(turn) + middle
    column, row, depth = camera.project(x, z, 1.6)
    visible = (z > 0.5) & (depth > 0.8) & (depth < far) & (column > 0) & (column < camera.width)
    visible &= (row > 0) & (row < camera.height)
    return x[visible], z[visible]


def _appeal(domain: SceneDomain, x: Floats, z: Floats, camera: Camera, rng: np.random.Generator) -> Floats:
    """How much each spot attracts, up to a factor."""
    if not len(x):
        return np.zeros(0)
    dense = domain.density[0] >= 1
    appeal = np.full(len(x), 1.0 if dense else 0.05)
    depth = np.hypot(x, z)
    # Near spots are few but large in the picture: without this nearly all groups would be tiny ones far away.
    favour = 1 / depth**1.3
    for radius, groups, strength in ((0.7, 26, 1.4), (2.2, 9, 1.0), (6.0, 3, 0.5)):
        number = rng.poisson(groups)
        for centre in rng.choice(len(x), number, p=favour / favour.sum()):
            spread = radius * rng.uniform(0.6, 1.5)
            away = ((x - x[centre]) ** 2 + (z - z[centre]) ** 2) / spread**2
            near = np.flatnonzero(away < 6)
            appeal[near] += strength * rng.uniform(0.4, 1.3) * np.exp(-away[near])
    for _ in range(rng.poisson(2)):
        centre, radius = rng.integers(len(x)), rng.uniform(1.5, 5) * (0.6 if dense else 1.5)
        away = ((x - x[centre]) ** 2 + (z - z[centre]) ** 2) / radius**2
        appeal *= 1 - 0.97 * np.exp(-(away**2))
    if domain.slope > 0:
        # Stairs run up between the blocks of seats.
        appeal[(x + rng.uniform(0, 12)) % 12 < 1.1] *= 0.02
    return appeal


def _fitted(appeal: Floats, wanted: int) -> Floats:
    """Chances, each under one, that follow the appeal and sum to the number wanted, as far as there is room."""

    def chances(factor: float) -> Floats:
        return np.asarray(0.97 * -np.expm1(-factor * appeal))

    low, high = 0.0, 1e6
    for _ in range(28):
        middle = (low * high) ** 0.5 if low else high / 4
        low, high = (middle, high) if chances(middle).sum() < wanted else (low, middle)
    return chances(high)
