"""COCO: one JSON file with images, annotations, categories; people as keypoints or as boxes.

The path is the JSON file, or a folder with JSON files in it or in its ``annotations`` folder (where a split has both,
``person_keypoints_*`` is taken and ``instances_*`` left). Pictures are looked for beside the file, in ``images`` and
in a folder named like the split (``train2017``), all beneath the data set's folder. An id is the picture's file name.

The point of a person is, in this order: a keypoint called head (or the only keypoint there is); the mean of the
visible ones among nose, eyes and ears; head_top; else a point of the box (`load_dataset`'s ``point``). A region with
``iscrowd`` holds an unknown number of people, so its picture has no count and is a problem.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gbdgc.data.formats.entry import (
    Entry,
    find_picture,
    label_file_opening,
    listing,
    name_beneath,
    optional,
    people_among,
    read_json,
    required,
    text_tags,
)
from gbdgc.data.manifest import Dataset
from gbdgc.data.sample import decimals
from gbdgc.errors import InputError, as_input_error, noted_in
from gbdgc.files import atomic_write

TITLE = "COCO"

_FIRST_KEY = re.compile(r'\s*\{\s*"(info|licenses|images|annotations|categories|type|videos)"')
_SPLIT = re.compile(r"(?<![a-z])(train|val|test)(ing|id|idation)?(?![a-z])")
_OUR_KEY = "gbdgc"
_HEAD = ("head", "head_centre", "head_center")
_FACE = ("nose", "left_eye", "right_eye", "left_ear", "right_ear")
_CROWN = ("head_top", "top_head")


def looks_like(path: Path) -> str | None:
    """Recognise a JSON object that begins with one of COCO's keys."""
    files = _label_files(path)
    return f"{files[0].name}, a JSON file with COCO's keys" if files else None


def read(path: Path, problems: list[str]) -> Iterator[Entry]:
    """Yield the pictures of every label file."""
    files = [path] if path.is_file() else _label_files(path)
    if not files:
        raise InputError(path, "no JSON file with 'images' and 'annotations' here or in annotations/")
    for file in files:
        yield from _read_file(file, problems)


def write(dataset: Dataset, path: Path) -> None:
    """Write points as the keypoint "head" of a person; ids, splits and tags go into keys of our own.

    The pictures must lie beneath the file's folder (or beneath its parent, for a file in ``annotations``).
    """
    pictures = [
        CocoImage(
            name_beneath(_root(path), sample.image),
            sample.width,
            sample.height,
            None if sample.points is None else np.asarray(decimals(sample.points)),
            {_OUR_KEY: {"id": sample.id, "split": sample.split, "tags": dict(sample.tags)}},
        )
        for sample in dataset
    ]
    with atomic_write(path, "w") as file:
        json.dump(document(pictures), file)


class CocoImage(NamedTuple):
    """A picture as a COCO file has it: heads as rows (x, y), or (x, y, score) where a model found them."""

    file_name: str
    width: int
    height: int
    heads: NDArray[np.float64] | None
    keys: Mapping[str, Any] = {}


def document(pictures: Iterable[CocoImage]) -> dict[str, Any]:
    """Return what a COCO file holds: heads as the keypoint "head" of a person, their score beside it."""
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for number, (file_name, width, height, heads, keys) in enumerate(pictures, start=1):
        unlabelled = {"labelled": False} if heads is None else {}
        images.append({"id": number, "file_name": file_name, "width": width, "height": height, **keys, **unlabelled})
        for x, y, *score in () if heads is None else heads.tolist():
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": number,
                    "category_id": 1,
                    "keypoints": [x, y, 2],
                    "num_keypoints": 1,
                    "bbox": [x, y, 0, 0],
                    "area": 0,
                    "iscrowd": 0,
                    **({"score": score[0]} if score else {}),
                }
            )
    category = {"id": 1, "name": "person", "supercategory": "person", "keypoints": ["head"], "skeleton": []}
    return {"images": images, "annotations": annotations, "categories": [category]}


def _label_files(path: Path) -> list[Path]:
    """The COCO files of a folder, or the file itself, as far as their opening tells."""
    if path.is_file():
        candidates = [path] if path.suffix == ".json" else []
    else:
        folders = [path, path / "annotations", *(path / name for name in ("train", "valid", "val", "test"))]
        candidates = [file for folder in folders if folder.is_dir() for file in listing(folder)]
    found = [file for file in candidates if file.suffix == ".json" and _FIRST_KEY.match(label_file_opening(file))]
    names = {file.name for file in found}
    return [
        file
        for file in found
        if not file.name.startswith("captions_")
        and file.name.replace("instances_", "person_keypoints_", 1) not in names - {file.name}
    ]


def _root(file: Path) -> Path:
    folder = file.absolute().parent
    return folder.parent if folder.name == "annotations" else file.parent


