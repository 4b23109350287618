"""`gbdgc report`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from gbdgc.cli.options import Several
from gbdgc.progress import stdout


def report(
    run: Path,
    *,
    evaluations: Annotated[list[Path] | None, Parameter(name="--eval"), Several] = None,
    out: Path | None = None,
) -> None:
    """Write one HTML page about a run: errors, domains, worst pictures, training. It needs nothing else.

    Parameters
    ----------
    run
        The folder of a training run.
    evaluations
        Folders that `gbdgc eval` wrote; by default those inside the run's folder.
    out
        The file to write; by default report.html in the run's folder.
    """
    from gbdgc.report import write_report

    path = write_report(run, evaluations or (), out)
    stdout.print(f"report: {path}", soft_wrap=True, markup=False)
