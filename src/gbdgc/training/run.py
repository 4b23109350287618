"""A whole run: from a config to a folder with a model in it, through whatever may interrupt it."""

import math
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any, cast

from lightning_fabric import Fabric
from rich.markup import escape
from torch.distributed import DistError

from gbdgc import checkpoint
from gbdgc.config import Config, differences, load_config, save_config, settings_that_matter
from gbdgc.errors import InputError, UsageError
from gbdgc.files import AnyPath
from gbdgc.progress import progress_bar, stderr
from gbdgc.runs import Resume, RunFolder, TrainingRun
from gbdgc.training.budget import fit_to_budget
from gbdgc.training.checks import check_settings
from gbdgc.training.epoch import Report, Stopped, discover, finish_model, run_epoch
from gbdgc.training.precision import choose_precision
from gbdgc.training.state import TrainState, build_state


def train(
    config: AnyPath | Config,
    overrides: Sequence[str] = (),
    *,
    resume: Resume = False,
    devices: int = 1,
    folder: AnyPath | None = None,
    budget: float | None = None,
) -> TrainingRun:
    """Train a counter.

    Parameters
    ----------
    config : path of a YAML file, name of a preset, or a Config
    overrides : settings such as ``"train.epochs=5"``
    resume : continue the run in ``folder``, or the newest run of this name, bit for bit as if never stopped; "auto"
        starts one where there is none
    devices : processes on this machine; under torchrun its own count is taken
    folder : where the run goes; by default the next free ``runs/train/<name>-<n>``
    budget : train for about so many seconds: the number of epochs, and so the schedule, is made to fit
    """
    if isinstance(config, Config) and overrides:
        raise InputError("overrides", "they are for a file or a preset", "change the Config itself")
    if devices < 1:
        raise UsageError(f"devices {devices}", "at least one process")
    if int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0)) and not resume:
        resume = "auto"  # one of the processes died, and all were started again by the same command
    settings = config if isinstance(config, Config) else load_config(config, overrides)
    # Before there are other processes, so that a mistake ends the run rather than leave them waiting.
    check_settings(settings)
    alone = devices == 1 and "TORCHELASTIC_RUN_ID" not in os.environ
    if budget is not None and not alone:
        raise UsageError("a budget", "it is measured on one process", "give train.epochs instead")
    if not is_first_process():
        settings.train.precision = choose_precision(settings.train.precision)
        return run_epochs(settings, make_fabric(settings, devices), None)

    def begin(file: Path) -> None:
        """Decide what the config leaves to this machine, and record it."""
        settings.train.precision = choose_precision(settings.train.precision)
        if budget is not None:
            fit_to_budget(settings, budget, make_fabric(settings, 1))
        save_config(settings, file)

    def changed(file: Path) -> list[str]:
        """Take over what was decided when the run began, and name what else is different now."""
        before = load_config(file)
        if settings.train.precision == "auto":
            settings.train.precision = before.train.precision
        if budget is not None:
            settings.train.epochs, settings.data.repeats = before.train.epochs, before.data.repeats
        return differences(settings_that_matter(before), settings_that_matter(settings))

    with RunFolder.open("train", settings.name, begin, folder, resume, changed=changed) as opened:
        return run_epochs(settings, make_fabric(settings, devices), opened)


def run_epochs(settings: Config, fabric: Fabric, opened: RunFolder | None) -> TrainingRun:
    """Train to the end, or until a signal stops the run; only the first process has the folder open."""
    folder, resumed = fabric.broadcast((opened.path, opened.resumed) if opened else (Path(), False))
    try:
        state = build_state(settings, folder, fabric)
    except InputError:
        if opened is not None:
            opened.forget()
        raise
    run = state.run
    # A run that was cut off before its first checkpoint begins again, which comes to the same.
    if resumed and checkpoint.has_any(run.checkpoints):
        restore(state)
    if opened is not None:
        run.mark_finished(False)
        restore_records(run, state.epoch)
    with stopping_in_order(state), reporting(state) as report:
        try:
            while state.epoch < settings.train.epochs:
                summary = run_epoch(state, report)
                # The record first: a checkpoint without it would lose it, a record without its checkpoint is redone.
                if opened is not None:
                    run.journal.append(summary, durable=True)
                    if settings.train.tensorboard:
                        write_tensorboard(folder, summary)
                    stderr.print(epoch_line(summary, settings.train.epochs), soft_wrap=True)
                state.save()
            discover(state)
            fabric.barrier()  # the first process may still be writing the model that all are about to read
            finish_model(state)
        except Stopped:
            return run
        except RuntimeError as error:
            if fabric.world_size == 1 or not (isinstance(error, DistError) or "gloo/transport" in str(error)):
                raise
            reason = "lost the connection to the other processes: one of them has ended"
            raise InputError(f"rank {fabric.global_rank}", reason, "go on from the last checkpoint") from error
    if opened is not None:
        run.mark_finished(True)
    fabric.barrier()  # all processes return the same run
    return run


