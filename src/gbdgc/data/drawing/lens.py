"""What lens, sensor and camera make of the light: from a scene to eight bits."""

from math import ceil

import numba
import numpy as np
from numpy.typing import NDArray

from gbdgc.data.drawing.domains import SceneDomain
from gbdgc.data.images import RGB

Picture = NDArray[np.float32]


def develop(image: Picture, domain: SceneDomain, rng: np.random.Generator) -> RGB:
    """Exposure, colour cast, saturation, contrast, vignette, blur and noise; ``image`` is used up."""
    height, width = image.shape[:2]
    gain = np.array(domain.cast) * rng.uniform(*domain.exposure) * rng.uniform(0.97, 1.03, 3)
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


def _expose_all(image: Picture, gain: Picture, saturation: np.float32, contrast: np.float32) -> None:
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


def _record_all(record: RGB, image: Picture, taps: Picture, grain: Picture, colour_grain: Picture) -> None:
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


_expose = numba.njit(cache=True, nogil=True)(_expose_all)
_record = numba.njit(cache=True, nogil=True)(_record_all)
