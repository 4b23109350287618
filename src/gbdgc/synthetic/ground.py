"""Ground textures, drawn in perspective."""

from collections.abc import Callable
from functools import lru_cache
from math import cos, sin

import numba
import numpy as np
from scipy.ndimage import gaussian_filter

from gbdgc.synthetic.camera import Camera, Floats, Picture
from gbdgc.synthetic.domains import SceneDomain

SIDE = 512
"""Texels along each side of a texture, which repeats every SIDE / TEXELS_PER_METRE metres."""
TEXELS_PER_METRE = 40.0


def _noise(rng: np.random.Generator, sigma: float | tuple[float, float]) -> Picture:
    """Blurred noise of unit variance that wraps around."""
    field = gaussian_filter(rng.standard_normal((SIDE, SIDE)), sigma, mode="wrap")
    return np.asarray(field / field.std(), np.float32)


def _tinted(grey: Picture, colour: tuple[float, float, float]) -> Picture:
    return np.clip(grey[..., None] * np.array(colour, np.float32), 0.01, 1)


def _slabs(rng: np.random.Generator, rows: int, columns: int, joint: float, spread: float) -> Picture:
    """Paving: each slab of its own brightness, every second row shifted by half a slab, darker joints."""
    y, x = np.mgrid[:SIDE, :SIDE] / SIDE
    row = np.floor(y * rows).astype(int)
    along = x * columns + 0.5 * (row % 2)
    tone = 1 + spread * rng.standard_normal((rows, columns))[row, np.floor(along).astype(int) % columns]
    edge = np.minimum(np.minimum(along % 1, 1 - along % 1) / columns, np.minimum(y * rows % 1, 1 - y * rows % 1) / rows)
    return np.where(edge * SIDE < joint, 0.62, tone).astype(np.float32)


