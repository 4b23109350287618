"""UCF_CC_50: 1.jpg with 1_ann.mat (annPoints), fifty of them in one folder without splits. An id is "1"."""

from collections.abc import Iterator
from pathlib import Path

from gbdgc.data.formats.entry import Entry
from gbdgc.data.formats.qnrf import pairs_in
from gbdgc.errors import InputError

TITLE = "UCF_CC_50"


def looks_like(path: Path) -> str | None:
    """Recognise files such as 1_ann.mat."""
    return "1_ann.mat and the like" if any(path.glob("[0-9]*_ann.mat")) else None


def read(path: Path, problems: list[str]) -> Iterator[Entry]:
    """Yield the pictures of the folder."""
    if not any(path.glob("*_ann.mat")):
        raise InputError(path, "no *_ann.mat files in this folder")
    yield from pairs_in(path, problems)
