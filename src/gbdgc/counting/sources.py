"""Finding what to count: pictures, folders, patterns, lists, videos, cameras and streams, in natural order."""

import glob
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from io import BufferedReader
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from gbdgc.counting.video.opening import VIDEO_SUFFIXES, is_video, public_name
from gbdgc.data.images import IMAGE_SUFFIXES, RGB, read_image, to_array, to_rgb
from gbdgc.errors import InputError, as_input_error
from gbdgc.files import AnyPath, natural_order

Picture = AnyPath | bytes | Image.Image | NDArray[np.uint8]
"""A picture to count: a path, an encoded file's bytes, a PIL image, an RGB or grey array of eight bits."""

LIST = "-"
"""The argument that stands for a list of further ones."""

_CHUNK = 65536


@dataclass(frozen=True)
class Source:
    """One thing to count: a picture's path, or the path, address or number of a video; or why there is none."""

    name: str | int | Path
    moving: bool = False
    problem: InputError | None = None


def find_sources(
    arguments: Iterable[str], *, recursive: bool = False, listed: BufferedReader | None = None
) -> Iterator[Source]:
    """Yield the sources that the arguments stand for, each once; a missing one is yielded with its problem.

    Parameters
    ----------
    arguments : pictures, videos, folders, patterns such as ``cam*/*.jpg``, numbers of cameras, addresses of streams, or
        ``-``. What exists under a name is meant by it, also where the name looks like a pattern or a number.
    recursive : look into the folders within folders too.
    listed : where ``-`` reads its list from: one argument per line, or ended by zero bytes, as ``find -print0`` writes
        them. Each is yielded as it comes, for the list may still be growing.
    """
    seen: set[str] = set()
    for argument in arguments:
        among = [argument] if argument != LIST or listed is None else _listed(listed)
        for each in among:
            try:
                # A name that is too long, a folder that may not be entered.
                with as_input_error(OSError, each, "cannot be read ({error})"):
                    for source in _expand(each, recursive):
                        name = str(source.name)
                        # street.jpg and ./street.jpg are one; an address is not a path.
                        key = name if "://" in name else str(Path(name).absolute())
                        if key not in seen:
                            seen.add(key)
                            yield source
            except InputError as error:
                yield Source(each, problem=error)


def run_name(source: str) -> str:
    """Return the name of a run, derived from its first source."""
    if source == LIST:
        return "list"
    if source.isdecimal() and not Path(source).exists():
        return f"camera-{source}"
    path = Path(re.sub(r"^\w+://", "", public_name(source)))
    stem = path.stem if path.suffix else Path(source).resolve().name if path.exists() else path.name
    return re.sub(r"[^\w.-]+", "-", stem).strip("-.")[:60] or "count"


def _expand(argument: str, recursive: bool) -> Iterator[Source]:
    path = Path(argument)
    if not argument.strip() or "\0" in argument:
        raise InputError(repr(argument), "not a name", "give a picture, a video, a folder or a stream")
    if "://" in argument:
        yield Source(argument, moving=True)
    elif path.is_dir():
        yield from _in_folder(path, recursive)
    elif os.path.lexists(argument):
        yield Source(argument, moving=path.is_char_device() or is_film(path))
    elif glob.has_magic(argument):
        yield from _matching(argument, recursive)
    elif is_video(argument) and not is_film(path):
        yield Source(argument, moving=True)
    else:
        near: list[str] = []
        with suppress(OSError):
            near = get_close_matches(path.name, [each.name for each in path.parent.iterdir()], n=1)
        advice = f"did you mean {path.with_name(near[0])}?" if near else ""
        raise InputError(argument, "no such file or folder", advice)


