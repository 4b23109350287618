"""`evaluate`: count data sets by a model into a run folder, through whatever may interrupt it."""

import csv
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gbdgc.checkpoint import model_file
from gbdgc.counting import Counter
from gbdgc.data import Dataset, load_dataset, unique_name
from gbdgc.errors import InputError, UsageError
from gbdgc.evaluation.counting import WHOLE, Unreadable, count_rows
from gbdgc.evaluation.intervals import DRAWS
from gbdgc.evaluation.metrics import Summary, compare, full_summary
from gbdgc.evaluation.table import PREDICTIONS, Row, TableWriter, read_table, tag_names
from gbdgc.files import atomic_write, make_folder
from gbdgc.progress import track
from gbdgc.runs import claim, new_run_folder, newest_run_folder, write_environment

SELECTION = {
    "validation": "source validation",
    "last": "last epoch",
    "none": "nobody (one of the last epochs)",
}
"""The rules by which a model may have been chosen, in words."""

Place = str | os.PathLike[str]


@dataclass(frozen=True)
class Evaluation:
    """What a model makes of some data sets."""

    folder: Path
    rows: list[Row]
    """One a picture; everything else comes from these."""
    unreadable: list[Unreadable]
    summary: Summary
    """What summary.json holds: errors with intervals for each data set, and how they were made."""


def evaluate(
    weights: Place | Counter,
    data: Sequence[Place] | Mapping[str, Place],
    *,
    split: str | None = None,
    format: str = "auto",
    max_side: int | None = None,
    tile: int = WHOLE,
    engine: str | None = None,
    against: Place | None = None,
    out: Place | None = None,
    resume: bool = False,
    seed: int = 0,
) -> Evaluation:
    """Count labelled data sets and say how far off the counts are.

    Parameters
    ----------
    weights : a run's folder, a model file, or a `Counter`.
    data : data sets, named by the last part of their path; or a mapping from names to paths.
    split : the split to count, "all" for everything. By default test, or val where the labels of test are not public,
        or everything where there are no splits.
    format : a name in `gbdgc.data.READERS`.
    max_side : pictures with a longer side are made smaller first; by default as in the model's training.
    tile : pictures with a longer side are counted in overlapping windows of this side.
    engine : what runs the model, as in `Counter.load`; a `Counter` has its own.
    against : the predictions of another run, or its folder, to compare with picture by picture.
    out : the run's folder; by default the next free ``runs/eval/<name>-<n>``.
    resume : go on with the run in ``out``, or with the newest one of this model: what is counted is not counted again.
    seed : of the intervals.
    """
    if max_side is not None and max_side < 1:
        raise InputError(f"max_side={max_side}: a side has at least one pixel; leave it out to count at full size")
    counter = copy(weights) if isinstance(weights, Counter) else Counter.load(weights, engine=engine, tile=tile)
    if max_side is not None:
        counter.max_side = max_side
    places = _named(data)
    datasets = {name: _load(place, format, split) for name, place in places.items()}
    others = None if against is None else read_table(against)
    settings: dict[str, Any] = {
        "weights": _identify(weights, counter),
        "data": {name: os.fspath(Path(place).resolve()) for name, place in places.items()},
        "max_side": counter.max_side,
        "tile": counter.tile,
        "engine": counter.engine.name,
        "splits": {name: chosen for name, (_, chosen) in datasets.items()},
    }
    folder = _open_folder(str(counter.info.get("name", "model")), out, resume, settings)
    with claim(folder):
        rows, unreadable = _count_all(counter, {name: dataset for name, (dataset, _) in datasets.items()}, folder)
    summary: Summary = {
        "weights": settings["weights"],
        "selection": SELECTION.get(str(counter.info.get("selection")), "unknown"),
        "intervals": f"95 %, percentile bootstrap over pictures, {DRAWS} resamples, seed {seed}",
        "max_side": counter.max_side,
        "tile": counter.tile,
        "engine": counter.engine.name,
        "data": {},
    }
    for name, (dataset, chosen) in datasets.items():
        own = [row for row in rows if row.data == name]
        summary["data"][name] = {
            "path": settings["data"][name],
            "format": dataset.format,
            "split": chosen,
            "max_side": counter.max_side,
            "unreadable": sum(each.data == name for each in unreadable),
            **full_summary(own, seed=seed),
        }
        if others is not None:
            summary["data"][name]["against"] = compare(own, others, seed=seed)
    with atomic_write(folder / "summary.json", "w") as file:
        json.dump(summary, file, indent=2)
    return Evaluation(folder, rows, unreadable, summary)


