"""A pinhole camera above a plane: where a spot of the ground is seen, and what ground a pixel sees."""

from math import ceil, cos, sin
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Picture = NDArray[np.float32]
"""Colours or shares, rows x columns (x bands)."""


class Camera(NamedTuple):
    """A camera ``altitude`` metres up that looks ``pitch`` radians down.

    The ground is the plane whose height is ``slope`` times the distance: a slope is a stand of seats. Spots are given
    as x (metres to the right) and z (metres ahead); ``reach`` is the depth at which the backdrop ends the scene.
    """

    width: int
    height: int
    focal: float
    pitch: float
    altitude: float
    slope: float
    reach: float

    def inverse_depth(self, row: Floats) -> Floats:
        """One over the depth of the ground seen in each row; not positive above the horizon."""
        down = (row - self.height / 2) / self.focal
        falling = sin(self.pitch) + down * cos(self.pitch)
        ahead = cos(self.pitch) - down * sin(self.pitch)
        return (falling + self.slope * ahead) / self.altitude

    def row_at(self, depth: float) -> float:
        """The row in which ground of that depth is seen."""
        start, slant = self.inverse_depth(np.array([0.0, 1.0])).tolist()
        return float((1 / depth - start) / (slant - start))

    def ground(self, column: Floats, row: Floats) -> tuple[Floats, Floats]:
        """The spot (x, z) that a pixel sees."""
        depth = 1 / self.inverse_depth(row)
        down = (row - self.height / 2) / self.focal
        x = (column - self.width / 2) / self.focal * depth
        return x, (cos(self.pitch) - down * sin(self.pitch)) * depth

    def project(self, x: Floats, z: Floats, up: float = 0.0) -> tuple[Floats, Floats, Floats]:
        """Column, row and depth of what is ``up`` metres above a spot."""
        below = self.altitude - self.slope * z - up
        depth = z * cos(self.pitch) + below * sin(self.pitch)
        column = self.width / 2 + self.focal * x / depth
        row = self.height / 2 + self.focal * (below * cos(self.pitch) - z * sin(self.pitch)) / depth
        return column, row, depth

    def elevation(self, z: Floats) -> Floats:
        """The angle, in radians, at which the camera looks down on a person at that distance."""
        return np.arctan2(self.altitude - self.slope * z - 1.2, z)

    @property
    def backdrop_height(self) -> int:
        """Rows at the top of the picture that the ground does not reach."""
        return min(self.height, max(0, ceil(self.row_at(self.reach))))

    def visible_area(self) -> float:
        """Square metres of ground in the picture, up to the reach."""
        near = float(self.inverse_depth(np.array(float(self.height))))
        far = max(1 / self.reach, float(self.inverse_depth(np.array(0.0))))
        per_row = (cos(self.pitch) - self.slope * sin(self.pitch)) / (self.focal * self.altitude)
        return self.width / (2 * self.focal**2 * per_row * self.altitude) * (1 / far**2 - 1 / near**2)

    def scatter(self, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Spots spread evenly over the picture, hence not over the ground, none right in front of the camera."""
        nearest = self.row_at(self.reach / 6)
        rows = rng.uniform(max(4.0, self.row_at(self.reach) + 2), min(self.height * 1.05, nearest), n)
        return self.ground(rng.uniform(-0.04, 1.04, n) * self.width, rows)
