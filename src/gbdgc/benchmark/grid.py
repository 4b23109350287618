"""Running a benchmark: cells that are skipped when they are done and taken up again when they were broken off.

A cell is a source, a target, a variant and a seed; its result is one small JSON file, fit to be committed. The training
behind it lies in a folder named by what was trained, so that cells of all targets, and of other benchmarks, share it.
"""

import csv
import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gbdgc import __version__, checkpoint
from gbdgc.benchmark.plan import LAST_EPOCHS, MAX_SIDE, Job, plan, protocol
from gbdgc.config import Config, differences, load_config, settings_that_matter
from gbdgc.data import Dataset
from gbdgc.domains import count_separation
from gbdgc.errors import InputError, UsageError
from gbdgc.evaluation import METRICS, PREDICTIONS, evaluate
from gbdgc.evaluation.run import SELECTION
from gbdgc.files import atomic_write
from gbdgc.progress import stderr
from gbdgc.training import Run, train
from gbdgc.training.state import load_training_part

Cell = dict[str, Any]

_OF_THE_CELL = ("name", "data.source", "train.seed")
"""Settings that a cell has under names of its own."""


class Interrupted(Exception):
    """A signal ended a training, saved; the benchmark goes on from there when it is started again."""


@dataclass(frozen=True)
class Settings:
    """How the cells are made."""

    data: Mapping[str, str | os.PathLike[str]]
    """Where each data set lies, by its name in the tables."""
    config: str | os.PathLike[str] = "compact_sha"
    """A preset or a YAML file; source, seed and variant are set for each cell."""
    overrides: Sequence[str] = ()
    sources: Sequence[str] = ()
    """The sources to train on; empty: all that the data sets allow."""
    variants: Sequence[str] = ()
    """The rows to fill; empty: all that the table has."""
    seeds: Sequence[int] = (0,)
    epochs: int | None = None
    engine: str | None = None
    """What counts the targets; None: torch."""
    out: str | os.PathLike[str] = "results"
    """The folder of the small files: ``<out>/<benchmark>/cells/*.json`` and the tables."""
    runs: str | os.PathLike[str] = "runs/benchmark"
    """The folder of the large ones: training runs with their checkpoints and predictions."""

    def config_of(self, job: Job, seed: int) -> Config:
        """Return what to train for a job."""
        # What a variant is about comes last, so that nothing can quietly undo it.
        own = ["data.source=[]", *protocol(job.source), *self.overrides, *job.overrides, f"train.seed={seed}"]
        own += [f"train.epochs={self.epochs}"] * (self.epochs is not None) + [f"train.keep_epochs={LAST_EPOCHS}"]
        config = load_config(self.config, own)
        config.name = _slug(job.source)
        config.data.source = [os.fspath(Path(self.data[part]).resolve()) for part in job.source.split("+")]
        return config

    def source(self, name: str) -> Dataset:
        """Return the pictures of a single source to train on."""
        return load_training_part(self.data[name], load_config(self.config, ["data.source=[]", *self.overrides]).data)


def run_benchmark(benchmark: str, settings: Settings) -> list[Cell]:
    """Run the cells that are missing and return all of them."""
    jobs = plan(benchmark, list(settings.data), lambda source: len(settings.source(source)))
    jobs = _only(settings.sources, "source", jobs, benchmark)
    jobs = _only(settings.variants, "variant", jobs, benchmark)
    if benchmark == "steadiness" and (epochs := settings.config_of(jobs[0], 0).train.epochs) < LAST_EPOCHS:
        raise InputError(f"steadiness: looks at the last {LAST_EPOCHS} epochs, and there are {epochs}; train for more")
    cells = [(job, target, seed) for seed in settings.seeds for job in jobs for target in job.targets or (None,)]
    done = []
    for number, (job, target, seed) in enumerate(cells, start=1):
        config = settings.config_of(job, seed)
        path = cells_folder(settings.out, benchmark) / f"{_slug(job.source)}-{_slug(target or 'itself')}"
        path = path.with_name(f"{path.name}-{_slug(job.variant)}-seed{seed}.json")
        cell = _finished_cell(path, config, settings.engine)
        if cell is None:
            where = f" → {target}" if target else ""
            stderr.print(f"cell {number} of {len(cells)}: {job.source}{where}, {job.variant}, seed {seed}")
            run = _trained(config, Path(settings.runs) / f"{_slug(job.source)}-seed{seed}-{_fingerprint(config)}")
            if target is None:
                measured = _separation(run, settings.source(job.source))
            elif benchmark == "steadiness":
                measured = _steadiness(run, target, settings)
            else:
                measured = _count_target(run, run.best, _slug(target), target, settings)
            cell = _describe(benchmark, job, target, config, settings, run) | measured
            with atomic_write(path, "w") as file:
                json.dump(cell, file, indent=2)
        done.append(cell)
    return done


def _only(wanted: Sequence[str], what: Literal["source", "variant"], jobs: list[Job], benchmark: str) -> list[Job]:
    there = dict.fromkeys(getattr(job, what) for job in jobs)
    if unknown := set(wanted) - there.keys():
        raise UsageError(f"{benchmark}: no {what} {', '.join(sorted(unknown))}; there are: {'; '.join(there)}")
    return [job for job in jobs if not wanted or getattr(job, what) in wanted]


