"""`gbdgc eval`."""

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number
from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table

from gbdgc.cli.options import EngineName, Flag, ReadAs
from gbdgc.errors import UsageError
from gbdgc.memory import keep_freed_memory
from gbdgc.progress import stderr, stdout

HEADINGS = {"mae": "MAE", "rmse": "RMSE", "nae": "NAE", "bias": "bias"}
_SHOWN_UNREADABLE = 10


def evaluate(
    weights: Path,
    /,
    *data: Path,
    split: str | None = None,
    read_as: ReadAs = "auto",
    max_side: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    tile: int = 4096,
    engine: EngineName | None = None,
    resume: Flag = False,
    out: Path | None = None,
    format: Literal["table", "json", "csv"] = "table",
    submission: Literal["nwpu"] | None = None,
    against: Path | None = None,
    calibrate: Path | None = None,
    record: Path | None = None,
) -> None:
    """Count labelled data sets and measure the errors.

    Parameters
    ----------
    weights
        A run's folder, a model file, or a name from `gbdgc models`.
    data
        Data sets: folders or label files.
    split
        The split to count, "all" for everything; by default test, or val where the labels of test are not public.
    max_side
        Shrink pictures with a longer side first; by default as in the model's training. Results are more sensitive to
        this than to any other option.
    tile
        Count pictures with a longer side in overlapping windows of this side.
    engine
        What runs the model; onnx and openvino are faster on most CPUs, once the model is exported.
    resume
        Continue the newest run of this model, or the one in --out.
    out
        The run's folder.
    format
        What to print to stdout: tables, the summary as JSON, or the per-image table as CSV.
    submission
        Write the submission file for the benchmark's server, from its test part.
    against
        Another run's folder or predictions.csv, for a paired comparison.
    calibrate
        Write a copy of the model to this file with intervals calibrated on these pictures, which it must not have been
        trained on.
    record
        Write a copy of the model to this file that records these errors for `gbdgc models`.
    """
    from gbdgc.checkpoint import amend_model
    from gbdgc.cli.options import wrong_option
    from gbdgc.counting.tiling import check_tile
    from gbdgc.data import load_dataset
    from gbdgc.data.images import raise_pillow_limit
    from gbdgc.evaluation import PREDICTIONS, save_calibrated, write_nwpu_submission
    from gbdgc.evaluation import evaluate as run_evaluation
    from gbdgc.evaluation.submission import check_nwpu_ids

    if not data:
        raise UsageError("", "name at least one data set to count", "gbdgc eval WEIGHTS DATA...")
    if submission is not None and len(data) > 1:
        raise UsageError(f"--submission {submission}", "for the one data set it is named after")
    with wrong_option():
        check_tile(tile)
    if submission is not None:
        split = split or "test"
        # Labels are read twice, to find out before hours of counting that the server would not take it.
        ids = (each.id for each in load_dataset(data[0], read_as, skip_bad=True) if split in ("all", each.split))
        check_nwpu_ids(ids)
    keep_freed_memory()
    raise_pillow_limit()
    done = run_evaluation(
        weights,
        data,
        split=split,
        format=read_as,
        max_side=max_side,
        tile=tile,
        engine=engine,
        against=against,
        out=out,
        resume=resume,
    )
    if format == "json":
        sys.stdout.write(_text_of(done.folder / "summary.json") + "\n")
    elif format == "csv":
        sys.stdout.write(_text_of(done.folder / PREDICTIONS))
    else:
        for table in tables(done.summary):
            stdout.print(table)
        for line in notes(done.summary):
            stdout.print(line, soft_wrap=True, markup=False)
    for each in done.unreadable[:_SHOWN_UNREADABLE]:
        stderr.print(f"not counted: {each.reason}", soft_wrap=True, markup=False)
    if (more := len(done.unreadable) - _SHOWN_UNREADABLE) > 0:
        stderr.print(f"and {more} more, all in {done.folder / 'unreadable.csv'}", soft_wrap=True, markup=False)
    where = stdout if format == "table" else stderr
    try:
        if submission is not None:
            file = write_nwpu_submission(done.rows, done.folder / f"submission_{submission}.txt")
            where.print(f"submission: {file}", soft_wrap=True, markup=False)
        if calibrate is not None:
            save_calibrated(weights, calibrate, done.rows, done.summary["max_side"])
            where.print(f"calibrated: {calibrate}", soft_wrap=True, markup=False)
        if record is not None:
            errors = {name: {"mae": each["mae"]["value"]} for name, each in done.summary["data"].items()}
            amend_model(weights, record, {"errors": errors})
            where.print(f"recorded: {record}", soft_wrap=True, markup=False)
    finally:
        # What was counted is there whatever becomes of the rest.
        where.print(f"run: {done.folder}", soft_wrap=True, markup=False)
        for name, each in done.summary["data"].items():
            if each["doubt"]:
                where.print(f"doubt: {name}: {each['doubt']}", soft_wrap=True, markup=False)
    if done.unreadable:
        sys.exit(1)


