"""Checks on what the estimators are given, shared by all of them."""

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from gbdgc.domains.alignment import as_labels
from gbdgc.domains.kernels import extremes
from gbdgc.domains.tree import Floats, Integers
from gbdgc.errors import GbdgcWarning, InputError

EXTREME = 1e100


def check_descriptors(estimator: BaseEstimator, X: Any, reset: bool = True, overwrite: bool = False) -> Floats:
    """Return a finite float64 table, or an error that names the first bad row.

    One that the caller will overwrite is contiguous, float32 if the input is, and the input itself where it can be.
    """
    wanted: dict[str, Any] = {"dtype": np.float64}
    if overwrite:
        wanted = {"dtype": (np.float64, np.float32), "order": "C", "force_writeable": True}
    table: Floats = validate_data(estimator, X, reset=reset, ensure_all_finite=False, **wanted)
    with np.errstate(over="ignore", invalid="ignore"):
        total = table.sum(dtype=np.float64)
    # One fast pass; only a sum that is not finite needs a closer look.
    if not np.isfinite(total) and not (finite := np.isfinite(table).all(axis=1)).all():
        row = int(np.argmin(finite))
        column = int(np.argmin(np.isfinite(table[row])))
        what = "NaN" if np.isnan(table[row, column]) else "inf"
        share = f"{len(table) - finite.sum()} of {len(table)} rows hold NaN or inf"
        raise InputError("", f"row {row}, column {column} is {what} ({share})", "leave these rows out or fill them in")
    if reset:
        # Squared distances would overflow, or vanish between rows that differ.
        low, high = extremes(table)
        with np.errstate(over="ignore"):
            extent = float((high - low).max())
        if extent > 0 and not 1 / EXTREME < extent < EXTREME:
            reason = f"the descriptors spread over {extent:.0e}, whose square no number holds"
            raise InputError("", reason, "scale them first")
    return table


def count_domains(n_domains: int | str, n_samples: int) -> int:
    """Return K: as given, or max(2, round(N^(1/4))) for "auto"."""
    if n_domains == "auto":
        return max(2, round(math.sqrt(math.sqrt(n_samples))))
    wanted = _whole(n_domains)
    if wanted is None or wanted < 1:
        raise InputError("", f"n_domains is {n_domains!r}", "give 'auto' or a whole number of at least 1")
    if wanted > n_samples:
        reason = f"n_domains={wanted} is more than there are samples (n_samples={n_samples})"
        raise InputError("", reason, "ask for fewer")
    return wanted


def check_components(n_components: int | None) -> int | None:
    """Return the number of PCA axes to keep at most, or None for no PCA."""
    if n_components is not None and ((wanted := _whole(n_components)) is None or wanted < 1):
        advice = "give a whole number of at least 1, or None for no PCA"
        raise InputError("", f"n_components is {n_components!r}", advice)
    return n_components


def _whole(value: object) -> int | None:
    """Return a whole number of any kind (Python's, NumPy's) as int; None if it is something else."""
    return int(value) if isinstance(value, int | np.integer) and not isinstance(value, bool) else None


def check_previous(previous_labels: ArrayLike | None, n_samples: int) -> Integers | None:
    """Return last epoch's labels, one for each row, or None."""
    if previous_labels is None:
        return None
    previous = as_labels(previous_labels, "previous_labels")
    if len(previous) != n_samples:
        advice = "rows correspond by position, so give the labels of these very samples, or leave previous_labels out"
        raise InputError("", f"previous_labels has {len(previous)} labels for {n_samples} rows", advice)
    return previous


def warn_if_fewer(found: int, asked: int) -> None:
    """Warn that there are fewer domains than asked for."""
    if found < asked:
        warnings.warn(
            f"only {found} of {asked} domains: no more than {found} of the samples differ", GbdgcWarning, stacklevel=4
        )
