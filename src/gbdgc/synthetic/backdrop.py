"""The backdrop beyond the ground: sky, houses, trees, the sea, the far stand, a wall, a stage."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from gbdgc.synthetic.camera import Camera
from gbdgc.synthetic.domains import SceneDomain


def paint_backdrop(camera: Camera, domain: SceneDomain, rng: np.random.Generator) -> NDArray[np.float32]:
    """The picture above the end of the ground, sky included."""
    width, height = camera.width, camera.backdrop_height
    upper, lower = np.array(domain.sky, np.float32)
    share = np.linspace(0, 1, height, dtype=np.float32)[:, None, None]
    gradient = np.broadcast_to(upper * (1 - share) + lower * share, (height, width, 3))
    clouds = Image.fromarray(rng.integers(0, 255, (max(2, height // 24), max(2, width // 60)), np.uint8))
    puffs = np.asarray(clouds.resize((width, height), Image.Resampling.BILINEAR), np.float32)[..., None]
    cover = np.clip(puffs / np.float32(255) * 1.8 - 0.9, 0, 1) * 0.6
    sky = gradient * (1 - cover) + lower * cover
    image = Image.fromarray((np.clip(sky, 0, 1) * 255).astype(np.uint8))
    BACKDROPS[domain.backdrop](_Canvas(image, camera.focal / camera.reach, domain), rng)
    return np.asarray(image, np.float32) / np.float32(255)


class _Canvas:
    """A picture whose lower edge is the end of the ground, at a scale of pixels per metre."""

    def __init__(self, image: Image.Image, scale: float, domain: SceneDomain) -> None:
        self.draw, self.scale, self.lit_windows = ImageDraw.Draw(image), scale, domain.lit_windows
        self.width, self.height = image.size
        self.light = min(1.0, sum(domain.ambient) / 3 + 0.5 * domain.sun)

    def rgb(self, colour: NDArray[np.float64] | tuple[float, ...], light: float | None = None) -> tuple[int, int, int]:
        """A colour in bytes, in the scene's light unless another is given."""
        light = self.light if light is None else light
        red, green, blue = (int(255 * min(1.0, max(0.0, band * light))) for band in colour)
        return red, green, blue

    def y(self, up: float) -> float:
        """The row at a height in metres above the ground."""
        return self.height - up * self.scale

    def box(self, left: float, top: float, right: float, bottom: float, fill: tuple[int, int, int]) -> None:
        """A rectangle from column to column, its top and bottom in metres above the ground."""
        self.draw.rectangle((left, self.y(top), right, self.y(bottom)), fill=fill)


def _city(to: _Canvas, rng: np.random.Generator) -> None:
    """House fronts of several storeys with shop windows below; some windows are lit at night."""
    scale = to.scale
    left = -rng.uniform(0, 10) * scale
    while left < to.width:
        wide, tall = rng.uniform(8, 22) * scale, rng.uniform(9, 30)
        wall = np.array([0.62, 0.56, 0.5]) * rng.uniform(0.55, 1.25) + rng.uniform(-0.08, 0.08, 3)
        to.box(left, tall, left + wide, 0, to.rgb(wall))
        storey, bay = rng.uniform(2.9, 3.6) * scale, rng.uniform(1.8, 3.0) * scale
        for top in np.arange(to.height - storey - 3.2 * scale, to.y(tall), -storey):
            for x in np.arange(left + 0.2 * bay, left + wide - 0.7 * bay, bay):
                lit = rng.random() < to.lit_windows
                glass = to.rgb((1.0, 0.82, 0.45), 1.0) if lit else to.rgb((0.18, 0.22, 0.27))
                to.draw.rectangle((x, top, x + 0.55 * bay, top + 0.6 * storey), fill=glass)
        for x in np.arange(left, left + wide - 1, 4 * scale):
            shop = rng.uniform(0.15, 0.8, 3)
            glow = 0.95 if to.lit_windows else to.light
            to.box(x, 3.3, x + 3.8 * scale, 2.6, to.rgb(shop, glow))
            to.box(x + 2, 2.4, x + 3.5 * scale, 0, to.rgb(0.35 * shop + 0.1, glow))
        left += wide + (rng.uniform(0, 6) * scale if rng.random() < 0.3 else 0)


