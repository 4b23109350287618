"""Our own manifest: JSONL, one sample per line as `Dataset.save` writes it, with paths relative to the file.

``{"id": "a", "image": "images/a.jpg", "width": 640, "height": 480, "points": [[x, y], ...], "split": "train",
"tags": {"scene": "street"}}``; ``points`` is null for a picture without labels, and only ``id`` and ``image`` must be
there. `Dataset.save` leaves pictures where they are, so the paths of a manifest that is named itself may lead anywhere;
where a folder is named, and the manifest only found in it, they must stay beneath that folder.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gbdgc.data.formats.entry import Entry, beneath, optional, parse_json, read_text, required, text_tags
from gbdgc.errors import InputError, noted_in

TITLE = "gbdgc manifest"


def looks_like(path: Path) -> str | None:
    """Recognise a .jsonl file, or a folder with a manifest.jsonl."""
    if path.suffix == ".jsonl" and path.is_file():
        return "a .jsonl file"
    return "manifest.jsonl" if (path / "manifest.jsonl").is_file() else None


def read(path: Path, problems: list[str]) -> Iterator[Entry]:
    """Yield one entry per line."""
    file = path / "manifest.jsonl" if path.is_dir() else path
    for number, line in enumerate(read_text(file).split("\n"), start=1):
        where = f"{file}, line {number}"
        if line.strip():
            with noted_in(problems):
                yield _to_entry(parse_json(line, where), file, where, anywhere=path == file)


def _to_entry(record: Any, file: Path, where: str, *, anywhere: bool) -> Entry:
    if not isinstance(record, dict):
        raise InputError(where, "not a JSON object")
    width, height = (optional(record, name, int, where) for name in ("width", "height"))
    points = optional(record, "points", list, where)
    tags = optional(record, "tags", dict, where) or {}
    id, image = required(record, "id", str, where), required(record, "image", str, where)
    try:
        picture = file.parent / image if anywhere else beneath(file.parent, image, file)
    except InputError as error:
        raise InputError(where, error.reason, f"to read pictures from elsewhere, name {file} itself") from error
    return Entry(
        id,
        picture,
        None if points is None else lambda: points,
        None if width is None or height is None else (width, height),
        optional(record, "split", str, where),
        text_tags(tags, where),
    )
