"""NWPU-Crowd: images/0001.jpg, mats/0001.mat or jsons/0001.json, and the lists train.txt, val.txt, test.txt.

A line of a list is the picture's number, then its crowd level and luminance, which become tags. The labels of the
test part are not public: its samples have no points. An id is the number, as the benchmark's submission wants it.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from gbdgc.data.formats.entry import Entry, beneath, is_file, read_json, read_text
from gbdgc.data.formats.mat import read_variable
from gbdgc.errors import InputError, noted_in

TITLE = "NWPU-Crowd"

_SPLITS = ("train", "val", "test")
_TAGS = ("level", "luminance")


def looks_like(path: Path) -> str | None:
    """Recognise lists beside images/ and mats/ or jsons/."""
    labels = next((name for name in ("mats", "jsons") if (path / name).is_dir()), None)
    lists = [f"{split}.txt" for split in _SPLITS if (path / f"{split}.txt").is_file()]
    if labels is None or not lists or not (path / "images").is_dir():
        return None
    return f"images/, {labels}/ and {', '.join(lists)}"


def read(path: Path, problems: list[str]) -> Iterator[Entry]:
    """Yield the pictures of the lists, in their order."""
    lists = {split: path / f"{split}.txt" for split in _SPLITS if (path / f"{split}.txt").is_file()}
    if not lists:
        raise InputError(path, "no train.txt, val.txt or test.txt")
    for split, file in lists.items():
        for line in read_text(file).splitlines():
            if columns := line.split():
                id, *tags = columns
                with noted_in(problems):
                    image = beneath(path / "images", f"{id}.jpg", file)
                    mat = beneath(path / "mats", f"{id}.mat", file)
                    json = beneath(path / "jsons", f"{id}.json", file)
                    marks: Callable[[], Any] | None = partial(read_variable, mat, "annPoints")
                    if not is_file(mat) and (split == "test" or is_file(json)):
                        marks = partial(_read_points, json) if is_file(json) else None
                    yield Entry(id, image, marks, split=split, tags=dict(zip(_TAGS, tags, strict=False)))


def _read_points(path: Path) -> Any:
    content = read_json(path)
    if not isinstance(content, dict) or "points" not in content:
        raise InputError(path, "no 'points'")
    return content["points"]
