"""Running a benchmark: finished cells are skipped, interrupted ones resumed.

A cell is a source, a target, a variant and a seed; its result is one small JSON file that can be committed. The run
behind it is in a folder named after what was trained, so that cells of all targets, and of other benchmarks, share it.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from gbdgc import __version__
from gbdgc.benchmark.declaration import Cell, Job, Settings
from gbdgc.benchmark.layout import Table, check_one_setting_per_cell
from gbdgc.benchmark.protocol import file_name
from gbdgc.benchmark.tables import find_benchmark
from gbdgc.errors import InputError, UsageError, as_input_error
from gbdgc.files import AnyPath, write_json
from gbdgc.progress import stderr
from gbdgc.runs import TrainingRun

if TYPE_CHECKING:
    from gbdgc.config import Config

_KEYS = {"source", "target", "variant", "seed", "settings"}
_OF_THE_CELL = ("name", "data.source", "train.seed")  # settings that a cell has under names of its own


class Interrupted(Exception):
    """A signal stopped a training, which was saved; the benchmark continues from there when restarted."""


class Task(NamedTuple):
    """A cell that is to be run."""

    benchmark: str
    job: Job
    target: str | None
    seed: int
    settings: Settings

    @property
    def config(self) -> "Config":
        """The settings of its training."""
        return self.settings.config_of(self.job, self.seed)

    @property
    def path(self) -> Path:
        """The file of its result."""
        parts = (self.job.source, self.target or "itself", self.job.variant)
        name = f"{'-'.join(map(file_name, parts))}-seed{self.seed}.json"
        return cells_folder(self.settings.out, self.benchmark) / name

    @property
    def run_folder(self) -> Path:
        """The folder of its training; cells that share one cannot run side by side."""
        trained = json.dumps(_settings(self.config), sort_keys=True)
        fingerprint = hashlib.sha256(trained.encode()).hexdigest()[:12]
        return Path(self.settings.runs) / f"{file_name(self.job.source)}-seed{self.seed}-{fingerprint}"

    def __str__(self) -> str:
        where = f" → {self.target}" if self.target else ""
        return f"{self.job.source}{where}, {self.job.variant}, seed {self.seed}"


def plan_benchmark(name: str, settings: Settings) -> list[Task]:
    """Return all cells of a benchmark, done or not."""
    benchmark = find_benchmark(name)
    jobs = benchmark.jobs(list(settings.data), lambda source: len(settings.source(source)))
    jobs = _only(settings.sources, "source", jobs, name)
    jobs = _only(settings.variants, "variant", jobs, name)
    if (epochs := settings.config_of(jobs[0], 0).train.epochs) < benchmark.least_epochs:
        reason = f"looks at the last {benchmark.least_epochs} epochs, and there are {epochs}"
        raise InputError(name, reason, "train for more")
    return [
        Task(name, job, target, seed, settings)
        for seed in settings.seeds
        for job in jobs
        for target in job.targets or (None,)
    ]


def run_benchmark(name: str, settings: Settings) -> list[Cell]:
    """Run the cells that are missing and return all of them."""
    tasks = plan_benchmark(name, settings)
    done = []
    for number, task in enumerate(tasks, start=1):
        cell = finished_cell(task)
        if cell is None:
            stderr.print(f"cell {number} of {len(tasks)}: {task}")
            cell = run_cell(task)
        done.append(cell)
    return done


def run_cell(task: Task) -> Cell:
    """Train or resume the model that a cell needs, measure it and write the result."""
    from gbdgc.evaluation.run import SELECTION
    from gbdgc.training import train

    run = TrainingRun(task.run_folder)
    if not run.finished:
        run = train(task.config, folder=task.run_folder, resume="auto")
    if not run.finished:
        raise Interrupted(task.run_folder)
    config = task.config  # anew, as a training settles in its own what is left to the machine
    cell: Cell = {
        "benchmark": task.benchmark,
        "source": task.job.source,
        "target": task.target,
        "variant": task.job.variant,
        "seed": config.train.seed,
        "config": Path(task.settings.config).name,
        "backbone": config.model.backbone,
        "epochs": config.train.epochs,
        "selection": SELECTION[config.train.selection],
        "gbdgc": __version__,
        "commit": run.environment["commit"],
        "settings": _settings(config),
    }
    cell |= find_benchmark(task.benchmark).measure(run, task.job.source, task.target, task.settings)
    write_json(task.path, cell)
    return cell


def build_tables(name: str, cells: Sequence[Cell]) -> list[Table]:
    """Return the tables of a benchmark for the data sets that the cells are about."""
    benchmark = find_benchmark(name)
    check_one_setting_per_cell(cells)
    return benchmark.layout(benchmark, cells)


def _only(wanted: Sequence[str], what: Literal["source", "variant"], jobs: list[Job], name: str) -> list[Job]:
    there = dict.fromkeys(getattr(job, what) for job in jobs)
    if unknown := set(wanted) - there.keys():
        raise UsageError(name, f"no {what} {', '.join(sorted(unknown))}", f"there are: {'; '.join(there)}")
    return [job for job in jobs if not wanted or getattr(job, what) in wanted]


def read_cells(out: AnyPath, benchmark: str) -> list[Cell]:
    """Read the finished cells."""
    folder = cells_folder(out, benchmark)
    cells = [_read_cell(path) for path in sorted(folder.glob("*.json"))]
    if not cells:
        raise InputError(folder, "no results yet", "run the benchmark first")
    return cells


def _read_cell(path: Path) -> Cell:
    damaged = (ValueError, RecursionError)
    with as_input_error(damaged, path, "not a result ({error})", "delete it and run the benchmark again"):
        cell: Cell = json.loads(path.read_text(encoding="utf-8"))
        if not (isinstance(cell, dict) and cell.keys() >= _KEYS and isinstance(cell["settings"], dict)):
            raise ValueError(f"it lacks one of {', '.join(sorted(_KEYS))}")
        return cell


def cells_folder(out: AnyPath, benchmark: str) -> Path:
    """Return the folder of a benchmark's results."""
    return Path(out) / benchmark / "cells"


def finished_cell(task: Task) -> Cell | None:
    """Return the result of a cell, None where it has not been run; one made with other settings is an error."""
    from gbdgc.config import differences

    path, config, engine = task.path, task.config, task.settings.engine
    if not path.exists():
        return None
    cell = _read_cell(path)
    changed = differences(cell["settings"], _settings(config))
    if engine is not None and cell.get("engine", engine) != engine:
        changed.append(f"engine: {cell['engine']} then, {engine} now")
    if changed:
        advice = "one table is for one setting: choose another folder of results, or delete it"
        raise InputError(path, f"made with other settings ({', '.join(changed)})", advice)
    return cell


def _settings(config: "Config") -> dict[str, Any]:
    """Return the training settings except source, seed and paths."""
    from gbdgc.config import settings_that_matter

    return {key: value for key, value in settings_that_matter(config).items() if key not in _OF_THE_CELL}
