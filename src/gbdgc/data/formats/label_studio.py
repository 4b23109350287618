"""Label Studio, exported as "JSON": a list of tasks, each with its picture and the annotations in percent.

Each keypoint and each rectangle is a person. The picture is named by where Label Studio served it from
(``/data/upload/3/1a2b3c4d-street.jpg``, ``/data/local-files/?d=cam1/street.jpg``, a URL); it is looked for beside the
file, in ``images`` and in ``upload``: first under that path, then by its bare name, then without the eight digits
that an upload puts in front. An id is the name under which it was found. Of several annotations the one marked as
ground truth is taken, or else the last; one that was skipped never. A task that nobody has annotated has no points.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from gbdgc.data.formats.entry import (
    Entry,
    find_picture,
    is_file,
    label_files_in,
    only_file,
    optional,
    people_among,
    read_json,
)
from gbdgc.data.images import IMAGE_SUFFIXES
from gbdgc.errors import InputError, as_input_error, noted_in

TITLE = "Label Studio"

_SHAPES = ("keypoint", "rectangle")
_OTHER_SHAPES = ("polygon", "brush", "ellipse")
_TASK = re.compile(r'\s*\[\s*\{.*"(annotations|completions|predictions|data)"\s*:', re.DOTALL)
_UPLOAD_PREFIX = re.compile(r"^[0-9a-f]{8}-")


def looks_like(path: Path) -> str | None:
    """Recognise a JSON list of tasks."""
    files = label_files_in(path, ".json", _TASK.match)
    return f"{files[0].name}, a JSON list of tasks" if len(files) == 1 else None


def read(path: Path, problems: list[str]) -> Iterator[Entry]:
    """Yield one entry per task."""
    files = [path] if path.is_file() else label_files_in(path, ".json", _TASK.match)
    file = only_file(path, files, ".json file with a list of tasks")
    tasks = read_json(file)
    if not isinstance(tasks, list):
        raise InputError(file, "not a list of tasks")
    pictures: list[tuple[str, str, Path, list[dict[str, Any]] | None]] = []
    for number, task in enumerate(tasks, start=1):
        where = f"{file}, task {task.get('id', number) if isinstance(task, dict) else number}"
        with noted_in(problems):
            name, image = _picture(task, file, where)
            pictures.append((where, name, image, _chosen_result(task, where)))
    all_shapes = [shape for _, _, _, shapes in pictures for shape in shapes or ()]
    people = people_among({label for shape in all_shapes for label in _labels(shape)}, file)
    for where, name, image, shapes in pictures:
        sizes = [(shape.get("original_width"), shape.get("original_height")) for shape in shapes or ()]
        size = next(((w, h) for w, h in sizes if isinstance(w, int) and isinstance(h, int)), None)
        yield Entry(name, image, None if shapes is None else partial(_marks, shapes, people, where), size)


def _chosen_result(task: Mapping[str, Any], where: str) -> list[dict[str, Any]] | None:
    """The shapes of the annotation that counts; None when there is none."""
    annotations = optional(task, "annotations", list, where) or optional(task, "completions", list, where) or ()
    kept = [each for each in annotations if isinstance(each, dict) and not each.get("was_cancelled")]
    if not kept:
        return None
    chosen = next((each for each in kept if each.get("ground_truth")), kept[-1])
    return [shape for shape in optional(chosen, "result", list, where) or () if isinstance(shape, dict)]


def _kind(shape: Mapping[str, Any]) -> str:
    return str(shape.get("type", "")).removesuffix("labels")


def _labels(shape: Mapping[str, Any]) -> list[str]:
    """The labels of a shape; one made with a tool that gives none has the empty label."""
    kind, value = _kind(shape), shape.get("value")
    if kind not in _SHAPES + _OTHER_SHAPES or not isinstance(value, dict):
        return []
    names = value.get(f"{kind}labels")
    return [str(name) for name in names] if isinstance(names, list) else [""]


def _picture(task: Any, file: Path, where: str) -> tuple[str, Path]:
    """The name and the path of a task's picture."""
    data = task.get("data") if isinstance(task, dict) else None
    if not isinstance(data, dict):
        raise InputError(where, "no 'data'", "export the project as JSON, not as JSON-MIN")
    paths = (_served_path(value) for value in data.values() if isinstance(value, str))
    served = next((path for path in paths if PurePosixPath(path).suffix.lower() in IMAGE_SUFFIXES), None)
    if served is None:
        raise InputError(where, "its data names no picture by a path or address that can be read")
    bare = PurePosixPath(served.replace("\\", "/")).name
    for name in (served, bare, _UPLOAD_PREFIX.sub("", bare)):
        image = find_picture(name, file.parent, (".", "images", "upload"), file)
        if is_file(image):
            return name, image
    raise InputError(where, f"no picture {bare!r} in {file.parent} or its images/", "put the pictures there")


def _served_path(url: str) -> str:
    """The path in a URL of Label Studio, without the parts that only its server understands."""
    try:
        parts = urlsplit(url)
    except ValueError:  # brackets in the place of a host, which only an IPv6 address may have: not a picture's address
        return ""
    if parts.path.endswith("/local-files/") and "d" in parse_qs(parts.query):
        return parse_qs(parts.query)["d"][0]
    path = unquote(parts.path)
    if parts.scheme:
        return PurePosixPath(path).name
    return re.sub(r"^/data/(upload/)?", "", path)


def _marks(shapes: list[dict[str, Any]], people: frozenset[str], where: str) -> list[list[float]]:
    marks = []
    for shape in shapes:
        if not people.intersection(_labels(shape)):
            continue
        if _kind(shape) in _OTHER_SHAPES:
            raise InputError(where, f"a {_kind(shape)} marks a person", "only keypoints and rectangles are read")
        value = shape["value"]
        # A keypoint has a width too: that of the dot drawn for it.
        extent = (value.get("width"), value.get("height")) if _kind(shape) == "rectangle" else (0, 0)
        with as_input_error(
            (KeyError, TypeError, OverflowError), where, f"a {_kind(shape)} lacks a number ({{error}})"
        ):
            across, down = shape["original_width"] / 100, shape["original_height"] / 100
            marks.append([value["x"] * across, value["y"] * down, extent[0] * across, extent[1] * down])
    return marks
