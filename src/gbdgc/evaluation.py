"""From counted pictures to numbers: a row a picture first, and everything else from these rows."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from gbdgc.data import Dataset
from gbdgc.data.images import read_image
from gbdgc.data.transforms import limit_side, normalise
from gbdgc.models import Network


@dataclass(frozen=True)
class Row:
    """One counted picture."""

    id: str
    truth: int
    count: float
    width: int
    height: int
    milliseconds: float

    @property
    def error(self) -> float:
        """How many too many."""
        return self.count - self.truth


def count_dataset(network: Network, dataset: Dataset, *, max_side: int | None = None) -> list[Row]:
    """Count every labelled picture whole, one at a time."""
    device = next(network.parameters()).device
    was_training = network.training
    network.eval()
    rows = []
    for sample in dataset.labelled:
        image = limit_side(read_image(sample.image), max_side)
        started = time.perf_counter()
        with torch.inference_mode():
            count = float(network.count_map(torch.from_numpy(normalise(image))[None].to(device)).double().sum())
        milliseconds = 1000 * (time.perf_counter() - started)
        rows.append(Row(sample.id, sample.count or 0, count, sample.width, sample.height, milliseconds))
    network.train(was_training)
    return rows


def summarise(rows: Sequence[Row]) -> dict[str, float]:
    """Return the mean absolute error, the root of the mean squared one (the field's "MSE"), bias and how many."""
    errors = [row.error for row in rows]
    count = max(1, len(errors))
    return {
        "mae": sum(abs(error) for error in errors) / count,
        "rmse": math.sqrt(sum(error**2 for error in errors) / count),
        "bias": sum(errors) / count,
        "images": len(errors),
    }
