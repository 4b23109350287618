"""Cropping, resizing, flipping and recolouring a picture together with its heads.

Coordinates are continuous: pixel (column i, row j) covers [i, i + 1) x [j, j + 1), its centre is (i + 0.5, j + 0.5) and
a picture reaches from 0 to its width and height. So a crop subtracts its corner, a resize multiplies, a flip takes the
distance from the other side, and the pixel of a head is the floor of its position, before and after.

Functions that move pixels take and return (image, points); those that only change colours take and return the image.
Points keep their order, and only cropping drops any. Random functions take their generator as an argument.
"""

import math
import reprlib
from collections.abc import Mapping
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from gbdgc.data.images import RGB
from gbdgc.data.sample import Points
from gbdgc.errors import InputError

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

STRIDE = 16
"""The coarsest stride of every network: the sides of the images that it takes are multiples of this."""

_MOST_SIDE, _MOST_SCALE, _MOST_DESCRIPTOR_SIZE = 10**15, 16, 4096

_ROUNDING = 1e-6
"""Pixels by which a box may pass the edge of the picture, from adding its corner and its side."""
_LUMA = np.array([0.299, 0.587, 0.114])
_TO_YIQ = np.array([_LUMA, [0.5959, -0.2746, -0.3213], [0.2115, -0.5227, 0.3112]])


class Box(NamedTuple):
    """A part of a picture, in continuous coordinates."""

    left: float
    top: float
    width: float
    height: float


def clamp(points: Points, width: int, height: int) -> Points:
    """Move what lies outside to the nearest pixel inside, so that every head is in the picture."""
    last = np.nextafter(np.array([width, height], dtype=np.float32), np.float32(0))
    return np.clip(points, np.float32(0), last)


def within(points: Points, box: Box) -> NDArray[np.bool_]:
    """Return a mask of the heads inside the box; boxes that tile a picture hold every head exactly once."""
    corner, sides = np.array([box.left, box.top]), np.array([box.width, box.height])
    inside = (points >= corner) & (points < corner + sides)
    return np.asarray(inside.all(axis=1))


def resized(image: RGB, width: int, height: int) -> RGB:
    """Return the whole picture at a size."""
    rows, columns = image.shape[:2]
    return _resample(image, Box(0, 0, columns, rows), width, height)


def limit_side(image: RGB, max_side: int | None, scale: float = 1.0) -> RGB:
    """Shrink the picture to a longer side of at most ``max_side``, if any, and scale that, in a single resize."""
    rows, columns = image.shape[:2]
    factor = scale if max_side is None else scale * min(1.0, max_side / max(rows, columns))
    if factor == 1:
        return image
    return resized(image, max(1, round(factor * columns)), max(1, round(factor * rows)))