def _named(data: Sequence[Place] | Mapping[str, Place]) -> dict[str, Place]:
    if isinstance(data, Mapping):
        return dict(data)
    if isinstance(data, str | os.PathLike):
        data = [data]
    named: dict[str, Place] = {}
    for place in data:
        named[unique_name(place, named)] = place
    return named


def _load(place: Place, format: str, split: str | None) -> tuple[Dataset, str]:
    """Return what is to be counted, with the problems of its own split only, and the split's name."""
    dataset = load_dataset(place, format, skip_bad=True)
    chosen = split or _usual_split(dataset)
    if chosen == "all":
        return dataset, chosen
    if chosen not in (there := dataset.split_sizes()):
        names = ", ".join(name or "no split" for name in there)
        raise UsageError(f"{place}: no part {chosen!r}; there are: {names}. Choose one by --split, or all of it")
    if dataset.problems:
        return load_dataset(place, format, skip_bad=True, split=chosen), chosen
    return dataset.where(chosen), chosen


def _usual_split(dataset: Dataset) -> str:
    """Choose the test part, or the validation part where the labels of the test part are not public."""
    labelled = dataset.labelled.split_sizes()
    for name in ("test", "val"):
        if name in labelled:
            return name
    if set(labelled) == {None}:
        return "all"
    there = ", ".join(name or "no split" for name in dataset.split_sizes())
    raise InputError(
        f"no labelled test or val part to count; there are: {there}. Name one with --split, or --split all"
    )


def _identify(weights: Place | Counter, counter: Counter) -> dict[str, Any]:
    """Say which model it was, so that nobody need guess."""
    if isinstance(weights, Counter):
        return {"path": None, "sha256": None, "info": counter.info}
    path = model_file(weights)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"path": os.fspath(path), "sha256": digest, "info": counter.info}


def _open_folder(name: str, out: Place | None, resume: bool, settings: dict[str, Any]) -> Path:
    """Return the folder of this run, with what it counts and by what written in it."""
    if resume:
        found = Path(out) if out else newest_run_folder("eval", name, marker=PREDICTIONS)
        if found is None or not all((found / file).exists() for file in (PREDICTIONS, "settings.json")):
            raise InputError(f"{found or 'runs/eval/' + name}: nothing to resume; start it without --resume")
        before = json.loads((found / "settings.json").read_text())
        now = json.loads(json.dumps(settings))
        for each in (before, now):
            del each["weights"]["path"]  # a run's folder may have moved; its model is known by its hash
        if changed := [key for key in now if before.get(key) != now[key]]:
            raise InputError(
                f"{found}: was started with another {', '.join(changed)}; resume with the same, or start a new run"
            )
        return found
    folder = Path(out) if out else new_run_folder("eval", name)
    if (folder / PREDICTIONS).exists():
        raise InputError(f"{folder}: holds predictions already; go on with them by --resume, or choose another folder")
    make_folder(folder)
    with atomic_write(folder / "settings.json", "w") as file:
        json.dump(settings, file, indent=2)
    write_environment(folder)
    return folder


def _count_all(counter: Counter, datasets: Mapping[str, Dataset], folder: Path) -> tuple[list[Row], list[Unreadable]]:
    """Count what the table does not have yet, and list what cannot be counted."""
    tags = tag_names(sample.tags for dataset in datasets.values() for sample in dataset)
    with _table(folder / PREDICTIONS, tags) as (rows, writer):
        done = {(row.data, row.id) for row in rows}
        unreadable = []
        for name, dataset in datasets.items():
            unreadable += [Unreadable(name, "", problem) for problem in dataset.problems]
            left = [sample for sample in dataset if (name, sample.id) not in done]
            for outcome in track(count_rows(counter, left, name), f"counting {name}", total=len(left)):
                if isinstance(outcome, Unreadable):
                    unreadable.append(outcome)
                else:
                    rows.append(outcome)
                    writer.row(outcome)
    with atomic_write(folder / "unreadable.csv", "w") as file:
        listing = csv.writer(file, lineterminator="\n")
        listing.writerow(Unreadable._fields)
        listing.writerows(unreadable)
    return rows, unreadable


@contextmanager
def _table(path: Path, tags: Sequence[str]) -> Iterator[tuple[list[Row], TableWriter]]:
    """Open the table to append to, with the rows that it has; half a line from an interrupted run is cut off first."""
    rows = read_table(path) if path.exists() and path.stat().st_size else []
    with atomic_write(path, "w") as file:
        writer = TableWriter(file, tags)
        writer.header()
        for row in rows:
            writer.row(row)
    with path.open("a", encoding="utf-8", errors="surrogateescape", newline="") as file:
        yield rows, TableWriter(file, tags)
