"""`load_dataset`: reads labels in any format into a `Dataset`, and reports all problems at once."""

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gbdgc.data.formats import READERS, Entry, looks_like, reader_named, recognise
from gbdgc.data.images import MAX_PIXELS, image_size
from gbdgc.data.manifest import Dataset, Problem
from gbdgc.data.sample import Points, Sample
from gbdgc.errors import InputError, as_input_error, noted_in
from gbdgc.files import AnyPath

BoxPoint = Literal["head", "centre"]

# A standing person is about seven and a half heads tall, which puts the middle of the head a fifteenth below the top.
_HEAD_HEIGHT = 1 / 15
_SHOWN_PROBLEMS = 20
_ADVICE = "fix these, or leave the bad pictures out (skip_bad)"
_HALF_CHARACTER = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Surrogates, but for those by which Python writes the bytes of a file's name that are no text."""


def load_dataset(
    path: AnyPath,
    format: str = "auto",
    *,
    skip_bad: bool = False,
    max_pixels: int = MAX_PIXELS,
    point: BoxPoint = "head",
) -> Dataset:
    """Read a labelled data set, or a folder of pictures without labels; an `InputError` lists all problems.

    Parameters
    ----------
    path : a folder or a label file; what it must hold depends on the format (docs/data.md).
    format : a name in `gbdgc.data.READERS`, or "auto" to recognise it by its layout; ``Dataset.format`` says what it
        was taken for.
    skip_bad : leave out pictures with problems and list these in ``Dataset.problems``, instead of raising.
    max_pixels : refuse larger pictures.
    point : where labels are boxes, the point that stands for a person: "head", a fifteenth of the box below the middle
        of its top edge, or "centre".
    """
    path = Path(path)
    # Fail early where readers, which look for patterns of names, would see an empty folder.
    with as_input_error(OSError, path, "cannot be read ({error})", "check who may read it"):
        if path.is_dir():
            next(path.iterdir(), None)
        elif not path.exists():
            raise InputError(path, "no such file or folder")
    if point not in ("head", "centre"):
        raise InputError("", f"the point of a box is 'head' or 'centre', not {point!r}")
    name = recognise(path) if format == "auto" else reader_named(format)
    of_the_reader: list[str] = []
    entries = _read_entries(path, name, of_the_reader)
    problems = [Problem(text) for text in of_the_reader]
    samples: dict[str, Sample] = {}
    with ThreadPoolExecutor() as pool:
        made = pool.map(partial(_to_sample, max_pixels=max_pixels, point=point), entries)
        for entry, outcome in zip(entries, made, strict=True):
            if isinstance(outcome, list):
                problems += [Problem(text, entry.split) for text in outcome]
            elif (first := samples.setdefault(outcome.id, outcome)) is not outcome:
                text = f"{outcome.image}: its id {outcome.id!r} is already that of {first.image}"
                problems.append(Problem(text, entry.split))
    # For files and terminals: half characters as escapes.
    problems = [
        problem._replace(text=_HALF_CHARACTER.sub(lambda found: ascii(found[0])[1:-1], problem.text))
        for problem in problems
    ]
    dataset = Dataset(samples.values(), format=name, problems=problems)
    if not skip_bad or not samples:
        refuse_problems(dataset, path, "nothing is left to use" if skip_bad else _ADVICE)
    return dataset


def refuse_problems(dataset: Dataset, path: AnyPath, advice: str = _ADVICE) -> None:
    """Raise an error that lists what was left out while reading, if anything was."""
    if problems := dataset.problems:
        count = "one problem" if len(problems) == 1 else f"{len(problems)} problems"
        reason = f"{count} while reading it as {READERS[dataset.format].TITLE}:{list_problems(problems)}"
        raise InputError(path, reason, advice)


def _read_entries(path: Path, name: str, problems: list[str]) -> list[Entry]:
    """Everything the reader finds; when that is nothing, the error says which other format it looks like."""
    try:
        entries = list(READERS[name].read(path, problems))
        if not entries and not problems:
            raise InputError(path, f"no picture found as {READERS[name].TITLE}")
    except InputError as error:
        found = looks_like(path)
        if found is None or found[0] in (name, "folder"):
            raise
        other, reason = found
        hint = f"{error.reason}: this looks like {READERS[other].TITLE} ({reason})"
        raise InputError(error.thing, hint, f"read it as {other}") from error
    return entries


def _to_sample(entry: Entry, max_pixels: int, point: BoxPoint) -> Sample | list[str]:
    """Open the picture's header and its labels; return the sample, or all that is wrong with it."""
    # JSON can spell half a character, as in "\\ud800": such a name could be written into no file.
    names = {"id": entry.id, "split": entry.split or ""}
    names |= {f"tag {name!r}": name + value for name, value in entry.tags.items()}
    problems = [
        f"{entry.image}: its {name} is not text ({value!r}); give it another"
        for name, value in names.items()
        if _HALF_CHARACTER.search(value)
    ]
    size, points = (0, 0), None
    with noted_in(problems):
        size = image_size(entry.image, max_pixels=max_pixels)
        if entry.size is not None and entry.size != size:
            advice = "use the picture that was labelled"
            if entry.size == size[::-1]:
                advice = "the labels ignore its EXIF rotation: label it upright"
            sizes = "{} x {} pixels, but its labels are for {} x {}".format(*size, *entry.size)
            problems.append(f"{entry.image}: {sizes}; {advice}")
    with noted_in(problems):
        points = None if entry.marks is None else _to_points(entry.marks(), entry.id, point)
    return problems or Sample(entry.id, entry.image, *size, points, entry.split, entry.tags)


def _to_points(marks: Any, id: str, point: BoxPoint) -> Points:
    """Check the marks of one picture and make them points."""
    with as_input_error(ValueError, id, "its points have not all the same number of coordinates"):
        rows = np.asarray(marks)
    if rows.size == 0:
        return np.zeros((0, 2), dtype=np.float32)
    if rows.dtype.kind not in "iuf":
        raise InputError(id, "a coordinate is not a number")
    if rows.ndim != 2 or rows.shape[1] not in (2, 4):
        raise InputError(id, f"points must be rows of (x, y), but their shape is {rows.shape}")
    rows = rows.astype(np.float64)
    if rows.shape[1] == 4:
        share = np.array([0.5, 0.5 if point == "centre" else _HEAD_HEIGHT])
        rows = rows[:, :2] + share * rows[:, 2:]
    with np.errstate(over="ignore"):
        points = rows.astype(np.float32)
    if bad := np.flatnonzero(~np.isfinite(points).all(axis=1)).tolist():
        count = f"{len(bad)} of {len(points)}"
        raise InputError(id, f"{count} points are NaN or infinite, the first is number {bad[0] + 1}")
    return points


def list_problems(problems: Sequence[str]) -> str:
    """Return the problems for an error message, one per line, the first twenty."""
    lines = [f"\n  {problem}" for problem in problems[:_SHOWN_PROBLEMS]]
    if (more := len(problems) - _SHOWN_PROBLEMS) > 0:
        lines.append(f"\n  and {more} more")
    return "".join(lines)
