"""Everything that changes while a run trains, in one place: built, saved and restored here."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import torch
from lightning_fabric import Fabric
from torch import Tensor
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from gbdgc import checkpoint
from gbdgc.config import Config, DataConfig
from gbdgc.data import Dataset, concatenate, load_dataset, named
from gbdgc.data.loading import TrainingSet
from gbdgc.data.reading import refuse_problems
from gbdgc.domains import PARTITIONS, Partition, build_partition
from gbdgc.domains.embedded import WarmStartDomains
from gbdgc.errors import InputError
from gbdgc.files import AnyPath
from gbdgc.methods.build import build_method
from gbdgc.models import Network, build_network
from gbdgc.runs import TrainingRun
from gbdgc.training.step import Runner


@dataclass
class TrainState:
    """A run in motion. What `save` writes is what changes; the rest follows from the config."""

    config: Config
    run: TrainingRun
    fabric: Fabric
    network: Network
    runner: Runner
    average: AveragedModel | None
    optimizer: torch.optim.Optimizer
    source: TrainingSet
    validation: Dataset | None
    partition: Partition | None
    build: dict[str, Any]
    """How to build the network again: what the model file says of itself."""

    epoch: int = 0
    step: int = 0
    """Steps done in this epoch."""
    online: dict[str, Tensor] = field(default_factory=dict)
    """Descriptors gathered from the training pass, by id."""
    sums: dict[str, float] = field(default_factory=dict)
    """Losses summed over this epoch's steps."""
    early: list[tuple[float, float]] = field(default_factory=list)
    """Predicted and true counts of the first crops; not saved, as it serves a warning only."""
    best: float = float("inf")
    """The validation error of the model that is kept."""
    stop: int = 0
    """The signal that asked the run to leave."""

    @property
    def source_names(self) -> list[str]:
        """The data set that each picture came from: ids of several sources begin with its name."""
        several = len(self.config.data.source) > 1
        return [id.split("/", 1)[0] if several else "" for id in self.source.dataset.ids]

    @property
    def steps_per_epoch(self) -> int:
        """How many batches make an epoch."""
        return self.source.steps_per_epoch(self.config.train.batch_size, self.config.data.repeats)

    @property
    def steps_done(self) -> int:
        """Steps since the beginning of the run."""
        return self.epoch * self.steps_per_epoch + self.step

    @property
    def counting_network(self) -> Network:
        """The network that is validated and kept: the running average of the weights, where there is one."""
        return self.network if self.average is None else cast(Network, self.average.module)

    def save(self) -> None:
        """Write the checkpoint; every process holds the same state, so the first one writes it alone."""
        if not self.fabric.is_global_zero:
            return
        tensors = checkpoint.nest("network", self.network.state_dict())
        tensors |= checkpoint.nest("optimizer", checkpoint.optimizer_tensors(self.optimizer))
        if self.average is not None:
            tensors |= checkpoint.nest("average", self.average.state_dict())
        memory = {name: torch.from_numpy(values) for name, values in getattr(self.partition, "memory_", {}).items()}
        tensors |= checkpoint.nest("memory", memory)
        if self.online:
            tensors["online"] = torch.stack(list(self.online.values()))
        info = {
            "epoch": self.epoch,
            "step": self.step,
            "labels": self.source.labels,
            "online": list(self.online),
            "sums": self.sums,
            "best": self.best,
            "precision": self.fabric.strategy.precision.state_dict(),
        }
        checkpoint.rotate_in(self.run.checkpoints, tensors, info)

    def restore(self) -> list[str]:
        """Restore the newest whole checkpoint; return what is wrong with newer ones."""
        tensors, info, problems = checkpoint.read_newest(self.run.checkpoints)
        self.network.load_state_dict(checkpoint.nested("network", tensors))
        checkpoint.restore_optimizer(self.optimizer, checkpoint.nested("optimizer", tensors))
        if self.average is not None:
            self.average.load_state_dict(checkpoint.nested("average", tensors))
        self.epoch, self.step, self.best, self.sums = (info[name] for name in ("epoch", "step", "best", "sums"))
        self.fabric.strategy.precision.load_state_dict(info["precision"])
        self.online = dict(zip(info["online"], tensors.get("online", ()), strict=True))
        memory = {name: values.numpy() for name, values in checkpoint.nested("memory", tensors).items()}
        if memory and isinstance(self.partition, WarmStartDomains):
            self.partition.restore(memory)
        if info["labels"]:
            self.source.relabel(info["labels"])
        return problems


def build_state(config: Config, folder: Path, fabric: Fabric) -> TrainState:
    """Make everything a run needs from its config: data, network, optimiser, method, partition."""
    train_part, validation = load_source(config)
    if (wanted := config.discovery.n_domains or 0) > len(train_part):
        reason = f"there are {len(train_part)} pictures to train on"
        raise InputError(f"discovery.n_domains={wanted}", reason, "take fewer, or null")
    if config.train.batch_size % fabric.world_size:
        reason = f"cannot be shared equally by {fabric.world_size} processes"
        raise InputError(f"train.batch_size={config.train.batch_size}", reason)
    method = build_method(config.method)
    model = config.model
    build = {
        "backbone": model.backbone,
        "dim": model.dim,
        "codewords": model.codewords,
        "dropout": model.dropout,
        "codebook": method.network_options["codebook"],
        **model.options,
    }
    torch.manual_seed(config.train.seed)
    if config.train.start is None:
        encoder = (model.weights or True) if model.pretrained else False
        network = build_network(**build, style=method.network_options["style"], pretrained=encoder)
    else:
        network = start_from(config.train.start, build, style=method.network_options["style"])
    data = config.data
    source = TrainingSet(
        train_part,
        config.augmentation,
        kernel=data.kernel,
        sigma=data.sigma,
        cell=network.backbone.cell,
        seed=config.train.seed,
        cache_bytes=int(data.cache_gigabytes * 2**30),
        max_side=data.max_side,
    )
    optimizer = build_optimizer(config, network)
    average = None
    if config.train.average > 0:
        rule = running_average(config.train.average)
        average = AveragedModel(network, multi_avg_fn=rule, use_buffers=True).to(fabric.device)
    forward, optimizer = fabric.setup(network.train(), optimizer)
    return TrainState(
        config=config,
        run=TrainingRun(folder),
        fabric=fabric,
        network=network,
        runner=Runner(fabric, network, forward, method),
        average=average,
        optimizer=optimizer,
        source=source,
        validation=validation,
        partition=choose_partition(config) if method.needs_domains else None,
        build=build,
    )


