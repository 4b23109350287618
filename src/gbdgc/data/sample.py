"""Sample: the record that readers create and everything else uses."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float32]
"""Head positions, one row (x, y) per head, in pixels of the upright image, x to the right and y down."""

KERNEL, SIGMA = 15, 4.0
"""The Gaussian that stands for a head in a density map: the side of its window in pixels, and its width."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One picture with its heads.

    Labels, predictions and pseudo-domains are keyed by ``id``, which is unique in its data set and does not depend on
    the order in which files were listed. ``width``, ``height`` and ``points`` are those of the upright image, after
    its EXIF rotation. ``points`` is None where nobody has labelled the picture; no people is an array with no rows.
    """

    id: str
    image: Path
    width: int
    height: int
    points: Points | None = None
    split: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.points is not None:
            points = np.asarray(self.points, dtype=np.float32)
            if points.ndim != 2 or points.shape[1] != 2:
                raise ValueError(f"{self.id}: points must be rows of (x, y), but their shape is {points.shape}")
            object.__setattr__(self, "points", points)

    @property
    def count(self) -> int | None:
        """The number of heads, or None without labels."""
        return None if self.points is None else len(self.points)


def decimals(points: Points | None) -> list[list[float]] | None:
    """Return points for a text file: each float32 as the shortest decimal that reads back to the same bits."""
    return None if points is None else points.astype(str).astype(np.float64).tolist()
