"""Division of descriptors into granular balls: the paper's Algorithm 1 up to the final balls.

The compiled division is in ``kernels.py``; the tests have a plain NumPy version of it and each equation as a function.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gbdgc.domains import kernels
from gbdgc.domains.reduction import chunks
from gbdgc.domains.tree import REASONS, BallTree, Floats
from gbdgc.errors import InputError


@dataclass(frozen=True)
class DivisionRules:
    """The parameters that decide whether and how a ball is split; see `GranularBallDomains`."""

    split_margin: float = 1.05
    sharpness: float | str = "sqrt"
    max_depth: int = 8
    min_ball_size: int = 1
    max_iter: int = 10
    weight_power: str = "assignment"

    def __post_init__(self) -> None:
        if self.sharpness != "sqrt" and (isinstance(self.sharpness, str) or not 1 < self.sharpness < math.inf):
            raise InputError("", f"sharpness is {self.sharpness!r}", "give 'sqrt' or a number above 1")
        if not 0 < self.split_margin < math.inf:
            raise InputError("", f"split_margin is {self.split_margin}", "give a positive number, such as 1.05")
        for name, least in (("max_depth", 0), ("min_ball_size", 1), ("max_iter", 1)):
            value = getattr(self, name)
            if value != int(value) or value < least:
                raise InputError("", f"{name} is {value}", f"give a whole number of at least {least}")
        if self.weight_power not in ("assignment", "objective"):
            raise InputError("", f"weight_power is {self.weight_power!r}", "give 'assignment' or 'objective'")

    @property
    def beta(self) -> float:
        """The sharpness as the equations take it: 0 stands for "sqrt"."""
        return 0.0 if self.sharpness == "sqrt" else float(self.sharpness)


class Grid(NamedTuple):
    """Descriptors as integers; ``origin + unit * rows`` converts them back."""

    rows: kernels.Rows
    origin: Floats
    unit: float


def on_grid(Z: Floats, *, overwrite: bool = False) -> Grid:
    """Round descriptors to integers, fine enough not to matter and coarse enough to be summed without rounding.

    The grid is centred on the range and scaled to its largest half-width, so the result does not depend on the order of
    the rows, the sign of an axis or a positive scale. Thirty bits resolve a billionth of the extent, far finer than a
    network's 32-bit features, and halve the memory that every pass reads.

    With ``overwrite`` the integers replace the descriptors in place, which must be contiguous.
    """
    low, high = (extreme.astype(np.float64) for extreme in kernels.extremes(Z))
    origin = high / 2 + low / 2
    extent = float((high / 2 - low / 2).max())
    bits = min(30, 52 - math.ceil(math.log2(len(Z) + 1)))
    grid = origin, extent or 1.0, 2.0**bits
    if overwrite:
        rows = Z.reshape(-1).view(np.int32)[: Z.size].reshape(Z.shape)
        for some in chunks(Z):
            rows[some] = kernels.round_to_grid(Z[some].astype(np.float64), *grid)
    else:
        rows = kernels.round_to_grid(Z, *grid)
    return Grid(rows, origin, extent / 2.0**bits)


def divide(Z: Floats, rules: DivisionRules | None = None, *, overwrite: bool = False) -> BallTree:
    """Divide descriptors, one finite row per sample, into granular balls; return every ball made on the way.

    The partition does not depend on the order of the rows, on the sign of an axis or on a positive scale; only where a
    set is its own mirror image does the sign of an axis have to break the tie.

    With ``overwrite`` the division works in the memory of the descriptors, contiguous and of any precision; at the end
    it holds them again, rounded to the grid.
    """
    rules = rules or DivisionRules()
    rows, origin, unit = on_grid(Z if overwrite else np.ascontiguousarray(Z, dtype=np.float64), overwrite=overwrite)
    order = np.arange(len(rows), dtype=np.int64)
    table, center, weights, shape = kernels.divide_rows(
        rows,
        order,
        float(rules.split_margin),
        rules.beta,
        int(rules.max_depth),
        int(rules.min_ball_size),
        int(rules.max_iter),
        rules.weight_power == "objective",
    )
    if overwrite:
        kernels.restore_order(rows, order)
        # From the end: whole numbers are no longer than the descriptors, and lie before them.
        for some in reversed(list(chunks(Z))):
            Z[some] = origin + unit * rows[some]
    for start, stop in table[table[:, kernels.LEFT] < 0][:, [kernels.START, kernels.STOP]]:
        order[start:stop].sort()
    return BallTree(
        parent=table[:, kernels.PARENT].copy(),
        children=table[:, kernels.LEFT : kernels.RIGHT + 1].copy(),
        depth=table[:, kernels.DEPTH].copy(),
        size=table[:, kernels.STOP] - table[:, kernels.START],
        center=origin + unit * center,
        weights=weights,
        radius=unit * shape[:, 1],
        compactness=unit * shape[:, 0],
        iterations=table[:, kernels.ITERATIONS].copy(),
        reason=np.array(REASONS)[table[:, kernels.REASON]],
        order=order,
        start=table[:, kernels.START].copy(),
    )