def _in_folder(folder: Path, recursive: bool) -> Iterator[Source]:
    """Yield the pictures and videos of a folder, then those of the folders in it if they are wanted."""
    found, within, unreadable = 0, False, list[OSError]()
    for parent, folders, files in os.walk(folder, onerror=unreadable.append):
        within = within or bool(folders)
        folders[:] = sorted((name for name in folders if recursive and not name.startswith(".")), key=natural_order)
        for name in sorted(files, key=natural_order):
            # Hidden ones are not pictures: macOS keeps a "._street.jpg" beside each street.jpg on foreign disks.
            if is_countable(path := Path(parent, name)) and not name.startswith("."):
                found += 1
                yield Source(str(path), is_film(path))
    if unreadable:
        reason = f"cannot be read ({unreadable[0].strerror})"
        raise InputError(unreadable[0].filename, reason, "check who may read it")
    if not found:
        deeper = within and not recursive
        advice = "look into the folders in it too (recursive)" if deeper else "name a folder that has some"
        raise InputError(folder, "no pictures or videos in it", advice)


def _matching(pattern: str, recursive: bool) -> Iterator[Source]:
    """Yield the pictures and videos that match; where only folders do, those in them."""
    names = glob.iglob(pattern, recursive=True)  # noqa: PTH207 - Path.glob takes no absolute pattern
    matches = [Path(name) for name in sorted(names, key=natural_order)]
    files = [path for path in matches if is_countable(path) and not path.is_dir()]
    yield from (Source(str(path), is_film(path)) for path in files)
    if not files:
        folders = [path for path in matches if path.is_dir()]
        if not folders:
            what = "no picture or video matches this pattern" if matches else "nothing matches this pattern"
            raise InputError(pattern, what)
        for folder in folders:
            yield from _in_folder(folder, recursive)


def _listed(stream: BufferedReader) -> Iterator[str]:
    """Yield the entries of a list as they come in."""
    rest, end = b"", b"\0" if b"\0" in stream.peek(_CHUNK) else b"\n"
    while chunk := stream.read1(_CHUNK):
        *entries, rest = (rest + chunk).split(end)
        yield from (name for entry in entries if (name := _entry(entry, end)))
    if name := _entry(rest, end):
        yield name


def _entry(raw: bytes, end: bytes) -> str:
    return os.fsdecode(raw if end == b"\0" else raw.rstrip(b"\r"))


def is_film(path: PurePath) -> bool:
    """Return whether a file is a video by its suffix."""
    return path.suffix.lower() in VIDEO_SUFFIXES


def is_countable(path: PurePath) -> bool:
    """Return whether a file is a picture or a video by its suffix."""
    return path.suffix.lower() in IMAGE_SUFFIXES | VIDEO_SUFFIXES


def open_picture(picture: Picture, *, max_pixels: int) -> RGB:
    """Return any kind of picture as upright RGB."""
    if isinstance(picture, np.ndarray):
        return _check_array(picture)
    if isinstance(picture, Image.Image):
        # Pillow decodes no earlier than this.
        with as_input_error(OSError, picture_name(picture) or "the picture", "damaged or truncated ({error})"):
            return to_array(to_rgb(ImageOps.exif_transpose(picture)))
    if isinstance(picture, str | os.PathLike | bytes):
        return read_image(picture, max_pixels=max_pixels)
    raise InputError("", f"cannot count a {type(picture).__name__}", "give a path, a PIL image or an RGB array")


def picture_name(picture: Picture) -> str | None:
    """Return the path of a picture, where it has one."""
    if isinstance(picture, Image.Image):
        return str(getattr(picture, "filename", "")) or None
    return os.fspath(picture) if isinstance(picture, str | os.PathLike) else None


def _check_array(array: NDArray[Any]) -> RGB:
    """Return an array as RGB, or say what is wrong with it: guessing could silently give a wrong count."""
    if array.dtype != np.uint8:
        advice = "for values from 0 to 1 that is (255 * image).round().astype('uint8')"
        raise InputError(f"an array of {array.dtype}", "give eight bits (uint8) from 0 to 255", advice)
    name = f"an array of {' x '.join(map(str, array.shape))}"
    if array.ndim == 2:
        array = np.repeat(array[:, :, None], 3, axis=2)
    if array.ndim != 3 or array.shape[2] != 3:
        hint = "a list of pictures gives a list of results" if array.ndim == 4 else ""
        raise InputError(name, "give rows x columns x 3 (RGB) or rows x columns (grey)", hint)
    if 0 in array.shape:
        raise InputError(name, "there is nothing in it")
    return array