def read_cells(out: str | os.PathLike[str], benchmark: str) -> list[Cell]:
    """Return the cells that are done, as their files have them."""
    folder = cells_folder(out, benchmark)
    cells = []
    for path in sorted(folder.glob("*.json")):
        try:
            cells.append(json.loads(path.read_text(encoding="utf-8")))
        except ValueError as error:
            raise InputError(f"{path}: not a result ({error}); delete it and run the benchmark again") from error
    if not cells:
        raise InputError(f"{folder}: no results yet; run the benchmark without --tables-only first")
    return cells


def cells_folder(out: str | os.PathLike[str], benchmark: str) -> Path:
    """Return where a benchmark's results lie."""
    return Path(out) / benchmark / "cells"


def _finished_cell(path: Path, config: Config, engine: str | None) -> Cell | None:
    if not path.exists():
        return None
    cell: Cell = json.loads(path.read_text(encoding="utf-8"))
    changed = differences(cell["settings"], _settings(config))
    if engine is not None and cell.get("engine", engine) != engine:
        changed.append(f"engine: {cell['engine']} then, {engine} now")
    if changed:
        raise InputError(
            f"{path}: made with other settings ({', '.join(changed)}); one table is for one setting: "
            "choose another --out, or delete it"
        )
    return cell


def _trained(config: Config, folder: Path) -> Run:
    """Train, go on with a training that was broken off, or return the one that is done."""
    finished = folder / "finished"
    if finished.exists():
        return Run(folder, finished=True)
    run = train(config, folder=folder, resume=(folder / "config.yaml").exists())
    if not run.finished:
        raise Interrupted(folder)
    finished.touch()
    return run


def _count_target(run: Run, model: Path, name: str, target: str, settings: Settings) -> Cell:
    """Count a target's test part by a model of the run, into a folder of its own that survives an interruption."""
    folder = run.folder / "eval" / (name if settings.engine in {None, "torch"} else f"{name}-{settings.engine}")
    evaluation = evaluate(
        model,
        {target: settings.data[target]},
        max_side=MAX_SIDE.get(target),
        engine=settings.engine,
        out=folder,
        resume=(folder / PREDICTIONS).exists(),
    )
    errors = evaluation.summary["data"][target]
    kept = {key: errors[key] for key in ("split", "format", "max_side", "images", "unreadable", *METRICS)}
    return {"engine": evaluation.summary["engine"]} | kept


def _steadiness(run: Run, target: str, settings: Settings) -> Cell:
    """Return the target's error after each of the last epochs."""
    models = sorted((run.folder / "checkpoints").glob(checkpoint.EPOCHS))
    if len(models) < LAST_EPOCHS:
        raise InputError(
            f"{run.folder}: keeps {len(models)} of its last {LAST_EPOCHS} epochs; delete it, and it is trained again"
        )
    cell: Cell = {"by_epoch": {}}
    for model in models:
        counted = _count_target(run, model, f"{_slug(target)}-{model.stem}", target, settings)
        cell["by_epoch"][model.stem] = {metric: counted.pop(metric)["value"] for metric in METRICS}
        cell |= counted
    return cell


def _separation(run: Run, source: Dataset) -> Cell:
    """Return how far apart the pseudo-domains' median counts were before the first epoch, and are after the last."""
    first, *_, last = sorted((run.folder / "domains").glob("epoch_*.csv"))
    return {"images": len(_labels(last)), "before": _spread(first, source), "after": _spread(last, source)}


def _spread(path: Path, source: Dataset) -> dict[str, float]:
    labels = _labels(path)
    spread = count_separation(list(labels.values()), [source.by_id(id).count or 0 for id in labels])
    return {"delta_median": spread.delta_median, "sigma_median": spread.sigma_median}


def _labels(path: Path) -> dict[str, int]:
    with path.open(newline="", encoding="utf-8", errors="surrogateescape") as file:
        return {line["id"]: int(line["domain"]) for line in csv.DictReader(file)}


def _describe(benchmark: str, job: Job, target: str | None, config: Config, settings: Settings, run: Run) -> Cell:
    """Return what a reader of the result needs to know of how it was made."""
    trained_by = json.loads((run.folder / "environment.json").read_text(encoding="utf-8"))
    return {
        "benchmark": benchmark,
        "source": job.source,
        "target": target,
        "variant": job.variant,
        "seed": config.train.seed,
        "config": Path(settings.config).name,
        "backbone": config.model.backbone,
        "epochs": config.train.epochs,
        "selection": SELECTION[config.train.selection],
        "gbdgc": __version__,
        "commit": trained_by["commit"],
        "settings": _settings(config),
    }


def _settings(config: Config) -> dict[str, Any]:
    """Return how something was trained, whatever its source and seed and wherever the data lies."""
    return {key: value for key, value in settings_that_matter(config).items() if key not in _OF_THE_CELL}


def _fingerprint(config: Config) -> str:
    return hashlib.sha256(json.dumps(_settings(config), sort_keys=True).encode()).hexdigest()[:12]


def _slug(name: str) -> str:
    """Return a name fit for a file."""
    return re.sub(r"[^\w.=+-]+", "_", name)
