"""Drawing results with Pillow: fast, and without a plotting library."""

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from gbdgc.counting.conformal import range_text
from gbdgc.counting.ground import crowding
from gbdgc.counting.tiling import sum_cells
from gbdgc.data.images import scaled_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gbdgc.counting.result import Result

MAX_SIDE = 4096
"""Larger pictures are shown reduced, which bounds the memory."""
MIN_SIDE = 640
"""Smaller pictures are enlarged if text is added, to keep it legible."""
MIN_WIDTH = 320
"""A narrower picture, such as a strip of a panorama, stands in the middle above a footer of this width."""

_COLOURS = "plasma"
_FOOTER, _BRIGHT, _DIM = (17, 18, 23), (250, 250, 252), (164, 167, 178)
_GROUND = (38, 40, 48)
_CROWDING = {"green": (64, 200, 96), "yellow": (255, 214, 10), "orange": (255, 140, 26), "red": (255, 59, 59)}
_DOT = (64, 255, 214)  # a colour that does not occur in the density palette


@dataclass(frozen=True)
class _Heat:
    """A density prepared for display: people per square of ``square`` pixels a side, smoothed, on a grid."""

    levels: NDArray[np.float32]
    square: int
    covered: tuple[float, float]
    """How many columns and rows of the grid the picture covers: the last of them may reach beyond it."""

    @property
    def peak(self) -> float:
        """The density of the brightest colour: at least 1, for an empty scene to look empty."""
        return max(1.0, float(self.levels.max()))

    def shares(self, size: tuple[int, int], peak: float) -> Image.Image:
        """Return the places on the colour bar, 0 to 255, over a picture of this size."""
        shares = on_colour_bar(self.levels / np.float32(peak))
        return shares.resize(size, Image.Resampling.BICUBIC, box=(0, 0, *self.covered))


def blend(result: "Result", alpha: float, peak: float | None = None, *, points: bool = False) -> Image.Image:
    """Return the picture under its density in colour, with a dot for each head where asked for."""
    heat = _heat(result)
    picture = _colour_over(_picture(result, min_side=1), heat, alpha, peak or heat.peak)
    if points:
        _draw_points(picture, result)
    return picture