def preparation(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a model's file says of how pictures are prepared for it; it may say anything, and is checked."""
    settings = {name: info[name] for name in ("max_side", "test_scale", "descriptor_size") if name in info}
    check_preparation(**settings)
    return settings


def check_preparation(max_side: object = None, test_scale: object = 1.0, descriptor_size: object = 224) -> None:
    """Refuse settings by which no picture can be prepared."""
    if max_side is not None and not _is_number(max_side, 1, _MOST_SIDE):
        reason, advice = "a side has at least one pixel", "give None to count at full size"
        raise InputError("", f"max_side={reprlib.repr(max_side)}: {reason}", advice)
    if not _is_number(test_scale, 1e-9, _MOST_SCALE):
        reason, advice = f"a size is above 0, and at most {_MOST_SCALE}", "give 1 to count pictures as they are"
        raise InputError("", f"test_scale={reprlib.repr(test_scale)}: {reason}", advice)
    if not (isinstance(descriptor_size, int | np.integer) and _is_number(descriptor_size, 1, _MOST_DESCRIPTOR_SIZE)):
        reason, advice = f"a side has between 1 and {_MOST_DESCRIPTOR_SIZE} pixels", "give that of the model's training"
        raise InputError("", f"descriptor_size={reprlib.repr(descriptor_size)}: {reason}", advice)


def _is_number(value: object, least: float, most: float) -> bool:
    if type(value) is bool or not isinstance(value, int | float | np.integer | np.floating):
        return False
    return bool(least <= value <= most)


def resized_crop(image: RGB, points: Points, box: Box, width: int, height: int) -> tuple[RGB, Points]:
    """Bring one box of the picture to a size; the same as resizing the whole and cutting, but for the work."""
    rows, columns = image.shape[:2]
    outside = max(-box.left, -box.top, box.left + box.width - columns, box.top + box.height - rows)
    if min(box.width, box.height) <= 0 or outside > _ROUNDING:
        raise InputError(f"a crop of {box}", f"does not lie in a picture of {columns} x {rows}")
    kept = points[within(points, box)].astype(np.float64) - (box.left, box.top)
    kept *= (width / box.width, height / box.height)
    return _resample(image, box, width, height), clamp(kept.astype(np.float32), width, height)


def random_box(
    image: RGB,
    size: int,
    random: np.random.Generator,
    scale: tuple[float, float] = (1.0, 1.0),
    around: NDArray[np.float32] | None = None,
) -> Box:
    """Choose the square that becomes a crop of ``size`` when the picture is scaled at random within ``scale``.

    Halving is as likely as doubling. Where the scaled picture has a side under ``size``, it is enlarged to fit. The
    square lies anywhere, or anywhere with the point ``around`` in it. Without scaling it lies on whole pixels.
    """
    rows, columns = image.shape[:2]
    factor = math.exp(random.uniform(math.log(scale[0]), math.log(scale[1])))
    side = min(size / factor, rows, columns)
    furthest = np.array([columns - side, rows - side])
    if around is not None:
        left, top = np.clip(around - random.uniform(0, side, size=2), 0, furthest)
        return Box(float(left), float(top), side, side)
    if side == size:
        return Box(int(random.integers(columns - size + 1)), int(random.integers(rows - size + 1)), size, size)
    return Box(random.uniform(0, furthest[0]), random.uniform(0, furthest[1]), side, side)


def flip(image: RGB, points: Points) -> tuple[RGB, Points]:
    """Mirror left and right."""
    x, y = points.T
    width = np.float32(image.shape[1])
    # A head on the left edge of its pixel would come to lie on the left edge of the next pixel but for the minimum.
    mirrored = np.minimum(width - x, np.nextafter(width - np.floor(x), np.float32(-np.inf)))
    # Not image[:, ::-1], which readers would copy byte by byte.
    return np.take(image, np.arange(image.shape[1])[::-1], axis=1), np.stack([mirrored, y], axis=1)


def colour_jitter(
    image: RGB,
    random: np.random.Generator,
    *,
    brightness: float = 0.0,
    contrast: float = 0.0,
    saturation: float = 0.0,
    hue: float = 0.0,
) -> RGB:
    """Change the colours at random.

    ``brightness``, ``contrast`` and ``saturation`` of b draw a factor from 1 - b to 1 + b; ``hue`` of h turns the
    colours by up to h of the full circle either way. All of them are affine in RGB, so they are one pass over the
    picture, and nothing is clipped in between.
    """
    light, spread, colourfulness = (
        random.uniform(max(1 - strength, 0), 1 + strength) for strength in (brightness, contrast, saturation)
    )
    angle = 2 * math.pi * random.uniform(-hue, hue)
    turn = np.array([[1, 0, 0], [0, math.cos(angle), -math.sin(angle)], [0, math.sin(angle), math.cos(angle)]])
    colour = np.linalg.solve(_TO_YIQ, turn @ _TO_YIQ)
    colour = colour @ (colourfulness * np.eye(3) + (1 - colourfulness) * _LUMA)
    # Saturation and hue leave grey as it is, and so the grey that contrast spreads about.
    # Rows first: the mean over both axes at once takes thirty times as long.
    centre = light * float(image.mean(axis=0, dtype=np.float32).mean(axis=0) @ _LUMA)
    matrix = np.column_stack([light * spread * colour, np.full(3, (1 - spread) * centre)])
    return np.asarray(Image.fromarray(image).convert("RGB", tuple(matrix.ravel().tolist())))


def grey(image: RGB) -> RGB:
    """Take the colour out."""
    return np.asarray(Image.fromarray(image).convert("L").convert("RGB"))


def gamma(image: RGB, exponent: float) -> RGB:
    """Raise the brightness to a power: night below the camera's range, or a washed-out day."""
    levels = np.rint(255 * (np.arange(256) / 255) ** exponent).astype(np.uint8)
    return levels[image]


def shade(image: RGB, angle: float, near: float, far: float) -> RGB:
    """Let the light change evenly across the picture, in the direction of ``angle``, by a factor from near to far."""
    height, width = image.shape[:2]
    across = np.linspace(-1, 1, width, dtype=np.float32) * np.float32(math.cos(angle))
    down = np.linspace(-1, 1, height, dtype=np.float32) * np.float32(math.sin(angle))
    place = (down[:, None] + across) / np.float32(abs(math.cos(angle)) + abs(math.sin(angle)))
    gain = np.float32((near + far) / 2) + np.float32((far - near) / 2) * place
    return np.minimum(image * gain[..., None], 255).astype(np.uint8)


def jpeg(image: RGB, quality: int) -> RGB:
    """Compress as a cheap camera or a messenger does, and decode again."""
    file = BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file))


