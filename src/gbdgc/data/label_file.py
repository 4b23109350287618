"""Labels being edited: the CSV of points of a folder of pictures, rewritten atomically with every change."""

from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import ArrayLike

from gbdgc.data.formats import READERS, csv_points, looks_like
from gbdgc.data.formats.entry import only_file
from gbdgc.data.manifest import Dataset
from gbdgc.data.reading import load_dataset
from gbdgc.data.sample import Points, Sample
from gbdgc.errors import InputError, as_input_error, noted_in

NAME = "labels.csv"
MAX_HEADS = 100_000
UNLABELLED = "unlabelled"


class LabelsChanged(InputError):
    """A picture's labels were changed by someone else since they were read; nothing was saved."""


class LabelFile:
    """The pictures of a folder, at any depth, and the one CSV there that holds the heads of those labelled so far.

    Changes that others make to the file are read before anything is saved. Safe to share between threads. ``path`` is
    the folder's own CSV of points, or labels.csv; ``pictures`` maps each name to a sample without points.
    """

    def __init__(self, folder: Path) -> None:
        kind, reason = looks_like(folder) or ("folder", "")
        if kind not in ("csv", "folder"):
            advice = "label in a folder that has pictures only, or none but a CSV of points"
            raise InputError(folder, f"its labels are {READERS[kind].TITLE} already ({reason})", advice)
        self.folder = folder
        found = csv_points.label_files(folder)
        self.path = only_file(folder, found, "CSV of points") if found else folder / NAME
        dataset = load_dataset(folder, "folder", skip_bad=True)
        self.problems = list(dataset.problems)
        self.pictures: dict[str, Sample] = {}
        for sample in dataset:
            with noted_in(self.problems):
                self.pictures[csv_points.check_text(sample.id)] = sample
        self._lock = Lock()
        self._read: object = None
        self._labelled: dict[Path, Sample] = {}
        self.heads()

    def heads(self) -> dict[str, Points | None]:
        """Return the heads of each picture, None where nobody has labelled it."""
        with self._lock:
            self._refresh()
            labelled = ((name, self._labelled.get(_place(sample))) for name, sample in self.pictures.items())
            return {name: None if sample is None else sample.points for name, sample in labelled}

    def save(self, name: str, heads: ArrayLike | None, tag: str) -> Points | None:
        """Replace the heads of a picture, if they still are those with this tag, and return them as they are now.

        No heads, an empty list, says that nobody is in the picture; None takes its labels away.
        """
        picture = self.pictures[name]
        if heads is not None and not picture.image.exists():
            raise InputError(picture.image, "no such file", "start `gbdgc label` again if it was moved")
        points = None if heads is None else _checked(heads, picture)
        with self._lock:
            self._refresh()
            before = self._labelled.get(_place(picture))
            if tag_of(None if before is None else before.points) != tag:
                raise LabelsChanged(name, "its labels have been changed elsewhere", "look at them, then go on")
            labelled = dict(self._labelled)
            if points is None:
                labelled.pop(_place(picture), None)
            else:
                labelled[_place(picture)] = replace(before or picture, points=points)
            if labelled:
                csv_points.write(Dataset(labelled.values(), format="csv"), self.path)
            else:  # a CSV without rows would be no data set
                self.path.unlink(missing_ok=True)
            self._labelled, self._read = labelled, self._state()
        return points

    def _refresh(self) -> None:
        """Read the file if it has changed since it was last read or written."""
        if (state := self._state()) != self._read:
            dataset = load_dataset(self.path, "csv") if state else ()
            self._labelled = {_place(sample): sample for sample in dataset}
            self._read = state

    def _state(self) -> tuple[int, int, int] | None:
        with suppress(FileNotFoundError):
            status = self.path.stat()
            return status.st_mtime_ns, status.st_size, status.st_ino
        return None


def tag_of(heads: Points | None) -> str:
    """Return a tag that changes with the heads, by which a client names the version that it has seen."""
    return UNLABELLED if heads is None else sha256(heads.tobytes()).hexdigest()[:16]


def _place(sample: Sample) -> Path:
    return sample.image.absolute()


def _checked(heads: ArrayLike, picture: Sample) -> Points:
    rows, no_pairs = np.asarray(heads, dtype=object), "heads must be pairs of numbers [x, y]"
    points = np.zeros((0, 2), dtype=np.float32)
    if rows.size:
        with as_input_error((TypeError, ValueError, OverflowError), picture.id, no_pairs):
            points = rows.astype(np.float32)
    if points.ndim != 2 or points.shape[1] != 2:
        raise InputError(picture.id, no_pairs)
    if len(points) > MAX_HEADS:
        raise InputError(picture.id, f"{len(points):,} heads, over the limit of {MAX_HEADS:,}")
    if not ((points >= 0) & (points <= (picture.width, picture.height))).all():
        raise InputError(picture.id, f"a head lies outside the picture, which is {picture.width} x {picture.height}")
    return points