def restore(state: TrainState) -> None:
    """Restore the newest whole checkpoint, and report what is wrong with newer ones."""
    try:
        problems = state.restore()
    except (KeyError, RuntimeError, TypeError) as error:
        missing = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        reason = f"this state is not one that this version can resume ({missing})"
        raise InputError(state.run.checkpoints, reason, "start a new run") from error
    for problem in problems:
        stderr.print(f"[yellow]resuming from the checkpoint before:[/] {escape(problem)}", soft_wrap=True)


def make_fabric(config: Config, devices: int) -> Fabric:
    """Return the engine: one process, several on this machine, or those that torchrun started."""
    local, everywhere = (int(os.environ.get(name, 0)) for name in ("LOCAL_WORLD_SIZE", "WORLD_SIZE"))
    under_torchrun = "TORCHELASTIC_RUN_ID" in os.environ
    fabric = Fabric(
        devices=local if under_torchrun else devices,
        num_nodes=everywhere // local if under_torchrun else 1,
        strategy="ddp" if devices > 1 or under_torchrun else "auto",
        precision=cast(Any, choose_precision(config.train.precision)),
    )
    fabric.launch()
    return fabric


def is_first_process() -> bool:
    """Return whether this is rank 0; works before the launch, since launchers number the processes they start."""
    return not any(int(os.environ.get(name, 0)) for name in ("RANK", "LOCAL_RANK", "NODE_RANK"))


@contextmanager
def stopping_in_order(state: TrainState) -> Iterator[None]:
    """Let SIGINT and SIGTERM save and end the run after the current step; a second one ends it at once."""

    def ask(number: int, frame: FrameType | None) -> None:
        if state.stop:
            raise KeyboardInterrupt
        state.stop = number
        stderr.print("saving after this step and leaving; once more leaves at once")

    numbers = (signal.SIGINT, signal.SIGTERM)
    try:
        before = {number: signal.signal(number, ask) for number in numbers}
    except ValueError:  # not in the main thread: whoever runs us there handles signals
        before = {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def reporting(state: TrainState) -> Iterator[Report]:
    """Show a bar over the whole run, in the first process: losses, validation error, speed, time left."""
    train = state.config.train
    bar = progress_bar("steps") if state.fabric.is_global_zero else None
    with bar or nullcontext():
        task = bar.add_task("", total=train.epochs * state.steps_per_epoch) if bar else None

        def report(state: TrainState, losses: dict[str, float]) -> None:
            if bar is not None and task is not None:
                shown = " ".join(f"{name} {value:.3g}" for name, value in losses.items())
                text = f"epoch {state.epoch + 1}/{train.epochs} {shown}"
                if train.selection == "validation" and math.isfinite(state.best):
                    text += f" best {state.best:.1f}"
                bar.update(task, completed=state.steps_done, description=text)

        yield report


def epoch_line(summary: dict[str, Any], epochs: int) -> str:
    """One line that stays on the screen, or in a log file, when the bar has moved on."""
    losses = "  ".join(f"{name} {value:.3g}" for name, value in summary["losses"].items())
    validation = summary["validation"]
    error = f"  validation MAE {validation['mae']:.1f} RMSE {validation['rmse']:.1f}" if validation else ""
    return f"epoch {summary['epoch']}/{epochs}  {losses}{error}  {summary['images_per_second']:.1f} images/s"


def write_tensorboard(folder: Path, summary: dict[str, Any]) -> None:
    """Write an epoch's record for TensorBoard."""
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder / "tensorboard")) as writer:
        for group in ("losses", "validation"):
            for name, value in (summary[group] or {}).items():
                writer.add_scalar(f"{group}/{name}", value, summary["epoch"])


def restore_records(run: TrainingRun, epoch: int) -> None:
    """Forget the records of epochs that are about to be trained again, and say which of the others are lost."""
    records = run.journal.recover()
    kept = [record for record in records if record["epoch"] <= epoch]
    if kept != records or not run.journal.path.exists():
        run.journal.replace(kept)  # also a new one, so that its name is on the disk before there are records
    if lost := set(range(1, epoch + 1)) - {record["epoch"] for record in kept}:
        epochs = ", ".join(map(str, sorted(lost)))
        stderr.print(
            f"[yellow]{escape(str(run.journal.path))}: no record of epoch {epochs};[/] "
            "the training goes on from its checkpoint, and only its curves have a gap",
            soft_wrap=True,
        )
