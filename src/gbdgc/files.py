"""Files that a reader sees old or new, never half written; folders for one process at a time; safe CSV."""

import csv
import hashlib
import io
import json
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from tempfile import mkdtemp
from typing import IO, Any

from gbdgc.errors import InputError, as_input_error

_PART = re.compile(r"\..+\.[0-9a-f]{12}\.part", re.DOTALL)  # names may hold line breaks
_EXPORT = ".export-"
_FRESH_SECONDS = 60
_FORMULA = re.compile(r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")  # the last four: wide =, +, - and @
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)

AnyPath = str | os.PathLike[str]
"""A path as callers may give it."""

MAX_PIXELS = 200_000_000
"""Larger pictures are refused unless the caller says otherwise."""


def natural_order(path: AnyPath) -> list[tuple[int, str]]:
    """Return a sorting key in which numbers count as numbers: IMG_2 before IMG_10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", os.fspath(path))]


def is_number(cell: str) -> bool:
    """Return whether a table cell holds a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


@contextmanager
def atomic_write(path: AnyPath, mode: str = "wb") -> Iterator[IO[Any]]:
    """Open a temporary file beside ``path``; on success it is synced and takes the name, on failure it is gone."""
    path = Path(path)
    make_folder(path.parent)
    # Opened like any new file, so that it gets the permissions that the user's mask allows.
    part = path.with_name(f".{path.name}.{token_hex(6)}.part")
    try:
        # File names need not be text: bytes that are not are written back as they were.
        encoding, errors = (None, None) if "b" in mode else ("utf-8", "surrogateescape")
        with part.open(mode.replace("w", "x"), encoding=encoding, errors=errors) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        if error.filename in (None, str(part)):
            advice = "what was there before is untouched. Make room or choose another folder, then run again"
            raise InputError(path, f"could not be written ({error.strerror or error})", advice) from error
        raise
    finally:
        with suppress(OSError):  # a read-only file system refuses even what is not there, and would hide the reason
            part.unlink()
    with suppress(OSError):  # the new content is in place; some systems cannot sync a folder
        descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)  # for the new name itself to survive a power cut
        finally:
            os.close(descriptor)


def write_json(path: Path, content: object) -> None:
    """Write a JSON file that people can read, whole or not at all."""
    with atomic_write(path, "w") as file:
        json.dump(content, file, indent=2)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's content, which identifies it wherever it lies."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def make_folder(path: AnyPath) -> Path:
    """Make a folder and its parents unless they exist; return its path."""
    with as_input_error((OSError, ValueError), path, "this folder cannot be made ({error})", "choose another"):
        Path(path).mkdir(parents=True, exist_ok=True)
    return Path(path)


@contextmanager
def claim(folder: Path) -> Iterator[bool]:
    """Keep other processes out of a folder; yields False where the system has no such lock, and nobody is kept out.

    The system releases the lock when the process ends, however it ends.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield False
        return
    handle = os.open(folder, os.O_RDONLY)
    locked = True
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(
                folder, "another process is at work there", "wait for it, or choose another folder"
            ) from error
        except OSError:  # a file system without locks
            locked = False
        yield locked
    finally:
        os.close(handle)


def sweep_parts(folder: Path, *, spare: Iterable[str] = ()) -> None:
    """Delete what writers that were killed left below a folder, except below folders that hold a file of ``spare``."""
    for parent, folders, names in os.walk(folder):
        if Path(parent) != folder and not set(spare).isdisjoint(names):
            folders.clear()
            continue
        for name in names:
            if _PART.fullmatch(name):
                (Path(parent) / name).unlink(missing_ok=True)


@contextmanager
def folder_beside(out: Path) -> Iterator[Path]:
    """Make a folder on the disk of ``out``, gone afterwards, so that what is made in it need only be renamed."""
    make_folder(out.parent)
    for leftover in out.parent.glob(f"{_EXPORT}*"):
        with suppress(InputError, OSError), claim(leftover) as locked:
            # Claimed by nobody, and not made just now: its process was killed.
            if locked and time.time() - leftover.stat().st_mtime > _FRESH_SECONDS:
                shutil.rmtree(leftover)
    with as_input_error(OSError, out, "could not be written ({error})", "make room, or choose another folder"):
        folder = Path(mkdtemp(prefix=_EXPORT, dir=out.parent))
        try:
            with claim(folder):
                yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def csv_line(values: Iterable[object]) -> str:
    """Return one row of CSV with its newline; None is an empty cell.

    A text that a spreadsheet would run as a formula gets an apostrophe in front; `csv_rows` takes it off again.
    """
    text = io.StringIO()
    csv.writer(text).writerow(  # with its own line ends, so that both of their characters are quoted within a cell
        f"'{value}" if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value) else value
        for value in values
    )
    return text.getvalue().removesuffix("\r\n") + "\n"


def csv_rows(text: str) -> list[list[str]]:
    """Return the rows of CSV as `csv_line` was given them, every cell as text."""
    return [[plain_cell(cell) for cell in row] for row in csv.reader(io.StringIO(text, newline=""))]


def plain_cell(cell: str) -> str:
    """Return a cell of CSV without the apostrophe that `csv_line` puts in front of what looks like a formula."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
