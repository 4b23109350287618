"""Intervals that contain the true count in nine cases out of ten, by conformal prediction.

They are calibrated on labelled pictures that the model was not trained on. What is predicted is the log ratio

    y = log((truth + c) / (count + c)),

whose spread, unlike the error's, is similar in small and large crowds; c keeps it finite for empty scenes. Each of its
two tails, counts too high and counts too low, has a scale s, from a linear regression of log |y| on a few features over
the pictures of that tail. The quantile q leaves 5 % of the scores y / s of all calibration pictures outside; the end of
a new count's interval is (count + c) exp(s q) - c. This is split-conformal prediction with a normalised score,
cross-fitted: each score uses a scale fitted without its own picture, so that no picture is lost to the fit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gbdgc.counting.trust import FAR, PlainArrays
from gbdgc.errors import InputError

COVERAGE = 0.9
MIN_PICTURES = 20
"""With fewer, no picture lies beyond the 5 % quantiles."""
OFFSET = 5.0
"""People added to both counts of a ratio, so that counting 2 for 1 does not weigh like doubling a crowd."""
_FLOOR = 0.02  # added to |y|, since the logarithm of an exact count's error is infinite
_RIDGE = 5.0  # holds the weights of the features near 0 where there are few pictures
_FOLDS = 10
_TAILS = (-1, 1)
_ENOUGH = 10  # pictures from which on an error means more than chance
_REACH = 2.5  # standard deviations at which features are clipped, so that the scale does not extrapolate

Array = NDArray[np.float64]
Interval = tuple[float, float]


class Spread(NamedTuple):
    """The factors by which the truth may lie below and above a count."""

    low: float
    high: float

    def around(self, count: float) -> Interval:
        """Return the interval of a count, of the whole picture or of a part of it."""
        low, high = (max(0.0, (max(count, 0.0) + OFFSET) * factor - OFFSET) for factor in self)
        return low, high


@dataclass(frozen=True)
class Conformal(PlainArrays):
    """The calibration of a model's intervals, as the plain arrays that its file keeps."""

    mean: Array
    deviation: Array
    """Of the features."""
    weights: Array
    """Of the standardised features, an intercept first: one row for the lower tail, one for the upper."""
    quantiles: Array
    """Of the scores, in the same order."""
    far: Array
    """The novelty above which errors are twice as large as below; `FAR` if there is none."""

    @classmethod
    def fit(cls, truth: ArrayLike, features: Sequence[Array]) -> "Conformal":
        """Calibrate on labelled pictures: the true count of each, and its `features_of`."""
        x_NF = np.asarray(features, dtype=np.float64)
        size = len(x_NF)
        if size < MIN_PICTURES:
            reason = f"{size} labelled pictures to calibrate them on"
            raise InputError("intervals", reason, f"at least {MIN_PICTURES} are needed")
        # The log of count + c is the second feature.
        ratios = np.log(np.asarray(truth, dtype=np.float64) + OFFSET) - x_NF[:, 1]
        mean, deviation = x_NF.mean(axis=0), np.maximum(x_NF.std(axis=0), 1e-6)
        design = _design(x_NF, mean, deviation)
        fold = np.random.default_rng(0).permutation(size) % _FOLDS
        weights, quantiles = [], []
        for sign in _TAILS:
            scores = np.empty(size)
            for held_out in range(_FOLDS):
                own = fold == held_out
                scores[own] = sign * ratios[own] / np.exp(design[own] @ _regress(design[~own], sign * ratios[~own]))
            weights.append(_regress(design, sign * ratios))
            # Among n + 1, not n: so the coverage is that of the next picture.
            quantiles.append(np.quantile(scores, (1 + COVERAGE) / 2, method="weibull"))
        far = _where_errors_double(x_NF[:, 0], np.abs(ratios))
        return cls(mean, deviation, np.array(weights), np.array(quantiles), np.array([far]))

    def spread(self, features: Array) -> Spread:
        """Return the factors for one picture."""
        scales = np.exp(self.weights @ _design(features[None], self.mean, self.deviation)[0])
        low, high = np.exp(np.array(_TAILS) * scales * self.quantiles)
        return Spread(float(low), float(high))


def range_text(interval: Interval) -> str:
    """Return an interval in whole people, as shown in brackets after a count."""
    low, high = interval
    return f"{low:,.0f}–{high:,.0f}"


def features_of(count: float, novelty: float | None, width: int, height: int, max_side: int | None = None) -> Array:
    """Return what the spread of a count depends on: novelty, the count itself, and people per pixel.

    Pixels are those that the network saw, that is, after shrinking to ``max_side``.
    """
    people = max(count, 0.0) + OFFSET
    shrunk = 1.0 if max_side is None else min(1.0, max_side / max(width, height))
    return np.array([novelty or 0.0, np.log(people), np.log(people / (shrunk**2 * width * height))])


def _where_errors_double(novelty: Array, errors: Array) -> float:
    """Return the lowest novelty above which the mean error is at least twice that of the pictures below it."""
    for limit in np.arange(0.5, FAR, 0.01):
        beyond = novelty > limit
        if beyond.sum() < _ENOUGH or beyond.all():
            continue
        if errors[beyond].mean() >= 2 * errors[~beyond].mean():
            return float(limit)
    return FAR


def _design(x_NF: Array, mean: Array, deviation: Array) -> Array:
    standardised = np.clip((x_NF - mean) / deviation, -_REACH, _REACH)
    return np.column_stack([np.ones(len(x_NF)), standardised])


def _regress(design: Array, errors: Array) -> Array:
    """Fit the log of the errors of one tail, which are positive; the ridge leaves the intercept alone."""
    own = errors > 0 if (errors > 0).sum() >= _ENOUGH else np.full(len(errors), True)
    ridge = np.diag([0.0] + [_RIDGE] * (design.shape[1] - 1))
    return np.linalg.solve(design[own].T @ design[own] + ridge, design[own].T @ np.log(np.abs(errors[own]) + _FLOOR))
