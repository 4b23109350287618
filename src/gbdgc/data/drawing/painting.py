"""The kernels that put sprites and their shadows on a picture."""

from dataclasses import dataclass, fields
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from gbdgc.data.drawing.camera import Camera
from gbdgc.data.drawing.solids import LEVELS, PARTS, Atlas
from gbdgc.data.drawing.weather import Air, Light

Floats = NDArray[np.float64]
Picture = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Cast:
    """Everything that stands in a scene, one row a figure."""

    sprite: NDArray[np.int64]
    mirrored: NDArray[np.bool_]
    clutter: NDArray[np.bool_]
    x: Floats
    z: Floats
    stature: Floats
    """Size relative to the sprite's."""
    colours: Floats
    """RGB of each part: n x parts x 3."""
    crowding: Floats
    """How dark the feet are, from 0 in the open to 1 in a throng."""
    shadow_radius: Floats
    shadow_height: Floats

    def ordered(self, depth: Floats) -> "Cast":
        """The same figures, the nearest first."""
        order = np.argsort(depth, kind="stable")
        return Cast(*(getattr(self, field.name)[order] for field in fields(self)))


def join(*casts: Cast) -> Cast:
    """Put casts together."""
    return Cast(*(np.concatenate([getattr(cast, field.name) for cast in casts]) for field in fields(Cast)))


class Seen(NamedTuple):
    """Painted figures: colour (weighted by the coverage), coverage from 0 to 1, and the heads that can be seen."""

    colour: Picture
    coverage: Picture
    heads: Floats


def paint_figures(atlas: Atlas, camera: Camera, cast: Cast, light: Light, air: Air, side_light: float) -> Seen:
    """Paint the cast, nearest first, so that what is hidden costs nothing.

    Heads are those of people, in the picture, and not behind clutter.
    """
    cast = cast.ordered(camera.project(cast.x, cast.z)[2])
    column, row, depth = camera.project(cast.x, cast.z)
    scale = camera.focal / depth * cast.stature
    steady, sun = light.at(cast.x, cast.z)
    colours = cast.colours * (steady + 0.85 * sun)[:, None]
    heads = atlas.head[cast.sprite] * scale[:, None]
    heads[cast.mirrored, 0] *= -1
    heads += np.stack([column, row], axis=1)
    colour = np.zeros((camera.height, camera.width, 3), np.float32)
    coverage = np.zeros((camera.height, camera.width), np.float32)
    seen = np.zeros(len(cast.sprite), np.bool_)
    _paint(
        colour, coverage, seen, atlas.pixels, atlas.table, atlas.pixels_per_metre, atlas.anchor, heads,
        cast.sprite, cast.mirrored, cast.clutter, column, row, scale, (colours / 255).astype(np.float32),
        air.haze(depth).astype(np.float32), cast.crowding, air.colour.astype(np.float32), side_light,
    )  # fmt: skip
    return Seen(colour, coverage, heads[seen & ~cast.clutter])


def paint_shadows(camera: Camera, light: Light, cast: Cast) -> Picture:
    """How deep in shadow each pixel of the ground is: soft streaks from the feet to where the shadow's tip falls."""
    height = cast.shadow_height * cast.stature
    columns, rows, depth = camera.project(cast.x, cast.z)
    tip_columns, tip_rows, _ = camera.project(
        cast.x + height * light.sun_way[0], np.maximum(cast.z + height * light.sun_way[1], 0.3)
    )
    shadow = np.zeros((camera.height, camera.width), np.float32)
    flatness = np.sin(np.clip(camera.elevation(cast.z) + np.arctan(camera.slope), 0.06, 1.5))
    _streak(
        shadow, np.stack([columns, rows], axis=1), np.stack([tip_columns, tip_rows], axis=1),
        cast.shadow_radius * camera.focal / depth, flatness,
    )  # fmt: skip
    return shadow


