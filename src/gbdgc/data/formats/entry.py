"""The entries that readers yield, and what all of them share: safe ways to find and read files."""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Protocol, TypeVar

from gbdgc.data.images import IMAGE_SUFFIXES
from gbdgc.errors import InputError, as_input_error
from gbdgc.files import natural_order

T = TypeVar("T")
_HEADS = frozenset({"head", "heads", "face", "faces"})
_PEOPLE = frozenset(
    {"person", "persons", "people", "pedestrian", "pedestrians", "human", "humans", "crowd", "man", "men", "woman"}
    | {"women", "child", "children", "boy", "girl", "adult", "rider"}
)
_JSON_NAMES: dict[type, str] = {str: "a text", int: "a whole number", list: "a list", dict: "an object"}

Marks = Any
"""One row per person, as any array-like: a point (x, y), or a box (x, y, width, height) where labels are boxes.

A point among boxes is a box of no size. Rows are checked where all entries become samples, not by each reader.
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One picture as the labels describe it, before it has been opened.

    ``marks`` is called later, in a pool of threads; whatever it raises is put down as this picture's problem, so that
    one bad label file does not hide the next. It is None where nobody has labelled the picture. ``size`` is the width
    and height that the labels were made for, where they say so: points on a picture of another size are not on heads.
    """

    id: str
    image: Path
    marks: Callable[[], Marks] | None = None
    size: tuple[int, int] | None = None
    split: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


class Reader(Protocol):
    """A format: a module with these three names."""

    @property
    def TITLE(self) -> str:
        """The name that people know it by."""

    def looks_like(self, path: Path, /) -> str | None:
        """Return what identifies the layout, or None if it is not this format."""

    def read(self, path: Path, problems: list[str], /) -> Iterable[Entry]:
        """Yield an entry per picture; append to ``problems`` what no entry can be made of."""


def listing(folder: Path) -> list[Path]:
    """Return what is in a folder, in natural order (IMG_2 before IMG_10), without hidden files."""
    with as_input_error(OSError, folder, "this folder cannot be read ({error})"):
        found = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
    return sorted(found, key=natural_order)


def pictures_in(folder: Path) -> list[Path]:
    """Return the pictures directly in a folder, in natural order."""
    return [entry for entry in listing(folder) if entry.suffix.lower() in IMAGE_SUFFIXES]


def beneath(folder: Path, name: str, source: Path) -> Path:
    """Return ``folder / name``, refusing a name in a label file that points anywhere else.

    The check is of the name itself, so a link that the owner of the folder has put there is followed.
    """
    posix = name.replace("\\", "/")
    climbs = PurePosixPath(os.path.normpath(posix)).parts[:1] == ("..",)
    absolute = posix.startswith("/") or PureWindowsPath(name).drive != ""
    if not posix or "\0" in posix or absolute or climbs:
        reason = f"{name!r} is not beneath {folder}"
        raise InputError(source, reason, "names in label files must be relative to that folder")
    return folder / os.path.normpath(posix)


def find_picture(name: Any, root: Path, folders: Iterable[str], source: Path) -> Path:
    """Return the picture that a label file names, in the first of the folders beneath the root that has it."""
    if not isinstance(name, str):
        raise InputError(source, f"the name of a picture must be a text, not {_brief(name)}")
    candidates = [beneath(beneath(root, folder, source), name, source) for folder in folders]
    return next(filter(is_file, candidates), candidates[0])


def is_file(path: Path) -> bool:
    """Whether there is such a file; none has a name longer than the system takes, for which pathlib raises."""
    with suppress(OSError):
        return path.is_file()
    return False


def name_beneath(folder: Path, image: Path) -> str:
    """Return the name that a label file in ``folder`` gives to a picture: its path relative to there."""
    name = Path(os.path.relpath(image, folder)).as_posix()
    if name.startswith("../"):
        advice = "write the file there, or copy the pictures with `gbdgc data convert`"
        raise InputError(image, f"not beneath {folder}, where the label file is to be", advice)
    return name


def only_file(folder: Path, files: Sequence[Path], wanted: str) -> Path:
    """Return the only label file of a folder; none or several are errors."""
    if len(files) != 1:
        found = ", ".join(file.name for file in files) or "none"
        raise InputError(folder, f"one {wanted} is wanted here, found {found}")
    return files[0]


def label_file_opening(path: Path) -> str:
    """Return the first characters of a file, enough to recognise it by; nothing when there is no such text."""
    with suppress(OSError):
        if path.is_file():
            with path.open(encoding="utf-8-sig", errors="replace") as file:
                return file.read(4096)
    return ""


def label_files_in(path: Path, suffix: str, recognise: Callable[[str], object]) -> list[Path]:
    """Return the file, or those directly in the folder, that have the suffix and are recognised by their opening."""
    candidates = [path] if path.is_file() else listing(path) if path.is_dir() else []
    return [file for file in candidates if file.suffix == suffix and recognise(label_file_opening(file))]


def optional(record: Mapping[str, Any], key: str, kind: type[T], where: object) -> T | None:
    """Return a field of a JSON object, None where it is missing or null, and refuse it in another type."""
    value = record.get(key)
    if value is None or isinstance(value, kind):
        return value
    raise InputError(where, f"{key!r} must be {_JSON_NAMES[kind]}, not {_brief(value)}")


def text_tags(tags: Mapping[str, Any], where: object) -> dict[str, str]:
    """Return tags, whose values may be texts or numbers, as texts."""
    if nested := [name for name, value in tags.items() if isinstance(value, list | dict)]:
        raise InputError(where, f"the tag {nested[0]!r} must be a text")
    return {name: str(value) for name, value in tags.items()}


def _brief(value: Any) -> str:
    """Shorten a JSON value for an error message; nested values may be too deep to print."""
    return _JSON_NAMES[type(value)] if isinstance(value, dict | list) else repr(str(value)[:40])


def required(record: Mapping[str, Any], key: str, kind: type[T], where: object) -> T:
    """Return a field of a JSON object that must be there, in its type."""
    if not (value := optional(record, key, kind, where)):
        raise InputError(where, f"no {key!r}")
    return value


def read_text(path: Path) -> str:
    """Return the content of a text file in UTF-8."""
    if path.exists() and not path.is_file():
        raise InputError(path, "not a file")  # a pipe or a device, which might never end
    try:
        with as_input_error(OSError, path, "cannot be read ({error})"):
            return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(path, f"not text in UTF-8 (byte {error.start})", "save it again as UTF-8") from error


def parse_json(text: str, where: object) -> Any:
    """Return the value of a JSON text."""
    # ValueError: also a number of more digits than Python takes.
    with as_input_error((ValueError, RecursionError), where, "not valid JSON ({error})", "export it again"):
        return json.loads(text)


def read_json(path: Path) -> Any:
    """Return the content of a JSON file."""
    return parse_json(read_text(path), path)


def people_among(names: Iterable[str], source: Path) -> frozenset[str]:
    """Return the names that stand for one person each.

    The only name of a file, whatever it is. Of several: head or face where there is one, as a person with both a
    head and a body marked counts once; else all that mean people.
    """
    known = frozenset(names)
    for words in (_HEADS, _PEOPLE):
        if found := frozenset(name for name in known if name.strip().lower() in words):
            return found
    if len(known) <= 1:
        return known
    advice = "give people the label 'head' or 'person'"
    raise InputError(source, f"which of its labels are people? It has {', '.join(map(repr, sorted(known)))}", advice)
