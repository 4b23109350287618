"""The figures in a scene: their positions, orientations and the colours of their parts."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gbdgc.synthetic.camera import Camera, Floats
from gbdgc.synthetic.crowd import Crowd
from gbdgc.synthetic.domains import SceneDomain
from gbdgc.synthetic.people import ACCENT, BOTTOM, HAIR, PARTS, SHOES, SKIN, TOP
from gbdgc.synthetic.sprites import BODIES, SIDES, THING_SIDES, person_sprite, thing_sprite
from gbdgc.synthetic.things import THINGS

Spot = tuple[str, float, float]
"""A kind of thing and where it stands: x, z."""

_SKINS = np.array([[0.98, 0.8, 0.7], [0.93, 0.72, 0.58], [0.8, 0.58, 0.44], [0.6, 0.4, 0.28], [0.38, 0.25, 0.18]])
_HAIRS = np.array(
    [[0.07, 0.06, 0.06], [0.12, 0.08, 0.06], [0.22, 0.14, 0.08], [0.4, 0.25, 0.13], [0.72, 0.56, 0.32], [0.6, 0.6, 0.6]]
)
_HAIR_SHARES = np.array([0.32, 0.24, 0.19, 0.11, 0.08, 0.06])
_PLAIN = np.array([[0.95, 0.95, 0.93], [0.1, 0.1, 0.12], [0.45, 0.45, 0.48], [0.14, 0.18, 0.32], [0.75, 0.72, 0.64]])
_JEANS = np.array(
    [[0.2, 0.28, 0.45], [0.12, 0.15, 0.25], [0.1, 0.1, 0.11], [0.55, 0.48, 0.36], [0.4, 0.4, 0.42], [0.8, 0.78, 0.72]]
)
_LEAVES = {TOP: (0.24, 0.4, 0.13), BOTTOM: (0.17, 0.31, 0.1), ACCENT: (0.33, 0.48, 0.18)}
_HUES = np.array([0.0, 0.0, 0.02, 0.07, 0.13, 0.3, 0.5, 0.56, 0.59, 0.62, 0.65, 0.8, 0.92, 0.97])
_METAL = (0.3, 0.31, 0.33)


class Cast(NamedTuple):
    """Everything that stands in a scene, one row per figure."""

    sprite: NDArray[np.int64]
    mirrored: NDArray[np.bool_]
    thing: NDArray[np.bool_]
    """True for things, False for people."""
    x: Floats
    z: Floats
    stature: Floats
    """Size relative to the sprite's."""
    colours: Floats
    """RGB of each part: n x parts x 3."""
    crowding: Floats
    """How dark the feet are, from 0 in the open to 1 in a throng."""
    shadow_radius: Floats
    shadow_height: Floats


def cast_things(domain: SceneDomain, camera: Camera, spots: list[Spot], rng: np.random.Generator) -> Cast:
    """Give each thing a side, a size and colours."""
    n, names = len(spots), [name for name, _, _ in spots]
    x, z = np.array([(x, z) for _, x, z in spots]).reshape(n, 2).T.copy()
    kinds = np.array([list(THINGS).index(name) for name in names], np.int64)
    return Cast(
        sprite=thing_sprite(camera.elevation(z), kinds, rng.integers(THING_SIDES, size=n)),
        mirrored=rng.random(n) < 0.5,
        thing=np.ones(n, np.bool_),
        x=x,
        z=z,
        stature=rng.uniform(0.9, 1.1, n),
        colours=np.array([_thing_colours(name, domain, rng) for name in names]).reshape(n, PARTS, 3),
        crowding=np.zeros(n),
        shadow_radius=np.array([THINGS[name].shadow_radius for name in names]),
        shadow_height=np.array([THINGS[name].shadow_height for name in names]),
    )


def cast_people(domain: SceneDomain, camera: Camera, crowd: Crowd, rng: np.random.Generator) -> Cast:
    """Give each person a body, a height and clothes."""
    n = len(crowd.x)
    sides = {"front": (0, 0, 0, 1, 1, 2), "back": (4, 4, 4, 3, 3, 2), "any": range(SIDES)}[domain.facing]
    children = rng.random(n) < 0.06
    return Cast(
        sprite=person_sprite(camera.elevation(crowd.z), rng.integers(BODIES, size=n), rng.choice(sides, n)),
        mirrored=rng.random(n) < 0.5,
        thing=np.zeros(n, np.bool_),
        x=crowd.x,
        z=crowd.z,
        stature=rng.normal(1.0, 0.055, n).clip(0.85, 1.15) * np.where(children, 0.68, 1.0),
        colours=_people_colours(n, domain, rng),
        crowding=0.6 * crowd.crowding,
        shadow_radius=np.full(n, 0.3),
        shadow_height=np.full(n, 1.65),
    )