def _text_of(path: Path) -> str:
    """Read one of our files; file names in it that are not valid text are kept byte for byte."""
    return path.read_text(encoding="utf-8", errors="surrogateescape")


def tables(summary: dict[str, Any]) -> list[Table]:
    """Return tables of the errors, overall and by bands, and of how points match labelled heads."""
    whole = table_of_numbers("errors", "data", "pictures", *HEADINGS.values())
    bands = {
        "by_density": table_of_numbers("by true count", "data", "people", "pictures", *HEADINGS.values()),
        "by_brightness": table_of_numbers(
            "by mean luminance (0 to 255)", "data", "luminance", "pictures", *HEADINGS.values()
        ),
    }
    heads_found = table_of_numbers("heads found as points", "data", "within", "precision", "recall", "F1")
    for name, errors in summary["data"].items():
        unread = f"\n[red]{errors['unreadable']} not read[/]" if errors["unreadable"] else ""
        whole.add_row(escape(name), f"{errors['images']}{unread}", *estimate_cells(errors))
        for grouping, table in bands.items():
            for index, (band, part) in enumerate(errors[grouping].items()):
                table.add_row("" if index else escape(name), band, str(part["images"]), *estimate_cells(part))
            table.add_section()
        for index, (tolerance, scores) in enumerate((errors.get("localisation") or {}).items()):
            values = ("–" if value is None else f"{value:.3f}" for value in scores.values())
            heads_found.add_row("" if index else escape(name), tolerance, *values)
        heads_found.add_section()
    return [whole, *(table for table in (*bands.values(), heads_found) if table.rows)]


def table_of_numbers(title: str, first: str, *headings: str) -> Table:
    """Return a table without rows yet, all of its columns but the first aligned to the right."""
    table = Table(first, title=title, title_justify="left", box=SIMPLE)
    for heading in headings:
        table.add_column(heading, justify="right")
    return table


def notes(summary: dict[str, Any]) -> list[str]:
    """Return notes on how to read the numbers."""
    limit = summary["max_side"]
    lines = [
        f"model chosen by: {summary['selection']}; longer side limited to: {'no limit' if limit is None else limit}; "
        f"whole pictures up to {summary['tile']} pixels, larger ones in windows; counted by {summary['engine']}",
        f"intervals: {summary['intervals']}",
        'RMSE is what papers of this field call "MSE"; NAE leaves out pictures without people',
        "heads: a point matches at most one head; box-free: within half the mean distance to its three nearest",
    ]
    for name, errors in summary["data"].items():
        lines.append(f"{name}: read as {errors['format']}, split {errors['split']}")
        if errors["unlabelled"]:
            lines.append(f"{name}: {errors['unlabelled']} pictures without labels are counted, and stand in no error")
        if errors.get("near_heads") is not None:
            lines.append(
                f"{name}: {errors['near_heads']:.1%} of the people counted lie within 16 px of a labelled head"
            )
        if errors.get("coverage"):
            share, width = errors["coverage"]["share"], errors["coverage"]["width"]
            lines.append(
                f"{name}: {share:.1%} of the true counts lie in their 90 % intervals (high / low: {width:.2f})"
            )
        if "against" in errors:
            lines.append(f"{name}: {verdict(errors['against'])}")
    return lines


def verdict(gains: dict[str, Any]) -> str:
    """Return a sentence on which of two runs is better, and with what confidence."""
    gain = gains["mae"]
    if gain["value"] is None:
        return "no picture in common with the other run"
    sign = 1 if gain["value"] >= 0 else -1
    if gain["low"] is None:
        ends, sure = "no interval from one picture", ""
    else:
        low, high = sorted((sign * gain["low"], sign * gain["high"]))
        ends = f"interval {low:.1f} to {high:.1f}"
        sure = "" if low > 0 else "; the interval holds 0: no difference is shown"
    word = "better" if sign > 0 else "worse"
    return f"{word} than the other run by {abs(gain['value']):.1f} MAE, {ends}, on {gains['images']} pictures{sure}"


def estimate_cells(errors: dict[str, Any]) -> list[str]:
    """Return the cells of a table row for errors, in the order of `HEADINGS`."""
    return [_cell(errors[name], 2 if name == "nae" else 1) for name in HEADINGS]


def _cell(estimate: dict[str, float | None], decimals: int) -> str:
    """Return a number above its interval, narrow enough for six columns on a small terminal."""
    value, low, high = (estimate[key] for key in ("value", "low", "high"))
    if value is None:
        return "–"
    if low is None or high is None:
        return f"{value:.{decimals}f}"
    digits = 0 if max(abs(low), abs(high)) >= 100 else decimals
    dash = "–" if low >= 0 else " to "
    return f"{value:.{decimals}f}\n[dim]{low:.{digits}f}{dash}{high:.{digits}f}[/]"
