"""Our own manifest: JSONL, one sample a line as `Dataset.save` writes it, with paths relative to the file.

``{"id": "a", "image": "images/a.jpg", "width": 640, "height": 480, "points": [[x, y], ...], "split": "train",
"tags": {"scene": "street"}}``; ``points`` is null for a picture without labels, and only ``id`` and ``image`` must be
there. As you write a manifest yourself, its paths may lead anywhere, also to pictures outside its folder.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gbdgc.data.formats.entry import Entry, read_text
from gbdgc.data.manifest import Dataset
from gbdgc.errors import InputError

TITLE = "gbdgc manifest"


def looks_like(path: Path) -> str | None:
    """Recognise a .jsonl file, or a folder with a manifest.jsonl."""
    if path.suffix == ".jsonl" and path.is_file():
        return "a .jsonl file"
    return "manifest.jsonl" if (path / "manifest.jsonl").is_file() else None


def read(path: Path, problems: list[str]) -> Iterator[Entry]:
    """Yield one entry a line."""
    file = path / "manifest.jsonl" if path.is_dir() else path
    for number, line in enumerate(read_text(file).splitlines(), start=1):
        if line.strip():
            try:
                yield _to_entry(json.loads(line), file.parent)
            except (ValueError, RecursionError) as error:
                problems.append(f"{file}, line {number}: {error}")


def write(dataset: Dataset, path: Path) -> None:
    """Write the manifest; reading it gives the same samples, bit for bit."""
    dataset.save(path)


def _to_entry(record: Any, folder: Path) -> Entry:
    if not isinstance(record, dict):
        raise InputError("not a JSON object")
    id, image = (_text(record, name) for name in ("id", "image"))
    width, height = record.get("width"), record.get("height")
    size = (int(width), int(height)) if width is not None and height is not None else None
    points, split, tags = record.get("points"), record.get("split"), record.get("tags", {})
    if split is not None and not isinstance(split, str):
        raise InputError(f"'split' must be a text, not {split!r}")
    if not isinstance(tags, Mapping):
        raise InputError(f"'tags' must be an object of names and texts, not {tags!r}")
    return Entry(
        id,
        folder / image,
        None if points is None else lambda: points,
        size,
        split,
        {name: str(value) for name, value in tags.items()},
    )


def _text(record: Mapping[str, Any], name: str) -> str:
    value = record.get(name)
    if not isinstance(value, str) or not value:
        raise InputError(f"no {name!r}" if value is None else f"{name!r} must be a text, not {value!r}")
    return value
