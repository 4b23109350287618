"""Calibrating the intervals of counts on labelled pictures, and measuring their coverage."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from gbdgc import checkpoint
from gbdgc.counting.conformal import COVERAGE, Conformal, features_of
from gbdgc.evaluation.table import Row


def calibrate(rows: Sequence[Row], max_side: int | None) -> Conformal:
    """Calibrate the intervals of a model on its counts of labelled pictures, shrunk to this longer side."""
    labelled = [row for row in rows if row.truth is not None]
    return Conformal.fit([row.truth or 0 for row in labelled], [_features(row, max_side) for row in labelled])


def save_calibrated(model: str | os.PathLike[str], out: Path, rows: Sequence[Row], max_side: int | None) -> Conformal:
    """Write a copy of a model with intervals calibrated on these pictures."""
    conformal = calibrate(rows, max_side)
    tensors = {name: torch.from_numpy(np.asarray(values)) for name, values in conformal.to_arrays().items()}
    labelled, data = sum(row.truth is not None for row in rows), sorted({row.data for row in rows})
    about = {"coverage": COVERAGE, "images": labelled, "data": data}
    checkpoint.amend_model(model, out, {"calibration": about}, checkpoint.nest("conformal", tensors))
    return conformal


def with_intervals(rows: Sequence[Row], conformal: Conformal, max_side: int | None) -> list[Row]:
    """Return the rows with the intervals that a calibration gives them."""
    ends = [conformal.spread(_features(row, max_side)).around(row.count) for row in rows]
    return [replace(row, low=low, high=high) for row, (low, high) in zip(rows, ends, strict=True)]


def coverage(rows: Sequence[Row]) -> dict[str, float] | None:
    """Return how many true counts lie within their intervals, and how wide those are; None where there are none.

    The width is the median of the upper end over the lower one, a person added to both.
    """
    ends = [(row.truth, row.low, row.high) for row in rows if None not in (row.truth, row.low, row.high)]
    if not ends:
        return None
    truth, low, high = np.array(ends, dtype=np.float64).T
    inside = (low <= truth) & (truth <= high)
    return {"share": float(inside.mean()), "width": float(np.median((high + 1) / (low + 1)))}


def _features(row: Row, max_side: int | None) -> NDArray[np.float64]:
    return features_of(row.count, row.novelty, row.width, row.height, max_side, row.domain)
