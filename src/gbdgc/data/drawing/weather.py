"""Light on the ground, rain and snow in the air."""

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from gbdgc.data.drawing.camera import Camera, scatter
from gbdgc.data.drawing.domains import SceneDomain

Picture = NDArray[np.float32]
Floats = NDArray[np.float64]

_LAMP_HEIGHT = 4.85
_COARSE = 8
"""Light changes slowly: it is computed for one pixel in so many each way."""


@dataclass(frozen=True, slots=True)
class Air:
    """Fog of one colour, so dense per metre."""

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
    sun_way: tuple[float, float]
    """Where a shadow of something one metre tall ends, in metres to the right and ahead."""
    lamps: Floats
    lamp_colours: Floats
    posts: bool
    """Whether the lamps stand in the scene, or shine on it from elsewhere."""
    drift: Floats
    """Waves of brightness over the ground, (frequency x, frequency z, phase) a row: stains, clouds, worn places."""

    def at(self, x: Floats, z: Floats) -> tuple[Floats, Floats]:
        """What falls on a spot without and with the sun, RGB in the last axis."""
        steady = np.broadcast_to(self.ambient, (*x.shape, 3)).copy()
        for (lamp_x, lamp_z), colour in zip(self.lamps, self.lamp_colours, strict=True):
            away = ((x - lamp_x) ** 2 + (z - lamp_z) ** 2) / 30
            steady += (1 / (1 + away) ** 1.5)[..., None] * colour
        waves = sum(np.sin(x * fx + z * fz + phase) for fx, fz, phase in self.drift)
        factor = (1 + 0.05 * np.asarray(waves))[..., None]
        return steady * factor, np.broadcast_to(self.sun, (*x.shape, 3)) * factor


def make_light(domain: SceneDomain, camera: Camera, rng: np.random.Generator) -> Light:
    """Draw the hour: where the sun stands, where lamps are and how they burn."""
    lamps = np.stack(scatter(camera, domain.lamps, rng), axis=1)
    angle, height = rng.uniform(0, 2 * np.pi), np.radians(rng.uniform(*domain.sun_height))
    length = 1 / np.tan(height) if domain.sun else 0.0
    glow = (
        np.array(domain.lamp_colour) * rng.uniform(0.7, 1.3, (len(lamps), 1)) * rng.uniform(0.75, 1.25, (len(lamps), 3))
    )
    return Light(
        np.array(domain.ambient) * rng.uniform(0.85, 1.15),
        np.array([1.0, 0.96, 0.88]) * domain.sun * rng.uniform(0.7, 1.15),
        (float(length * np.cos(angle)), float(length * np.sin(angle))),
        lamps,
        glow,
        domain.backdrop != "stage",
        np.stack([*rng.normal(0, 0.25, (2, 5)), rng.uniform(0, 6, 5)], axis=1),
    )


