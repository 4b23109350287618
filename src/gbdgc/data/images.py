"""Reading pictures as upright 8-bit RGB, with a limit on pixels and errors that say what is wrong."""

import math
import stat
import struct
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFile

from gbdgc.errors import InputError, as_input_error
from gbdgc.files import MAX_PIXELS as MAX_PIXELS
from gbdgc.files import AnyPath

RGB = NDArray[np.uint8]
"""A picture as rows x columns x 3."""

IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif", ".ppm", ".pgm"})

# Only these, as Pillow would also hand a file named .jpg to Ghostscript if its first bytes say so.
_FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF", "GIF", "PPM")
_EXIF_ORIENTATION = 0x0112
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
SIDEWAYS = frozenset({5, 6, 7, 8})
"""The EXIF orientations that swap width and height."""

_STRIP_PIXELS = 4_000_000


class PictureTooLarge(InputError):
    """A picture with more pixels than allowed; nothing of it was decoded."""


class NotEnoughMemory(InputError):
    """A picture that may be fine, but does not fit into memory now."""


def raise_pillow_limit(max_pixels: int = MAX_PIXELS) -> None:
    """Let Pillow decode pictures of this many pixels without a warning: a process-wide switch, for commands only.

    Only TIFF needs it, which Pillow also checks against its own limit.
    """
    if Image.MAX_IMAGE_PIXELS is not None and max_pixels > Image.MAX_IMAGE_PIXELS:
        Image.MAX_IMAGE_PIXELS = max_pixels


def read_image(source: AnyPath | bytes, *, max_pixels: int = MAX_PIXELS, reduce_to: int | None = None) -> RGB:
    """Return the upright picture; of an animation the first frame.

    With ``reduce_to`` a JPEG is decoded at a half, a quarter or an eighth of its size where its longer side stays over
    this: a fraction of the time and memory, for a picture that is made smaller anyway.
    """
    with _opened(source, max_pixels) as image:
        turn = _UPRIGHT.get(_orientation(image))
        if reduce_to is not None and image.format == "JPEG":
            scale = min(1.0, reduce_to / max(image.size))
            # Never below what is asked for, as draft mode promises for each side.
            image.draft(image.mode, (math.ceil(scale * image.width), math.ceil(scale * image.height)))
        rgb = to_rgb(image)
        return to_array(rgb if turn is None else rgb.transpose(turn))


def image_size(source: AnyPath | bytes, *, max_pixels: int = MAX_PIXELS) -> tuple[int, int]:
    """Return (width, height) of the upright picture from its header alone."""
    with _opened(source, max_pixels) as image:
        return image.size[::-1] if _orientation(image) in SIDEWAYS else image.size


def image_orientation(source: AnyPath | bytes, *, max_pixels: int = MAX_PIXELS) -> int:
    """Return the EXIF orientation, 1 to 8, that reading the picture puts right; 1 is upright already."""
    with _opened(source, max_pixels) as image:
        return _orientation(image)


def scaled_size(width: int, height: int, scale: float) -> tuple[int, int]:
    """Return a size in the same proportions, in whole pixels and at least one each way."""
    return max(1, round(width * scale)), max(1, round(height * scale))


def to_rgb(image: Image.Image) -> Image.Image:
    """Convert any mode to RGB: 16-bit greys are scaled, not clipped; what is transparent becomes white."""
    if image.mode in {"I;16", "I;16L", "I;16B", "I;16N", "I", "F"}:
        return _deep_grey_to_rgb(image)
    if image.mode in {"RGBA", "LA", "PA", "RGBa"} or "transparency" in image.info:
        overlay = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", overlay.size, "white"), overlay).convert("RGB")
    return image if image.mode == "RGB" else image.convert("RGB")


def to_array(image: Image.Image) -> RGB:
    """Return the pixels of an RGB image.

    Large ones strip by strip: numpy asks Pillow for one string of bytes, and for a while a picture that fills half a
    gigabyte would be there four times.
    """
    if image.width * image.height <= _STRIP_PIXELS:
        return np.asarray(image)
    array = np.empty((image.height, image.width, 3), dtype=np.uint8)
    for rows, strip in _strips(image):
        array[rows] = np.asarray(strip)
    return array


def mean_luminance(image: RGB) -> float:
    """Return how bright a picture is, 0 (black) to 255 (white)."""
    return float(np.asarray(Image.fromarray(image).convert("L")).mean())


