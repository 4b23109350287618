"""What is seen beyond the ground: sky, houses, trees, the sea, the far stand, a wall, a stage."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from gbdgc.data.drawing.domains import SceneDomain

Painter = Callable[[ImageDraw.ImageDraw, int, int, float, SceneDomain, np.random.Generator], None]
"""Draws into a picture of a width and a height whose lower edge is the end of the ground, at so many pixels a metre."""


def _rgb(colour: NDArray[np.float64] | tuple[float, ...], light: float = 1.0) -> tuple[int, int, int]:
    red, green, blue = (int(255 * min(1.0, max(0.0, band * light))) for band in colour)
    return red, green, blue


def _brightness(domain: SceneDomain) -> float:
    return min(1.0, sum(domain.ambient) / 3 + 0.5 * domain.sun)


def _city(
    draw: ImageDraw.ImageDraw, width: int, height: int, scale: float, domain: SceneDomain, rng: np.random.Generator
) -> None:
    """House fronts of several storeys with shop windows below; some windows are lit at night."""
    light = _brightness(domain)
    left = -rng.uniform(0, 10) * scale
    while left < width:
        wide, tall = rng.uniform(8, 22) * scale, rng.uniform(9, 30) * scale
        wall = np.array([0.62, 0.56, 0.5]) * rng.uniform(0.55, 1.25) + rng.uniform(-0.08, 0.08, 3)
        draw.rectangle((left, height - tall, left + wide, height), fill=_rgb(wall, light))
        storey, bay = rng.uniform(2.9, 3.6) * scale, rng.uniform(1.8, 3.0) * scale
        for top in np.arange(height - storey - 3.2 * scale, height - tall, -storey):
            for x in np.arange(left + 0.2 * bay, left + wide - 0.7 * bay, bay):
                glass = (
                    (1.0, 0.82, 0.45)
                    if rng.random() < domain.lit_windows
                    else (0.18 * light, 0.22 * light, 0.27 * light)
                )
                draw.rectangle((x, top, x + 0.55 * bay, top + 0.6 * storey), fill=_rgb(glass))
        for x in np.arange(left, left + wide - 1, 4 * scale):
            shop = rng.uniform(0.15, 0.8, 3)
            glow = 0.95 if domain.lit_windows else light
            draw.rectangle((x, height - 3.3 * scale, x + 3.8 * scale, height - 2.6 * scale), fill=_rgb(shop, glow))
            draw.rectangle((x + 2, height - 2.4 * scale, x + 3.5 * scale, height), fill=_rgb(0.35 * shop + 0.1, glow))
        left += wide + (rng.uniform(0, 6) * scale if rng.random() < 0.3 else 0)


def _trees(
    draw: ImageDraw.ImageDraw, width: int, height: int, scale: float, domain: SceneDomain, rng: np.random.Generator
) -> None:
    """A belt of trees, the far ones paler."""
    light = _brightness(domain)
    for distance in (1.0, 0.75, 0.5):
        for _ in range(int(width / (1.2 * scale)) + 8):
            x, lift, size = rng.uniform(-20, width + 20), rng.uniform(0, 7) * distance, rng.uniform(0.8, 2.2) * scale
            leaf = np.array([0.2, 0.3, 0.14]) * rng.uniform(0.5, 1.1) * (1 - 0.4 * distance) + 0.22 * distance
            y = height - lift * scale
            draw.ellipse((x - size, y - size, x + size, y + 0.7 * size), fill=_rgb(leaf, light))


def _sea(
    draw: ImageDraw.ImageDraw, width: int, height: int, scale: float, domain: SceneDomain, rng: np.random.Generator
) -> None:
    light = _brightness(domain)
    top = height - 14 * scale
    draw.rectangle((0, top, width, height), fill=_rgb((0.2, 0.45, 0.6), light))
    for _ in range(220):
        x, y = rng.uniform(0, width), height - 14 * scale * rng.random() ** 2
        length = rng.uniform(1, 8) * scale * (0.3 + (y - top) / (14 * scale))
        draw.line((x, y, x + length, y), fill=_rgb((0.75, 0.85, 0.9), light * rng.uniform(0.6, 1)))
    draw.rectangle((0, height - 0.6 * scale, width, height), fill=_rgb((0.92, 0.94, 0.93), light))


def _stand(
    draw: ImageDraw.ImageDraw, width: int, height: int, scale: float, domain: SceneDomain, rng: np.random.Generator
) -> None:
    """The top of the stand: a parapet with boards, pillars, and the roof's edge."""
    light = _brightness(domain)
    draw.rectangle((0, height - 5 * scale, width, height), fill=_rgb((0.16, 0.16, 0.18), light))
    for x in np.arange(-rng.uniform(0, 6) * scale, width, 6 * scale):
        draw.rectangle((x, height - 1.4 * scale, x + 5.8 * scale, height), fill=_rgb(rng.uniform(0.15, 0.85, 3), light))
        draw.rectangle((x, height - 5 * scale, x + 0.4 * scale, height), fill=_rgb((0.5, 0.5, 0.52), light))
    draw.rectangle((0, height - 6.2 * scale, width, height - 5 * scale), fill=_rgb((0.7, 0.7, 0.72), light))


