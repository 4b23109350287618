"""One scene: a camera is set up, things and people find their places, and everything is painted."""

from math import ceil, radians, tan

import numpy as np
from numpy.typing import NDArray

from gbdgc.data.drawing.backdrop import paint_backdrop
from gbdgc.data.drawing.camera import Camera, scatter
from gbdgc.data.drawing.clutter import CLUTTER, FOOTPRINTS
from gbdgc.data.drawing.colours import dress, paint_thing
from gbdgc.data.drawing.crowd import Crowd, gather
from gbdgc.data.drawing.domains import SceneDomain, find_domain
from gbdgc.data.drawing.figures import BODIES, SIDES, THING_SIDES, clutter_sprite, figures, person_sprite
from gbdgc.data.drawing.ground import lay_ground
from gbdgc.data.drawing.lens import develop
from gbdgc.data.drawing.painting import Cast, join, paint_figures, paint_shadows
from gbdgc.data.drawing.solids import PARTS
from gbdgc.data.drawing.weather import Air, Light, add_glow, add_weather, light_ground, make_light
from gbdgc.data.images import RGB
from gbdgc.data.sample import Points

Floats = NDArray[np.float64]

_SMALLEST = 9.0
"""Pixels per metre where the scene ends: a head is then some two pixels wide."""
_SHADOW_RADII = {"car": 1.3, "van": 1.5, "tree": 1.5, "parasol": 1.1, "stall": 1.5, "bush": 0.9}
_SHADOW_HEIGHTS = {"car": 1.2, "van": 2.0, "tree": 3.8, "lamp": 4.6, "pole": 2.9, "parasol": 2.3, "stall": 2.3}


Thing = tuple[str, float, float]
"""A kind of clutter and its spot x, z."""


def draw_scene(
    domain: SceneDomain | str,
    rng: np.random.Generator,
    size: tuple[int, int] = (640, 480),
    *,
    empty: bool = False,
) -> tuple[RGB, Points]:
    """Draw one picture of a domain.

    Parameters
    ----------
    domain
        A domain, or the name of one in `DOMAINS`.
    rng
        Everything that is left to chance comes from here: same state, same bits.
    size
        Width and height in pixels.
    empty
        Draw the very same place without people.

    Returns
    -------
    image : RGB
    points : middles of heads
        A head whose middle is outside the picture or behind a thing (a car, a tree, an umbrella) is not labelled; one
        behind other people is, as annotators of dense crowds do.
    """
    domain = find_domain(domain)
    # Each stage has a stream of its own, so that the place does not depend on who is there.
    place, people, look = (np.random.default_rng(seed) for seed in rng.integers(2**63, size=3))
    wanted = _draw_count(domain, place)
    camera = _place_camera(domain, wanted, size, place)
    things = _place_things(domain, camera, place)
    light = make_light(domain, camera, place)
    blocked = np.array([(*spot, FOOTPRINTS.get(name, 0.2)) for name, *spot in things]).reshape(-1, 3)
    crowd = gather(domain, camera, 0 if empty else wanted, blocked, people)
    things += [("lamp", x, z) for x, z in light.lamps.tolist() if light.posts]
    carried = people.random(len(crowd.x)) < domain.umbrellas
    # An umbrella is a hand's breadth nearer than its owner, so that it is painted over him.
    spots = zip(crowd.x[carried].tolist(), (crowd.z[carried] - 0.1).tolist(), strict=True)
    cast = join(
        _stage_things(domain, camera, things, place),
        _stage_people(domain, camera, crowd, people),
        _stage_things(domain, camera, [("umbrella", x, z) for x, z in spots], people),
    )
    return _paint(domain, camera, light, cast, look)


def _draw_count(domain: SceneDomain, rng: np.random.Generator) -> int:
    """A count from the domain's skewed distribution."""
    low, median, high = domain.counts
    deviation = rng.standard_normal()
    spread = high / median if deviation > 0 else median / low
    return round(median * float(spread ** (deviation / 1.645)))


def _place_camera(domain: SceneDomain, wanted: int, size: tuple[int, int], rng: np.random.Generator) -> Camera:
    """The lowest camera from which so many people find room at the domain's density."""
    focal = size[0] / 2 / tan(radians(rng.uniform(*domain.view)) / 2)
    pitch, density, extra = radians(rng.uniform(*domain.pitch)), rng.uniform(*domain.density), rng.uniform(1, 1.25)
    scale = size[0] / 640
    for altitude in np.geomspace(*domain.altitude, 16):
        camera = Camera(*size, focal, pitch, altitude * extra, domain.slope, focal / (_SMALLEST * scale))
        if camera.visible_area() * density >= wanted:
            break
    return camera


