"""Zones: named polygons, read from JSON, and the exact number of people inside."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gbdgc.counting.ground import check_ground, square_metres
from gbdgc.errors import InputError, about, as_input_error
from gbdgc.files import AnyPath

Corners = NDArray[np.float64]
"""A polygon as (n, 2): x to the right and y down, in pixels; (0, 0) is the picture's upper left corner."""

MAX_CORNERS = 1_000
MAX_COORDINATE = 1e9
_LINES = 4

_SHAPES = '{"name": [[x, y], ...]} or [{"name": ..., "polygon": [[x, y], ...]}]'


@dataclass(frozen=True)
class Zone:
    """A named polygon; ``relative`` corners run from 0 to 1 over the picture, so that one file fits any resolution.

    A zone gets its own count; a ``mask`` is an area in which nobody is counted. Four corners with distances in
    ``metres`` calibrate the ground, so that zones also have people per square metre: the two sides of a rectangle, or
    four sides in order and the diagonal from the first corner to the third.
    """

    name: str
    corners: tuple[tuple[float, float], ...]
    relative: bool = False
    mask: bool = False
    metres: tuple[float, ...] = ()

    @property
    def counted(self) -> bool:
        """True if people inside are counted, that is, if it is neither a mask nor the ground."""
        return not (self.mask or self.metres)

    def settings(self) -> dict[str, Any]:
        """Return what decides on the counts, as JSON has it."""
        record: dict[str, Any] = {"corners": self.corners, "relative": self.relative}
        return record | ({"mask": True} if self.mask else {}) | ({"metres": self.metres} if self.metres else {})

    def in_pixels(self, width: int, height: int) -> Corners:
        """Return the corners in pixels of a picture of this size."""
        return np.array(self.corners) * ((width, height) if self.relative else (1, 1))


def load_zones(path: AnyPath, *, relative: bool = False) -> tuple[Zone, ...]:
    """Read zones from a JSON file.

    Parameters
    ----------
    path : the file: ``{"name": [[x, y], ...]}`` or ``[{"name": ..., "polygon": [[x, y], ...]}]``, or either of them as
        ``{"relative": true, "zones": ..., "masks": ..., "ground": ...}``, where masks have the same shape and are not
        counted in, and the ground is ``{"corners": [[x, y], ...], "metres": [...]}``.
    relative : the coordinates run from 0 to 1 over the picture; a file that says so itself needs no flag.
    """
    with (
        as_input_error(OSError, path, "zones could not be read ({error})"),
        as_input_error(UnicodeDecodeError, path, "not JSON ({error})", f"zones are {_SHAPES}"),
    ):
        text = Path(path).read_text(encoding="utf-8-sig")
    return zones_from_json(text, where=str(path), relative=relative)


def zones_from_json(
    text: str, *, where: str = "zones", relative: bool = False, most: int | None = None
) -> tuple[Zone, ...]:
    """Make zones of a JSON text in the shapes `load_zones` names; for the rest see `parse_zones`."""
    invalid = as_input_error((ValueError, RecursionError), where, "not JSON ({error})", f"zones are {_SHAPES}")
    with invalid, about(where):
        value = json.loads(text, object_pairs_hook=_object_without_repeats)
        # A lone half of a surrogate pair, which JSON lets through, could not be printed or sent.
        json.dumps(value, ensure_ascii=False).encode()
    return parse_zones(value, where=where, relative=relative, most=most)


def parse_zones(
    value: Any, *, where: str = "zones", relative: bool = False, most: int | None = None
) -> tuple[Zone, ...]:
    """Make zones of what JSON holds, in the shapes `load_zones` names.

    ``where`` begins the error messages; more zones than ``most`` are refused before any is looked at.
    """
    masks: Any = {}
    ground: Any = None
    parts = [value.get(name, {}) for name in ("zones", "masks")] if isinstance(value, dict) else []
    named_parts = bool(parts) and (any(parts) or isinstance(value.get("ground"), dict))
    if named_parts and value.keys() <= {"zones", "masks", "relative", "ground"} and all(map(_holds_polygons, parts)):
        relative = relative or value.get("relative") is True
        ground = value.get("ground")
        value, masks = parts
    named = _named_polygons(value, where)
    unmasked = len(named)
    named += _named_polygons(masks, where)
    if ground is not None:
        if not isinstance(ground, dict) or not ground.keys() >= {"corners", "metres"}:
            raise InputError(where, 'the ground must be {"corners": [[x, y], ...], "metres": [...]}')
        named.append(("ground", ground["corners"]))
    if not named:
        raise InputError(where, "no zone in it", f"zones are {_SHAPES}")
    if most is not None and len(named) > most:
        raise InputError(where, f"{len(named):,} of them, over the limit of {most}", "ask for some at a time")
    names = [str(name) if isinstance(name, str | int) else "" for name, _ in named]
    if not all(name.strip() for name in names):
        raise InputError(where, "a zone has no name", "name each by a text, for its count to be found")
    if repeated := _repeated(names):
        raise InputError(where, f"zone '{repeated}' is there twice", "give each its own name")
    polygons = []
    for name, polygon in named:
        with about(where, f"zone '{name}'"):
            polygons.append(check_polygon(polygon))
    if not relative and all((np.abs(corners) <= 1).all() for corners in polygons):
        advice = 'for coordinates from 0 to 1 write {"relative": true, "zones": ...}'
        raise InputError(where, "every zone lies within one pixel", advice)
    if relative and any((np.abs(corners) > 2).any() for corners in polygons):
        raise InputError(where, "relative coordinates run from 0 to 1, and these look like pixels")
    zones = [
        Zone(name, tuple((float(x), float(y)) for x, y in corners), relative, mask=number >= unmasked)
        for number, (name, corners) in enumerate(zip(names, polygons, strict=True))
    ]
    if ground is not None:
        with about(where, "the ground"):
            zones[-1] = replace(zones[-1], mask=False, metres=check_ground(polygons[-1], ground["metres"]))
    return tuple(zones)


