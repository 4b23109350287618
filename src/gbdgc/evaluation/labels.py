"""Checking labels against a model: which pictures have heads labelled where it sees nobody."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from gbdgc.counting import Counter, Failure, Result
from gbdgc.counting.tiling import sum_cells
from gbdgc.data import Sample
from gbdgc.data.sample import Points
from gbdgc.evaluation.counting import counted

_BLUR = 12  # pixels: a label is a click somewhere on a head, and the density is no sharper
_FLOOR = 0.02  # a head in a place where nobody is seen at all counts as in one with this share of the mean density


@dataclass(frozen=True)
class LabelFit:
    """How well a picture's labels fit it."""

    sample: Sample
    score: float
    """See `label_score`."""
    count: float
    """The model's own count."""


def label_score(result: Result, heads: Points) -> float:
    """Return the mean log density at the labelled heads, less the log of the picture's mean density.

    1 or more is usual; at 0 the heads lie no better than random places in the picture, and below 0 where the model sees
    fewer people than elsewhere: labels of another picture, or shifted, or mirrored.
    """
    from scipy.ndimage import gaussian_filter

    step = max(1, 4 // result.stride)
    side = step * result.stride
    level = gaussian_filter(sum_cells(result.cells, step).astype(np.float64), _BLUR / side)
    relative = np.maximum(level / max(level.mean(), np.finfo(float).tiny), _FLOOR)
    column, row = np.clip(heads // side, 0, np.array(level.shape[::-1]) - 1).astype(int).T
    return float(np.log(relative[row, column]).mean())


def check_labels(counter: Counter, samples: Iterable[Sample]) -> Iterator[LabelFit]:
    """Yield how well the labels of each picture fit it; pictures without heads or that do not decode are skipped."""
    labelled = [sample for sample in samples if sample.points is not None and np.isfinite(sample.points).any()]
    for sample, outcome in counted(counter, labelled):
        if not isinstance(outcome, Failure) and sample.points is not None:
            heads = sample.points[np.isfinite(sample.points).all(axis=1)]
            if len(heads):
                yield LabelFit(sample, label_score(outcome, heads), outcome.count)