def _place_things(domain: SceneDomain, camera: Camera, rng: np.random.Generator) -> list[Thing]:
    """Clutter at spots that are spread over the picture, none right before the camera."""
    number = int(rng.integers(domain.clutter_count[0], domain.clutter_count[1] + 1))
    names = [domain.clutter[index] for index in rng.integers(len(domain.clutter), size=number)]
    x, z = scatter(camera, number, rng)
    return list(zip(names, x.tolist(), z.tolist(), strict=True))


def _stage_things(domain: SceneDomain, camera: Camera, things: list[Thing], rng: np.random.Generator) -> Cast:
    n = len(things)
    z = np.array([z for _, _, z in things])
    kinds = np.array([list(CLUTTER).index(name) for name, _, _ in things], np.int64)
    return Cast(
        sprite=clutter_sprite(camera.elevation(z), kinds, rng.integers(THING_SIDES, size=n)),
        mirrored=rng.random(n) < 0.5,
        clutter=np.ones(n, np.bool_),
        x=np.array([x for _, x, _ in things]),
        z=z,
        stature=rng.uniform(0.9, 1.1, n),
        colours=np.array([paint_thing(name, domain, rng) for name, _, _ in things]).reshape(n, PARTS, 3),
        crowding=np.zeros(n),
        shadow_radius=np.array([_SHADOW_RADII.get(name, 0.2) for name, _, _ in things]),
        shadow_height=np.array([_SHADOW_HEIGHTS.get(name, 0.8) for name, _, _ in things]),
    )


def _stage_people(domain: SceneDomain, camera: Camera, crowd: Crowd, rng: np.random.Generator) -> Cast:
    n = len(crowd.x)
    sides = {"front": (0, 0, 0, 1, 1, 2), "back": (4, 4, 4, 3, 3, 2), "any": range(SIDES)}[domain.facing]
    children = rng.random(n) < 0.06
    return Cast(
        sprite=person_sprite(camera.elevation(crowd.z), rng.integers(BODIES, size=n), rng.choice(sides, n)),
        mirrored=rng.random(n) < 0.5,
        clutter=np.zeros(n, np.bool_),
        x=crowd.x,
        z=crowd.z,
        stature=rng.normal(1.0, 0.055, n).clip(0.85, 1.15) * np.where(children, 0.68, 1.0),
        colours=dress(n, domain, rng),
        crowding=0.6 * crowd.crowding,
        shadow_radius=np.full(n, 0.3),
        shadow_height=np.full(n, 1.65),
    )


def _paint(
    domain: SceneDomain, camera: Camera, light: Light, cast: Cast, rng: np.random.Generator
) -> tuple[RGB, Points]:
    """Figures first, since what they hide need not be painted; then ground, backdrop, weather and lens."""
    air = Air(np.array(domain.sky[1]) * 0.95, rng.uniform(*domain.fog))
    side_light = rng.uniform(-0.35, 0.35)
    figures_seen = paint_figures(figures(domain.wardrobe), camera, cast, light, air, side_light)
    turn = rng.uniform(0, 6.3) if domain.slope == 0 else 0.0
    shift = rng.uniform(0, 40), rng.uniform(0, 40)
    image = lay_ground(camera, domain.ground, turn, shift, figures_seen.coverage)
    sheen = np.array(domain.sky[0]) * 0.35 * domain.wetness
    light_ground(image, camera, light, paint_shadows(camera, light, cast), figures_seen.coverage, sheen, air)
    end = min(camera.height, max(0, ceil(camera.row_at(camera.reach))))
    if end > 1:
        beyond = paint_backdrop(camera.width, end, camera.focal / camera.reach, domain, rng)
        image[:end] = beyond + np.float32(air.haze(camera.reach)) * (air.colour.astype(np.float32) - beyond)
    image *= (1 - figures_seen.coverage)[..., None]
    image += figures_seen.colour
    if light.posts:
        add_glow(image, camera, light, domain.wetness)
    add_weather(image, domain, rng)
    return develop(image, domain, rng), figures_seen.heads.astype(np.float32)
