"""`make demo`: the main job from end to end on drawn crowds.

Draws a source with several latent domains and targets that it does not have, trains the method and plain regression in
the same way, counts the targets, says how well the domains were found, and writes the report.
"""

import sys
from pathlib import Path

from rich.table import Table
from sklearn.metrics import adjusted_rand_score

from gbdgc.data import load_dataset
from gbdgc.errors import InputError
from gbdgc.evaluation import evaluate
from gbdgc.memory import keep_freed_memory
from gbdgc.models.weights import load_weights
from gbdgc.progress import stderr, stdout
from gbdgc.report import write_report
from gbdgc.runs import TrainingRun, new_run_folder
from gbdgc.synthetic import draw_demo
from gbdgc.training import train

TRAINED = {"gbdgc": "gbdgc", "erm": "plain regression"}
TRAIN, TEST = 60, 12
"""Pictures of the source, and of each unseen target."""


def main() -> None:
    """Draw, train, count, compare."""
    keep_freed_memory()
    folder = new_run_folder("demo", "crowds")
    data = draw_demo(folder / "data", train=TRAIN, test=TEST)
    runs = {method: train_one(method, data / "source", folder / method) for method in TRAINED}
    errors = {}
    for method, run in runs.items():
        done = evaluate(run.best, sorted((data / "targets").iterdir()), out=run.folder / "eval").summary["data"]
        held_out = min((record["validation"] for record in run.metrics), key=lambda found: found["mae"])
        unseen = {
            f"unseen {name}": {key: found[key]["value"] for key in ("mae", "rmse")} for name, found in done.items()
        }
        errors[method] = {"source, held out": held_out} | unseen
    table = Table("counted", *(f"{TRAINED[method]}: MAE / RMSE" for method in errors))
    for place in errors["gbdgc"]:
        table.add_row(place, *(f"{own[place]['mae']:.1f} / {own[place]['rmse']:.1f}" for own in errors.values()))
    stdout.print(table)
    found, drawn = runs["gbdgc"].domains[-1], load_dataset(data / "source")
    agreement = adjusted_rand_score([drawn.by_id(id).tags["domain"] for id in found], list(found.values()))
    stdout.print(f"latent domains found in the source against the drawn truth: ARI {agreement:.2f}")
    stdout.print("models chosen on the held-out part of the source; no target was looked at before this table")
    stdout.print(f"report: {write_report(runs['gbdgc'].folder)}", soft_wrap=True, markup=False)
    stdout.print(f"run: {folder}", soft_wrap=True, markup=False)


def train_one(method: str, source: Path, folder: Path) -> TrainingRun:
    """Train the demo's preset with one method, from ImageNet weights where they are to be had."""
    stderr.print(f"training {TRAINED[method]}")
    overrides = [f"data.source=[{source}]", f"method.name={method}"]
    try:
        load_weights("compact")
    except InputError as error:
        stderr.print(f"no ImageNet weights, so training starts from scratch and counts worse: {error}", soft_wrap=True)
        overrides.append("model.pretrained=false")
    run = train("demo", overrides, folder=folder)
    if not run.finished:
        sys.exit(130)
    return run


if __name__ == "__main__":
    main()
