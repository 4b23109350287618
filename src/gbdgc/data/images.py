"""Reading pictures: upright, RGB, eight bits, with a limit on pixels and an error that says what is wrong."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from gbdgc.errors import InputError

RGB = NDArray[np.uint8]
"""A picture as rows x columns x 3."""

IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif", ".ppm", ".pgm"})
MAX_PIXELS = 200_000_000

_EXIF_ORIENTATION = 0x0112
_SIDEWAYS = {5, 6, 7, 8}


def read_image(source: str | os.PathLike[str] | bytes, *, max_pixels: int = MAX_PIXELS) -> RGB:
    """Return the upright picture; of an animation the first frame."""
    with _opened(source, max_pixels) as image:
        upright = ImageOps.exif_transpose(image)
        return np.asarray(to_rgb(upright))


def image_size(source: str | os.PathLike[str] | bytes, *, max_pixels: int = MAX_PIXELS) -> tuple[int, int]:
    """Return (width, height) of the upright picture from its header alone."""
    with _opened(source, max_pixels) as image:
        sideways = image.getexif().get(_EXIF_ORIENTATION) in _SIDEWAYS
        return image.size[::-1] if sideways else image.size


def to_rgb(image: Image.Image) -> Image.Image:
    """Convert any mode to RGB: 16-bit greys are scaled, not clipped; what is transparent becomes white."""
    if image.mode in {"I;16", "I;16L", "I;16B", "I;16N", "I", "F"}:
        values = np.asarray(image, dtype=np.float64)
        scale = 255 / 65535 if image.mode != "F" else 255 / max(float(values.max(initial=0)), 1)
        return Image.fromarray(np.clip(values * scale, 0, 255).astype(np.uint8)).convert("RGB")
    if image.mode in {"RGBA", "LA", "PA", "RGBa", "La"} or "transparency" in image.info:
        overlay = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", overlay.size, "white"), overlay).convert("RGB")
    return image.convert("RGB")


@contextmanager
def _opened(source: str | os.PathLike[str] | bytes, max_pixels: int) -> Iterator[Image.Image]:
    """Open and, when the caller is done, close; every way in which a picture can be bad becomes an InputError."""
    name = "the picture" if isinstance(source, bytes) else str(source)
    if not isinstance(source, bytes):
        path = Path(source)
        if not path.is_file():
            raise InputError(f"{name}: no such file" if not path.exists() else f"{name}: not a file")
        if path.stat().st_size == 0:
            raise InputError(f"{name}: the file is empty; copy it again from where it came")
    try:
        with warnings.catch_warnings():
            # Our own limit, below, is the one that the user can raise.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(BytesIO(source) if isinstance(source, bytes) else source) as image:
                width, height = image.size
                if width * height > max_pixels:
                    raise InputError(
                        f"{name}: {width} x {height} pixels is over the limit of {max_pixels:,}; "
                        "raise max_pixels to read it"
                    )
                yield image
    except InputError:
        raise
    except Image.DecompressionBombError as error:
        raise InputError(f"{name}: {error}") from error
    except UnidentifiedImageError as error:
        raise InputError(f"{name}: not a picture in any format that can be read") from error
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise InputError(f"{name}: damaged or truncated ({error})") from error
