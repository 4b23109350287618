"""The formats that labels come in. A format is one module here and one line in READERS; see `Reader`."""

from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path

from gbdgc.data.formats import (
    coco,
    csv_points,
    cvat,
    folder,
    jhu,
    label_studio,
    manifest,
    mat,
    nwpu,
    qnrf,
    shanghaitech,
    ucf_cc_50,
)
from gbdgc.data.formats.entry import Entry, Reader
from gbdgc.data.manifest import Dataset
from gbdgc.errors import InputError, UsageError

__all__ = ["READERS", "WRITERS", "Entry", "Reader", "looks_like", "reader_named", "recognise"]

READERS: dict[str, Reader] = {
    "manifest": manifest,
    "shanghaitech": shanghaitech,
    "nwpu": nwpu,
    "jhu": jhu,
    "qnrf": qnrf,
    "ucf_cc_50": ucf_cc_50,
    "cvat": cvat,
    "coco": coco,
    "label_studio": label_studio,
    "csv": csv_points,
    "folder": folder,
}
"""Every format that can be read. In this order a data set is tried against them, the most particular layout first."""

WRITERS: dict[str, Callable[[Dataset, Path], object]] = {
    "manifest": Dataset.save,
    "coco": coco.write,
    "csv": csv_points.write,
}
"""Every format that can be written."""

_LIKELY_FORMAT = {".json": "coco", ".xml": "cvat", ".csv": "csv", ".jsonl": "manifest"}


def recognise(path: Path) -> str:
    """Return the name of the format that the layout at ``path`` is.

    Labels in a layout that no reader knows are an error, not a folder of pictures without labels.
    """
    if (found := looks_like(path)) is None:
        verdict = "nothing here looks" if path.is_dir() else "this file does not look"
        advice = "if it is one of these, name the format to learn what is missing"
        raise InputError(path, f"{verdict} like data in a format known here ({', '.join(READERS)})", advice)
    name, _ = found
    for file in sorted(path.rglob("*")) if name == "folder" else ():
        likely = mat.format_of(file) if file.suffix == ".mat" else _LIKELY_FORMAT.get(file.suffix)
        if likely is not None:
            advice = (
                f"name the format: {likely} to learn what is missing, or folder to read the pictures without labels"
            )
            raise InputError(path, f"{file} may be labels of {READERS[likely].TITLE}, but the layout is not", advice)
    return name


def looks_like(path: Path) -> tuple[str, str] | None:
    """Return the name of the first format that recognises the layout, and by what."""
    for name, reader in READERS.items():
        if reason := reader.looks_like(path):
            return name, reason
    return None


def reader_named(name: str) -> str:
    """Return the format's key in READERS: hyphens, spaces and capitals do not matter."""
    key = name.strip().lower().replace("-", "_").replace(" ", "_")
    if key not in READERS:
        close = get_close_matches(key, READERS, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are: auto, {', '.join(READERS)}"
        raise UsageError("", f"no format {name!r}", hint)
    return key