def _holds_polygons(value: Any) -> bool:
    """Whether this is a collection of polygons, and not one polygon of a zone that is named "zones" or "masks"."""
    return isinstance(value, dict) or (isinstance(value, list) and all(isinstance(zone, dict) for zone in value))


def _named_polygons(value: Any, where: str) -> list[tuple[Any, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, list) and all(isinstance(zone, dict) and {"name", "polygon"} <= zone.keys() for zone in value):
        return [(zone["name"], zone["polygon"]) for zone in value]
    raise InputError(where, f"zones must be {_SHAPES}")


def check_polygon(polygon: ArrayLike) -> Corners:
    """Return the polygon as an array, or say what is wrong with it."""
    no_pairs = "corners must be pairs of numbers [x, y]"
    with as_input_error((TypeError, ValueError, OverflowError), "the polygon", no_pairs):
        corners = np.asarray(polygon, dtype=np.float64)
    if corners.ndim != 2 or corners.shape[1] != 2:
        raise InputError("the polygon", no_pairs)
    if len(corners) < 3:
        raise InputError("the polygon", f"{len(corners)} corners, and a polygon has at least three")
    if len(corners) > MAX_CORNERS:
        raise InputError("the polygon", f"{len(corners):,} corners is over the limit of {MAX_CORNERS:,}", "simplify it")
    if not (np.abs(corners) <= MAX_COORDINATE).all():
        raise InputError("the polygon", "a corner is not a finite number of pixels")
    return corners


def people_inside(cells: NDArray[np.float32], stride: int, width: int, height: int, corners: Corners) -> float:
    """Integrate a density, constant within each cell, over a polygon: exactly, also where a cell is cut.

    By Green's theorem the integral over an area is one along its outline: of the mass to the left of each point,
    over dy. That mass is linear between two grid lines, so the midpoint of each piece of the outline between them
    gives its integral without error. What lies outside the picture weighs nothing, which clips the polygon.
    """
    corners = np.round(corners, 6)  # a millionth of a pixel: finer differences only overflow slopes
    first = int(np.clip(corners[:, 1].min() // stride, 0, len(cells)))
    last = int(np.clip(-(-corners[:, 1].max() // stride), first, len(cells)))
    if first == last:
        return 0.0
    cells = cells[first:last]
    row_lines = np.minimum(np.arange(first, last + 1) * stride, height).astype(np.float64)
    column_lines = np.minimum(np.arange(cells.shape[1] + 1) * stride, width).astype(np.float64)
    left = np.zeros((len(cells), cells.shape[1] + 1))
    np.cumsum(cells, axis=1, dtype=np.float64, out=left[:, 1:])
    left[:, -1] = cells.sum(axis=1, dtype=np.float64)  # as `Result.count` adds up, to the last bit
    row_heights, column_widths = np.diff(row_lines), np.diff(column_lines)

    total = 0.0
    for (x0, y0), (x1, y1), sign in _outline(corners):
        slope = (x1 - x0) / (y1 - y0)
        crossings = y0 + (column_lines - x0) / slope if slope else np.empty(0)
        breaks = np.concatenate([(y0, y1), row_lines, crossings])
        breaks = np.unique(breaks[(breaks >= y0) & (breaks <= y1)])
        middle = (breaks[1:] + breaks[:-1]) / 2
        row = np.searchsorted(row_lines, middle, side="right") - 1
        inside = (row >= 0) & (row < len(cells))
        row, middle, length = row[inside], middle[inside], np.diff(breaks)[inside]
        x = np.clip(x0 + (middle - y0) * slope, 0, width)
        column = np.clip(np.searchsorted(column_lines, x, side="right") - 1, 0, cells.shape[1] - 1)
        share = (x - column_lines[column]) / column_widths[column]
        mass = left[row, column] * (1 - share) + left[row, column + 1] * share
        total += sign * float(np.sum(mass * (length / row_heights[row])))
    return total


def without_people_inside(
    cells: NDArray[np.float32], stride: int, width: int, height: int, masks: Iterable[Corners]
) -> NDArray[np.float32]:
    """Return the cells with nobody left inside the masks; one that is cut keeps the share that lies outside.

    The share of a cell is exact from left to right, and measured on a few lines from top to bottom.
    """
    edges = np.minimum(np.arange(cells.shape[1] + 1) * stride, width).astype(np.float32)
    tops = np.minimum(np.arange(cells.shape[0] + 1) * stride, height).astype(np.float64)
    kept = cells.copy()
    for corners in masks:
        covered = np.zeros_like(cells)
        outline = list(_outline(np.round(corners, 6)))
        for line in range(_LINES):
            y = tops[:-1] + np.diff(tops) * (line + 0.5) / _LINES
            for (x0, y0), (x1, y1), sign in outline:
                rows = np.flatnonzero((y >= y0) & (y < y1))
                x = (x0 + (y[rows] - y0) * ((x1 - x0) / (y1 - y0))).astype(np.float32)
                covered[rows] += sign / _LINES * np.clip((x[:, None] - edges[:-1]) / np.diff(edges), 0, 1)
        kept *= np.clip(1 - covered, 0, 1)
    return kept


def ground_inside(
    width: int, height: int, ground: Zone, zones: Iterable[Corners], masks: Iterable[Corners]
) -> list[float | None]:
    """Return the square metres of ground inside each zone, without masks; None where it reaches above the horizon."""
    cells, stride = square_metres(width, height, ground.in_pixels(width, height), ground.metres)
    shape = stride, width, height
    masks = list(masks)
    area = without_people_inside(np.nan_to_num(cells), *shape, masks)
    sky = without_people_inside(np.isnan(cells).astype(np.float32), *shape, masks)
    found = [(people_inside(area, *shape, zone), people_inside(sky, *shape, zone)) for zone in zones]
    return [inside if inside > 0 and above < 1 else None for inside, above in found]


def _outline(corners: Corners) -> Iterator[tuple[tuple[float, float], tuple[float, float], int]]:
    """Yield the pieces of the outline downwards, with -1 where the polygon begins to their right and +1 where it ends.

    Inside is what the outline winds around at least once (the non-zero rule, as browsers fill a path), so that a
    polygon which crosses or touches itself counts each person once.
    """
    start, end = corners, np.roll(corners, -1, axis=0)
    level = start[:, 1] == end[:, 1]
    start, end = start[~level], end[~level]
    turn = np.where(end[:, 1] > start[:, 1], 1, -1)
    top, bottom = np.where(turn[:, None] > 0, start, end), np.where(turn[:, None] > 0, end, start)
    slope = (bottom[:, 0] - top[:, 0]) / (bottom[:, 1] - top[:, 1])

    events = np.unique(np.concatenate([top[:, 1], bottom[:, 1], _crossings(top, bottom)]))
    signs = np.zeros((max(len(events) - 1, 0), len(top)), dtype=np.int8)
    for band, (above, below) in enumerate(pairwise(events)):
        middle = (above + below) / 2
        active = np.flatnonzero((top[:, 1] < middle) & (bottom[:, 1] > middle))
        x = top[active, 0] + (middle - top[active, 1]) * slope[active]
        ordered = active[np.argsort(x, kind="stable")]
        inside = np.cumsum(turn[ordered]) != 0
        signs[band, ordered] = -np.diff(inside.astype(np.int8), prepend=0)

    for side in range(len(top)):
        changes = np.flatnonzero(np.diff(signs[:, side], prepend=0, append=0))
        for begin, stop in pairwise(changes):
            if sign := int(signs[begin, side]):
                x, y = top[side, 0] + (events[[begin, stop]] - top[side, 1]) * slope[side], events[[begin, stop]]
                yield (float(x[0]), float(y[0])), (float(x[1]), float(y[1])), sign


def _crossings(start: Corners, end: Corners) -> NDArray[np.float64]:
    """Return the heights at which sides cross."""
    along = end - start
    gap = start[None, :] - start[:, None]
    area = along[:, None, 0] * along[None, :, 1] - along[:, None, 1] * along[None, :, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        mine = (gap[..., 0] * along[None, :, 1] - gap[..., 1] * along[None, :, 0]) / area
        theirs = (gap[..., 0] * along[:, None, 1] - gap[..., 1] * along[:, None, 0]) / area
        crossing = np.triu((mine > 0) & (mine < 1) & (theirs > 0) & (theirs < 1))
        heights: NDArray[np.float64] = (start[:, None, 1] + mine * along[:, None, 1])[crossing]
    if len(heights) > MAX_CORNERS:
        raise InputError("the polygon", f"its sides cross {len(heights):,} times", "give the corners in order")
    return heights


def _object_without_repeats(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse repeated names, of which JSON silently keeps the last: nobody would notice the lost zone."""
    record = dict(pairs)
    if len(record) < len(pairs):
        raise InputError("", f"'{_repeated(name for name, _ in pairs)}' is there twice")
    return record


def _repeated(names: Iterable[str]) -> str | None:
    """Return the first name that is there more than once."""
    return next((name for name, times in Counter(names).items() if times > 1), None)