def blur(image: RGB, sigma: float) -> RGB:
    """Blur by a Gaussian of ``sigma`` pixels."""
    return np.asarray(Image.fromarray(image).filter(ImageFilter.GaussianBlur(sigma)))


def noise(image: RGB, sigma: float, random: np.random.Generator) -> RGB:
    """Add the noise of a sensor, of ``sigma`` grey levels."""
    noisy = random.standard_normal(image.shape, dtype=np.float32)
    noisy *= np.float32(sigma)
    noisy += image
    return np.clip(np.rint(noisy), 0, 255).astype(np.uint8)


def normalise(image: RGB) -> NDArray[np.float32]:
    """Return what networks trained on ImageNet expect, as (3, height, width).

    The values lie in memory as the picture's do, pixel by pixel: torch's ``channels_last``, without a copy.
    """
    height, width, _ = image.shape
    scale = 1 / (255 * np.array(IMAGENET_STD))
    shift = -np.array(IMAGENET_MEAN) / IMAGENET_STD
    # Whole rows against rows of constants: broadcasting over three channels at a time is fifteen times slower.
    rows = np.multiply(image.reshape(height, -1), np.tile(scale.astype(np.float32), width), dtype=np.float32)
    rows += np.tile(shift.astype(np.float32), width)
    return rows.reshape(height, width, 3).transpose(2, 0, 1)


def _resample(image: RGB, box: Box, width: int, height: int) -> RGB:
    """Bring a box of the picture to a size, reading only the pixels that take part."""
    left, top, right, bottom = box.left, box.top, box.left + box.width, box.top + box.height
    if (box.width, box.height) == (width, height) and left == int(left) and top == int(top):
        return image[int(top) : int(bottom), int(left) : int(right)]
    # The filter reaches one source pixel to either side of a centre, or one pixel of the result where that is larger.
    across, down = math.ceil(max(box.width / width, 1)) + 1, math.ceil(max(box.height / height, 1)) + 1
    column, row = max(int(left) - across, 0), max(int(top) - down, 0)
    part = Image.fromarray(image[row : math.ceil(bottom) + down, column : math.ceil(right) + across])
    source = (left - column, top - row, min(right - column, part.width), min(bottom - row, part.height))
    return np.asarray(part.resize((width, height), Image.Resampling.BILINEAR, box=source))
