"""As much training as fits a given time: the speed is measured, and the length of the schedule follows from it."""

import time
from itertools import cycle, islice
from pathlib import Path

from lightning_fabric import Fabric

from gbdgc.config import Config
from gbdgc.data.loading import Batches
from gbdgc.errors import InputError
from gbdgc.evaluation import count_dataset
from gbdgc.training.epoch import descriptor_pass, step_seed
from gbdgc.training.state import TrainState, build_state
from gbdgc.training.step import backward

_STEPS, _PICTURES = 6, 3
_RESERVE = 0.1  # of the time: the last descriptors, writing, and machines that slow down


def fit_to_budget(config: Config, seconds: float, fabric: Fabric) -> None:
    """Set as many epochs as fit; where not one does, one with fewer crops of each picture."""
    if seconds <= 0:
        raise InputError(f"a budget of {seconds:g} seconds", "no time to train in", "give something like 30m")
    started = time.perf_counter()
    state = build_state(config, Path(), fabric)
    step, between = seconds_per_step(state), seconds_between_epochs(state)
    left = (1 - _RESERVE) * seconds - (time.perf_counter() - started)
    steps = state.steps_per_epoch
    epochs = int(left / (steps * step + between))
    config.train.epochs = max(1, epochs)
    if epochs >= 1:
        return
    repeats = int((left - between) / step * config.train.batch_size / len(state.source))
    if repeats < 1:
        need = (steps / config.data.repeats * step + between) / (1 - _RESERVE) + time.perf_counter() - started
        reason = f"one pass over {len(state.source)} pictures takes about {need:.0f} here"
        raise InputError(f"a budget of {seconds:.0f} seconds", reason, "give more time, or fewer pictures")
    config.data.repeats = repeats


def seconds_per_step(state: TrainState) -> float:
    """Time whole steps, reading included; the first one warms up."""
    config = state.config
    batches = Batches(state.source, config.train.batch_size, 0, seed=config.train.seed, workers=config.data.workers)
    times = []
    before = time.perf_counter()
    for number, batch in enumerate(islice(cycle(batches), _STEPS)):
        seed = step_seed(config.train.seed, number)
        backward(state.runner, batch.to(state.fabric.device), micro_batch=config.train.micro_batch, seed=seed)
        state.optimizer.zero_grad()
        times.append(time.perf_counter() - before)
        before = time.perf_counter()
    return sorted(times[1:])[len(times[1:]) // 2]


def seconds_between_epochs(state: TrainState) -> float:
    """Time what follows an epoch: validation, from a few pictures, and the discovery of domains."""
    between = 0.0
    if state.validation is not None:
        part = state.validation[:_PICTURES]
        started = time.perf_counter()
        count_dataset(state.network, part, max_side=state.config.data.max_side, test_scale=state.config.data.test_scale)
        between += (time.perf_counter() - started) / len(part) * len(state.validation)
    if state.partition is not None and state.config.discovery.descriptors == "pass":
        started = time.perf_counter()
        z_ND = descriptor_pass(state, state.network, state.config.discovery.levels)
        state.partition.fit(z_ND, state.source_names)
        between += time.perf_counter() - started
    return between
