"""People as sets of solids: build, pose, hair and clothes. Colours are added later."""

from math import dist
from typing import NamedTuple

import numpy as np

PARTS = 6
"""The parts of a figure that are coloured separately."""
SKIN, HAIR, TOP, BOTTOM, SHOES, ACCENT = range(PARTS)
WARDROBES = ("summer", "fans", "winter")

Vector = tuple[float, float, float]

HEAD: Vector = (0.0, 1.63, 0.02)
"""The middle of everybody's head."""


class Solid(NamedTuple):
    """An axis-aligned ellipsoid or box: x to the right, y up, z to the front of the figure; in metres."""

    centre: Vector
    radii: Vector
    part: int
    box: bool = False


def limb(start: Vector, end: Vector, thick: Vector, thin: Vector, part: int) -> list[Solid]:
    """A row of ellipsoids from one joint to the next, so close that no beads show."""
    shares = np.linspace(0, 1, 2 + round(3.5 * dist(start, end) / min(thick + thin)))
    centres = np.outer(1 - shares, start) + np.outer(shares, end)
    radii = np.outer(1 - shares, thick) + np.outer(shares, thin)
    return [
        Solid((c[0], c[1], c[2]), (r[0], r[1], r[2]), part)
        for c, r in zip(centres.tolist(), radii.tolist(), strict=True)
    ]