def _trees(to: _Canvas, rng: np.random.Generator) -> None:
    """A belt of trees, the far ones paler."""
    for distance in (1.0, 0.75, 0.5):
        for _ in range(int(to.width / (1.2 * to.scale)) + 8):
            x, lift = rng.uniform(-20, to.width + 20), rng.uniform(0, 7) * distance
            y, size = to.y(lift), rng.uniform(0.8, 2.2) * to.scale
            leaf = np.array([0.2, 0.3, 0.14]) * rng.uniform(0.5, 1.1) * (1 - 0.4 * distance) + 0.22 * distance
            to.draw.ellipse((x - size, y - size, x + size, y + 0.7 * size), fill=to.rgb(leaf))


def _sea(to: _Canvas, rng: np.random.Generator) -> None:
    to.box(0, 14, to.width, 0, to.rgb((0.2, 0.45, 0.6)))
    for _ in range(220):
        x, y = rng.uniform(0, to.width), to.height - 14 * to.scale * rng.random() ** 2
        length = rng.uniform(1, 8) * to.scale * (0.3 + (y - to.y(14)) / (14 * to.scale))
        to.draw.line((x, y, x + length, y), fill=to.rgb((0.75, 0.85, 0.9), to.light * rng.uniform(0.6, 1)))
    to.box(0, 0.6, to.width, 0, to.rgb((0.92, 0.94, 0.93)))


def _stand(to: _Canvas, rng: np.random.Generator) -> None:
    """The top of the stand: a parapet with boards, pillars, and the roof's edge."""
    to.box(0, 5, to.width, 0, to.rgb((0.16, 0.16, 0.18)))
    for x in np.arange(-rng.uniform(0, 6) * to.scale, to.width, 6 * to.scale):
        to.box(x, 1.4, x + 5.8 * to.scale, 0, to.rgb(rng.uniform(0.15, 0.85, 3)))
        to.box(x, 5, x + 0.4 * to.scale, 0, to.rgb((0.5, 0.5, 0.52)))
    to.box(0, 6.2, to.width, 5, to.rgb((0.7, 0.7, 0.72)))


def _hall(to: _Canvas, rng: np.random.Generator) -> None:
    """A panelled wall with doors and posters under a dark ceiling with rows of lights."""
    to.draw.rectangle((0, 0, to.width, to.height), fill=(58, 55, 50))
    for row in range(1, 9):
        y = to.y(7) - to.y(7) * (row / 8) ** 0.7
        for x in np.linspace(-0.2 * to.width, 1.2 * to.width, 9):
            middle = to.width / 2 + (x - to.width / 2) * (0.5 + row / 6)
            to.draw.rectangle((middle - 5 * row, y, middle + 5 * row, y + 1 + row / 2), fill=(255, 250, 225))
    to.box(0, 7, to.width, 0, (176, 164, 142))
    for x in np.arange(-rng.uniform(0, 4) * to.scale, to.width, 4 * to.scale):
        to.draw.line((x, to.y(7), x, to.height), fill=(140, 130, 112))
        if rng.random() < 0.45:
            to.box(x + to.scale, 4, x + 3 * to.scale, 1.6, to.rgb(rng.uniform(0.1, 0.9, 3), 1.0))
        elif rng.random() < 0.5:
            to.box(x + to.scale, 2.6, x + 3 * to.scale, 0, (62, 66, 70))


def _stage(to: _Canvas, rng: np.random.Generator) -> None:
    """A lit stage with a screen and beams of coloured light."""
    middle, half = to.width * rng.uniform(0.35, 0.65), 12 * to.scale
    for _ in range(9):
        x, lean = middle + rng.uniform(-half, half), rng.uniform(-18, 18) * to.scale
        tint = rng.uniform(0.08, 0.45, 3)
        to.draw.polygon((x, to.y(9), x + lean - 30, 0, x + lean + 30, 0), fill=to.rgb(tint, 1.0))
    to.box(middle - half, 9, middle + half, 0, (40, 18, 52))
    to.box(middle - 6 * to.scale, 7.5, middle + 6 * to.scale, 2, to.rgb(rng.uniform(0.4, 1.0, 3), 1.0))
    to.box(middle - half, 1.2, middle + half, 0, (20, 16, 24))
    for x in np.linspace(middle - half, middle + half, 14):
        lamp = (x - 3, to.y(9) - 3, x + 3, to.y(9) + 3)
        to.draw.ellipse(lamp, fill=to.rgb(rng.uniform(0.6, 1.0, 3), 1.0))


BACKDROPS: dict[str, Callable[[_Canvas, np.random.Generator], None]] = {
    "city": _city,
    "trees": _trees,
    "sea": _sea,
    "stand": _stand,
    "hall": _hall,
    "stage": _stage,
}
