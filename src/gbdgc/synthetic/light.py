"""The light of a scene and the fog that dims it."""

from dataclasses import dataclass

import numpy as np

from gbdgc.synthetic.camera import Camera, Floats
from gbdgc.synthetic.domains import SceneDomain


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
    """Where a shadow of something one metre tall ends, in metres to the right and ahead."""
    lamps: Floats
    lamp_colours: Floats
    posts: bool
    """Whether the lamps stand in the scene, or shine on it from elsewhere."""
    drift: Floats
    """Waves of brightness over the ground, one (frequency x, frequency z, phase) per row: stains, clouds, wear."""

    def at(self, x: Floats, z: Floats) -> tuple[Floats, Floats]:
        """What falls on a spot without and with the sun, RGB in the last axis."""
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
