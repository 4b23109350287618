"""Painting a scene: figures with their shadows, the lit ground, the backdrop, and what the camera adds."""

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from gbdgc.synthetic.backdrop import paint_backdrop
from gbdgc.synthetic.camera import Floats, Picture
from gbdgc.synthetic.cast import Cast
from gbdgc.synthetic.domains import SceneDomain, find_domain
from gbdgc.synthetic.ground import lay_ground
from gbdgc.synthetic.lens import RGB, add_glow, add_weather, develop
from gbdgc.synthetic.people import PARTS
from gbdgc.synthetic.scene import Scene, compose
from gbdgc.synthetic.sprites import LEVELS, Atlas, atlas

_COARSE = 8  # light changes slowly, so it is computed on a grid with this spacing


def draw_scene(
    domain: SceneDomain | str, rng: np.random.Generator, size: tuple[int, int] = (640, 480), *, empty: bool = False
) -> tuple[RGB, NDArray[np.float32]]:
    """Draw one picture of a domain.

    Parameters
    ----------
    domain : a domain, or the name of one in `DOMAINS`.
    rng : everything that is left to chance comes from here: same state, same bits.
    size : width and height in pixels.
    empty : draw the very same place without people.

    Returns
    -------
    image : RGB
    points : (x, y) of the middles of heads
        A head whose middle is outside the picture or behind a thing (a car, a tree, an umbrella) is not labelled; one
        behind other people is, as annotators of dense crowds do.
    """
    place, people, rendering = (np.random.default_rng(seed) for seed in rng.integers(2**63, size=3))
    scene = compose(find_domain(domain), size, empty=empty, place=place, people=people, rendering=rendering)
    # Figures first, since what they hide need not be painted.
    figures = paint_figures(scene)
    image = lay_ground(scene.camera, scene.domain, figures.coverage, rendering)
    _light_ground(image, scene, figures.coverage)
    end = scene.camera.backdrop_height
    if end > 1:
        beyond = paint_backdrop(scene.camera, scene.domain, rendering)
        fog = scene.air.colour.astype(np.float32)
        image[:end] = beyond + np.float32(scene.air.haze(scene.camera.reach)) * (fog - beyond)
    image *= (1 - figures.coverage)[..., None]
    image += figures.colour
    if scene.light.posts:
        add_glow(image, scene.camera, scene.light, scene.domain.wetness)
    add_weather(image, scene.domain, rendering)
    return develop(image, scene.domain, rendering), figures.heads.astype(np.float32)


class Figures(NamedTuple):
    """Painted figures: colour (weighted by the coverage), coverage from 0 to 1, and the heads that can be seen."""

    colour: Picture
    coverage: Picture
    heads: Floats


class _Projection(NamedTuple):
    """The figures' positions in the picture, their pixels per metre, and the share of fog over them."""

    columns: Floats
    rows: Floats
    scales: Floats
    heads: Floats
    haze: Picture


def paint_figures(scene: Scene) -> Figures:
    """Paint the cast, nearest first, so that what is hidden costs nothing.

    Heads are those of people, in the picture, and not behind things.
    """
    camera, sprites = scene.camera, atlas(scene.domain.wardrobe)
    order = np.argsort(camera.project(scene.cast.x, scene.cast.z)[2], kind="stable")
    cast = Cast._make(column[order] for column in scene.cast)
    columns, rows, depth = camera.project(cast.x, cast.z)
    scales = camera.focal / depth * cast.stature
    steady, sun = scene.light.at(cast.x, cast.z)
    lit = cast._replace(colours=(cast.colours * (steady + 0.85 * sun)[:, None] / 255).astype(np.float32))
    heads = sprites.head[cast.sprite] * scales[:, None]
    heads[cast.mirrored, 0] *= -1
    heads += np.stack([columns, rows], axis=1)
    colour = np.zeros((camera.height, camera.width, 3), np.float32)
    coverage = np.zeros((camera.height, camera.width), np.float32)
    projection = _Projection(columns, rows, scales, heads, scene.air.haze(depth).astype(np.float32))
    seen = _paint(colour, coverage, sprites, lit, projection, scene.air.colour.astype(np.float32), scene.side_light)
    return Figures(colour, coverage, heads[seen & ~cast.thing])


