"""`gbdgc train`."""

import os
import re
import shlex
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from gbdgc.errors import UsageError
from gbdgc.memory import keep_freed_memory
from gbdgc.progress import stderr, stdout


def train(
    config: str,
    *overrides: str,
    resume: bool = False,
    devices: int = 1,
    max_restarts: Annotated[int, Parameter(validator=Number(gte=0))] = 0,
    budget: str | None = None,
    out: Path | None = None,
) -> None:
    """Train a counter on one source.

    Parameters
    ----------
    config
        A YAML file, or a preset: sha, shb, qnrf, sha_shb, compact_sha, compact_shb, compact_sha_shb,
        bundled, demo, tune.
    overrides
        Settings such as train.epochs=5.
    resume
        Continue the newest run of this name, or the one in --out.
    devices
        Number of processes on this machine.
    max_restarts
        With --devices: how often to restart from the last checkpoint when a process dies. Needs --out.
    budget
        Train for about this long, such as 90s, 30m or 8h; the number of epochs is chosen to fit.
    out
        The run's folder.
    """
    from gbdgc.checkpoint import read
    from gbdgc.data.images import raise_pillow_limit
    from gbdgc.training import train as run_training
    from gbdgc.training.run import is_first_process

    seconds = None if budget is None else _seconds(budget)
    if max_restarts and (out is None or devices < 2):
        reason = "it goes on with a run of several processes in --out"
        raise UsageError("--max-restarts", reason, "give --devices and --out")
    if devices > 1 and "LOCAL_RANK" not in os.environ:
        from gbdgc.cli.processes import run_processes
        from gbdgc.config import load_config
        from gbdgc.training.checks import check_settings

        if budget is not None:
            raise UsageError("--budget", "it is measured on one process", "give train.epochs instead")
        check_settings(load_config(config, overrides))  # once, rather than in each of the processes
        options = [*(["--out", str(out)] if out else []), *(["--resume"] if resume else [])]
        arguments = ["train", config, *overrides, "--devices", str(devices), *options]
        sys.exit(run_processes(arguments, devices, max_restarts))
    keep_freed_memory()
    raise_pillow_limit()
    first = is_first_process()  # asked before the others are started
    run = run_training(config, overrides, resume=resume, devices=devices, folder=out, budget=seconds)
    if not run.finished:
        if first:
            options = [*(["--out", str(out)] if out else []), *(["--devices", str(devices)] if devices > 1 else [])]
            options += ["--budget", budget] if budget else []
            again = shlex.join(["gbdgc", "train", config, *overrides, "--resume", *options])
            stderr.print(f"stopped and saved; go on with: {again}", markup=False, soft_wrap=True)
        sys.exit(130)
    if not first:
        return
    stdout.print(f"run: {run.folder}", soft_wrap=True, markup=False)
    stderr.print(f"next: gbdgc eval {run.best} DATA", soft_wrap=True, markup=False)
    if doubt := read(run.best)[1].get("doubt"):
        stderr.print(f"doubt: {doubt}", soft_wrap=True, markup=False)


def _seconds(duration: str) -> float:
    """Read a duration such as 90s, 30m or 1.5h."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh])", duration.strip())
    if found is None or float(found[1]) == 0:
        raise UsageError(f"--budget {duration}", "not a length of time to train in", "give one such as 90s, 30m or 8h")
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]]
