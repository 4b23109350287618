"""Counting labelled pictures into rows."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, cast

from gbdgc.counting import Counter, Failure, Result, count_sources
from gbdgc.counting.engines import TorchEngine
from gbdgc.data import Dataset, Sample
from gbdgc.data.images import mean_luminance
from gbdgc.evaluation.localisation import match_all, people_near
from gbdgc.evaluation.table import Row
from gbdgc.models import Network

WHOLE = 4096
"""Pictures up to this longer side are counted whole, as the protocol asks; larger ones in windows, to bound memory."""


class Unreadable(NamedTuple):
    """A picture that could not be counted, and why."""

    data: str
    id: str
    reason: str


def count_rows(counter: Counter, samples: Iterable[Sample], data: str) -> Iterator[Row | Unreadable]:
    """Count pictures one after another, as the rows are asked for."""
    for sample, outcome in counted(counter, samples):
        if isinstance(outcome, Failure):
            yield Unreadable(data, sample.id, str(outcome.error))
        else:
            low, high = outcome.interval or (None, None)
            matches: dict[str, int] = {}
            near = None
            if sample.points is not None:
                matches = {"points": len(outcome.points)} | match_all(outcome.points[:, :2], sample.points)
                near = people_near(outcome.cells, outcome.stride, sample.points)
            yield Row(
                id=sample.id,
                truth=sample.count,
                count=outcome.count,
                width=sample.width,
                height=sample.height,
                milliseconds=outcome.milliseconds,
                data=data,
                domain=outcome.domain,
                novelty=outcome.novelty,
                low=low,
                high=high,
                tags=sample.tags,
                near_16px=near,
                brightness=None if outcome.image is None else mean_luminance(outcome.image),
                **matches,
            )


def count_dataset(
    network: Network, dataset: Dataset, *, max_side: int | None = None, test_scale: float = 1.0
) -> list[Row]:
    """Count every labelled picture by a network that may be in training."""
    was_training = network.training
    engine = TorchEngine(network, device=str(next(network.parameters()).device))
    counter = Counter(engine, max_side=max_side, test_scale=test_scale, tile=WHOLE)
    rows = []
    for sample, outcome in counted(counter, dataset.labelled):
        if isinstance(outcome, Failure):
            raise outcome.error
        rows.append(Row(sample.id, sample.count, outcome.count, sample.width, sample.height, outcome.milliseconds))
    network.train(was_training)
    return rows


def counted(counter: Counter, samples: Iterable[Sample]) -> Iterator[tuple[Sample, Result | Failure]]:
    """Return each sample with its result or failure."""
    samples = list(samples)
    outcomes = count_sources(counter, [sample.image for sample in samples])
    # Pictures give one result or failure each.
    return zip(samples, cast(Iterator[Result | Failure], outcomes), strict=True)