def _people_colours(n: int, domain: SceneDomain, rng: np.random.Generator) -> Floats:
    colours = np.zeros((n, PARTS, 3))
    # Between neighbours of the palette, which is ordered.
    place = rng.beta(1.1, 1.8, n) * (len(_SKINS) - 1.001)
    first, share = place.astype(int), (place % 1)[:, None]
    colours[:, SKIN] = _SKINS[first] * (1 - share) + _SKINS[first + 1] * share
    colours[:, HAIR] = _HAIRS[rng.choice(len(_HAIRS), n, p=_HAIR_SHARES)] * rng.uniform(0.7, 1.3, (n, 1))
    colours[:, BOTTOM] = _JEANS[rng.integers(len(_JEANS), size=n)] * rng.uniform(0.7, 1.2, (n, 1))
    colours[:, SHOES] = np.where(rng.random((n, 1)) < 0.3, 0.85, 0.14)
    colours[:, ACCENT] = _vivid(n, rng)
    plain = rng.random((n, 1)) < 0.6
    colours[:, TOP] = np.where(plain, _PLAIN[rng.integers(len(_PLAIN), size=n)], _vivid(n, rng))
    if domain.wardrobe == "winter":
        colours[:, TOP] = colours[:, TOP] * 0.6 + 0.02
    elif domain.wardrobe == "fans":
        team = _vivid(2, rng)[rng.choice(2, n, p=(0.8, 0.2))] * rng.uniform(0.85, 1.15, (n, 1))
        supporters = rng.random((n, 1)) < rng.uniform(0.0, 0.45)
        colours[:, TOP] = np.where(supporters, team, colours[:, TOP])
        colours[:, ACCENT] = np.where(supporters, team[::-1], colours[:, ACCENT])
    bare = rng.random(n) < domain.bare
    colours[bare, TOP] = np.where(rng.random((bare.sum(), 1)) < 0.6, colours[bare, SKIN], colours[bare, ACCENT])
    return colours


def _thing_colours(kind: str, domain: SceneDomain, rng: np.random.Generator) -> Floats:
    colours = np.empty((PARTS, 3))
    colours[:] = _METAL
    colours[[TOP, ACCENT, SKIN]] = _vivid(3, rng)
    if kind in {"tree", "bush"}:
        for part, leaf in _LEAVES.items():
            colours[part] = np.array(leaf) * rng.uniform(0.8, 1.2)
            if domain.snow or domain.fog[1] > 0.02:
                colours[part] = 0.6 * colours[part] + (0.3 if domain.snow else 0.06)
        colours[SHOES] = (0.26, 0.2, 0.15)
    elif kind in {"car", "van"}:
        colours[TOP] = _PLAIN[rng.integers(len(_PLAIN))] if rng.random() < 0.7 else _vivid(1, rng)[0]
        colours[BOTTOM], colours[SHOES], colours[ACCENT] = (0.14, 0.18, 0.22), (0.08, 0.08, 0.08), (0.85, 0.84, 0.78)
    elif kind == "lamp":
        colours[ACCENT] = (1.0, 0.97, 0.9)
    elif kind == "bench":
        colours[TOP] = (0.45, 0.3, 0.18)
    elif kind in {"barrier", "bin"}:
        colours[TOP] = np.array(_METAL) * rng.uniform(0.7, 2.2)
    elif kind in {"parasol", "umbrella", "stall"}:
        colours[BOTTOM] = (0.5, 0.36, 0.24) if kind == "stall" else 0.75 * colours[TOP]
        colours[ACCENT] = (0.92, 0.9, 0.86) if rng.random() < 0.6 else colours[ACCENT]
    return colours


def _vivid(n: int, rng: np.random.Generator) -> Floats:
    """Saturated colours, blue and red more often than green, few of them garish."""
    hue = rng.choice(_HUES, (n, 1)) + rng.normal(0, 0.025, (n, 1))
    value = rng.uniform(0.4, 1.0, (n, 1))
    wheel = np.clip(np.abs((hue + np.array([0, 2 / 3, 1 / 3])) % 1 * 6 - 3) - 1, 0, 1)
    return np.asarray(value * (1 - rng.beta(2.5, 2.2, (n, 1)) * (1 - wheel)))
