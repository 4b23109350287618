"""The numbers that papers have published, to stand beside ours. Their "MSE" is the root: here it is called rmse."""

import csv
from importlib.resources import files
from typing import Any, NamedTuple


class Transfer(NamedTuple):
    """An error on a data set that the model has not seen."""

    table: str
    """The paper's table: transfer, nwpu, partition, k or components."""
    method: str
    venue: str
    source: str
    target: str
    mae: float
    rmse: float


class Separation(NamedTuple):
    """How far apart the median counts of a partition's domains lie."""

    source: str
    partition: str
    delta_median: float
    sigma_median: float


def transfers(table: str) -> list[Transfer]:
    """Return the rows of one of the paper's tables of errors, in its order."""
    return [
        Transfer(**{**line, "mae": float(line["mae"]), "rmse": float(line["rmse"])})
        for line in _lines("published_transfers.csv")
        if line["table"] == table
    ]


def separations() -> list[Separation]:
    """Return the rows of the paper's table of count separation, in its order."""
    return [
        Separation(line["source"], line["partition"], float(line["delta_median"]), float(line["sigma_median"]))
        for line in _lines("published_separation.csv")
    ]


def _lines(name: str) -> list[dict[str, Any]]:
    text = (files("gbdgc.published") / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
