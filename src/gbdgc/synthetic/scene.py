"""A scene: a camera is set up, light falls, things and people find their places."""

from dataclasses import dataclass
from math import radians, tan

import numpy as np

from gbdgc.synthetic.camera import Camera
from gbdgc.synthetic.cast import Cast, Spot, cast_people, cast_things, join
from gbdgc.synthetic.crowd import place_people
from gbdgc.synthetic.domains import SceneDomain
from gbdgc.synthetic.light import Air, Light, draw_light
from gbdgc.synthetic.things import THINGS

_SMALLEST = 9.0  # pixels per metre where the scene ends: a head is then some two pixels wide


@dataclass(frozen=True, slots=True)
class Scene:
    """All that a picture is painted from, but for the chances of ground, backdrop, weather and lens."""

    domain: SceneDomain
    camera: Camera
    light: Light
    cast: Cast
    air: Air
    side_light: float = 0.0
    """How much brighter figures are on their right side than on their left."""


def compose(
    domain: SceneDomain,
    size: tuple[int, int],
    *,
    empty: bool,
    place: np.random.Generator,
    people: np.random.Generator,
    look: np.random.Generator,
) -> Scene:
    """Draw a scene; each stage has a random stream of its own, so that the place does not depend on who is there."""
    wanted = _draw_count(domain, place)
    camera = _place_camera(domain, wanted, size, place)
    number = int(place.integers(domain.clutter_count[0], domain.clutter_count[1] + 1))
    names = [domain.clutter[index] for index in place.integers(len(domain.clutter), size=number)]
    x, z = camera.scatter(number, place)
    things: list[Spot] = list(zip(names, x.tolist(), z.tolist(), strict=True))
    light = draw_light(domain, camera, place)
    blocked = np.array([(*spot, THINGS[name].footprint) for name, *spot in things]).reshape(-1, 3)
    crowd = place_people(domain, camera, 0 if empty else wanted, blocked, people)
    things += [("lamp", x, z) for x, z in light.lamps.tolist() if light.posts]
    carried = people.random(len(crowd.x)) < domain.umbrellas
    # An umbrella is a hand's breadth nearer than its owner, so that it is painted over him.
    umbrellas = zip(crowd.x[carried].tolist(), (crowd.z[carried] - 0.1).tolist(), strict=True)
    cast = join(
        cast_things(domain, camera, things, place),
        cast_people(domain, camera, crowd, people),
        cast_things(domain, camera, [("umbrella", x, z) for x, z in umbrellas], people),
    )
    air = Air(np.array(domain.sky[1]) * 0.95, look.uniform(*domain.fog))
    return Scene(domain, camera, light, cast, air, look.uniform(-0.35, 0.35))


def _draw_count(domain: SceneDomain, rng: np.random.Generator) -> int:
    """A count from the domain's skewed distribution."""
    low, median, high = domain.counts
    deviation = rng.standard_normal()
    spread = high / median if deviation > 0 else median / low
    return round(median * float(spread ** (deviation / 1.645)))


def _place_camera(domain: SceneDomain, wanted: int, size: tuple[int, int], rng: np.random.Generator) -> Camera:
    """The lowest camera from which that many people find room at the domain's density."""
    focal = size[0] / 2 / tan(radians(rng.uniform(*domain.view)) / 2)
    pitch, density, extra = radians(rng.uniform(*domain.pitch)), rng.uniform(*domain.density), rng.uniform(1, 1.25)
    scale = size[0] / 640
    for altitude in np.geomspace(*domain.altitude, 16):
        camera = Camera(*size, focal, pitch, altitude * extra, domain.slope, focal / (_SMALLEST * scale))
        if camera.visible_area() * density >= wanted:
            break
    return camera