def _paint_all(
    colour: Picture, coverage: Picture, seen: NDArray[np.bool_], pixels: NDArray[np.uint8], table: NDArray[np.int64],
    pixels_per_metre: Floats, anchor: Floats, heads: Floats, sprite: NDArray[np.int64], mirrored: NDArray[np.bool_],
    clutter: NDArray[np.bool_], columns: Floats, rows: Floats, scales: Floats, colours: Picture, haze: Picture,
    crowding: Floats, fog: Picture, side_light: float,
) -> None:  # fmt: skip
    height, width = coverage.shape
    behind_clutter = np.zeros((height, width), np.bool_)
    for i in range(len(sprite)):
        head_column, head_row = int(heads[i, 0]), int(heads[i, 1])
        if heads[i, 0] >= 0 and heads[i, 1] >= 0 and head_column < width and head_row < height:
            seen[i] = not behind_clutter[head_row, head_column]
        finest = pixels_per_metre[sprite[i]]
        level = min(LEVELS - 1, max(0, int(np.floor(np.log2(finest / scales[i]) + 0.4))))
        offset, tall, wide = table[sprite[i], level]
        step = finest / 2.0**level / scales[i]
        foot_x, foot_y = anchor[sprite[i], 0] / 2.0**level, anchor[sprite[i], 1] / 2.0**level
        spread = max(foot_x, wide - foot_x) / step
        first_row, last_row = (
            max(0, int(rows[i] - foot_y / step)),
            min(height, int(rows[i] + (tall - foot_y) / step) + 1),
        )
        first, last = max(0, int(columns[i] - spread)), min(width, int(columns[i] + spread) + 1)
        clear = np.float32(1 - haze[i])
        sign = -1.0 if mirrored[i] else 1.0
        for y in range(first_row, last_row):
            from_top = (y + 0.5 - rows[i]) * step + foot_y - 0.5
            top = int(np.floor(from_top))
            if top < 0 or top + 1 >= tall:
                continue
            down = np.float32(from_top - top)
            low = (from_top / foot_y) if foot_y > 0 else 0.0
            shade = np.float32(1 - crowding[i] * min(1.0, max(0.0, low - 0.15) * 1.3))
            for x in range(first, last):
                free = np.float32(1) - coverage[y, x]
                if free < 0.004:
                    continue
                from_left = sign * (x + 0.5 - columns[i]) * step + foot_x - 0.5
                left = int(np.floor(from_left))
                if left < 0 or left + 1 >= wide:
                    continue
                across = np.float32(from_left - left)
                upper = offset + top * wide + left
                a, b = (1 - across) * (1 - down), across * (1 - down)
                c, d = (1 - across) * down, across * down
                cover = (
                    a * pixels[upper, PARTS] + b * pixels[upper + 1, PARTS]
                    + c * pixels[upper + wide, PARTS] + d * pixels[upper + wide + 1, PARTS]
                ) / 255  # fmt: skip
                if cover < 0.004:
                    continue
                turned = (
                    a * pixels[upper, PARTS + 1] + b * pixels[upper + 1, PARTS + 1]
                    + c * pixels[upper + wide, PARTS + 1] + d * pixels[upper + wide + 1, PARTS + 1]
                )  # fmt: skip
                red, green, blue = np.float32(0), np.float32(0), np.float32(0)
                for part in range(PARTS):
                    amount = (
                        a * pixels[upper, part] + b * pixels[upper + 1, part]
                        + c * pixels[upper + wide, part] + d * pixels[upper + wide + 1, part]
                    )  # fmt: skip
                    if amount > 0:
                        red += amount * colours[i, part, 0]
                        green += amount * colours[i, part, 1]
                        blue += amount * colours[i, part, 2]
                lit = free * shade * clear * np.float32(1 + side_light * sign * (turned - 128) / 128)
                mist = free * cover * haze[i]
                colour[y, x, 0] += lit * red + mist * fog[0]
                colour[y, x, 1] += lit * green + mist * fog[1]
                colour[y, x, 2] += lit * blue + mist * fog[2]
                coverage[y, x] += free * cover
                if clutter[i] and cover > 0.5:
                    behind_clutter[y, x] = True


def _streak_all(shadow: Picture, feet: Floats, tips: Floats, radius: Floats, flatness: Floats) -> None:
    height, width = shadow.shape
    for i in range(len(feet)):
        flat, reach = flatness[i], radius[i]
        along_x, along_y = tips[i, 0] - feet[i, 0], (tips[i, 1] - feet[i, 1]) / flat
        length = along_x**2 + along_y**2 + 1e-9
        first = max(0, int(min(feet[i, 0], tips[i, 0]) - reach))
        last = min(width, int(max(feet[i, 0], tips[i, 0]) + reach) + 1)
        top = max(0, int(min(feet[i, 1], tips[i, 1]) - reach * flat))
        bottom = min(height, int(max(feet[i, 1], tips[i, 1]) + reach * flat) + 1)
        for y in range(top, bottom):
            for x in range(first, last):
                dx, dy = x + 0.5 - feet[i, 0], (y + 0.5 - feet[i, 1]) / flat
                share = min(1.0, max(0.0, (dx * along_x + dy * along_y) / length))
                away = ((dx - share * along_x) ** 2 + (dy - share * along_y) ** 2) / reach**2
                depth = np.float32((1 - away) * (1 - 0.35 * share) * 1.6)
                if depth > shadow[y, x]:
                    shadow[y, x] = min(depth, np.float32(1))


_paint = numba.njit(cache=True, nogil=True)(_paint_all)
_streak = numba.njit(cache=True, nogil=True)(_streak_all)
