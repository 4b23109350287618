"""Result: one counted image. Holds the density at a stride, so that very large pictures fit in memory."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from gbdgc.counting.conformal import Interval, Spread, range_text
from gbdgc.counting.overlay import annotate, blend, plot_overlay
from gbdgc.counting.points import HeadPoints, find_points
from gbdgc.counting.tiling import sum_cells
from gbdgc.counting.zones import Corners, Zone, check_polygon, ground_inside, people_inside, without_people_inside
from gbdgc.data.images import jpeg_address
from gbdgc.errors import InputError, about
from gbdgc.files import AnyPath, atomic_write

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gbdgc.counting.pipeline import Video

PICTURE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp"})

_STRIP_ROWS = 256
_NOTEBOOK_SIDE = 900


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """How many people, and where.

    Parameters
    ----------
    cells : people in each cell of ``stride`` x ``stride`` pixels, float32, from the upper left corner; the last row and
        column of cells end at the picture's border.
    width, height : the picture's size in pixels.
    stride : the side of a cell. 1 gives every pixel its own; 4 needs a sixteenth of the memory.
    image : the picture, RGB, eight bits; None where it was not kept.
    source : where the picture came from.
    domain : the latent domain of the training source nearest to the picture.
    novelty : how far the picture lies outside the training data: 0 well inside, 1 far outside.
    spread : by which factors the truth may lie below and above a count; None where the model is not calibrated.
    warnings : reasons to doubt the count.
    milliseconds : the time that counting took.
    time : seconds into the video, where the picture is a frame of one.
    smoothed : the count smoothed over the frames before, where the picture is a frame of a video.
    clock : when the frame was seen, in ISO 8601, where the video is live.
    frame : its number in the video.
    video : the video it is a frame of, with what has been counted of it so far.
    zones : people in each named zone; `with_zones` fills it.
    outlines : the same zones' corners in pixels, for drawing.
    masks : corners of the areas that are not counted in.
    per_m2 : people per square metre in each zone, where the ground is calibrated; None above the horizon.

    Attributes
    ----------
    count : the number of people: the sum of ``cells``.
    """

    cells: NDArray[np.float32]
    _: KW_ONLY
    width: int
    height: int
    stride: int = 1
    image: NDArray[np.uint8] | None = None
    source: str | None = None
    domain: int | None = None
    novelty: float | None = None
    spread: Spread | None = None
    warnings: tuple[str, ...] = ()
    milliseconds: float | None = None
    time: float | None = None
    smoothed: float | None = None
    clock: str | None = None
    frame: int | None = None
    video: "Video | None" = None
    zones: Mapping[str, float] = field(default_factory=dict)
    outlines: Mapping[str, Corners] = field(default_factory=dict)
    masks: Mapping[str, Corners] = field(default_factory=dict)
    per_m2: Mapping[str, float | None] = field(default_factory=dict)
    count: float = field(init=False)

    def __post_init__(self) -> None:
        expected = (-(-self.height // self.stride), -(-self.width // self.stride))
        if self.cells.shape != expected:
            size = f"{self.width} x {self.height} pixels at stride {self.stride}"
            raise ValueError(f"cells of shape {self.cells.shape} do not cover {size}: {expected} do")
        if self.image is not None and self.image.shape != (self.height, self.width, 3):
            raise ValueError(f"image of shape {self.image.shape} is not {self.width} x {self.height} RGB")
        object.__setattr__(self, "cells", np.ascontiguousarray(self.cells, dtype=np.float32))
        object.__setattr__(self, "count", float(self.cells.sum(axis=1, dtype=np.float64).sum()))

    @classmethod
    def from_density(cls, density: ArrayLike, *, stride: int = 1, **fields: Any) -> Self:
        """Make a result of a full-size density, people per pixel; ``stride`` over 1 keeps sums over cells only."""
        density = np.asarray(density, dtype=np.float32)
        height, width = density.shape
        return cls(sum_cells(density, stride), width=width, height=height, stride=stride, **fields)

    @property
    def density(self) -> NDArray[np.float32]:
        """People per pixel, as large as the picture; sums to ``count``.

        At a stride over 1 it is made anew at each call: each cell's people, spread evenly over its pixels.
        """
        if self.stride == 1:
            return self.cells
        full = np.empty((self.height, self.width), dtype=np.float32)
        for first, strip in self._density_strips():
            full[first : first + len(strip)] = strip
        return full

    @property
    def interval(self) -> Interval | None:
        """The range (low, high) that contains the true number in nine cases out of ten; None if uncalibrated."""
        return None if self.spread is None else self.spread.around(self.count)

    @property
    def zone_intervals(self) -> dict[str, Interval]:
        """The same for each zone, with the factors of the whole picture; empty if uncalibrated."""
        return {} if self.spread is None else {name: self.spread.around(count) for name, count in self.zones.items()}

    @cached_property
    def points(self) -> HeadPoints:
        """Heads, one row (x, y, confidence) each, in pixels: always ``round(count)`` of them.

        Points are whole people, and a density is not: within a zone their number can differ from `count_in` by what
        the outline cuts. Nor is a point at each head for certain; see `gbdgc.counting.points.find_points`.
        """
        return find_points(self.cells, self.stride, self.width, self.height)

    def count_in(self, polygon: ArrayLike) -> float:
        """Return the number of people inside a polygon: corners (x, y) in pixels, from (0, 0) to (width, height).

        A pixel (or cell, at a stride over 1) that is cut counts by the area inside, exactly: zones that tile the
        picture add up to ``count``. What lies outside the picture holds nobody. Where a polygon crosses itself,
        everything it winds around is inside, once.
        """
        return people_inside(self.cells, self.stride, self.width, self.height, check_polygon(polygon))

    def with_zones(self, zones: Sequence[Zone]) -> Self:
        """Return this result with the people in each zone counted, and a warning for each outside the picture.

        People inside masks are taken out first, and are in no count of the new result.
        """
        outlines = {zone.name: zone.in_pixels(self.width, self.height) for zone in zones if zone.counted}
        masks = {zone.name: zone.in_pixels(self.width, self.height) for zone in zones if zone.mask}
        shape = self.stride, self.width, self.height
        masked = replace(self, cells=without_people_inside(self.cells, *shape, masks.values())) if masks else self
        counts = {}
        for name, corners in outlines.items():
            with about(f"zone '{name}'"):
                counts[name] = masked.count_in(corners)
        per_m2: dict[str, float | None] = {}
        for ground in (zone for zone in zones if zone.metres):
            areas = ground_inside(self.width, self.height, ground, outlines.values(), masks.values())
            per_m2 = {name: area and people / area for (name, people), area in zip(counts.items(), areas, strict=True)}
        # The zones from before go, and their warnings with them.
        others = tuple(warning for warning in self.warnings if warning not in self._zones_outside(self.outlines))
        outside = self._zones_outside(outlines | masks)
        return replace(masked, zones=counts, outlines=outlines, masks=masks, per_m2=per_m2, warnings=others + outside)

    def overlay(self, alpha: float = 0.6, *, peak: float | None = None, points: bool = False) -> NDArray[np.uint8]:
        """Return the picture with the density in colour over it, clear where nobody is.

        Parameters
        ----------
        alpha : opacity where people are: 0 shows the picture alone, 1 hides it.
        peak : the density shown in the brightest colour, in people per square of the colour bar; by default that of
            the densest spot. Use one peak for all frames of a video.
        points : draw a dot at each head.
        """
        return np.asarray(blend(self, alpha, peak, points=points))

    def annotated(
        self, alpha: float = 0.6, *, peak: float | None = None, smoothed: bool = False, points: bool = False
    ) -> NDArray[np.uint8]:
        """Return the overlay with its zones, and below it the number, smoothed too if asked, and a colour bar."""
        return np.asarray(annotate(self, alpha, peak, smoothed=smoothed, points=points))

    def plot(self, ax: "Axes | None" = None, alpha: float = 0.6, *, points: bool = False) -> "Axes":
        """Draw the overlay with a colour bar into matplotlib axes, by default new ones, and return them."""
        return plot_overlay(self, ax, alpha, points=points)

    def save(self, path: AnyPath, alpha: float = 0.6, *, points: bool = False) -> Path:
        """Write the result; what is written goes by the suffix. Returns the path.

        ``.png .jpg .webp``: the annotated overlay, with a dot at each head for ``points``. ``.npy``: the full-size
        density. ``.npz``: cells, stride, width, height and count, much smaller. ``.json``: what `to_dict` gives.
        ``.csv``: one row x, y, confidence per head.
        """
        path = Path(path)
        suffix = path.suffix.lower()
        if suffix not in PICTURE_SUFFIXES | {".npy", ".npz", ".csv", ".json"}:
            raise InputError(path, f"cannot save as '{suffix}'", "choose .png, .jpg, .webp, .npy, .npz, .csv or .json")
        with atomic_write(path, "w" if suffix in {".csv", ".json"} else "wb") as file:
            if suffix in PICTURE_SUFFIXES:
                # Level 1: three times as fast as Pillow's default, for files a few per cent larger.
                options = {"compress_level": 1} if suffix == ".png" else {"quality": 90}
                picture = annotate(self, alpha, points=points)
                picture.save(file, format=Image.registered_extensions()[suffix], **options)
            elif suffix == ".npy":
                header = {"descr": "<f4", "fortran_order": False, "shape": (self.height, self.width)}
                np.lib.format.write_array_header_1_0(file, header)
                for _, strip in self._density_strips():
                    file.write(strip.astype("<f4", copy=False).tobytes())
            elif suffix == ".npz":
                shape: dict[str, Any] = {"stride": self.stride, "width": self.width, "height": self.height}
                np.savez_compressed(file, cells=self.cells, count=self.count, **shape)
            elif suffix == ".json":
                file.write(self.to_json(points=points) + "\n")
            else:
                file.write("x,y,confidence\n")
                np.savetxt(file, self.points, fmt=["%.1f", "%.1f", "%.3f"], delimiter=",")
        return path

    def to_dict(self, *, points: bool = False) -> dict[str, Any]:
        """Return what JSON can hold, with ``points`` also the heads."""
        record: dict[str, Any] = {
            "source": self.source,
            "count": self.count,
            "interval": None if self.interval is None else list(self.interval),
            "width": self.width,
            "height": self.height,
            "zones": dict(self.zones),
            "zone_intervals": {name: list(interval) for name, interval in self.zone_intervals.items()},
            "domain": self.domain,
            "novelty": self.novelty,
            "warnings": list(self.warnings),
            "milliseconds": self.milliseconds,
            "time": self.time,
            "smoothed": self.smoothed,
            "clock": self.clock,
        }
        if self.per_m2:
            record["per_m2"] = dict(self.per_m2)
        if points:
            record["points"] = self.rounded_points()
        return record

    def rounded_points(self) -> list[list[float]]:
        """Return the heads as lists [x, y, confidence], to a tenth of a pixel: short as text."""
        return [[round(x, 1), round(y, 1), round(confidence, 3)] for x, y, confidence in self.points.tolist()]

    def to_json(self, *, points: bool = False) -> str:
        """Return `to_dict` as one line of JSON."""
        return json.dumps(self.to_dict(points=points), ensure_ascii=False, allow_nan=False)

    def __repr__(self) -> str:
        between = f" ({range_text(self.interval)})" if self.interval else ""
        parts = [f"{self.count:,.1f} people{between}", f"{self.width} x {self.height}"]
        parts += [f"{name}: {count:,.1f}" for name, count in self.zones.items()]
        parts += [f"novelty {self.novelty:.2f}"] if self.novelty is not None else []
        parts += [f"{self.milliseconds:.0f} ms"] if self.milliseconds is not None else []
        parts += [f"{len(self.warnings)} warning{'s' * (len(self.warnings) > 1)}"] if self.warnings else []
        return f"<Result {self.source or 'image'}: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        """Show the annotated overlay in a notebook, the count with its interval, the zones and the warnings."""
        picture = annotate(self, 0.6)
        picture.thumbnail((_NOTEBOOK_SIDE, _NOTEBOOK_SIDE))
        lines = [f"<b>{self.count:,.1f} people</b>"]
        if self.interval is not None:
            lines[0] += f" ({range_text(self.interval)})"
        for name, people in self.zones.items():
            between = f" ({range_text(self.zone_intervals[name])})" if self.spread else ""
            dense = "" if (per_m2 := self.per_m2.get(name)) is None else f", {per_m2:.2f} per m²"
            lines.append(f"{escape(name)}: {people:,.1f}{between}{dense}")
        lines += [f"<i>{escape(warning)}</i>" for warning in self.warnings]
        source, alternative = jpeg_address(picture, quality=85), escape(self.source or "picture", quote=True)
        return f'<p>{"<br>".join(lines)}</p><img src="{source}" alt="{alternative}" style="max-width: 100%">'

    def _zones_outside(self, outlines: Mapping[str, Corners]) -> tuple[str, ...]:
        """Warn of zones that cannot hold anybody: they were most likely drawn on a picture of another size."""
        return tuple(
            f"zone '{name}' lies outside the picture, which is {self.width} x {self.height}"
            for name, corners in outlines.items()
            if (corners.max(axis=0) <= 0).any() or (corners.min(axis=0) >= (self.width, self.height)).any()
        )

    def _density_strips(self) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Yield the full-size density from top to bottom, some rows at a time, each strip with its first row."""
        tall = np.diff(np.minimum(np.arange(self.cells.shape[0] + 1) * self.stride, self.height))
        wide = np.diff(np.minimum(np.arange(self.cells.shape[1] + 1) * self.stride, self.width))
        step = max(1, _STRIP_ROWS // self.stride)
        for first in range(0, len(self.cells), step):
            rows = slice(first, first + step)
            per_pixel = self.cells[rows] / np.outer(tall[rows], wide).astype(np.float32)
            yield first * self.stride, np.repeat(np.repeat(per_pixel, tall[rows], axis=0), wide, axis=1)
