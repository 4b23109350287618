"""The epoch: discover the latent domains, fit one pass, validate."""

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning_fabric import Fabric
from numpy.typing import NDArray

from gbdgc import checkpoint
from gbdgc.counting.trust import Trust
from gbdgc.data import named
from gbdgc.data.loading import Batches, descriptor_images
from gbdgc.descriptors import Levels, describe
from gbdgc.domains import stability
from gbdgc.errors import GbdgcWarning
from gbdgc.evaluation import Row, count_dataset, doubt, summarise, unbiased_gain
from gbdgc.models import Network
from gbdgc.training.state import TrainState, choose_partition
from gbdgc.training.step import backward, gather

_EARLY_STEPS = 100
_CHECKED = 8
"""Training pictures that the last epoch counts where no picture is held out."""

Descriptors = NDArray[np.float32]
Report = Callable[[TrainState, dict[str, float]], None]


class Stopped(Exception):
    """A signal asked the run to leave; its state is saved."""


def run_epoch(state: TrainState, report: Report) -> dict[str, Any]:
    """Discover domains, fit one pass, validate. The whole method, in order."""
    if state.step == 0:
        discover(state)
    started, first = time.perf_counter(), state.step
    fit(state, report)
    images = (state.step - first) * state.config.train.batch_size
    rows = count_held_out(state)
    summary = {
        "epoch": state.epoch + 1,
        "losses": {name: total / state.step for name, total in state.sums.items()},
        "images_per_second": images / (time.perf_counter() - started),
        "learning_rate": state.config.train.learning_rate * rate_factor(state, state.steps_done - 1),
        "validation": None if state.validation is None else summarise(rows),
        "doubt": doubt(rows),
    }
    state.epoch, state.step, state.sums = state.epoch + 1, 0, {}
    keep_best(state, summary)
    if state.epoch > state.config.train.epochs - state.config.train.keep_epochs:
        save_model(state, summary, checkpoint.EPOCH.format(state.epoch))
    return summary


def discover(state: TrainState) -> None:
    """Find the latent domains of the source, give them last epoch's names, write them into the training set."""
    if state.partition is None:
        return
    ids, z_ND = descriptors(state)
    previous = list(state.source.labels.values()) or None
    labels = state.partition.fit(z_ND, state.source_names, previous_labels=previous).labels_
    state.source.relabel(dict(zip(ids, labels.tolist(), strict=True)))
    if not state.fabric.is_global_zero:
        return
    row = asdict(stability([labels] if previous is None else [previous, labels])[-1]) | {"epoch": state.epoch}
    state.run.write_domains(state.epoch, state.source.labels, row)


def descriptors(state: TrainState) -> tuple[list[str], Descriptors]:
    """Return the source's descriptors, in the order of its samples: as the training pass left them, or by a pass."""
    ids = state.source.dataset.ids
    if gathers_online(state) and len(state.online) == len(ids):
        return ids, torch.stack([state.online[id] for id in ids]).numpy()
    return ids, descriptor_pass(state, state.network, state.config.discovery.levels)


def descriptor_pass(state: TrainState, network: Network, levels: Levels) -> Descriptors:
    """Describe every picture of the source; each process its share, and all of them get all rows."""
    dataset = state.source.dataset
    share = dataset[state.fabric.global_rank :: state.fabric.world_size]
    size, workers = state.config.discovery.image_size, state.config.data.workers
    images = descriptor_images(share, size=size, workers=workers, cache=state.source.cache)
    on_device = ((ids, pixels.to(state.fabric.device)) for ids, pixels in images)
    described = list(zip(*describe(network, on_device, levels=levels), strict=True))
    rows = dict(everywhere(state.fabric, described))
    return np.stack([rows[id] for id in dataset.ids])


