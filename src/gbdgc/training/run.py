"""A whole run: from a config to a folder with a model in it, through whatever may interrupt it."""

import json
import math
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from lightning_fabric import Fabric
from rich.markup import escape

from gbdgc import checkpoint
from gbdgc.config import Config, differences, load_config, save_config, settings_that_matter
from gbdgc.errors import InputError, UsageError
from gbdgc.files import atomic_write, make_folder
from gbdgc.progress import progress_bar, stderr
from gbdgc.runs import claim, new_run_folder, newest_run_folder, write_environment
from gbdgc.training.checks import check_settings
from gbdgc.training.epoch import Report, Stopped, describe_model, discover, run_epoch
from gbdgc.training.state import TrainState, build_state


@dataclass(frozen=True)
class Run:
    """A run's folder and what came of it."""

    folder: Path
    finished: bool
    """False where a signal ended it early; `resume` goes on from there."""

    @property
    def best(self) -> Path:
        """The model, as the selection rule chose it."""
        return self.folder / "checkpoints" / checkpoint.BEST

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """One record an epoch."""
        return read_metrics(self.folder)


def train(
    config: str | os.PathLike[str] | Config,
    overrides: Sequence[str] = (),
    *,
    resume: bool = False,
    devices: int = 1,
    folder: str | os.PathLike[str] | None = None,
) -> Run:
    """Train a counter.

    Parameters
    ----------
    config : path of a YAML file, name of a preset, or a Config
    overrides : settings such as ``"train.epochs=5"``
    resume : go on with the run in ``folder``, or with the newest run of this name, bit for bit as if never stopped
    devices : processes on this machine; under torchrun its own count is taken
    folder : where the run goes; by default the next free ``runs/train/<name>-<n>``
    """
    if isinstance(config, Config) and overrides:
        raise InputError("overrides are for a file or a preset; change the Config itself")
    if devices < 1:
        raise UsageError(f"devices {devices}: at least one process")
    settings = config if isinstance(config, Config) else load_config(config, overrides)
    # Before there are other processes, so that a mistake ends the run rather than leave them waiting.
    check_settings(settings)
    opened = open_folder(settings, folder, resume) if is_first_process() else Path()
    with claim(opened) if is_first_process() else nullcontext():
        return run_epochs(settings, make_fabric(settings, devices), opened, resume)


def run_epochs(settings: Config, fabric: Fabric, opened: Path, resume: bool) -> Run:
    """Go from where the run stands to its end, or to where a signal stops it."""
    folder = fabric.broadcast(opened)
    try:
        state = build_state(settings, folder, fabric)
    except InputError:
        if fabric.is_global_zero and not resume:
            forget(folder)
        raise
    # A run that was cut off before its first checkpoint begins again, which comes to the same.
    if resume and checkpoint.has_any(folder / "checkpoints"):
        for problem in state.restore():
            stderr.print(f"[yellow]resuming from the checkpoint before:[/] {escape(problem)}", soft_wrap=True)
    if fabric.is_global_zero:
        drop_metrics_after(folder, state.epoch)
    with stopping_in_order(state), reporting(state) as report:
        try:
            while state.epoch < settings.train.epochs:
                summary = run_epoch(state, report)
                # The record first: a checkpoint without it would lose it, a record without its checkpoint is redone.
                if fabric.is_global_zero:
                    append_metrics(folder, summary, settings.train.tensorboard)
                    stderr.print(epoch_line(summary, settings.train.epochs), soft_wrap=True)
                state.save()
            discover(state)
            fabric.barrier()  # the first process may still be writing the model that all are about to read
            describe_model(state)
        except Stopped:
            return Run(folder, finished=False)
    return Run(folder, finished=True)


def make_fabric(config: Config, devices: int) -> Fabric:
    """Return the engine: one process, several on this machine, or those that torchrun started."""
    local, everywhere = (int(os.environ.get(name, 0)) for name in ("LOCAL_WORLD_SIZE", "WORLD_SIZE"))
    under_torchrun = "TORCHELASTIC_RUN_ID" in os.environ
    fabric = Fabric(
        devices=local if under_torchrun else devices,
        num_nodes=everywhere // local if under_torchrun else 1,
        strategy="ddp" if devices > 1 or under_torchrun else "auto",
        precision=choose_precision(config.train.precision),
    )
    fabric.launch()
    return fabric


def is_first_process() -> bool:
    """Tell so before anything is launched: the launchers number the processes they start."""
    return not any(int(os.environ.get(name, 0)) for name in ("RANK", "LOCAL_RANK", "NODE_RANK"))


def choose_precision(wanted: str) -> Any:
    """Return Fabric's name for the precision: bf16 where a graphics card has it, else fp16, and 32 bits on CPUs."""
    if wanted != "auto":
        return wanted
    if not torch.cuda.is_available():
        return "32-true"
    return "bf16-mixed" if torch.cuda.is_bf16_supported(including_emulation=False) else "16-mixed"


def open_folder(config: Config, folder: str | os.PathLike[str] | None, resume: bool) -> Path:
    """Return the folder of this run, with its config and environment in it."""
    if resume:
        found = Path(folder) if folder else newest_run_folder("train", config.name)
        if found is None or not (found / "config.yaml").exists():
            raise InputError(f"{found or 'runs/train/' + config.name}: no run to resume; start it without --resume")
        before = load_config(found / "config.yaml")
        if changed := differences(settings_that_matter(before), settings_that_matter(config)):
            raise InputError(
                f"{found}: was started with other settings ({', '.join(changed)}); "
                "resume with the same ones, or start a new run"
            )
        return found
    made = Path(folder) if folder else new_run_folder("train", config.name)
    if (made / "config.yaml").exists():
        raise InputError(f"{made}: holds a run already; go on with it by --resume, or choose another folder")
    make_folder(made / "checkpoints")
    write_environment(made)
    save_config(config, made / "config.yaml")  # last: where it is, a run has begun and may be resumed
    return made


def forget(folder: Path) -> None:
    """Take back a run that could not begin, lest it be resumed in place of one that did."""
    for name in ("config.yaml", "environment.json"):
        (folder / name).unlink()
    with suppress(OSError):  # what else lies there is the user's
        (folder / "checkpoints").rmdir()
        folder.rmdir()


@contextmanager
def stopping_in_order(state: TrainState) -> Iterator[None]:
    """Let SIGINT and SIGTERM end the run after the step at hand, saved; a second one ends it at once."""

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
        task = bar.add_task("", total=train.epochs * state.steps_an_epoch) if bar else None

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


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """Return the records of a run, one an epoch."""
    path = folder / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def append_metrics(folder: Path, summary: dict[str, Any], tensorboard: bool) -> None:
    """Write an epoch's record, and the same for TensorBoard where it is wanted."""
    write_metrics(folder, [*read_metrics(folder), summary])
    if tensorboard:
        from torch.utils.tensorboard import SummaryWriter

        with SummaryWriter(str(folder / "tensorboard")) as writer:
            for group in ("losses", "validation"):
                for name, value in (summary[group] or {}).items():
                    writer.add_scalar(f"{group}/{name}", value, summary["epoch"])


def drop_metrics_after(folder: Path, epoch: int) -> None:
    """Forget the records of epochs that are about to be trained again."""
    write_metrics(folder, [record for record in read_metrics(folder) if record["epoch"] <= epoch])


def write_metrics(folder: Path, records: Sequence[dict[str, Any]]) -> None:
    """Write all records anew: there are few, and a power cut leaves no half of one."""
    with atomic_write(folder / "metrics.jsonl", "w") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)