def person(rng: np.random.Generator, wardrobe: str) -> list[Solid]:
    """One body: pose, build, cut of hair and clothes."""
    coat = wardrobe == "winter"
    bulk = rng.uniform(0.9, 1.12) * (1.16 if coat else 1.0)
    skirt = not coat and rng.random() < 0.25
    solids: list[Solid] = []
    stride = rng.uniform(0.05, 0.3) if rng.random() < 0.65 and wardrobe != "fans" else 0.03
    bare_legs = not coat and rng.random() < 0.35
    for side, step in ((-1, stride), (1, -stride)):
        hip, knee = (0.1 * side, 0.88, 0.0), (0.1 * side, 0.48, step * 0.6)
        ankle = (0.1 * side, 0.08, step - (0.08 if step < 0 else 0.0))
        solids += limb(hip, knee, (0.1, 0.1, 0.11), (0.075, 0.07, 0.075), BOTTOM)
        shin = SKIN if bare_legs or skirt else BOTTOM
        solids += limb(knee, ankle, (0.07, 0.07, 0.075), (0.05, 0.05, 0.055), shin)
        solids.append(Solid((ankle[0], 0.045, ankle[2] + 0.05), (0.05, 0.05, 0.13), SHOES))
    if skirt:
        solids += limb((0, 0.95, 0), (0, 0.58, 0), (0.16, 0.08, 0.12), (0.24, 0.06, 0.2), BOTTOM)
    hem = 0.62 if coat and rng.random() < 0.6 else 0.9
    stripes = int(rng.choice([0, 0, 0, 0, 0, 2, 4]))
    for index, solid in enumerate(
        limb((0, hem, 0), (0, 1.22, 0), (0.18 * bulk, 0.09, 0.13 * bulk), (0.2 * bulk, 0.1, 0.13 * bulk), TOP)
    ):
        solids.append(solid._replace(part=ACCENT) if stripes and index // stripes % 2 else solid)
    solids.append(Solid((0, 1.3, -0.01), (0.23 * bulk, 0.12, 0.125 * bulk), TOP))
    solids += limb((0, 1.4, 0), (0, 1.5, 0.01), (0.075, 0.06, 0.07), (0.06, 0.06, 0.06), SKIN)
    if coat and rng.random() < 0.6:
        solids.append(Solid((0, 1.45, 0.01), (0.11, 0.055, 0.11), ACCENT))
    solids += _arms(rng, bulk, "up" if wardrobe == "fans" and rng.random() < 0.3 else "down", coat)
    solids += _head(rng, wardrobe)
    baggage = rng.random()
    if baggage < 0.2:
        solids.append(Solid((0, 1.17, -0.2 * bulk), (0.15, 0.2, 0.09), ACCENT))
    elif baggage < 0.35:
        solids.append(Solid((0.36, 0.68, 0.02), (0.05, 0.13, 0.14), ACCENT, box=True))
    elif baggage < 0.5:
        solids.append(Solid((0.25, 0.92, 0.04), (0.07, 0.1, 0.11), ACCENT))
    return solids


def _arms(rng: np.random.Generator, bulk: float, pose: str, coat: bool) -> list[Solid]:
    solids: list[Solid] = []
    long_sleeves = coat or rng.random() < 0.4
    phone = rng.random() < 0.3
    for side in (-1, 1):
        shoulder = (0.23 * bulk * side, 1.34, -0.01)
        if pose == "up" and (side < 0 or rng.random() < 0.7):
            elbow, hand = (0.34 * side, 1.55, 0.08), (rng.uniform(0.12, 0.34) * side, 1.86, 0.1)
        elif phone and side < 0:
            elbow, hand = (0.28 * side, 1.1, 0.06), (0.1 * side, 1.24, 0.3)
        else:
            swing = rng.uniform(-0.14, 0.18)
            elbow, hand = (0.3 * side * bulk, 1.08, swing * 0.4), (0.29 * side * bulk, 0.84, swing + 0.06)
        solids += limb(shoulder, elbow, (0.075, 0.075, 0.075), (0.058, 0.058, 0.058), TOP)
        solids += limb(elbow, hand, (0.05, 0.05, 0.05), (0.04, 0.045, 0.04), TOP if long_sleeves else SKIN)
        solids.append(Solid(hand, (0.042, 0.055, 0.045), SKIN))
    return solids


def _head(rng: np.random.Generator, wardrobe: str) -> list[Solid]:
    """Face, eyes, and hair or hat; hair is an ellipsoid that sits a little behind and above the skull."""
    solids = [
        Solid(HEAD, (0.085, 0.125, 0.1), SKIN),
        Solid((0, 1.61, 0.125), (0.015, 0.025, 0.02), SKIN),
        Solid((-0.035, 1.645, 0.105), (0.017, 0.011, 0.014), HAIR),
        Solid((0.035, 1.645, 0.105), (0.017, 0.011, 0.014), HAIR),
        Solid((0, 1.56, 0.1), (0.025, 0.008, 0.014), HAIR),
    ]
    hatted = rng.random() < {"summer": 0.14, "fans": 0.3, "winter": 0.6}[wardrobe]
    if not hatted or wardrobe != "winter":
        solids.append(Solid((0, 1.67, -0.02), (0.097, 0.118, 0.112), HAIR))
    style = rng.random()
    if style < 0.4:
        solids += limb((0, 1.64, -0.05), (0, 1.4, -0.09), (0.105, 0.1, 0.09), (0.11, 0.09, 0.05), HAIR)
    elif style < 0.5:
        solids.append(Solid((0, 1.74, -0.11), (0.05, 0.05, 0.05), HAIR))
    if hatted and wardrobe == "winter":
        solids.append(Solid((0, 1.7, 0.0), (0.108, 0.1, 0.118), ACCENT))
        solids.append(Solid((0, 1.81, 0.0), (0.035, 0.035, 0.035), ACCENT))
    elif hatted and rng.random() < 0.6:
        solids.append(Solid((0, 1.715, 0.0), (0.1, 0.08, 0.115), ACCENT))
        solids.append(Solid((0, 1.705, 0.11), (0.075, 0.012, 0.09), ACCENT))
    elif hatted:
        solids.append(Solid((0, 1.73, 0.0), (0.1, 0.085, 0.11), ACCENT))
        solids.append(Solid((0, 1.7, 0.0), (0.2, 0.018, 0.21), ACCENT))
    return solids