def jpeg_address(image: Image.Image, quality: int) -> str:
    """Return a small picture as the address of an <img>, for pages that need no other file."""
    buffer = BytesIO()
    image.save(buffer, "JPEG", quality=quality, optimize=True)
    return f"data:image/jpeg;base64,{b64encode(buffer.getvalue()).decode('ascii')}"


def thumbnail_address(image: RGB, width: int, height: int, quality: int) -> str:
    """Return such an address of the picture made small enough to fit into a width and a height."""
    small = Image.fromarray(image)
    small.thumbnail((width, height))
    return jpeg_address(small, quality)


def _strips(image: Image.Image) -> Iterator[tuple[slice, Image.Image]]:
    rows = max(1, _STRIP_PIXELS // image.width)
    for top in range(0, image.height, rows):
        bottom = min(top + rows, image.height)
        yield slice(top, bottom), image.crop((0, top, image.width, bottom))


def _deep_grey_to_rgb(image: Image.Image) -> Image.Image:
    """Scale greys of more than eight bits; strip by strip, as in double precision the whole would fill gigabytes."""

    def values() -> Iterator[tuple[slice, NDArray[np.float64]]]:
        for rows, strip in _strips(image):
            yield rows, np.nan_to_num(np.asarray(strip, dtype=np.float64), posinf=0, neginf=0)

    highest = max(1.0, *(float(strip.max(initial=0)) for _, strip in values())) if image.mode == "F" else 65535.0
    grey = np.empty((image.height, image.width), dtype=np.uint8)
    for rows, strip in values():
        grey[rows] = np.clip(strip * (255 / highest), 0, 255).astype(np.uint8)
    return Image.fromarray(grey).convert("RGB")


def _orientation(image: Image.Image) -> int:
    """The EXIF orientation, from the header and before decoding, so that size and pixels always agree on it."""
    if image.format == "TIFF":
        return 1  # Pillow turns these itself.
    try:
        # Not image.getexif(): for PNG that decodes the whole picture in case a tag stands after it.
        value = Image.Image.getexif(image).get(_EXIF_ORIENTATION, 1)
    except Exception:
        return 1  # A camera that writes broken EXIF still took the picture, and no viewer would turn it.
    return value if isinstance(value, int) and value in _UPRIGHT else 1


@contextmanager
def _opened(source: AnyPath | bytes, max_pixels: int) -> Iterator[Image.Image]:
    """Open a picture and close it again; every way in which it can be bad becomes an `InputError`."""
    name = "the picture" if isinstance(source, bytes) else str(source)
    if source == b"":
        raise InputError(name, "there is nothing in it")
    pixels = "its"
    over = f"over the limit of {max_pixels:,} pixels"
    try:
        with BytesIO(source) if isinstance(source, bytes) else _open_file(Path(source)) as file:
            image = _identify(file)
            if image is None:
                raise InputError(name, f"not a picture in a format that can be read ({', '.join(_FORMATS)})")
            width, height = image.size
            if width * height > max_pixels:
                raise PictureTooLarge(name, f"{width} x {height} is {over}", "raise max_pixels to read it")
            pixels = f"{width} x {height}"
            with image:
                yield image
    except InputError:
        raise
    except MemoryError as error:
        step = "free some, or make the picture smaller first"
        raise NotEnoughMemory(name, f"not enough memory for {pixels} pixels", step) from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        # A frame or tile within the file that claims to be larger than Pillow itself admits.
        raise PictureTooLarge(name, f"{over}, or Pillow's own ({error})") from error
    except Exception as error:
        # Pillow's decoders raise whatever they trip over: OSError, SyntaxError, struct.error, zlib.error ...
        raise InputError(name, f"damaged or truncated ({error})", "copy it again from where it came") from error


def _open_file(path: Path) -> IO[bytes]:
    with (
        as_input_error((OSError, ValueError), path, "cannot be read ({error})"),
        as_input_error(FileNotFoundError, path, "no such file"),
    ):
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise InputError(path, "not a file")
        if status.st_size == 0:
            raise InputError(path, "the file is empty", "copy it again from where it came")
        return path.open("rb")


def _identify(file: IO[bytes]) -> ImageFile.ImageFile | None:
    """Open a picture as `Image.open` does, but for its limit on pixels: that is one for the whole process."""
    Image.preinit()
    prefix = file.read(16)
    for name in _FORMATS:
        if name not in Image.OPEN:
            Image.init()
        make, accept = Image.OPEN[name]
        if accept is None or accept(prefix) is True:
            file.seek(0)
            try:
                return make(file, "")
            except (SyntaxError, IndexError, TypeError, struct.error):
                continue  # by its first bytes it was one, but it is not
    return None