def _asphalt(rng: np.random.Generator) -> Picture:
    grey = 1 + 0.12 * _noise(rng, 0.7) + 0.06 * _noise(rng, 25)
    cracks = np.abs(_noise(rng, 18)) < 0.025
    y, x = np.mgrid[:SIDE, :SIDE]
    dashes = (x < 0.14 * TEXELS_PER_METRE) & (y % (SIDE // 2) < SIDE // 5)
    return _tinted(np.where(dashes, grey * 2.3, np.where(cracks, 0.75, grey)), (0.34, 0.34, 0.35))


def _tiles(rng: np.random.Generator) -> Picture:
    grey = _slabs(rng, 24, 16, 0.9, 0.07) * (1 + 0.05 * _noise(rng, 0.8) + 0.06 * _noise(rng, 30))
    return _tinted(grey, (0.56, 0.51, 0.45))


def _grass(rng: np.random.Generator) -> Picture:
    blades, patches = _noise(rng, (1.6, 0.6)), _noise(rng, 28)
    grey = 1 + 0.2 * blades + 0.1 * _noise(rng, 4)
    worn = np.clip(patches - 1.1, 0, 1)[..., None]
    return np.asarray(_tinted(grey, (0.27, 0.37, 0.14)) * (1 - worn) + worn * _tinted(grey, (0.42, 0.35, 0.24)))


def _sand(rng: np.random.Generator) -> Picture:
    grey = 1 + 0.06 * _noise(rng, 0.7) + 0.07 * _noise(rng, (4, 9)) + 0.04 * _noise(rng, 40)
    return _tinted(grey, (0.8, 0.68, 0.49))


def _stands(rng: np.random.Generator) -> Picture:
    """Concrete steps with rows of coloured seats."""
    y, x = np.mgrid[:SIDE, :SIDE] / SIDE
    riser, along = y * 16 % 1, x * 24 % 1
    grey = (np.where(riser < 0.3, 0.5, 1.0) * (1 + 0.06 * _noise(rng, 1) + 0.05 * _noise(rng, 30))).astype(np.float32)
    seat = ((riser > 0.5) & (riser < 0.9) & (along > 0.12) & (along < 0.88))[..., None]
    return np.where(seat, _tinted(grey, (0.2, 0.28, 0.42)), _tinted(grey, (0.46, 0.46, 0.46)))


def _snow(rng: np.random.Generator) -> Picture:
    trodden = np.clip(_noise(rng, 3) * 0.5 + _noise(rng, 35) - 0.3, 0, 1)[..., None]
    grey = 1 + 0.03 * _noise(rng, 0.8) + 0.04 * _noise(rng, (3, 8))
    return np.asarray(_tinted(grey, (0.82, 0.85, 0.9)) * (1 - 0.4 * trodden))


def _marble(rng: np.random.Generator) -> Picture:
    veins = np.clip(1 - np.abs(_noise(rng, 9)) * 8, 0, 1)
    grey = _slabs(rng, 10, 10, 0.8, 0.03) * (1 - 0.08 * veins) * (1 + 0.02 * _noise(rng, 30))
    return _tinted(grey, (0.72, 0.68, 0.6))


GROUNDS: dict[str, tuple[int, Callable[[np.random.Generator], Picture]]] = {
    "asphalt": (0, _asphalt),
    "tiles": (1, _tiles),
    "grass": (3, _grass),
    "sand": (4, _sand),
    "stands": (5, _stands),
    "snow": (6, _snow),
    "marble": (7, _marble),
}
"""The seed and the recipe of each texture."""


@lru_cache(maxsize=len(GROUNDS))
def _pyramid(kind: str) -> Picture:
    """A texture and its halvings, one below the other."""
    seed, recipe = GROUNDS[kind]
    levels = [recipe(np.random.default_rng([11, seed]))]
    while len(levels[-1]) > 4:
        side = len(levels[-1]) // 2
        levels.append(levels[-1].reshape(side, 2, side, 2, 3).mean(axis=(1, 3)))
    return np.concatenate([level.reshape(-1, 3) for level in levels]).astype(np.float32)


def lay_ground(camera: Camera, domain: SceneDomain, hidden: Picture, rng: np.random.Generator) -> Picture:
    """The bare ground as the camera sees it, up to its reach; what is hidden by figures stays black."""
    image = np.zeros((camera.height, camera.width, 3), np.float32)
    inverse = camera.inverse_depth(np.arange(camera.height, dtype=np.float64) + 0.5)
    turn = rng.uniform(0, 6.3) if domain.slope == 0 else 0.0
    _lay(image, hidden, _pyramid(domain.ground), inverse, camera, turn, (rng.uniform(0, 40), rng.uniform(0, 40)))
    return image


@numba.njit(cache=True, nogil=True)
def _lay(
    image: Picture,
    hidden: Picture,
    pyramid: Picture,
    inverse: Floats,
    camera: Camera,
    turn: float,
    shift: tuple[float, float],
) -> None:
    """Each pixel reads the texture at the level of detail that it can show, mixed from the two nearest levels."""
    height, width = image.shape[:2]
    cos_pitch, sin_pitch, cos_turn, sin_turn = cos(camera.pitch), sin(camera.pitch), cos(turn), sin(turn)
    focal = camera.focal
    for y in range(height):
        if inverse[y] * camera.reach < 0.98:
            continue
        depth = 1 / inverse[y]
        down = (y + 0.5 - height / 2) / focal
        ahead = (cos_pitch - down * sin_pitch) * depth
        # A pixel covers more ground along the view than across it; the mean of both is neither blurred nor ragged.
        slant = focal * depth * abs(inverse[min(y + 1, height - 1)] - inverse[max(y - 1, 0)]) / 2
        blur = np.log2(max(1.0, depth / focal * TEXELS_PER_METRE * np.sqrt(max(1.0, slant))))
        level = min(6, int(blur))
        mix = np.float32(min(1.0, blur - level))
        for x in range(width):
            if hidden[y, x] > 0.996:
                continue
            right = (x + 0.5 - width / 2) / focal * depth
            u = (right * cos_turn + ahead * sin_turn + shift[0]) * TEXELS_PER_METRE
            v = (ahead * cos_turn - right * sin_turn + shift[1]) * TEXELS_PER_METRE
            for fine in range(2):
                side = SIDE >> (level + fine)
                offset = (SIDE * SIDE - side * side) * 4 // 3
                weight = mix if fine else 1 - mix
                if weight <= 0:
                    continue
                s, t = u / (1 << (level + fine)) - 0.5, v / (1 << (level + fine)) - 0.5
                left, top = int(np.floor(s)), int(np.floor(t))
                a, b = np.float32(s - left), np.float32(t - top)
                left0, left1 = left % side, (left + 1) % side
                upper, lower = offset + top % side * side, offset + (top + 1) % side * side
                for band in range(3):
                    first = (1 - a) * pyramid[upper + left0, band] + a * pyramid[upper + left1, band]
                    second = (1 - a) * pyramid[lower + left0, band] + a * pyramid[lower + left1, band]
                    image[y, x, band] += weight * ((1 - b) * first + b * second)
