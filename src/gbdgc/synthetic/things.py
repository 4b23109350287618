"""Things that are not people. Their parts carry the same names as a person's; their colours are in cast.py."""

from collections.abc import Callable
from math import cos, pi, sin
from typing import NamedTuple

import numpy as np

from gbdgc.synthetic.people import ACCENT, BOTTOM, SHOES, SKIN, TOP, Solid, limb

_CAR = [
    Solid((0, 0.55, 0), (0.86, 0.27, 2.1), TOP, box=True),
    Solid((0, 0.62, 2.0), (0.84, 0.2, 0.25), TOP),
    Solid((0, 0.62, -2.0), (0.84, 0.24, 0.25), TOP),
    Solid((0, 1.05, -0.25), (0.74, 0.33, 1.2), BOTTOM),
    Solid((0, 1.2, -0.3), (0.66, 0.2, 0.95), TOP),
    *(Solid((x, 0.6, 2.18), (0.16, 0.08, 0.06), ACCENT) for x in (0.6, -0.6)),
    *(Solid((x, 0.32, z), (0.1, 0.32, 0.32), SHOES) for x in (-0.82, 0.82) for z in (-1.3, 1.3)),
    *(Solid((x * 1.06, 0.32, z), (0.06, 0.17, 0.17), ACCENT) for x in (-0.82, 0.82) for z in (-1.3, 1.3)),
]
_VAN = [
    Solid((0, 1.35, -0.4), (1.0, 1.0, 2.2), TOP, box=True),
    Solid((0, 0.95, 2.1), (0.98, 0.6, 0.6), TOP, box=True),
    Solid((0, 1.85, 1.85), (0.9, 0.4, 0.4), BOTTOM),
    *(Solid((x, 0.75, 2.7), (0.14, 0.1, 0.03), ACCENT) for x in (0.55, -0.55)),
    *(Solid((0, 1.75, z), (1.02, 0.32, 0.42), BOTTOM, box=True) for z in (-1.9, -0.9, 0.1, 1.1)),
    *(Solid((x, 0.4, z), (0.12, 0.4, 0.4), SHOES) for x in (-0.95, 0.95) for z in (-1.7, 1.7)),
]
_LAMP = [
    *limb((0, 0, 0), (0, 4.6, 0), (0.09, 0.3, 0.09), (0.05, 0.3, 0.05), SHOES),
    Solid((0, 4.85, 0), (0.2, 0.2, 0.2), ACCENT),
]
_POLE = [
    *limb((0, 0, 0), (0, 3.0, 0), (0.05, 0.2, 0.05), (0.05, 0.2, 0.05), SHOES),
    Solid((0, 2.7, 0.06), (0.4, 0.4, 0.02), TOP, box=True),
    Solid((0, 2.7, 0.08), (0.3, 0.1, 0.02), ACCENT, box=True),
]
# Carried: the canopy floats where its owner's hand would hold it, eight panels in two shades.
_UMBRELLA = [
    *limb((0.18, 1.2, 0.15), (0.12, 2.15, 0.0), (0.012, 0.1, 0.012), (0.012, 0.1, 0.012), SHOES),
    *(
        Solid(
            (0.12 + share * 0.72 * cos(panel * pi / 8), 2.24 - 0.3 * share**2, share * 0.72 * sin(panel * pi / 8)),
            (0.15, 0.045, 0.15),
            TOP if panel % 4 < 2 else BOTTOM,
        )
        for panel in range(16)
        for share in (0.2, 0.42, 0.6)
    ),
]
_PARASOL = [
    *limb((0, 0, 0), (0, 2.3, 0), (0.03, 0.2, 0.03), (0.03, 0.2, 0.03), SHOES),
    *(
        Solid(
            (share * 1.3 * cos(panel * pi / 10), 2.5 - 0.45 * share**2, share * 1.3 * sin(panel * pi / 10)),
            (0.24, 0.06, 0.24),
            TOP if panel % 5 < 3 else ACCENT,
        )
        for panel in range(20)
        for share in (0.15, 0.4, 0.7, 0.95)
    ),
]
_BENCH = [
    Solid((0, 0.45, 0), (0.9, 0.04, 0.22), TOP, box=True),
    Solid((0, 0.75, -0.22), (0.9, 0.18, 0.03), TOP, box=True),
    *(Solid((x, 0.22, 0), (0.04, 0.22, 0.2), SHOES, box=True) for x in (-0.75, 0.75)),
]
_BARRIER = [
    *(Solid((0, y, 0), (1.1, 0.025, 0.025), TOP, box=True) for y in (0.15, 1.05)),
    *(Solid((x, 0.6, 0), (0.015, 0.45, 0.015), TOP, box=True) for x in np.linspace(-1.1, 1.1, 13).tolist()),
]
_BIN = [Solid((0, 0.5, 0), (0.3, 0.5, 0.3), TOP, box=True), Solid((0, 1.0, 0), (0.3, 0.1, 0.3), SHOES)]


