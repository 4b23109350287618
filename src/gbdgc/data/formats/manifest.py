"""Our own manifest: JSONL, one sample a line as `Dataset.save` writes it, with paths relative to the file.

``{"id": "a", "image": "images/a.jpg", "width": 640, "height": 480, "points": [[x, y], ...], "split": "train",
"tags": {"scene": "street"}}``; ``points`` is null for a picture without labels, and only ``id`` and ``image`` must be
there. As you write a manifest yourself, its paths may lead anywhere, also to pictures outside its folder.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gbdgc.data.formats.entry import Entry, optional, read_text, required
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
    for number, line in enumerate(read_text(file).split("\n"), start=1):
        where = f"{file}, line {number}"
        if line.strip():
            try:
                yield _to_entry(json.loads(line), file.parent, where)
            except InputError as error:
                problems.append(str(error))
            except (ValueError, RecursionError) as error:
                problems.append(f"{where}: not valid JSON ({error})")


def write(dataset: Dataset, path: Path) -> None:
    """Write the manifest; reading it gives the same samples, bit for bit."""
    dataset.save(path)


def _to_entry(record: Any, folder: Path, where: str) -> Entry:
    if not isinstance(record, dict):
        raise InputError(f"{where}: not a JSON object")
    width, height = (optional(record, name, int, where) for name in ("width", "height"))
    points = optional(record, "points", list, where)
    tags = optional(record, "tags", dict, where) or {}
    return Entry(
        required(record, "id", str, where),
        folder / required(record, "image", str, where),
        None if points is None else lambda: points,
        None if width is None or height is None else (width, height),
        optional(record, "split", str, where),
        {name: str(value) for name, value in tags.items()},
    )