def fit(state: TrainState, report: Report) -> None:
    """Go through the source once, or through what is left of this epoch."""
    train, data, fabric = state.config.train, state.config.data, state.fabric
    augmentation = state.config.augmentation
    is_native = state.epoch >= round((1 - train.native_share) * train.epochs)
    state.source.augmentation = augmentation.native(data.test_scale) if is_native else augmentation
    batches = Batches(
        state.source,
        train.batch_size,
        state.epoch,
        seed=train.seed,
        start=state.step,
        workers=data.workers,
        balanced=data.balanced,
        repeats=data.repeats,
        shares=None if data.shares is None else dict(zip(named(data.source), data.shares, strict=True)),
        rank=fabric.global_rank,
        world_size=fabric.world_size,
    )
    saved = time.monotonic()
    for batch in batches:
        batch = batch.to(fabric.device)
        for group in state.optimizer.param_groups:
            group["lr"] = rate_factor(state, state.steps_done) * group["peak"]
        seed = step_seed(train.seed, state.steps_done)
        losses, counts_B, z_BD = backward(
            state.runner, batch, micro_batch=train.micro_batch, seed=seed, with_statistics=gathers_online(state)
        )
        norm = fabric.clip_gradients(
            state.runner.forward, state.optimizer, max_norm=train.clip_norm or math.inf, error_if_nonfinite=False
        )
        assert norm is not None
        # In 16 bits a gradient overflows now and then: the scaler leaves that step out and goes on with smaller ones.
        overflow_is_normal = getattr(fabric.strategy.precision, "scaler", None) is not None
        if not (math.isfinite(sum(losses.values())) and (overflow_is_normal or torch.isfinite(norm))):
            raise FloatingPointError(not_finite(state, losses, float(norm), batch.ids))
        state.optimizer.step()
        state.optimizer.zero_grad()
        if state.average is not None:
            state.average.update_parameters(state.network)
        if z_BD is not None:  # descriptors that this pass gives for free; every process keeps all of them
            names = [id for part in everywhere(fabric, [batch.ids]) for id in part]
            state.online.update(zip(names, gather(fabric, z_BD).cpu(), strict=True))
        state.step += 1
        watch_early(state, counts_B, batch.people)
        state.sums = {name: state.sums.get(name, 0.0) + value for name, value in losses.items()}
        report(state, losses)
        if asked_to_stop(state):
            state.save()
            raise Stopped
        if time.monotonic() - saved > train.checkpoint_seconds:
            state.save()
            saved = time.monotonic()