def _tree(rng: np.random.Generator) -> list[Solid]:
    """A trunk and some four hundred clumps of leaves of two greens."""
    solids = limb((0, 0, 0), (0.1, 3.0, 0), (0.2, 0.3, 0.2), (0.1, 0.3, 0.1), SHOES)
    for _ in range(420):
        way = rng.normal(size=3)
        way *= rng.uniform(0.45, 1.0) / np.linalg.norm(way)
        size = rng.uniform(0.1, 0.27)
        centre = (1.5 * way[0], 3.9 + 1.3 * way[1], 1.5 * way[2])
        solids.append(Solid(centre, (size, size * 0.7, size), int(rng.choice([TOP, TOP, BOTTOM, ACCENT]))))
    return solids


def _bush(rng: np.random.Generator) -> list[Solid]:
    solids = []
    for _ in range(240):
        x, z, size = rng.uniform(-1.1, 1.1), rng.uniform(-0.5, 0.5), rng.uniform(0.06, 0.16)
        solids.append(Solid((x, rng.uniform(0.1, 0.75), z), (size, size, size), int(rng.choice([TOP, BOTTOM, ACCENT]))))
    return solids


def _stall(rng: np.random.Generator) -> list[Solid]:
    """A counter under a striped awning."""
    solids = [Solid((0, 0.5, 0), (1.4, 0.5, 0.5), BOTTOM, box=True)]
    solids += [Solid((x, 1.2, z), (0.04, 1.2, 0.04), SHOES, box=True) for x in (-1.4, 1.4) for z in (-0.8, 0.8)]
    for stripe in range(8):
        solids.append(Solid((-1.4 + 0.4 * stripe, 2.4, 0), (0.2, 0.12, 1.0), TOP if stripe % 2 else ACCENT, box=True))
    for _ in range(26):
        spot = (rng.uniform(-1.2, 1.2), 1.05, rng.uniform(-0.35, 0.35))
        solids.append(Solid(spot, (0.1, 0.09, 0.1), int(rng.choice([ACCENT, TOP, SKIN]))))
    return solids


class Thing(NamedTuple):
    """How a kind of thing is built, and what it does to its surroundings, in metres."""

    solids: list[Solid] | Callable[[np.random.Generator], list[Solid]]
    pixels_per_metre: float
    footprint: float = 0.2
    """Radius of the ground that nobody can stand on."""
    shadow_radius: float = 0.2
    shadow_height: float = 0.8


THINGS = {
    "car": Thing(_CAR, 48, 2.2, 1.3, 1.2),
    "van": Thing(_VAN, 40, 2.5, 1.5, 2.0),
    "tree": Thing(_tree, 36, 0.5, 1.5, 3.8),
    "bush": Thing(_bush, 48, 1.1, 0.9),
    "lamp": Thing(_LAMP, 40, shadow_height=4.6),
    "pole": Thing(_POLE, 48, shadow_height=2.9),
    "umbrella": Thing(_UMBRELLA, 72),
    "parasol": Thing(_PARASOL, 48, shadow_radius=1.1, shadow_height=2.3),
    "stall": Thing(_stall, 48, 1.5, 1.5, 2.3),
    "bench": Thing(_BENCH, 48, 0.9),
    "barrier": Thing(_BARRIER, 48, 0.5),
    "bin": Thing(_BIN, 48, 0.4),
}