def light_ground(
    image: Picture, camera: Camera, light: Light, shadow: Picture, hidden: Picture, sheen: Floats, air: Air
) -> None:
    """Turn the bare ground into the lit one, in place: light, shadow, the sky's sheen on wet ground, fog by row.

    Pixels that figures hide are left as they are.
    """
    columns = np.arange(camera.width // _COARSE + 2) * _COARSE
    rows = np.arange(camera.height // _COARSE + 2) * _COARSE
    horizon = camera.row_at(2 * camera.reach)
    x, z = camera.ground(*np.meshgrid(columns.astype(float), np.maximum(rows, horizon + 1)))
    steady, sun = light.at(x, z)
    coarse = np.concatenate([steady, sun], axis=-1).astype(np.float32)
    inverse = camera.inverse_depth(np.arange(camera.height, dtype=np.float64) + 0.5)
    haze = air.haze(1 / np.maximum(inverse, 1 / camera.reach)).astype(np.float32)
    _shine(image, coarse, shadow, hidden, sheen.astype(np.float32), air.colour.astype(np.float32), haze)


def _shine_all(
    image: Picture, coarse: Picture, shadow: Picture, hidden: Picture, sheen: Picture, fog: Picture, haze: Picture
) -> None:
    height, width = shadow.shape
    for y in range(height):
        top, down = y // _COARSE, np.float32(y % _COARSE) / np.float32(_COARSE)
        for x in range(width):
            if hidden[y, x] > 0.996:
                continue
            left, across = x // _COARSE, np.float32(x % _COARSE) / np.float32(_COARSE)
            a, b = (1 - across) * (1 - down), across * (1 - down)
            c, d = (1 - across) * down, across * down
            dim = shadow[y, x]
            for band in range(3):
                steady = (
                    a * coarse[top, left, band] + b * coarse[top, left + 1, band]
                    + c * coarse[top + 1, left, band] + d * coarse[top + 1, left + 1, band]
                )  # fmt: skip
                sun = (
                    a * coarse[top, left, band + 3] + b * coarse[top, left + 1, band + 3]
                    + c * coarse[top + 1, left, band + 3] + d * coarse[top + 1, left + 1, band + 3]
                )  # fmt: skip
                lit = steady * (np.float32(0.85) - np.float32(0.35) * dim) + sun * (
                    np.float32(0.85) - np.float32(0.78) * dim
                )
                value = image[y, x, band] * lit + sheen[band] * (1 - np.float32(0.8) * dim)
                image[y, x, band] = value + haze[y] * (fog[band] - value)


_shine = numba.njit(cache=True, nogil=True)(_shine_all)


def add_glow(image: Picture, camera: Camera, light: Light, wetness: float) -> None:
    """The halo of each lamp, and on wet ground its long reflection."""
    columns, tops, depths = camera.project(light.lamps[:, 0], light.lamps[:, 1], _LAMP_HEIGHT)
    _, feet, _ = camera.project(light.lamps[:, 0], light.lamps[:, 1])
    for column, top, foot, depth, colour in zip(columns, tops, feet, depths, light.lamp_colours, strict=True):
        radius = min(90.0, max(6.0, 1.3 * camera.focal / depth))
        _add_spot(image, column, top, radius, radius, colour * 0.9)
        if wetness:
            _add_spot(
                image, column, foot + (foot - top) * 0.5, radius * 0.3, (foot - top) * 0.6, colour * 0.4 * wetness
            )


def _add_spot(image: Picture, column: float, row: float, across: float, along: float, colour: Floats) -> None:
    """Add a soft ellipse of light."""
    height, width = image.shape[:2]
    left, right = int(np.clip(column - 3 * across, 0, width)), int(np.clip(column + 3 * across, 0, width))
    top, bottom = int(np.clip(row - 3 * along, 0, height)), int(np.clip(row + 3 * along, 0, height))
    x = np.exp(-np.abs(np.arange(left, right) - column) / across * 1.6)
    y = np.exp(-np.abs(np.arange(top, bottom) - row) / along * 1.6)
    image[top:bottom, left:right] += (np.outer(y, x)[..., None] * colour).astype(np.float32)


def add_weather(image: Picture, domain: SceneDomain, rng: np.random.Generator) -> None:
    """Streaks of rain, flakes of snow."""
    height, width = image.shape[:2]
    veil = Image.new("L", (width, height))
    draw = ImageDraw.Draw(veil)
    if domain.rain:
        lean = rng.uniform(-0.25, 0.25)
        for x, y, length in rng.uniform((0, -30, 6), (width, height, 34), (int(900 * domain.rain), 3)).tolist():
            draw.line((x, y, x + lean * length, y + length), fill=int(30 + length))
    if domain.snow:
        for x, y, size in rng.uniform((0, 0, 0), (width, height, 1), (int(700 * domain.snow), 3)).tolist():
            radius = 0.4 + 2.2 * size**4
            draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=int(230 - 70 * size))
    if domain.rain or domain.snow:
        share = np.asarray(veil.filter(ImageFilter.GaussianBlur(0.7)), np.float32)[..., None] / 255
        image += share * (np.array([0.9, 0.93, 1.0], np.float32) - image)
