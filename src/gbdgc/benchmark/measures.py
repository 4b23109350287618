"""The measurements of a training: errors on a target, their spread over the last epochs, the domains' separation.

Code that counts is imported where it is used, so that the list of benchmarks can be printed at once.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from gbdgc.benchmark.declaration import Cell, Settings
from gbdgc.benchmark.protocol import LAST_EPOCHS, MAX_SIDE, file_name
from gbdgc.errors import InputError
from gbdgc.runs import Domains, TrainingRun

if TYPE_CHECKING:
    from gbdgc.data import Dataset

_KEPT = ("split", "format", "max_side", "images", "unreadable")


def errors_on_target(run: TrainingRun, source: str, target: str | None, settings: Settings) -> Cell:
    """Return the errors of the chosen model on the target's test set."""
    assert target is not None
    return _count(run, run.best, file_name(target), target, settings)


def errors_by_picture(run: TrainingRun, source: str, target: str | None, settings: Settings) -> Cell:
    """Return the errors of the chosen model on the target, and that of each picture, so that methods can be paired."""
    from gbdgc.evaluation.table import PREDICTIONS, read_table

    assert target is not None
    cell = errors_on_target(run, source, target, settings)
    rows = sorted(read_table(_folder(run, file_name(target), settings) / PREDICTIONS), key=lambda row: row.id)
    return cell | {"errors": [round(row.count - (row.truth or 0), 2) for row in rows]}


def errors_by_epoch(run: TrainingRun, source: str, target: str | None, settings: Settings) -> Cell:
    """Return the errors on the target after each of the last epochs."""
    from gbdgc.evaluation import METRICS

    assert target is not None
    models = run.epoch_models
    if len(models) < LAST_EPOCHS:
        reason = f"keeps {len(models)} of its last {LAST_EPOCHS} epochs"
        raise InputError(run.folder, reason, "delete it, and it is trained again")
    cell: Cell = {"by_epoch": {}}
    for model in models:
        counted = _count(run, model, f"{file_name(target)}-{model.stem}", target, settings)
        cell["by_epoch"][model.stem] = {metric: counted.pop(metric)["value"] for metric in METRICS}
        cell |= counted
    return cell


def separation_of_counts(run: TrainingRun, source: str, target: str | None, settings: Settings) -> Cell:
    """Return how far apart the pseudo-domains' median counts were before the first epoch, and are after the last."""
    pictures = settings.source(source)
    first, *_, last = run.domains
    return {"images": len(last), "before": _separation(first, pictures), "after": _separation(last, pictures)}


def _count(run: TrainingRun, model: Path, name: str, target: str, settings: Settings) -> Cell:
    """Count a target's test set by a model of the run, into a folder of its own that survives an interruption."""
    from gbdgc.evaluation import METRICS, evaluate

    evaluation = evaluate(
        model,
        {target: settings.data[target]},
        max_side=MAX_SIDE.get(target),
        engine=settings.engine,
        out=_folder(run, name, settings),
        resume="auto",
    )
    errors = evaluation.summary["data"][target]
    return {"engine": evaluation.summary["engine"]} | {key: errors[key] for key in (*_KEPT, *METRICS)}


def _folder(run: TrainingRun, name: str, settings: Settings) -> Path:
    return run.folder / "eval" / (name if settings.engine in {None, "torch"} else f"{name}-{settings.engine}")


def _separation(domains: Domains, source: "Dataset") -> dict[str, float]:
    from gbdgc.domains import count_separation

    spread = count_separation(list(domains.values()), [source.by_id(id).count or 0 for id in domains])
    return {"delta_median": spread.delta_median, "sigma_median": spread.sigma_median}
