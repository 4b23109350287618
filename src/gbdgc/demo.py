"""`make demo`: the main job from end to end on drawn crowds.

Draws a source with several latent domains and targets that it does not have, trains the method and plain regression in
the same way and at the same time, counts the targets, says how well the domains were found, and writes the report.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from rich.table import Table
from sklearn.metrics import adjusted_rand_score

from gbdgc.data import load_dataset
from gbdgc.errors import InputError
from gbdgc.evaluation import evaluate, summarise
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
    runs = train_both(data / "source", folder)
    errors = {}
    for method, run in runs.items():
        rows = evaluate(run.best, sorted((data / "targets").iterdir()), out=run.folder / "eval").rows
        unseen = {
            f"unseen {name}": summarise([row for row in rows if row.data == name])
            for name in dict.fromkeys(row.data for row in rows)
        }
        held_out = min((record["validation"] for record in run.metrics), key=lambda each: each["mae"])
        errors[method] = {"source, held out": held_out} | unseen
    columns = [f"{TRAINED[method]}: MAE / RMSE" for method in errors]
    table = Table("counted", *columns, caption="in brackets: MAE as a share of the mean count")
    for place in errors["gbdgc"]:
        found = [own[place] for own in errors.values()]
        table.add_row(place, *(f"{e['mae']:.1f} / {e['rmse']:.1f} ({e['mae'] / e['mean']:.0%})" for e in found))
    stdout.print(table)
    domains, drawn = runs["gbdgc"].domains[-1], load_dataset(data / "source")
    agreement = adjusted_rand_score([drawn.by_id(id).tags["domain"] for id in domains], list(domains.values()))
    stdout.print(f"latent domains found in the source against the drawn truth: ARI {agreement:.2f}")
    stdout.print("models chosen on the held-out part of the source; no target was looked at before this table")
    stdout.print(f"report: {write_report(runs['gbdgc'].folder)}", soft_wrap=True, markup=False)
    stdout.print(f"run: {folder}", soft_wrap=True, markup=False)


def train_both(source: Path, folder: Path) -> dict[str, TrainingRun]:
    """Train the demo's preset with each method, from ImageNet weights where they are to be had.

    Side by side, each on half of the cores.
    """
    overrides = [f"data.source=[{source}]"]
    try:
        load_weights("compact")
    except InputError as error:
        stderr.print(f"no ImageNet weights, so training starts from scratch and counts worse: {error}", soft_wrap=True)
        overrides.append("model.pretrained=false")
    cores = torch.get_num_threads()
    half = max(1, cores // 2)
    torch.set_num_threads(half)
    stderr.print("training gbdgc, and plain regression beside it")
    with training_beside([*overrides, "method.name=erm"], folder / "erm", half) as other:
        run = train("demo", overrides, folder=folder / "gbdgc")
        if not run.finished:
            sys.exit(130)
        if code := other.wait():
            stderr.print(f"plain regression was not trained: {folder / 'erm.log'} says why", soft_wrap=True)
            sys.exit(code)
    torch.set_num_threads(cores)
    return {"gbdgc": run, "erm": TrainingRun(folder / "erm")}


@contextmanager
def training_beside(overrides: list[str], folder: Path, threads: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run `gbdgc train demo` as another process, with its output in a file, for as long as this one wants it."""
    command = [sys.executable, "-m", "gbdgc", "train", "demo", *overrides, "--out", str(folder)]
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    with folder.with_suffix(".log").open("wb") as log:
        # In the same session and group: Ctrl-C, a closed terminal or `timeout` ends both, however this one ends.
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