def _light_ground(image: Picture, scene: Scene, hidden: Picture) -> None:
    """Turn the bare ground into the lit one, in place: light, shadow, the sky's sheen on wet ground, fog by row.

    Pixels that figures hide are left as they are.
    """
    camera, air, domain = scene.camera, scene.air, scene.domain
    grid_columns = np.arange(camera.width // _COARSE + 2) * _COARSE
    grid_rows = np.arange(camera.height // _COARSE + 2) * _COARSE
    horizon = camera.row_at(2 * camera.reach)
    x, z = camera.ground(*np.meshgrid(grid_columns.astype(float), np.maximum(grid_rows, horizon + 1)))
    light = np.concatenate(scene.light.at(x, z), axis=-1).astype(np.float32)
    inverse = camera.inverse_depth(np.arange(camera.height, dtype=np.float64) + 0.5)
    haze = air.haze(1 / np.maximum(inverse, 1 / camera.reach)).astype(np.float32)
    sheen = (np.array(domain.sky[0]) * 0.35 * domain.wetness).astype(np.float32)
    _shine(image, light, _paint_shadows(scene), hidden, sheen, air.colour.astype(np.float32), haze)


def _paint_shadows(scene: Scene) -> Picture:
    """How deep in shadow each pixel of the ground is: soft streaks from the feet to where the shadow's tip falls."""
    camera, cast, (right, ahead) = scene.camera, scene.cast, scene.light.shadow
    height = cast.shadow_height * cast.stature
    columns, rows, depth = camera.project(cast.x, cast.z)
    tip_columns, tip_rows, _ = camera.project(cast.x + height * right, np.maximum(cast.z + height * ahead, 0.3))
    shadow = np.zeros((camera.height, camera.width), np.float32)
    flatness = np.sin(np.clip(camera.elevation(cast.z) + np.arctan(camera.slope), 0.06, 1.5))
    feet, tips = np.stack([columns, rows], axis=1), np.stack([tip_columns, tip_rows], axis=1)
    _streak(shadow, feet, tips, cast.shadow_radius * camera.focal / depth, flatness)
    return shadow


@numba.njit(cache=True, nogil=True)
def _bilinear(texels: NDArray[Any], upper: int, wide: int, band: int, weights: tuple[Any, ...]) -> Any:
    """One band of a picture, stored row after row, between the texel ``upper`` and its right and lower neighbours."""
    a, b, c, d = weights
    lower = upper + wide
    return a * texels[upper, band] + b * texels[upper + 1, band] + c * texels[lower, band] + d * texels[lower + 1, band]


@numba.njit(cache=True, nogil=True)
def _paint(
    colour: Picture, coverage: Picture, atlas: Atlas, cast: Cast, to: _Projection, fog: Picture, side_light: float
) -> NDArray[np.bool_]:
    """Paint every figure into colour and coverage; return whose heads can be seen."""
    height, width = coverage.shape
    behind_thing = np.zeros((height, width), np.bool_)
    seen = np.zeros(len(cast.sprite), np.bool_)
    pixels = atlas.pixels
    for i in range(len(cast.sprite)):
        sprite, haze = cast.sprite[i], to.haze[i]
        head_column, head_row = int(to.heads[i, 0]), int(to.heads[i, 1])
        if to.heads[i, 0] >= 0 and to.heads[i, 1] >= 0 and head_column < width and head_row < height:
            seen[i] = not behind_thing[head_row, head_column]
        finest = atlas.pixels_per_metre[sprite]
        level = min(LEVELS - 1, max(0, int(np.floor(np.log2(finest / to.scales[i]) + 0.4))))
        offset, tall, wide = atlas.table[sprite, level]
        step = finest / 2.0**level / to.scales[i]
        foot_x, foot_y = atlas.anchor[sprite, 0] / 2.0**level, atlas.anchor[sprite, 1] / 2.0**level
        spread = max(foot_x, wide - foot_x) / step
        first_row = max(0, int(to.rows[i] - foot_y / step))
        last_row = min(height, int(to.rows[i] + (tall - foot_y) / step) + 1)
        first, last = max(0, int(to.columns[i] - spread)), min(width, int(to.columns[i] + spread) + 1)
        clear = np.float32(1 - haze)
        sign = -1.0 if cast.mirrored[i] else 1.0
        for y in range(first_row, last_row):
            from_top = (y + 0.5 - to.rows[i]) * step + foot_y - 0.5
            top = int(np.floor(from_top))
            if top < 0 or top + 1 >= tall:
                continue
            down = np.float32(from_top - top)
            low = (from_top / foot_y) if foot_y > 0 else 0.0
            shade = np.float32(1 - cast.crowding[i] * min(1.0, max(0.0, low - 0.15) * 1.3))
            for x in range(first, last):
                free = np.float32(1) - coverage[y, x]
                if free < 0.004:
                    continue
                from_left = sign * (x + 0.5 - to.columns[i]) * step + foot_x - 0.5
                left = int(np.floor(from_left))
                if left < 0 or left + 1 >= wide:
                    continue
                across = np.float32(from_left - left)
                upper = offset + top * wide + left
                weights = (1 - across) * (1 - down), across * (1 - down), (1 - across) * down, across * down
                cover = _bilinear(pixels, upper, wide, PARTS, weights) / 255
                if cover < 0.004:
                    continue
                turned = _bilinear(pixels, upper, wide, PARTS + 1, weights)
                red, green, blue = np.float32(0), np.float32(0), np.float32(0)
                for part in range(PARTS):
                    amount = _bilinear(pixels, upper, wide, part, weights)
                    if amount > 0:
                        red += amount * cast.colours[i, part, 0]
                        green += amount * cast.colours[i, part, 1]
                        blue += amount * cast.colours[i, part, 2]
                lit = free * shade * clear * np.float32(1 + side_light * sign * (turned - 128) / 128)
                mist = free * cover * haze
                colour[y, x, 0] += lit * red + mist * fog[0]
                colour[y, x, 1] += lit * green + mist * fog[1]
                colour[y, x, 2] += lit * blue + mist * fog[2]
                coverage[y, x] += free * cover
                if cast.thing[i] and cover > 0.5:
                    behind_thing[y, x] = True
    return seen


@numba.njit(cache=True, nogil=True)
def _streak(shadow: Picture, feet: Floats, tips: Floats, radius: Floats, flatness: Floats) -> None:
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


@numba.njit(cache=True, nogil=True)
def _shine(
    image: Picture, light: Picture, shadow: Picture, hidden: Picture, sheen: Picture, fog: Picture, haze: Picture
) -> None:
    """Light each pixel; ``light`` has six bands on a coarse grid: RGB without the sun, then the sun's."""
    height, width = shadow.shape
    wide = light.shape[1]
    texels = light.reshape(-1, 6)
    for y in range(height):
        down = np.float32(y % _COARSE) / np.float32(_COARSE)
        for x in range(width):
            if hidden[y, x] > 0.996:
                continue
            across = np.float32(x % _COARSE) / np.float32(_COARSE)
            upper = y // _COARSE * wide + x // _COARSE
            weights = (1 - across) * (1 - down), across * (1 - down), (1 - across) * down, across * down
            dim = shadow[y, x]
            for band in range(3):
                lit = _bilinear(texels, upper, wide, band, weights) * (np.float32(0.85) - np.float32(0.35) * dim)
                lit += _bilinear(texels, upper, wide, band + 3, weights) * (np.float32(0.85) - np.float32(0.78) * dim)
                value = image[y, x, band] * lit + sheen[band] * (1 - np.float32(0.8) * dim)
                image[y, x, band] = value + haze[y] * (fog[band] - value)