def load_source(config: Config) -> tuple[Dataset, Dataset | None]:
    """Return the part of the source to train on and the part kept aside to choose the model by."""
    data = config.data
    # The ids of several sources put together begin with these names.
    datasets = {name: load_training_part(path, data) for name, path in named(data.source).items()}
    known = {id for dataset in datasets.values() for id in dataset.ids}
    if unknown := [id for id in data.exclude if id not in known]:
        raise InputError(f"data.exclude: {unknown[0]}", "no source has a picture of that id", f"such as {min(known)}")
    datasets = {
        name: Dataset((sample for sample in dataset if sample.id not in data.exclude), format=dataset.format)
        for name, dataset in datasets.items()
    }
    source = next(iter(datasets.values())) if len(datasets) == 1 else concatenate(datasets)
    if len(source) < 2:
        raise InputError(", ".join(data.source), f"{len(source)} labelled pictures", "training needs at least 2")
    if data.validation == 0:
        if config.train.selection == "validation":
            raise InputError("train.selection=validation", "needs data.validation above 0", "or take selection=last")
        return source, None
    train_part, validation = source.split(1 - data.validation, seed=config.train.seed)
    if not validation or len(train_part) < 2:
        reason = f"leaves {len(train_part)} to train on and {len(validation)} to choose by"
        advice = "take another share, or data.validation=0 with train.selection=last"
        raise InputError(f"data.validation={data.validation} of {len(source)} pictures", reason, advice)
    return train_part, validation


def start_from(model: str, build: dict[str, Any], *, style: bool) -> Network:
    """Build a network with the weights of a model; a style branch, which no model has, starts afresh."""
    trained, _, _ = checkpoint.load_model(model)
    try:
        network = build_network(**build, style=style, pretrained=trained.backbone.encoder.state_dict())
        keys = network.load_state_dict(trained.state_dict(), strict=False)
        strange = [*keys.unexpected_keys, *(key for key in keys.missing_keys if not key.startswith("style"))]
    except RuntimeError as error:
        strange = [str(error).splitlines()[-1].strip()]
    if strange:
        raise InputError(
            f"train.start={model}", f"a network of another shape ({strange[0]})", "take its model and method settings"
        )
    return network


def load_training_part(path: AnyPath, data: DataConfig) -> Dataset:
    """Return the labelled training pictures of one data set."""
    dataset = load_dataset(path, data.format, skip_bad=True)
    # Data of one's own seldom has splits: all of it is then there to train on.
    everything = data.split == "all" or (data.split == "train" and set(dataset.labelled.split_sizes()) == {None})
    part = dataset if everything else dataset.where(data.split)
    refuse_problems(part, path)  # those of other parts are none of its business
    return part.labelled if everything else part.labelled.where(data.split)


def build_optimizer(config: Config, network: Network) -> torch.optim.Optimizer:
    """Return the optimiser: the pretrained encoder, and what turns features into density, in groups of their own."""
    train = config.train
    encoder = list(network.backbone.encoder.parameters())
    head = [*network.head.parameters(), *(network.codebook.parameters() if network.codebook is not None else [])]
    grouped = {id(parameter) for parameter in (*encoder, *head)}
    rest = [parameter for parameter in network.parameters() if id(parameter) not in grouped]
    groups = []
    for part, own_rate in ((encoder, train.encoder_learning_rate), (head, train.head_learning_rate), (rest, None)):
        rate = train.learning_rate if own_rate is None else own_rate
        groups.append({"params": part, "lr": rate, "peak": rate})
    kinds: dict[str, type[torch.optim.Adam]] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    return kinds[train.optimizer](groups, weight_decay=train.weight_decay)


def running_average(decay: float) -> Callable[[Any, Any, Tensor | int], None]:
    """Return the rule of the weights' running average.

    Until it has seen enough steps for ``decay`` it reaches back over about a tenth of them: with the full decay from
    the beginning, a short run would be judged by weights that are mostly those of its first step.
    """

    def update(averaged: Any, current: Any, seen: Tensor | int) -> None:
        now = min(decay, (1 + int(seen)) / (10 + int(seen)))
        get_ema_multi_avg_fn(now)(averaged, current, seen)  # type: ignore[no-untyped-call]

    return update


def choose_partition(config: Config) -> Partition:
    """Return the estimator that finds the latent domains, with its own defaults where the config gives nothing."""
    discovery = config.discovery
    if discovery.partition not in PARTITIONS:
        advice = f"choose one of {', '.join(PARTITIONS)}"
        raise InputError(f"discovery.partition={discovery.partition}", "there is no such partition", advice)
    return build_partition(discovery.partition, **vars(discovery), random_state=config.train.seed)
