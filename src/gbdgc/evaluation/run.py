"""`evaluate`: count data sets with a model into a run folder; resumable after any interruption."""

import json
import os
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gbdgc.checkpoint import model_file
from gbdgc.counting import Counter
from gbdgc.data import Dataset, load_dataset, named
from gbdgc.errors import InputError, UsageError, as_input_error
from gbdgc.evaluation.calibration import coverage
from gbdgc.evaluation.counting import WHOLE, Unreadable, count_rows
from gbdgc.evaluation.intervals import DRAWS
from gbdgc.evaluation.localisation import localisation, share_near_heads
from gbdgc.evaluation.metrics import Summary, compare, doubt, full_summary
from gbdgc.evaluation.table import PREDICTIONS, Row, cells, read_table, table_columns, tag_names
from gbdgc.files import AnyPath, file_digest, write_json
from gbdgc.progress import track
from gbdgc.runs import Journal, Resume, RunFolder, read_json

SELECTION = {"validation": "source validation", "last": "last epoch", "none": "nobody (one of the last epochs)"}
"""The selection rules of a model, in words."""


@dataclass(frozen=True)
class Evaluation:
    """The evaluation of a model on some data sets."""

    folder: Path
    rows: list[Row]
    """One per picture; everything else comes from these."""
    unreadable: list[Unreadable]
    summary: Summary
    """The content of summary.json: errors with intervals for each data set, and how they were computed."""


def evaluate(
    weights: AnyPath | Counter,
    data: Sequence[AnyPath] | Mapping[str, AnyPath],
    *,
    split: str | None = None,
    format: str = "auto",
    max_side: int | None = None,
    tile: int = WHOLE,
    engine: str | None = None,
    against: AnyPath | None = None,
    out: AnyPath | None = None,
    resume: Resume = False,
) -> Evaluation:
    """Count labelled data sets and measure the errors.

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
    resume : continue the run in ``out``, or the newest one of this model: what is counted is not counted again. "auto"
        starts one where there is none.
    """
    if max_side is not None and max_side < 1:
        raise InputError(f"max_side={max_side}", "a side has at least one pixel", "leave it out to count at full size")
    counter = copy(weights) if isinstance(weights, Counter) else Counter.load(weights, engine=engine, tile=tile)
    if max_side is not None:
        counter.max_side = max_side
    if isinstance(data, str | os.PathLike):
        data = [data]
    paths = dict(data) if isinstance(data, Mapping) else named(data)
    datasets = {name: _load(path, format, split) for name, path in paths.items()}
    others = None if against is None else read_table(against)
    file = None if isinstance(weights, Counter) else model_file(weights)
    settings: dict[str, Any] = {
        "weights": {
            "path": None if file is None else os.fspath(file),
            "sha256": None if file is None else file_digest(file),
            "info": counter.info,
        },
        "data": {name: os.fspath(Path(path).resolve()) for name, path in paths.items()},
        "max_side": counter.max_side,
        "tile": counter.tile,
        "engine": counter.engine.name,
        "splits": {name: chosen for name, (_, chosen) in datasets.items()},
    }
    with RunFolder.open(
        "eval",
        str(counter.info.get("name", "model")),
        settings,
        out,
        resume,
        products=[PREDICTIONS],
        changed=partial(_changed, settings=settings),
    ) as run:
        folder = run.path
        rows, unreadable = _count_all(counter, {name: dataset for name, (dataset, _) in datasets.items()}, folder)
    by_dataset: dict[str, Summary] = {}
    for name, (dataset, chosen) in datasets.items():
        own = [row for row in rows if row.data == name]
        by_dataset[name] = {
            "path": settings["data"][name],
            "format": dataset.format,
            "split": chosen,
            "max_side": counter.max_side,
            "unreadable": sum(each.data == name for each in unreadable),
            **full_summary(own),
            "localisation": localisation(own),
            "near_heads": share_near_heads(own),
            "coverage": coverage(own),
            "doubt": doubt(own),
        }
        if others is not None:
            by_dataset[name]["against"] = compare(own, others)
    summary: Summary = {
        "weights": settings["weights"],
        "selection": SELECTION.get(str(counter.info.get("selection")), "unknown"),
        "intervals": f"95 %, percentile bootstrap over pictures, {DRAWS} resamples, seed 0",
        **{name: settings[name] for name in ("max_side", "tile", "engine")},
        "data": by_dataset,
    }
    write_json(folder / "summary.json", summary)
    return Evaluation(folder, rows, unreadable, summary)


def _load(path: AnyPath, format: str, split: str | None) -> tuple[Dataset, str]:
    """Return what is to be counted and the split's name: test, or val where the labels of test are not public."""
    dataset = load_dataset(path, format, skip_bad=True)
    labelled, there = dataset.labelled.split_sizes(), dataset.split_sizes()
    chosen = split or next((name for name in ("test", "val") if name in labelled), None)
    chosen = chosen or ("all" if set(labelled) == {None} else None)
    if chosen == "all":
        return dataset, chosen
    if chosen is None or chosen not in there:
        names, advice = ", ".join(name or "no split" for name in there), 'choose one as split, or "all"'
        if chosen is None:
            raise InputError(path, f"no labelled test or val part to count; there are: {names}", advice)
        raise UsageError(path, f"no part {chosen!r}; there are: {names}", advice)
    return dataset.where(chosen), chosen


def _changed(file: Path, settings: dict[str, Any]) -> list[str]:
    """Name the settings that differ from those in a file; a model may have moved, and is identified by its hash."""
    before, now = read_json(file), json.loads(json.dumps(settings))
    foreign = (KeyError, AttributeError, TypeError)
    with as_input_error(foreign, file, "not the settings of such a run", "choose another folder"):
        for each in (before, now):
            each["weights"].pop("path", None)
    return [key for key in now if before.get(key) != now[key]]


def _count_all(counter: Counter, datasets: Mapping[str, Dataset], folder: Path) -> tuple[list[Row], list[Unreadable]]:
    """Count the pictures that are not in the table yet, and list those that cannot be counted."""
    path = folder / PREDICTIONS
    table = Journal(path, table_columns(tag_names(sample.tags for dataset in datasets.values() for sample in dataset)))
    rows = read_table(path) if path.exists() else []
    table.replace(map(cells, rows))  # without half a row from an interrupted run
    done = {row.key for row in rows}
    unreadable = []
    for name, dataset in datasets.items():
        unreadable += [Unreadable(name, "", problem) for problem in dataset.problems]
        left = [sample for sample in dataset if (name, sample.id) not in done]
        for outcome in track(count_rows(counter, left, name), f"counting {name}", total=len(left)):
            if isinstance(outcome, Unreadable):
                unreadable.append(outcome)
            else:
                rows.append(outcome)
                table.append(cells(outcome))
    Journal(folder / "unreadable.csv", Unreadable._fields).replace(each._asdict() for each in unreadable)
    return rows, unreadable
