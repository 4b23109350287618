"""How steady the pseudo-domains are from epoch to epoch, in real training.

Plain regression is trained once, and every partition follows the models that it leaves after each epoch. So all of them
see the same descriptors, and none moves the network that it is judged on.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gbdgc.benchmark.declaration import Benchmark, Cell, Settings
from gbdgc.benchmark.layout import Column, Line, Table, by_source, notes, over_seeds
from gbdgc.benchmark.protocol import source_alone, source_settings
from gbdgc.benchmark.tables.partition import PARTITION_ROWS
from gbdgc.errors import InputError
from gbdgc.runs import TrainingRun

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FROM = 3
"""Epochs are compared after this one: before it, the network itself changes too much."""
_PAPER = "granular balls"
_EVERY_EPOCH = "train.keep_epochs=1000"
_MEASURES: dict[str, Column] = {
    "churn": ("churn, %",),
    "ari": ("ARI, %",),
    "nmi": ("NMI, %",),
    "ari_to_paper": ("ARI to the paper's, %",),
}


def follow_partitions(run: TrainingRun, source: str, target: str | None, settings: Settings) -> Cell:
    """Return for each partition how much it changes from one epoch to the next, and its agreement with the paper's.

    Each is given its own labels of the epoch before, as in training.
    """
    from sklearn.metrics import adjusted_rand_score  # here, as the help lists the tables

    from gbdgc.config import load_config
    from gbdgc.domains import stability
    from gbdgc.training.state import choose_partition

    if len(models := run.epoch_models) < _FROM + 2:
        reason = f"keeps the models of {len(models)} epochs, and {_FROM + 2} are needed"
        raise InputError(run.folder, reason, "delete it, and it is trained again")
    epochs = [_describe(model, source, settings) for model in models]
    history: dict[str, list[NDArray[np.int64]]] = {}
    for name, overrides in PARTITION_ROWS.items():
        own = ["data.source=[]", *source_settings(source), *settings.overrides, *overrides]
        partition = choose_partition(load_config(settings.config, [*own, f"train.seed={run.config['train']['seed']}"]))
        labels = history.setdefault(name, [])
        for z_ND in epochs:
            previous = labels[-1] if labels else None
            labels.append(partition.fit(z_ND, [""] * len(z_ND), previous_labels=previous).labels_)
    partitions = {}
    for name, labels in history.items():
        rows = stability(labels)[_FROM:]
        means = {key: math.fsum(getattr(row, key) for row in rows) / len(rows) for key in ("churn", "ari", "nmi")}
        pairs = list(zip(history[_PAPER], labels, strict=True))[_FROM:]
        means["ari_to_paper"] = math.fsum(adjusted_rand_score(*pair) for pair in pairs) / len(pairs)
        partitions[name] = means
    return {"images": len(epochs[0]), "epochs": len(epochs), "partitions": partitions}


def layout(benchmark: Benchmark, cells: Sequence[Cell]) -> list[Table]:
    """Show a section per source; nothing is published to compare with."""
    lines = []
    for source, of_source in by_source(cells).items():
        for name in PARTITION_ROWS:
            followed = [cell["partitions"][name] for cell in of_source]
            values = {column: over_seeds([100 * row[key] for row in followed]) for key, column in _MEASURES.items()}
            lines.append(Line((source, name), values, source))
    shown = [*notes(cells), f"each epoch against the one before, mean over those after epoch {_FROM}"]
    columns, heads, levels = list(_MEASURES.values()), ("Source", "Partition"), ("Measure",)
    return [Table(benchmark.name, benchmark.caption, columns, lines, shown, heads, levels, marks_best=False)]


def _describe(model: Path, source: str, settings: Settings) -> "NDArray[np.float32]":
    """Describe the training pictures of a source by a model, as discovery does."""
    from gbdgc import checkpoint
    from gbdgc.config import load_config
    from gbdgc.data.loading import descriptor_images
    from gbdgc.descriptors import describe

    network, _, _ = checkpoint.load_model(model)
    discovery = load_config(settings.config, ["data.source=[]", *settings.overrides]).discovery
    images = descriptor_images(settings.source(source), size=discovery.image_size)
    return describe(network, images, levels=discovery.levels)[1]


STABILITY = Benchmark(
    name="stability",
    caption="How steady the pseudo-domains are from epoch to epoch",
    variants={"plain regression": ["method.name=erm", _EVERY_EPOCH]},
    pairs=source_alone,
    measure=follow_partitions,
    layout=layout,
    least_epochs=_FROM + 2,
)
