"""`make demo`: the main job from end to end on drawn crowds.

Draws a source with several latent domains and targets that it does not have, trains the method and plain regression in
the same way, counts the targets, and says how well the domains were found.
"""

import csv
import sys
from pathlib import Path

from rich.table import Table
from sklearn.metrics import adjusted_rand_score

from gbdgc.checkpoint import load_model
from gbdgc.data import load_dataset
from gbdgc.data.synthetic import draw_demo
from gbdgc.errors import InputError
from gbdgc.evaluation import count_dataset, summarise
from gbdgc.models.weights import load_weights
from gbdgc.progress import stderr, stdout, track
from gbdgc.runs import new_run_folder
from gbdgc.training import Run, train

METHODS = {"gbdgc": "gbdgc", "erm": "plain regression"}


def main() -> None:
    """Draw, train, count, compare."""
    folder = new_run_folder("demo", "crowds")
    data = draw_demo(folder / "data")
    runs = {method: train_one(method, data / "source", folder / method) for method in METHODS}
    targets = sorted((data / "targets").iterdir())
    table = Table("counted", "pictures", *(f"{label} MAE / RMSE" for label in METHODS.values()))
    errors = {method: errors_of(run, targets) for method, run in runs.items()}
    for place in errors["gbdgc"]:
        cells = [f"{errors[method][place]['mae']:.1f} / {errors[method][place]['rmse']:.1f}" for method in METHODS]
        table.add_row(place, str(errors["gbdgc"][place]["images"]), *cells)
    stdout.print(table)
    stdout.print(
        f"latent domains found in the source against the drawn truth: ARI {domain_agreement(runs['gbdgc']):.2f}"
    )
    stdout.print("models chosen by the source's validation part; the targets were never looked at before this table")
    stdout.print(f"everything is in {folder}", soft_wrap=True)


def train_one(method: str, source: Path, folder: Path) -> Run:
    """Train the demo's preset with one method, from ImageNet weights where they are to be had."""
    stderr.print(f"training {METHODS[method]}")
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


def errors_of(run: Run, targets: list[Path]) -> dict[str, dict[str, float]]:
    """Return the errors on the source's validation part and on each unseen target."""
    network, info, _ = load_model(run.best)
    errors = {"source, kept aside": info["validation"]}
    for target in track(targets, "counting unseen targets", unit="targets"):
        errors[f"unseen {target.name}"] = summarise(count_dataset(network, load_dataset(target)))
    return errors


def domain_agreement(run: Run) -> float:
    """Return the adjusted Rand index of the last pseudo-domains to the domains that were drawn."""
    newest = max((run.folder / "domains").glob("*.csv"))
    with newest.open(newline="") as file:
        found = {row["id"]: row["domain"] for row in csv.DictReader(file)}
    source = load_dataset(run.folder.parent / "data" / "source")
    return float(adjusted_rand_score([source.by_id(id).tags["domain"] for id in found], list(found.values())))


if __name__ == "__main__":
    main()
