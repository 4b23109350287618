"""Localisation of heads: one-to-one matches within a distance, then precision, recall and F1."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gbdgc.counting.points import half_spacing
from gbdgc.evaluation.table import MATCHED, Row

NEAR = 16.0
"""Pixels around a labelled head within which density lies on people."""


def match_points(points: ArrayLike, heads: ArrayLike, radius: float | NDArray[np.float64]) -> int:
    """Return how many points can be paired with a head of their own, at most ``radius`` away: one, or one per head.

    As many pairs as possible, which is what NWPU-Crowd's localisation track counts.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching
    from scipy.spatial import KDTree

    points, heads = np.asarray(points, dtype=np.float64), np.asarray(heads, dtype=np.float64)
    if not len(points) or not len(heads):
        return 0
    near = KDTree(points).query_ball_point(heads, radius)
    ends = np.cumsum([0, *map(len, near)])
    graph = csr_array(
        (np.ones(ends[-1], dtype=bool), np.concatenate(near).astype(np.int32), ends), shape=(len(heads), len(points))
    )
    return int((maximum_bipartite_matching(graph) >= 0).sum())


def people_near(cells: NDArray[np.float32], stride: int, heads: ArrayLike) -> float:
    """Return the people counted within `NEAR` pixels of a labelled head, by the centres of the cells."""
    from scipy.spatial import KDTree

    heads = _known(heads)
    row, column = np.nonzero(cells)
    if not len(heads) or not len(row):
        return 0.0
    centres = stride * (np.stack([column, row], axis=1) + 0.5)
    near = KDTree(heads).query(centres)[0] <= NEAR
    return float(cells[row, column][near].sum(dtype=np.float64))


def match_all(points: ArrayLike, heads: ArrayLike) -> dict[str, int]:
    """Return the number of matches at 4 and 8 pixels and within `half_spacing`, by the names of a row's fields."""
    heads = _known(heads)
    radii: tuple[float | NDArray[np.float64], ...] = (4.0, 8.0, half_spacing(heads))
    return {name: match_points(points, heads, radius) for name, radius in zip(MATCHED, radii, strict=True)}


def localisation(rows: Sequence[Row]) -> dict[str, dict[str, float | None]] | None:
    """Return precision, recall and F1 at each tolerance, over all heads of the labelled pictures together.

    None where no row has points, as in a table of an earlier version.
    """
    rows = [row for row in rows if row.truth is not None and row.points is not None]
    if not rows:
        return None
    found, there = sum(row.points or 0 for row in rows), sum(row.truth or 0 for row in rows)
    scores: dict[str, dict[str, Any]] = {}
    for name, title in MATCHED.items():
        matched = sum(getattr(row, name) or 0 for row in rows)
        scores[title] = {
            "precision": matched / found if found else None,
            "recall": matched / there if there else None,
            "f1": 2 * matched / (found + there) if found + there else None,
        }
    return scores


def share_near_heads(rows: Sequence[Row]) -> float | None:
    """Return the share of all people counted that lies within `NEAR` pixels of a labelled head; None without points."""
    counted = [(row.near_16px, row.count) for row in rows if row.near_16px is not None]
    total = sum(count for _, count in counted)
    return sum(near for near, _ in counted) / total if total > 0 else None


def _known(heads: ArrayLike) -> NDArray[np.float64]:
    """Return the heads without those whose label is not a number."""
    heads = np.asarray(heads, dtype=np.float64).reshape(-1, 2)
    return heads[np.isfinite(heads).all(axis=1)]
