"""Calibrating the intervals of counts on labelled pictures, and measuring their coverage."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from gbdgc import checkpoint
from gbdgc.counting.conformal import COVERAGE, Conformal, features_of
from gbdgc.evaluation.table import Row
from gbdgc.files import AnyPath


def save_calibrated(model: AnyPath, out: Path, rows: Sequence[Row], max_side: int | None) -> Conformal:
    """Write a copy of a model with intervals calibrated on these pictures."""
    labelled = [row for row in rows if row.truth is not None]
    features = [features_of(row.count, row.novelty, row.width, row.height, max_side, row.domain) for row in labelled]
    conformal = Conformal.fit([row.truth or 0 for row in labelled], features)
    tensors = {name: torch.from_numpy(np.asarray(values)) for name, values in conformal.to_arrays().items()}
    about = {"coverage": COVERAGE, "images": len(labelled), "data": sorted({row.data for row in rows})}
    checkpoint.amend_model(model, out, {"calibration": about}, checkpoint.nest("conformal", tensors))
    return conformal


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
