"""Errors with their intervals, overall and by density, size, brightness and tag."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gbdgc.evaluation.intervals import Values, bootstrap, paired_bootstrap
from gbdgc.evaluation.table import Row, tag_names

Summary = dict[str, Any]
"""Nested values that can be written as JSON."""

_FEW = 5  # pictures below which a poor error may be chance

_DENSITY = {"0": 0, "1-100": 100, "101-500": 500, "501-5000": 5000, "over 5000": None}
"""NWPU-Crowd's bands of the true count, by their upper ends."""

_SIZE = {"up to 640": 640, "641-1024": 1024, "1025-2048": 2048, "over 2048": None}  # bands of the longer side in pixels

_BRIGHTNESS = {"up to 60": 60, "60-120": 120, "over 120": None}  # bands of the mean luminance, 0 to 255


def mae(truth: Values, count: Values) -> Any:
    """Mean absolute error."""
    return np.abs(count - truth).mean(axis=-1)


def rmse(truth: Values, count: Values) -> Any:
    """Root of the mean squared error, which the field's papers call MSE."""
    return np.sqrt(np.square(count - truth).mean(axis=-1))


def nae(truth: Values, count: Values) -> Any:
    """Mean of the absolute error relative to the true count, over the pictures with people in them."""
    people = truth > 0
    shares = np.abs(count - truth) * people / np.where(people, truth, 1)
    with np.errstate(invalid="ignore"):
        return shares.sum(axis=-1) / people.sum(axis=-1)


def bias(truth: Values, count: Values) -> Any:
    """Mean signed error: positive where too many are counted."""
    return (count - truth).mean(axis=-1)


METRICS: dict[str, Callable[[Values, Values], Any]] = {"mae": mae, "rmse": rmse, "nae": nae, "bias": bias}


def summarise(rows: Sequence[Row]) -> dict[str, float]:
    """Return the errors of labelled pictures as plain numbers, and how many pictures there were."""
    truth, count = _arrays(rows)
    values = {metric.__name__: float(metric(truth, count)) if len(truth) else 0.0 for metric in (mae, rmse, bias)}
    return values | {"images": len(truth), "mean": float(truth.mean()) if len(truth) else 0.0}


def unbiased_gain(summary: Mapping[str, float]) -> float:
    """Return the factor that removes the bias from counts with this summary; 1 if it is within two standard errors."""
    error = math.sqrt(max(0.0, summary["rmse"] ** 2 - summary["bias"] ** 2) / max(1, summary["images"]))
    counted = summary["mean"] + summary["bias"]
    return summary["mean"] / counted if abs(summary["bias"]) > 2 * error and counted > 0 else 1.0


def errors(rows: Sequence[Row], *, seed: int = 0) -> Summary:
    """Return how many labelled pictures there are, and each metric with its interval."""
    truth, count = _arrays(rows)
    made = {name: bootstrap(metric, truth, count, seed=seed)._asdict() for name, metric in METRICS.items()}
    return {"images": len(truth)} | made


def doubt(rows: Sequence[Row]) -> str | None:
    """Explain why counts are no better than a constant; None if they are better."""
    truth, count = _arrays(rows)
    if len(truth) < _FEW or truth.std() == 0:
        return None
    if count.std() < 0.05 * truth.std():
        return f"all counts are about {count.mean():.0f}, where there are {truth.min():.0f} to {truth.max():.0f} people"
    if (own := mae(truth, count)) >= (constant := np.abs(truth - truth.mean()).mean()):
        return f"worse than always saying {truth.mean():.0f}, the mean: off by {own:.1f} instead of {constant:.1f}"
    return None


def full_summary(rows: Sequence[Row]) -> Summary:
    """Return the errors overall, by band of the true count, by longer side, by brightness, and by each tag's values."""
    labelled = [row for row in rows if row.truth is not None]
    measured = [row for row in labelled if row.brightness is not None]  # not in tables of earlier versions
    return errors(labelled) | {
        "unlabelled": len(rows) - len(labelled),
        "by_density": _by(labelled, lambda row: _band(row.truth or 0, _DENSITY), _DENSITY),
        "by_size": _by(labelled, lambda row: _band(max(row.width, row.height), _SIZE), _SIZE),
        "by_brightness": _by(measured, lambda row: _band(row.brightness or 0, _BRIGHTNESS), _BRIGHTNESS),
        "by_tag": {tag: _by_tag(labelled, tag) for tag in tag_names(row.tags for row in labelled)},
    }


def compare(rows: Sequence[Row], others: Sequence[Row]) -> Summary:
    """Return by how much ``rows`` are better than ``others``, on the labelled pictures that both have."""
    theirs = {row.key: row for row in others if row.truth is not None}
    pairs = [(row, theirs[row.key]) for row in rows if row.key in theirs and theirs[row.key].truth == row.truth]
    truth, count = _arrays([mine for mine, _ in pairs])
    other = np.array([their.count for _, their in pairs], dtype=np.float64)
    gains = {name: paired_bootstrap(METRICS[name], truth, count, other) for name in ("mae", "rmse")}
    return {"images": len(pairs)} | {name: gain._asdict() for name, gain in gains.items()}


def _arrays(rows: Iterable[Row]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    labelled = [(row.truth, row.count) for row in rows if row.truth is not None]
    truth, count = np.array(labelled, dtype=np.float64).reshape(-1, 2).T
    return truth, count


def _by(rows: Sequence[Row], key: Callable[[Row], str], names: Iterable[str]) -> Summary:
    groups: dict[str, list[Row]] = {name: [] for name in names}
    for row in rows:
        groups[key(row)].append(row)
    return {name: errors(group) for name, group in groups.items() if group}


def _by_tag(rows: Sequence[Row], tag: str) -> Summary:
    tagged = [row for row in rows if tag in row.tags]
    return _by(tagged, lambda row: row.tags[tag], sorted({row.tags[tag] for row in tagged}))


def _band(value: float, bands: Mapping[str, int | None]) -> str:
    return next(name for name, upper in bands.items() if upper is None or value <= upper)
