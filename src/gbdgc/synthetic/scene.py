"""Composing a scene: camera, light and air, and the positions of things and people."""

from dataclasses import dataclass
from math import radians, tan

import numpy as np

from gbdgc.synthetic.camera import Camera, Floats
from gbdgc.synthetic.cast import Cast, Spot, cast_people, cast_things
from gbdgc.synthetic.crowd import place_people
from gbdgc.synthetic.domains import SceneDomain
from gbdgc.synthetic.things import THINGS

_SMALLEST = 9.0  # pixels per metre where the scene ends: a head is then some two pixels wide


@dataclass(frozen=True, slots=True)
class Air:
    """Fog of one colour, of a density per metre."""

    colour: Floats
    density: float

    def haze(self, depth: Floats | float) -> Floats:
        """The share of what is seen at a depth that is fog."""
        return np.asarray(-np.expm1(-self.density * np.asarray(depth)))


@dataclass(frozen=True, slots=True)
class Light:
    """The light of one scene: the same everywhere, the sun's, and that of lamps at (x, z)."""

    ambient: Floats
    sun: Floats
    shadow: tuple[float, float]
    """The end of the shadow of something one metre tall, in metres to the right and ahead."""
    lamps: Floats
    lamp_colours: Floats
    posts: bool
    """True if the lamps stand in the scene, False if they shine on it from outside."""
    drift: Floats
    """Waves of brightness over the ground, one (frequency x, frequency z, phase) per row: stains, clouds, wear."""

    def at(self, x: Floats, z: Floats) -> tuple[Floats, Floats]:
        """Return the light on a spot without the sun, and the sun's own, RGB in the last axis."""
        steady = np.broadcast_to(self.ambient, (*x.shape, 3)).copy()
        for (lamp_x, lamp_z), colour in zip(self.lamps, self.lamp_colours, strict=True):
            away = ((x - lamp_x) ** 2 + (z - lamp_z) ** 2) / 30
            steady += (1 / (1 + away) ** 1.5)[..., None] * colour
        waves = sum(np.sin(x * fx + z * fz + phase) for fx, fz, phase in self.drift)
        factor = (1 + 0.05 * np.asarray(waves))[..., None]
        return steady * factor, np.broadcast_to(self.sun, (*x.shape, 3)) * factor


def draw_light(domain: SceneDomain, camera: Camera, rng: np.random.Generator) -> Light:
    """Choose the hour: where the sun stands, where lamps are and how they burn."""
    lamps = np.stack(camera.scatter(domain.lamps, rng), axis=1)
    angle, height = rng.uniform(0, 2 * np.pi), np.radians(rng.uniform(*domain.sun_height))
    length = 1 / np.tan(height) if domain.sun else 0.0
    n = len(lamps)
    return Light(
        lamps=lamps,
        lamp_colours=np.array(domain.lamp_colour) * rng.uniform(0.7, 1.3, (n, 1)) * rng.uniform(0.75, 1.25, (n, 3)),
        ambient=np.array(domain.ambient) * rng.uniform(0.85, 1.15),
        sun=np.array([1.0, 0.96, 0.88]) * domain.sun * rng.uniform(0.7, 1.15),
        shadow=(float(length * np.cos(angle)), float(length * np.sin(angle))),
        posts=domain.backdrop != "stage",
        drift=np.stack([*rng.normal(0, 0.25, (2, 5)), rng.uniform(0, 6, 5)], axis=1),
    )


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
    rendering: np.random.Generator,
) -> Scene:
    """Draw a scene; each stage has a random stream of its own, so that the place does not depend on who is there."""
    # The count has a skewed distribution; the camera is the lowest from which that many people find room.
    low, median, high = domain.counts
    deviation = place.standard_normal()
    wanted = round(median * float((high / median if deviation > 0 else median / low) ** (deviation / 1.645)))
    focal = size[0] / 2 / tan(radians(place.uniform(*domain.view)) / 2)
    pitch, density = radians(place.uniform(*domain.pitch)), place.uniform(*domain.density)
    extra, reach = place.uniform(1, 1.25), focal / (_SMALLEST * (size[0] / 640))
    for altitude in np.geomspace(*domain.altitude, 16):
        camera = Camera(*size, focal, pitch, altitude * extra, domain.slope, reach)
        if camera.visible_area() * density >= wanted:
            break
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
    casts = (
        cast_things(domain, camera, things, place),
        cast_people(domain, camera, crowd, people),
        cast_things(domain, camera, [("umbrella", x, z) for x, z in umbrellas], people),
    )
    cast = Cast._make(np.concatenate(columns) for columns in zip(*casts, strict=True))
    air = Air(np.array(domain.sky[1]) * 0.95, rendering.uniform(*domain.fog))
    return Scene(domain, camera, light, cast, air, rendering.uniform(-0.35, 0.35))
