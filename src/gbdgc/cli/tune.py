"""`gbdgc tune`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from gbdgc.cli.evaluate import HEADINGS, estimate_cells, table_of_numbers
from gbdgc.cli.options import ReadAs
from gbdgc.memory import keep_freed_memory
from gbdgc.progress import stdout


def tune(
    data: Path,
    /,
    *,
    start: str = "default",
    split: str = "train",
    read_as: ReadAs = "auto",
    steps: Annotated[int, Parameter(validator=Number(gte=1))] = 120,
    seed: int = 0,
    out: Path | None = None,
) -> None:
    """Adapt a model to your own camera with a few labelled pictures, if that makes it better.

    Parameters
    ----------
    data
        5 or more labelled pictures, better 20: a folder or a label file.
    start
        The model to start from: a name from `gbdgc models`, a run's folder or a model file.
    split
        The split to fit to, "all" for everything; data without splits is used whole.
    steps
        Training steps of each variant that is compared.
    seed
        Seed of the cross-validation folds and of training.
    out
        The run's folder.
    """
    from gbdgc.training import tune as run_tuning
    from gbdgc.training.tuning import START

    keep_freed_memory()
    done = run_tuning(data, start, format=read_as, split=split, steps=steps, seed=seed, out=out)
    summary = done.summary
    title = f"{summary['pictures']} pictures, each counted by a model that was not fitted to it"
    table = table_of_numbers(title, "fitted", *HEADINGS.values())
    for way, errors in summary["errors"].items():
        mark = "[bold]" if way == summary["chosen"] else ""
        table.add_row(f"{mark}{way}", *estimate_cells(errors))
    stdout.print(table)
    before, after = (summary["errors"][way]["mae"]["value"] for way in (START, done.chosen))
    if done.model is None:
        stdout.print(f"nothing is surely better than {start} as it is: keep it; no model was written", markup=False)
        next_step = "more labelled pictures may help"
    else:
        gain = 1 - after / before
        stdout.print(f"better by {gain:.0%} on pictures left out, by: {done.chosen}", markup=False)
        next_step = f"gbdgc count SOURCE --model {done.model}"
    stdout.print(f"run: {done.folder}", soft_wrap=True, markup=False)
    stdout.print(f"next: {next_step}", soft_wrap=True, markup=False)
    if done.doubt is not None:
        stdout.print(f"doubt: {done.doubt}", soft_wrap=True, markup=False)
