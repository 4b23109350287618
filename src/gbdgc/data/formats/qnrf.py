"""UCF-QNRF: Train/img_0001.jpg with Train/img_0001_ann.mat (annPoints), and the same in Test.

The path may be the folder that holds Train and Test, or one of them. An id is "train/img_0001".
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from gbdgc.data.formats.entry import Entry, listing, pictures_in
from gbdgc.data.formats.mat import read_variable
from gbdgc.errors import InputError

TITLE = "UCF-QNRF"


def looks_like(path: Path) -> str | None:
    """Recognise img_*_ann.mat files in Train or Test, or in the folder itself."""
    for folder in _folders(path):
        if any(folder.glob("img_*_ann.mat")):
            return f"{folder.name}/img_*_ann.mat"
    return None


def read(path: Path, problems: list[str]) -> Iterator[Entry]:
    """Yield the pictures of Train and Test."""
    folders = _folders(path)
    if not any(any(folder.glob("*_ann.mat")) for folder in folders):
        raise InputError(path, "no Train or Test folder with *_ann.mat files in it")
    for folder in folders:
        yield from pairs_in(folder, problems, folder.absolute().name.lower())


def pairs_in(folder: Path, problems: list[str], split: str | None = None) -> Iterator[Entry]:
    """Yield the pictures of one folder, each with its labels beside it; ids begin with the split."""
    pictures = pictures_in(folder)
    for image in pictures:
        marks = partial(read_variable, image.with_name(f"{image.stem}_ann.mat"), "annPoints")
        yield Entry(f"{split}/{image.stem}" if split else image.stem, image, marks, split=split)
    expected = {f"{image.stem}_ann.mat" for image in pictures}
    for file in listing(folder):
        if file.name.endswith("_ann.mat") and file.name not in expected:
            problems.append(f"{file}: no picture for it in {folder}")


def _folders(path: Path) -> list[Path]:
    inside = [path / name for name in ("Train", "Test", "train", "test") if (path / name).is_dir()]
    # A file system that ignores case shows the same folder under both names.
    different = [folder for i, folder in enumerate(inside) if not any(folder.samefile(other) for other in inside[:i])]
    return different or [path]