def _read_file(file: Path, problems: list[str]) -> Iterator[Entry]:
    content = read_json(file)
    if not isinstance(content, dict):
        raise InputError(file, "not a JSON object with 'images' and 'annotations'")
    images = list(_records(content, "images", "id", file, problems))
    categories = list(_records(content, "categories", "id", file, problems))
    people = people_among((str(category.get("name")) for category in categories), file)
    keypoint_names = {
        category["id"]: [str(name).lower() for name in optional(category, "keypoints", list, file) or ()]
        for category in categories
        if str(category.get("name")) in people
    }
    by_image: dict[Any, list[dict[str, Any]]] = {image["id"]: [] for image in images}
    if len(by_image) < len(images):
        twice = [str(id) for id, times in Counter(image["id"] for image in images).items() if times > 1]
        raise InputError(file, f"several images have the id {', '.join(twice[:5])}", "whose are its annotations?")
    for annotation in _records(content, "annotations", "image_id", file, problems):
        if annotation["image_id"] not in by_image:
            problems.append(f"{file}: an annotation for image {annotation['image_id']!r}, which is not listed")
        elif not categories or _category(annotation) in keypoint_names:
            by_image[annotation["image_id"]].append(annotation)
    for image in images:
        labelled = "annotations" in content and image.get("labelled", True)
        marks = partial(_marks, by_image[image["id"]], keypoint_names, file) if labelled else None
        with noted_in(problems):
            yield _entry(file, image, marks)


def _records(
    content: Mapping[str, Any], key: str, needed: str, file: Path, problems: list[str]
) -> Iterator[dict[str, Any]]:
    """The objects in one of the file's lists; one without the number or name that it needs is a problem."""
    for position, record in enumerate(optional(content, key, list, file) or ()):
        if isinstance(record, dict) and isinstance(record.get(needed), int | str):
            yield record
        else:
            problems.append(f"{file}: number {position} of {key!r} has no {needed!r}")


def _category(annotation: Mapping[str, Any]) -> int | str | None:
    id = annotation.get("category_id")
    return id if isinstance(id, int | str) else None


def _entry(file: Path, image: Mapping[str, Any], marks: Any) -> Entry:
    where = f"{file}, image {image['id']}"
    name = required(image, "file_name", str, where)
    root, part = _root(file), file.stem.rpartition("_")[2] or "."
    beside = "annotations" if root != file.parent else "."
    picture = find_picture(name, root, (beside, ".", "images", part, f"images/{part}"), file)
    width, height = (optional(image, side, int, where) for side in ("width", "height"))
    size = None if width is None or height is None else (width, height)
    if (ours := optional(image, _OUR_KEY, dict, where)) is None:
        # By a word in the file's name or else in its folder's, as in instances_val2017; "latest" is no test part.
        found = (_SPLIT.search(part.lower()) for part in (file.stem, file.parent.name))
        return Entry(name, picture, marks, size, next((word.group(1) for word in found if word), None))
    tags = optional(ours, "tags", dict, where) or {}
    split = optional(ours, "split", str, where)
    return Entry(required(ours, "id", str, where), picture, marks, size, split, text_tags(tags, where))


def _marks(annotations: list[dict[str, Any]], keypoint_names: Mapping[Any, list[str]], file: Path) -> list[list[Any]]:
    marks = []
    for annotation in annotations:
        where = f"{file}, annotation {annotation.get('id')}"
        if annotation.get("iscrowd"):
            reason = "a crowd region (iscrowd) holds an unknown number of people"
            raise InputError(where, reason, "leave its picture out")
        head = _head(annotation.get("keypoints"), keypoint_names.get(_category(annotation), []), where)
        box = annotation.get("bbox") if head is None else [*head, 0, 0]
        if not isinstance(box, list) or len(box) != 4:
            raise InputError(where, "neither a visible keypoint of the head nor a box of four numbers")
        marks.append(box)
    return marks


def _head(keypoints: Any, names: list[str], where: str) -> list[float] | None:
    """The point of the head among the visible keypoints, if they tell."""
    if not keypoints:
        return None
    reason = "its keypoints are not triples of numbers (x, y, visibility)"
    with as_input_error((ValueError, TypeError, OverflowError), where, reason):
        triples = np.asarray(keypoints, dtype=np.float64).reshape(-1, 3)
    visible = {i: triple[:2] for i, triple in enumerate(triples) if triple[2] > 0}
    if len(triples) == 1:
        return visible[0].tolist() if visible else None
    position = dict(zip(names, range(len(triples)), strict=False))
    for group in (_HEAD, _FACE, _CROWN):
        found = [visible[position[name]] for name in group if position.get(name) in visible]
        if found:
            return list(np.mean(found, axis=0).tolist())
    return None
