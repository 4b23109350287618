"""Bootstrap intervals: percentiles over resampled pictures, for one run or for the difference between two."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Statistic = Callable[..., Any]
"""From arrays with pictures along the last axis to one number for each leading index."""

DRAWS = 2000
_COVERAGE = 0.95
_CHUNK = 4_000_000  # resampled values held at once: some tens of megabytes


class Estimate(NamedTuple):
    """A number with its interval; the ends are None where there is too little data."""

    value: float | None
    low: float | None
    high: float | None


def bootstrap(statistic: Statistic, *samples: Values, seed: int = 0, draws: int = DRAWS) -> Estimate:
    """Return a statistic of pictures, such as `metrics.mae`, with its 95 % percentile interval.

    The samples are arrays of equal length. They are resampled ``draws`` times, with replacement and together, so that
    the values of one picture stay together.
    """
    size = len(samples[0])
    value = _number(statistic(*samples)) if size else None
    if size < 2:
        return Estimate(value, None, None)
    random = np.random.default_rng(seed)
    replicates = []
    for first in range(0, draws, step := max(1, _CHUNK // size)):
        chosen = random.integers(0, size, (min(step, draws - first), size))
        replicates.append(statistic(*(sample[chosen] for sample in samples)))
    tail = 100 * (1 - _COVERAGE) / 2
    # A resample may hold nothing that the statistic is defined on: it says nothing, and is left out.
    values = np.concatenate(replicates)
    values = values[~np.isnan(values)]
    low, high = np.percentile(values, [tail, 100 - tail]) if len(values) else (np.nan, np.nan)
    return Estimate(value, _number(low), _number(high))


def paired_bootstrap(statistic: Statistic, truth: Values, first: Values, second: Values) -> Estimate:
    """Return how much lower a statistic is for the first counts than for the second, on the same pictures.

    Both runs are resampled together, so that what makes a picture hard for both cancels out.
    """

    def gain(truth: Values, first: Values, second: Values) -> Any:
        return statistic(truth, second) - statistic(truth, first)

    return bootstrap(gain, truth, first, second)


def _number(value: Any) -> float | None:
    """NaN is not JSON, and not a number to show."""
    return None if np.isnan(value) else float(value)
