"""From a lit scene to eight bits: glow, rain and snow, the lens and the sensor."""

from math import ceil

import numba
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from gbdgc.synthetic.camera import Camera, Floats, Picture
from gbdgc.synthetic.domains import SceneDomain
from gbdgc.synthetic.scene import Light

RGB = NDArray[np.uint8]

_LAMP_HEIGHT = 4.85


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


def develop(image: Picture, domain: SceneDomain, rng: np.random.Generator) -> RGB:
    """Exposure, colour cast, saturation, contrast, vignette, blur and noise; ``image`` is used up."""
    height, width = image.shape[:2]
    gain = np.array(domain.tint) * rng.uniform(*domain.exposure) * rng.uniform(0.97, 1.03, 3)
    saturation, contrast = domain.saturation * rng.uniform(0.9, 1.1), domain.contrast * rng.uniform(0.95, 1.05)
    _expose(image, (255 * gain).astype(np.float32), np.float32(saturation), np.float32(contrast))
    sigma = rng.uniform(*domain.blur)
    taps = np.exp(-(np.arange(-2, 3) ** 2) / (2 * sigma**2)).astype(np.float32)
    strength = np.float32(rng.uniform(*domain.noise))
    grain = rng.standard_normal((height, width), np.float32) * strength
    # Cameras smooth colour more than brightness, so colour noise is coarser than grain.
    colour_grain = rng.standard_normal((ceil(height / 4), ceil(width / 4), 3), np.float32) * (
        strength * np.float32(0.6)
    )
    record = np.empty((height, width, 3), np.uint8)
    _record(record, image, taps / taps.sum(), grain, colour_grain)
    return record


@numba.njit(cache=True, nogil=True)
def _expose(image: Picture, gain: Picture, saturation: np.float32, contrast: np.float32) -> None:
    """To the scale of 0 to 255; highlights roll off instead of clipping."""
    height, width = image.shape[:2]
    middle, shoulder, room = np.float32(107), np.float32(190), np.float32(65)
    for y in range(height):
        for x in range(width):
            off_x, off_y = np.float32(2 * x / width - 1), np.float32(2 * y / height - 1)
            vignette = np.float32(1) - np.float32(0.12) * (off_x * off_x + off_y * off_y)
            red = image[y, x, 0] * gain[0] * vignette
            green = image[y, x, 1] * gain[1] * vignette
            blue = image[y, x, 2] * gain[2] * vignette
            grey = np.float32(0.3) * red + np.float32(0.59) * green + np.float32(0.11) * blue
            for band, value in enumerate((red, green, blue)):
                level = (grey + (value - grey) * saturation - middle) * contrast + middle
                if level > shoulder:
                    level = shoulder + room * (1 - np.exp((shoulder - level) / room))
                image[y, x, band] = max(level, np.float32(0))


@numba.njit(cache=True, nogil=True)
def _record(record: RGB, image: Picture, taps: Picture, grain: Picture, colour_grain: Picture) -> None:
    """Blur, down the columns and then along the row, add noise and round."""
    height, width = image.shape[:2]
    line = np.empty((width, 3), np.float32)
    for y in range(height):
        line[:] = 0
        for tap in range(5):
            source = image[min(height - 1, max(0, y + tap - 2))]
            weight = taps[tap]
            for x in range(width):
                for band in range(3):
                    line[x, band] += weight * source[x, band]
        for x in range(width):
            for band in range(3):
                value = grain[y, x] + colour_grain[y // 4, x // 4, band]
                for tap in range(5):
                    value += taps[tap] * line[min(width - 1, max(0, x + tap - 2)), band]
                record[y, x, band] = np.uint8(min(np.float32(255), max(np.float32(0), value + np.float32(0.5))))