def _hall(
    draw: ImageDraw.ImageDraw, width: int, height: int, scale: float, domain: SceneDomain, rng: np.random.Generator
) -> None:
    """A panelled wall with doors and posters under a dark ceiling with rows of lights."""
    draw.rectangle((0, 0, width, height), fill=(58, 55, 50))
    for row in range(1, 9):
        y = height - 7 * scale - (height - 7 * scale) * (row / 8) ** 0.7
        for x in np.linspace(-0.2 * width, 1.2 * width, 9):
            middle = width / 2 + (x - width / 2) * (0.5 + row / 6)
            draw.rectangle((middle - 5 * row, y, middle + 5 * row, y + 1 + row / 2), fill=(255, 250, 225))
    draw.rectangle((0, height - 7 * scale, width, height), fill=(176, 164, 142))
    for x in np.arange(-rng.uniform(0, 4) * scale, width, 4 * scale):
        draw.line((x, height - 7 * scale, x, height), fill=(140, 130, 112))
        if rng.random() < 0.45:
            draw.rectangle(
                (x + scale, height - 4 * scale, x + 3 * scale, height - 1.6 * scale),
                fill=_rgb(rng.uniform(0.1, 0.9, 3)),
            )
        elif rng.random() < 0.5:
            draw.rectangle((x + scale, height - 2.6 * scale, x + 3 * scale, height), fill=(62, 66, 70))


def _stage(
    draw: ImageDraw.ImageDraw, width: int, height: int, scale: float, domain: SceneDomain, rng: np.random.Generator
) -> None:
    """A lit stage with a screen and beams of coloured light."""
    middle, half = width * rng.uniform(0.35, 0.65), 12 * scale
    for _ in range(9):
        x, lean = middle + rng.uniform(-half, half), rng.uniform(-18, 18) * scale
        tint = rng.uniform(0.08, 0.45, 3)
        draw.polygon((x, height - 9 * scale, x + lean - 30, 0, x + lean + 30, 0), fill=_rgb(tint))
    draw.rectangle((middle - half, height - 9 * scale, middle + half, height), fill=(40, 18, 52))
    screen = rng.uniform(0.4, 1.0, 3)
    draw.rectangle(
        (middle - 6 * scale, height - 7.5 * scale, middle + 6 * scale, height - 2 * scale), fill=_rgb(screen)
    )
    draw.rectangle((middle - half, height - 1.2 * scale, middle + half, height), fill=(20, 16, 24))
    for x in np.linspace(middle - half, middle + half, 14):
        draw.ellipse(
            (x - 3, height - 9 * scale - 3, x + 3, height - 9 * scale + 3), fill=_rgb(rng.uniform(0.6, 1.0, 3))
        )


BACKDROPS: dict[str, Painter] = {
    "city": _city,
    "trees": _trees,
    "sea": _sea,
    "stand": _stand,
    "hall": _hall,
    "stage": _stage,
}


def paint_backdrop(
    width: int, height: int, scale: float, domain: SceneDomain, rng: np.random.Generator
) -> NDArray[np.float32]:
    """The picture above the end of the ground, sky included."""
    upper, lower = np.array(domain.sky, np.float32)
    share = np.linspace(0, 1, height, dtype=np.float32)[:, None, None]
    gradient = np.broadcast_to(upper * (1 - share) + lower * share, (height, width, 3))
    clouds = Image.fromarray(rng.integers(0, 255, (max(2, height // 24), max(2, width // 60)), np.uint8))
    puffs = np.asarray(clouds.resize((width, height), Image.Resampling.BILINEAR), np.float32)[..., None] / np.float32(
        255
    )
    cover = np.clip(puffs * 1.8 - 0.9, 0, 1) * 0.6
    sky = gradient * (1 - cover) + lower * cover
    image = Image.fromarray((np.clip(sky, 0, 1) * 255).astype(np.uint8))
    BACKDROPS[domain.backdrop](ImageDraw.Draw(image), width, height, scale, domain, rng)
    return np.asarray(image, np.float32) / np.float32(255)
