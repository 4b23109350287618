"""Pictures in, rows out."""

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import torch

from gbdgc.data import Dataset, Sample
from gbdgc.data.images import read_image
from gbdgc.data.transforms import limit_side, normalise
from gbdgc.errors import InputError
from gbdgc.evaluation.table import Row
from gbdgc.models import Network
from gbdgc.result import Result


class Unreadable(NamedTuple):
    """A picture that could not be counted, and why."""

    data: str
    id: str
    reason: str


def count_rows(count: Callable[[Path], Result], samples: Iterable[Sample], data: str) -> Iterator[Row | Unreadable]:
    """Count pictures one at a time, as they are asked for; ``count`` is a `Counter` or anything like it."""
    for sample in samples:
        try:
            result = count(sample.image)
        except InputError as error:
            yield Unreadable(data, sample.id, str(error))
            continue
        yield Row(
            id=sample.id,
            truth=sample.count,
            count=result.count,
            width=sample.width,
            height=sample.height,
            milliseconds=result.milliseconds,
            data=data,
            domain=result.domain,
            novelty=result.novelty,
            tags=sample.tags,
        )


def count_dataset(network: Network, dataset: Dataset, *, max_side: int | None = None) -> list[Row]:
    """Count every labelled picture whole, one at a time, by a network that may be in training."""
    device = next(network.parameters()).device
    was_training = network.training
    network.eval()
    rows = []
    for sample in dataset.labelled:
        image = limit_side(read_image(sample.image), max_side)
        started = time.perf_counter()
        with torch.inference_mode():
            density = network.count_map(torch.from_numpy(normalise(image))[None].to(device))
        count = float(density.cpu().double().sum())  # not every device has 64 bits
        milliseconds = 1000 * (time.perf_counter() - started)
        rows.append(Row(sample.id, sample.count, count, sample.width, sample.height, milliseconds))
    network.train(was_training)
    return rows
