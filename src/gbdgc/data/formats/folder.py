"""A plain folder of pictures, at any depth, or one picture: no labels. An id is the path beneath the folder."""

import os
from collections.abc import Iterator
from pathlib import Path

from gbdgc.data.formats.entry import Entry
from gbdgc.data.images import IMAGE_SUFFIXES
from gbdgc.files import natural_order

TITLE = "a folder of pictures"


def looks_like(path: Path) -> str | None:
    """Recognise any picture in the folder or beneath it."""
    return "pictures without labels" if next(_pictures(path, []), None) else None


def read(path: Path, problems: list[str]) -> Iterator[Entry]:
    """Yield every picture, in natural order."""
    root = path if path.is_dir() else path.parent
    for image in sorted(_pictures(path, problems), key=natural_order):
        yield Entry(image.relative_to(root).as_posix(), image)


def _pictures(path: Path, problems: list[str]) -> Iterator[Path]:
    def unreadable(error: OSError) -> None:
        problems.append(f"{error.filename}: this folder cannot be read ({error.strerror})")

    walk = [(str(path.parent), list[str](), [path.name])] if path.is_file() else os.walk(path, onerror=unreadable)
    for folder, subfolders, files in walk:
        subfolders[:] = [name for name in subfolders if not name.startswith(".")]
        for name in files:
            if not name.startswith(".") and Path(name).suffix.lower() in IMAGE_SUFFIXES:
                yield Path(folder, name)
