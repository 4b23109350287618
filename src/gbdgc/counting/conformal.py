"""Intervals that contain the true count in nine cases out of ten, by conformal prediction.

They are calibrated on labelled pictures that the model was not trained on. What is predicted is the log ratio

    y = log((truth + c) / (count + c)),

whose spread, unlike the error's, is similar in small and large crowds; c keeps it finite for empty scenes. Each of its
two tails, counts too high and counts too low, has a scale s, from a linear regression of log |y| on a few features over
the pictures of that tail, and from how far the pictures of the same latent domain lie above or below that: otherwise
streets would have intervals as wide as the hardest crowds need. The quantile q leaves 5 % of the scores y / s of all
calibration pictures outside; the end of a new count's interval is (count + c) exp(s q) - c. This is split-conformal
prediction with a normalised score, cross-fitted: each score uses a scale fitted without its own picture, so that no
picture is lost to the fit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gbdgc.counting.trust import FAR, PlainArrays, Shapes
from gbdgc.errors import InputError

COVERAGE = 0.9
MIN_PICTURES = 20
"""With fewer, no picture lies beyond the 5 % quantiles."""
OFFSET = 5.0
"""People added to both counts of a ratio, so that counting 2 for 1 does not weigh like doubling a crowd."""
_FLOOR = 0.005  # added to |y|, since the logarithm of an exact count's error is infinite
_RIDGE = 5.0  # holds the weights of the features near 0 where there are few pictures
_FOLDS = 10
_TAILS = (-1, 1)
_ENOUGH = 10  # pictures from which on an error means more than chance
_FEATURES = 3  # as `features_of` returns them, before the domain
_DOMAIN_RIDGE = 5.0  # pictures of a domain that halve what it adds to the scale
_MOST_LOG = 50.0  # beyond all people there are; a file may hold weights whose exponential overflows
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

    shapes: ClassVar[Shapes] = {
        "mean": (_FEATURES,),
        "deviation": (_FEATURES,),
        "weights": (len(_TAILS), 1 + _FEATURES),
        "domains": (len(_TAILS), "K"),
        "quantiles": (len(_TAILS),),
        "far": (1,),
    }

    mean: Array
    deviation: Array
    """Mean and deviation of the features."""
    weights: Array
    """The weights of the standardised features, an intercept first: one row for the lower tail, one for the upper."""
    domains: Array
    """The addition of each latent domain to the log of the scale, in the same order."""
    quantiles: Array
    """The quantiles of the scores, in the same order."""
    far: Array
    """The novelty above which errors are twice as large as below; `FAR` if there is none."""

    @classmethod
    def fit(cls, truth: ArrayLike, features: Sequence[Array]) -> "Conformal":
        """Calibrate on labelled pictures: the true count of each, and its `features_of`."""
        size = len(features)
        if size < MIN_PICTURES:
            reason = f"{size} labelled pictures to calibrate them on"
            raise InputError("intervals", reason, f"at least {MIN_PICTURES} are needed")
        x_NF, domain_N1 = np.split(np.asarray(features, dtype=np.float64), [_FEATURES], axis=1)
        domain_N = domain_N1[:, 0].astype(np.intp)
        number = max(1, int(domain_N.max()) + 1)
        # The log of count + c is the second feature.
        ratios = np.log(np.asarray(truth, dtype=np.float64) + OFFSET) - x_NF[:, 1]
        mean, deviation = x_NF.mean(axis=0), np.maximum(x_NF.std(axis=0), 1e-6)
        design = _design(x_NF, mean, deviation)
        fold = np.random.default_rng(0).permutation(size) % _FOLDS
        weights, domains, quantiles = [], [], []
        for sign in _TAILS:
            scores = np.empty(size)
            for held_out in range(_FOLDS):
                own = fold == held_out
                line, offsets = _regress(design[~own], sign * ratios[~own], domain_N[~own], number)
                scale = np.exp(design[own] @ line + _of_domain(offsets, domain_N[own]))
                scores[own] = sign * ratios[own] / scale
            line, offsets = _regress(design, sign * ratios, domain_N, number)
            weights.append(line)
            domains.append(offsets)
            # Among n + 1, not n: so the coverage is that of the next picture.
            quantiles.append(np.quantile(scores, (1 + COVERAGE) / 2, method="weibull"))
        far = _where_errors_double(x_NF[:, 0], np.abs(ratios))
        return cls(mean, deviation, np.array(weights), np.array(domains), np.array(quantiles), np.array([far]))

    def problem(self) -> str:
        """Say what is wrong with the numbers themselves; empty where nothing is."""
        if self.deviation.min() <= 0:
            return "deviation: not above 0"
        if self.quantiles.max() < 0:  # one may be, where nearly all counts were too low, or too high
            return "quantiles: both below 0"
        if not 0 <= self.far[0] <= 1:
            return "far: not between 0 and 1"
        return ""

    def spread(self, features: Array) -> Spread:
        """Return the factors for one picture."""
        design, domain = _design(features[None, :_FEATURES], self.mean, self.deviation)[0], int(features[-1])
        offsets = np.array([float(_of_domain(own, np.array([domain]))[0]) for own in self.domains])
        scales = np.exp(_bounded(self.weights @ design + offsets))
        low, high = np.exp(_bounded(np.array(_TAILS) * scales * self.quantiles))
        return Spread(float(low), float(high))


def range_text(interval: Interval) -> str:
    """Return an interval in whole people, as shown in brackets after a count."""
    low, high = interval
    return f"{low:,.0f}–{high:,.0f}"


def features_of(
    count: float,
    novelty: float | None,
    width: int,
    height: int,
    max_side: int | None = None,
    domain: int | None = None,
) -> Array:
    """Return what the spread of a count depends on: novelty, the count itself, people per pixel, the latent domain.

    Pixels are those that the network saw, that is, after shrinking to ``max_side``.
    """
    people = max(count, 0.0) + OFFSET
    shrunk = 1.0 if max_side is None else min(1.0, max_side / max(width, height))
    density = people / (shrunk**2 * width * height)
    return np.array([novelty or 0.0, np.log(people), np.log(density), -1 if domain is None else domain])


def _where_errors_double(novelty: Array, errors: Array) -> float:
    """Return the lowest novelty above which the mean error is at least twice that of the pictures below it."""
    for limit in np.arange(0.5, FAR, 0.01):
        beyond = novelty > limit
        if beyond.sum() < _ENOUGH or beyond.all():
            continue
        if errors[beyond].mean() >= 2 * errors[~beyond].mean():
            return float(limit)
    return FAR


def _bounded(logarithms: Array) -> Array:
    return np.clip(logarithms, -_MOST_LOG, _MOST_LOG)


def _design(x_NF: Array, mean: Array, deviation: Array) -> Array:
    standardised = np.clip((x_NF - mean) / deviation, -_REACH, _REACH)
    return np.column_stack([np.ones(len(x_NF)), standardised])


def _regress(design: Array, errors: Array, domain_N: NDArray[np.intp], number: int) -> tuple[Array, Array]:
    """Fit the log of the errors of one tail, which are positive: by the features, and what each domain adds to that.

    The ridge leaves the intercept alone.
    """
    own = errors > 0 if (errors > 0).sum() >= _ENOUGH else np.full(len(errors), True)
    design, logs, domain_N = design[own], np.log(np.abs(errors[own]) + _FLOOR), domain_N[own]
    ridge = np.diag([0.0] + [_RIDGE] * (design.shape[1] - 1))
    line = np.linalg.solve(design.T @ design + ridge, design.T @ logs)
    left, known = logs - design @ line, domain_N >= 0
    sums = np.bincount(domain_N[known], left[known], minlength=number)
    return line, sums / (np.bincount(domain_N[known], minlength=number) + _DOMAIN_RIDGE)


def _of_domain(offsets: Array, domain_N: NDArray[np.intp]) -> Array:
    """Return what each picture's domain adds; nothing where the calibration has not seen it."""
    seen = (domain_N >= 0) & (domain_N < len(offsets))
    return np.where(seen, offsets[np.where(seen, domain_N, 0)], 0.0)