def watch_early(state: TrainState, counts_B: torch.Tensor, people_BHW: torch.Tensor) -> None:
    """After a hundred steps, warn of a network that counts nobody, or the same number for every picture."""
    if state.steps_done > _EARLY_STEPS:
        return
    state.early += zip(counts_B.tolist(), people_BHW.sum(dim=(1, 2)).tolist(), strict=True)
    if state.steps_done < _EARLY_STEPS:
        return
    # The second half of them: by then a network that learns tells a crowd from a lawn.
    predicted, truth = np.array(state.early[len(state.early) // 2 :]).T
    state.early = []
    if truth.std() == 0:
        return
    if predicted.max() < 0.01 * truth.max():
        seen = "the network counts nobody"
    elif predicted.std() < 0.05 * truth.std():
        seen = f"the network counts about {predicted.mean():.1f} people whatever it sees"
    else:
        return
    warnings.warn(
        f"after {_EARLY_STEPS} steps {seen}, where there are {truth.min():.0f} to {truth.max():.0f}; "
        "look at the labels (`gbdgc data check`), or stop and start again with a lower train.learning_rate",
        GbdgcWarning,
        stacklevel=2,
    )


def count_held_out(state: TrainState) -> list[Row]:
    """Count the part of the source that is held out, every process its share.

    Where there is none, the last epoch counts a few training pictures: a run that learnt nothing cannot count those.
    """
    dataset = state.validation
    if dataset is None:
        dataset = state.source.dataset[: _CHECKED if state.epoch + 1 == state.config.train.epochs else 0]
    share = dataset[state.fabric.global_rank :: state.fabric.world_size]
    sizes = {name: getattr(state.config.data, name) for name in ("max_side", "test_scale")}
    rows = everywhere(state.fabric, count_dataset(state.counting_network, share, **sizes))
    if not any(row.count for row in rows) and any(row.truth for row in rows):
        warnings.warn(
            "the density is zero on every picture that was counted; if the next epoch does not fix it, start a "
            "new run with a lower train.head_learning_rate",
            GbdgcWarning,
            stacklevel=2,
        )
    return rows


def keep_best(state: TrainState, summary: dict[str, Any]) -> None:
    """Write the model where the source says that it is better, or always where the last one is wanted."""
    by_validation = state.config.train.selection == "validation"
    error = summary["validation"]["mae"] if by_validation else -state.epoch
    if error >= state.best:
        return
    state.best = error
    save_model(state, summary, checkpoint.BEST)


def save_model(state: TrainState, summary: dict[str, Any], name: str) -> None:
    """Write the weights that are used for counting, with their description."""
    if not state.fabric.is_global_zero:
        return
    config = state.config
    info = {
        "name": config.name,
        # What it was trained on, not where that lies on this machine: models travel.
        "source": ["/".join(Path(path).parts[-2:]) for path in config.data.source],
        "method": config.method.name,
        "selection": config.train.selection if name == checkpoint.BEST else "none",
        "seed": config.train.seed,
        "max_side": config.data.max_side,
        "test_scale": config.data.test_scale,
        "epoch": summary["epoch"],
        "validation": summary["validation"],
        "doubt": summary["doubt"],
    }
    checkpoint.save_model(state.run.checkpoints / name, state.counting_network, state.build, info, {})


def finish_model(state: TrainState) -> None:
    """Take the bias out of the chosen model, where asked to, and add where its training pictures lie.

    So it can tell how far a new picture is from them.
    """
    path = state.run.best
    network, info, _ = checkpoint.load_model(path)
    # Where nothing was held out there is nothing to go by; and not again in a run that was stopped right here.
    if state.config.train.calibrate and info["validation"] and "gain" not in info:
        info["gain"] = unbiased_gain(info["validation"])
        network.scale_density(info["gain"])
    z_ND = descriptor_pass(state, network.to(state.fabric.device), "encoder")
    # Under the run's own names, which the report and what was written of the epochs go by.
    previous = list(state.source.labels.values()) or None
    labels = choose_partition(state.config).fit(z_ND, state.source_names, previous_labels=previous).labels_
    info["descriptor_size"] = state.config.discovery.image_size
    trust = {name: torch.from_numpy(values) for name, values in Trust.fit(z_ND, labels).to_arrays().items()}
    if state.fabric.is_global_zero:
        checkpoint.save_model(path, network, state.build, info, checkpoint.nest("trust", trust))


def gathers_online(state: TrainState) -> bool:
    """Return whether discovery uses the descriptors gathered in the training pass."""
    return state.partition is not None and state.config.discovery.descriptors == "online"


def rate_factor(state: TrainState, step: int) -> float:
    """Return the schedule at a step of the run: a function of the step alone, so there is nothing to save of it."""
    if state.config.train.schedule == "constant":
        return 1.0
    total = state.config.train.epochs * state.steps_per_epoch
    progress = step / max(1, total - 1)
    return one_cycle(progress) if state.config.train.schedule == "onecycle" else warm_cosine(progress)


def one_cycle(progress: float, rise: float = 0.3, start: float = 0.04, end: float = 4e-6) -> float:
    """Half a cosine up to 1 over the first part of the run, half a cosine down over the rest."""
    low, part = (start, progress / rise) if progress < rise else (end, (1 - progress) / (1 - rise))
    return low + (1 - low) * (1 - math.cos(math.pi * min(max(part, 0.0), 1.0))) / 2


def warm_cosine(progress: float, rise: float = 0.1) -> float:
    """Linearly up to 1 over the first part of the run, then half a cosine down to 0."""
    if progress < rise:
        return (progress + 1e-3) / (rise + 1e-3)
    return (1 + math.cos(math.pi * (progress - rise) / (1 - rise))) / 2


def step_seed(seed: int, step: int) -> int:
    """Return the random seed of one step, unlike that of any other step or run."""
    return int(np.random.SeedSequence([seed, step]).generate_state(1, np.uint32)[0])


def asked_to_stop(state: TrainState) -> bool:
    """Leave together: where one process was asked, all leave after the same step."""
    if state.fabric.world_size == 1:
        return bool(state.stop)
    return bool(gather(state.fabric, torch.tensor([state.stop], device=state.fabric.device)).any())


def everywhere(fabric: Fabric, items: list[Any]) -> list[Any]:
    """Return the items of all processes, those of the first process first."""
    if fabric.world_size == 1:
        return items
    parts: list[list[Any]] = [[] for _ in range(fabric.world_size)]
    torch.distributed.all_gather_object(parts, items)
    return [item for part in parts for item in part]


def not_finite(state: TrainState, losses: dict[str, float], norm: float, ids: list[str]) -> str:
    """Say which batch broke the run and what can be done."""
    shown = ", ".join(f"{name} {value:.4g}" for name, value in losses.items())
    return (
        f"the loss is not finite at epoch {state.epoch + 1}, step {state.step + 1} "
        f"({shown}; gradient norm {norm:.4g}); pictures: {', '.join(ids)}. "
        f"The last good checkpoint is kept in {state.run.checkpoints}; "
        "start a new run with a lower train.learning_rate or with train.clip_norm=1"
    )