def annotate(
    result: "Result", alpha: float, peak: float | None = None, *, smoothed: bool = False, points: bool = False
) -> Image.Image:
    """Return the picture under its density, dots and zones, above a footer with the number and the colour bar."""
    heat = _heat(result)
    peak = peak or heat.peak
    picture = _colour_over(_picture(result, MIN_SIDE), heat, alpha, peak)
    width = max(picture.width, MIN_WIDTH)
    unit = _unit(width)
    if points:
        _draw_points(picture, result)
    picture = _draw_masks(picture, result)
    _draw_zones(picture, result, unit)
    whole = Image.new("RGB", (width, picture.height + round(60 * unit)), _FOOTER)
    whole.paste(picture, ((width - picture.width) // 2, 0))
    _draw_footer(whole, picture.height, result, peak, heat.square, unit, smoothed=smoothed)
    return whole


def peak_of(result: "Result") -> float:
    """Return the density, in people per square of the colour bar, that is drawn brightest by default."""
    return _heat(result).peak


class Layer(NamedTuple):
    """The density in colour alone, for callers that overlay it themselves and choose the opacity."""

    image: Image.Image
    """A few hundred pixels wide whatever the picture's size, clear where nobody is."""
    peak: float
    """The density of the brightest colour, in people per square."""
    square: int
    """The side of that square, in pixels of the picture."""


def layer(result: "Result") -> Layer:
    """Return the density in colour; stretched over the picture it looks as `blend` would have it."""
    heat = _heat(result)
    across, down = (max(1, round(cells)) for cells in heat.covered)
    return Layer(_clear_coloured(heat.shares((across, down), heat.peak)), heat.peak, heat.square)


def colour_bar() -> Image.Image:
    """Return the colours from none to the brightest, one pixel high."""
    return _clear_coloured(Image.fromarray(np.arange(256, dtype=np.uint8)[None]))


def plot_overlay(result: "Result", ax: "Axes | None", alpha: float, *, points: bool = False) -> "Axes":
    """Draw into matplotlib axes, in the picture's own pixel coordinates."""
    from matplotlib import pyplot
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import PowerNorm

    if ax is None:
        _, ax = pyplot.subplots(layout="constrained")
    heat = _heat(result)
    ax.imshow(blend(result, alpha), extent=(0, result.width, result.height, 0))
    if points:
        ax.scatter(result.points[:, 0], result.points[:, 1], s=6, color=np.divide(_DOT, 255), linewidths=0)
    for name, corners in result.outlines.items():
        ax.fill(*corners.T, fill=False, edgecolor="white", linewidth=1.5)
        ax.annotate(f"{name}: {result.zones[name]:,.0f}", corners.mean(axis=0), color="white", ha="center")
    between = f" ({range_text(result.interval)})" if result.interval else ""
    ax.set(
        title=f"{_people(result.count)}{between}", xticks=[], yticks=[], xlim=(0, result.width), ylim=(result.height, 0)
    )
    colours = ScalarMappable(PowerNorm(0.5, 0, heat.peak), _COLOURS)
    figure = ax.get_figure(root=True)
    if figure is not None:
        figure.colorbar(colours, ax=ax, label=_per_square(heat.square), shrink=0.8)
    return ax


def _heat(result: "Result") -> _Heat:
    """Smooth the density as much as makes a person who stands alone read as 1 person per square.

    So the colours mean what the colour bar says, however sharp the network's peaks are.
    """
    from scipy.ndimage import gaussian_filter

    square = max(10, round(max(result.width, result.height) / 320) * 10)
    step = max(1, round(square / 6 / result.stride))
    pixels = step * result.stride
    smooth = gaussian_filter(sum_cells(result.cells, step), square / math.sqrt(2 * math.pi) / pixels)
    covered = result.width / pixels, result.height / pixels
    return _Heat(smooth * np.float32((square / pixels) ** 2), square, covered)


def _colour_over(picture: Image.Image, heat: _Heat, alpha: float, peak: float) -> Image.Image:
    """Lay the colours over the picture, which is paler the more opaque they are, so that the two are not confused."""
    alpha = min(max(alpha, 0.0), 1.0)
    paler = Image.blend(picture, picture.convert("L").convert("RGB"), 0.75 * alpha)
    return _coloured(heat.shares(picture.size, peak), paler, alpha)


def on_colour_bar(levels: NDArray[np.float32]) -> Image.Image:
    """Return places on the colour bar, 0 to 255, of densities between 0 and 1.

    By the square root: a crowd is a hundred times as dense at the far end of a street as at the near one, and both
    are to be seen.
    """
    return Image.fromarray((255 * np.sqrt(np.clip(levels, 0, 1))).astype(np.uint8))


def _coloured(shares: Image.Image, ground: Image.Image, alpha: float) -> Image.Image:
    """Return the colours over the ground."""
    return Image.composite(in_colours(shares), ground, shares.point(_opacity(alpha)))


def _clear_coloured(shares: Image.Image) -> Image.Image:
    """Return the colours over nothing."""
    colours = in_colours(shares)
    colours.putalpha(shares.point(_opacity(1)))
    return colours


def in_colours(shares: Image.Image) -> Image.Image:
    """Return the colours of the palette at places on the colour bar."""
    colours = shares.copy()
    colours.putpalette(density_palette())
    return colours.convert("RGB")


def _opacity(alpha: float) -> list[int]:
    """The opacity at each place on the bar: none at no density, rising smoothly to ``alpha`` at a third of it."""
    rise = np.clip((np.arange(256) - 8) / 80, 0, 1)
    return [int(value) for value in 255 * alpha * rise * rise * (3 - 2 * rise)]


def _picture(result: "Result", min_side: int) -> Image.Image:
    """Return the image at the size to be shown, or a dark ground where it was not kept."""
    longest = max(result.width, result.height)
    scale = min(max(longest, min_side), MAX_SIDE) / longest
    size = scaled_size(result.width, result.height, scale)
    if result.image is None:
        return Image.new("RGB", size, _GROUND)
    return Image.fromarray(result.image).resize(size, Image.Resampling.BICUBIC, reducing_gap=2.0)


def _draw_footer(
    whole: Image.Image, top: int, result: "Result", peak: float, square: int, unit: float, *, smoothed: bool
) -> None:
    """Write the number on the left, of a frame also its time, and draw the colour bar on the right."""
    draw = ImageDraw.Draw(whole)
    margin, middle = 18 * unit, top + 30 * unit
    number, people = _people(result.count).split(" ")
    draw.text((margin, middle), number, _BRIGHT, _font(30 * unit, bold=True), anchor="lm")
    end = margin + draw.textlength(number, _font(30 * unit, bold=True))
    lines = people if result.interval is None else f"{people}\n{range_text(result.interval)}"
    font = _font((17 if result.interval is None else 14) * unit)
    draw.multiline_text((end + 9 * unit, middle + 1 * unit), lines, _DIM, font, anchor="lm", spacing=5 * unit)
    if result.time is not None:
        end += 9 * unit + draw.multiline_textbbox((0, 0), lines, font)[2]
        moment = clock(result.time)
        if smoothed and result.smoothed is not None:
            moment += f"\nsmoothed {result.smoothed:,.0f}"
        place = end + 24 * unit, middle + 1 * unit
        draw.multiline_text(place, moment, _DIM, _font(12.5 * unit), anchor="lm", spacing=5 * unit)

    length, thickness = round(200 * unit), round(9 * unit)
    left, bar_top = round(whole.width - margin) - length, round(top + 29 * unit)
    ramp = Image.fromarray(np.linspace(0, 255, length).astype(np.uint8)[None].repeat(thickness, axis=0))
    whole.paste(_coloured(ramp, Image.new("RGB", ramp.size, _GROUND), alpha=1), (left, bar_top))
    small = _font(11.5 * unit)
    draw.text((left + length / 2, bar_top - 6 * unit), _per_square(square), _DIM, small, anchor="ms")
    for share, anchor in ((0.0, "la"), (0.5, "ma"), (1.0, "ra")):
        label = f"{share**2 * peak:.2g}"
        draw.text((left + share * length, bar_top + thickness + 3 * unit), label, _BRIGHT, small, anchor=anchor)


def _draw_points(picture: Image.Image, result: "Result") -> None:
    """Draw a dot at each head, no larger than leaves room between heads that are close to each other."""
    draw = ImageDraw.Draw(picture)
    scale = picture.width / result.width
    spacing = math.sqrt(picture.width * picture.height / max(len(result.points), 1))
    radius = float(np.clip(spacing / 9, 1.5, 4 * _unit(picture.width)))
    for x, y in result.points[:, :2] * scale:
        for colour, reach in ((_FOOTER, radius + 1), (_DOT, radius)):
            draw.ellipse((x - reach, y - reach, x + reach, y + reach), fill=colour)


def _draw_masks(picture: Image.Image, result: "Result") -> Image.Image:
    """Darken the areas that are not counted in."""
    if not result.masks:
        return picture
    shade = Image.new("L", picture.size, 0)
    for corners in result.masks.values():
        polygon = [(float(x), float(y)) for x, y in corners * (picture.width / result.width)]
        ImageDraw.Draw(shade).polygon(polygon, fill=170)
    return Image.composite(Image.new("RGB", picture.size, _FOOTER), picture, shade)


def _draw_zones(picture: Image.Image, result: "Result", unit: float) -> None:
    """Outline each zone and write its name and number at its middle."""
    draw = ImageDraw.Draw(picture)
    font, scale = _font(15 * unit, bold=True), picture.width / result.width
    for name, corners in result.outlines.items():
        outline = [(float(x), float(y)) for x, y in np.vstack([corners, corners[:1]]) * scale]
        per_m2 = result.per_m2.get(name)
        bright = _BRIGHT if per_m2 is None else _CROWDING[crowding(per_m2)]
        for colour, width in ((_FOOTER, 5.0), (bright, 3.0)):
            draw.line(outline, colour, max(1, round(width * unit)), joint="curve")
    for name, corners in result.outlines.items():
        per_m2 = result.per_m2.get(name)
        label = f"{name}  {result.zones[name]:,.0f}" + ("" if per_m2 is None else f"  {per_m2:.1f}/m²")
        centre = np.clip(corners * scale, 0, picture.size).mean(axis=0)
        half = draw.textlength(label, font) / 2 + 9 * unit
        x = float(np.clip(centre[0], min(half, picture.width / 2), max(picture.width - half, picture.width / 2)))
        y = float(np.clip(centre[1], 13 * unit, max(picture.height - 13 * unit, 13 * unit)))
        box = (x - half, y - 13 * unit, x + half, y + 13 * unit)
        draw.rounded_rectangle(box, 13 * unit, fill=_FOOTER)
        draw.text((x, y), label, _BRIGHT, font, anchor="mm")


def _unit(width: int) -> float:
    """The size of the writing for a picture of this width: 1 from 480 to 1200 pixels, in proportion outside."""
    return min(width / 480, max(1.0, width / 1200))


def _people(count: float) -> str:
    number = f"{max(count, 0):,.0f}"
    return f"{number} {'person' if number == '1' else 'people'}"


def clock(seconds: float, *, tenths: bool = False) -> str:
    """Write a time in a video as a player does."""
    minutes, rest = divmod(round(seconds, 1) if tenths else int(seconds), 60)
    hours, minutes = divmod(int(minutes), 60)
    padded = f"{rest:04.1f}" if tenths else f"{rest:02d}"
    return f"{hours}:{minutes:02d}:{padded}" if hours else f"{minutes}:{padded}"


def _per_square(square: int) -> str:
    return f"people per {square} × {square} px"


@lru_cache(maxsize=1)
def density_palette() -> bytes:
    """Return 256 colours of density, none to most, as Pillow takes them."""
    from matplotlib import colormaps

    return np.asarray(colormaps[_COLOURS](np.arange(256), bytes=True), dtype=np.uint8)[:, :3].tobytes()


@lru_cache(maxsize=32)
def _font(size: float, *, bold: bool = False) -> ImageFont.FreeTypeFont:
    """DejaVu Sans, which comes with matplotlib and knows the letters of most languages."""
    import matplotlib

    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(Path(matplotlib.get_data_path(), "fonts", "ttf", name), size)
