"""Writing files so that a reader sees the old content or the new, never half of it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import IO, Any

from gbdgc.errors import InputError


@contextmanager
def atomic_write(path: str | os.PathLike[str], mode: str = "wb") -> Iterator[IO[Any]]:
    """Open a temporary file beside ``path``; on success it is synced and takes the name, on failure it is gone."""
    path = Path(path)
    make_folder(path.parent)
    # Opened as any new file is, so that it gets the permissions that the user's mask allows.
    name = str(path.with_name(f".{path.name}.{token_hex(6)}.part"))
    try:
        # Names of files need not be text: what is none is written as the bytes that it is.
        encoding, errors = (None, None) if "b" in mode else ("utf-8", "surrogateescape")
        with Path(name).open(mode.replace("w", "x"), encoding=encoding, errors=errors) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        if error.filename in (None, name):
            raise InputError(
                f"{path}: could not be written ({error.strerror or error}); "
                "what was there before is untouched. Make room or choose another folder, then run again"
            ) from error
        raise
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    with suppress(OSError):  # the new content is in place; some systems cannot sync a folder
        _sync_folder(path.parent)


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Make a folder, with those above it, unless it is there; return its path."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: this folder cannot be made ({error.strerror}); choose another") from error
    return Path(path)


@contextmanager
def folder_beside(out: Path) -> Iterator[Path]:
    """Make a folder on the disk of ``out``, gone afterwards, so that what is made in it need only be renamed."""
    make_folder(out.parent)
    try:
        with TemporaryDirectory(prefix=".export-", dir=out.parent) as folder:
            yield Path(folder)
    except OSError as error:
        raise InputError(
            f"{out}: could not be written ({error.strerror or error}); make room, or choose another folder"
        ) from error


def _sync_folder(folder: Path) -> None:
    """Make the new name itself survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
