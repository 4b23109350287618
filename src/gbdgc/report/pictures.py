"""Pictures embedded in the page: JPEG thumbnails and coloured densities, found by data set and id."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import gaussian_filter

from gbdgc.counting import Counter, Result
from gbdgc.counting.overlay import in_colours, on_colour_bar
from gbdgc.data import Dataset, Sample, load_dataset
from gbdgc.data.density import density_map
from gbdgc.data.images import jpeg_address, read_image, scaled_size, thumbnail_address
from gbdgc.errors import InputError
from gbdgc.evaluation.table import Row

_QUALITY = 72
_SMOOTHING = 160
"""Densities are smoothed by the longer side divided by this, for single heads to be seen on a small picture."""


@dataclass(frozen=True)
class Panel:
    """One picture, where its people are and where the model sees them: three pictures as data addresses."""

    row: Row
    image: str
    truth: str
    prediction: str


@dataclass
class Album:
    """The samples behind the rows. Data sets that are not there any more have no pictures, and are named as missing."""

    paths: Mapping[str, tuple[Path, str]]
    """The path of each data set, and the format that it was read as."""
    missing: set[str] = field(default_factory=set)
    _datasets: dict[str, Dataset] = field(default_factory=dict)
    """Those that were looked at; empty where there is nothing any more."""

    def find(self, data: str, id: str) -> Sample | None:
        """Return the sample, or None where the data set or the picture is gone."""
        with suppress(InputError):
            if data not in self._datasets:
                self._datasets[data] = Dataset(())
                path, format = self.paths[data]
                self._datasets[data] = load_dataset(path, format, skip_bad=True)
            return self._datasets[data].by_id(id)
        self.missing.add(data)
        return None

    def thumbnail(self, data: str, id: str, side: int) -> str | None:
        """Return the picture, its longer side at most ``side``."""
        sample = self.find(data, id)
        with suppress(InputError):
            return None if sample is None else thumbnail_address(read_image(sample.image), side, side, _QUALITY)
        self.missing.add(data)
        return None


def draw_panel(row: Row, album: Album, counter: Counter, side: int) -> Panel | None:
    """Count a picture once more, for its map, and draw it beside the truth; None where the picture is gone."""
    sample = album.find(row.data, row.id)
    if sample is None or sample.points is None:
        return None
    try:
        result = counter(sample.image)
    except InputError:
        album.missing.add(row.data)
        return None
    levels = levels_on_one_scale(sample, [result])
    coloured = [_coloured(each, sample.width, sample.height, side) for each in levels]
    return Panel(row, thumbnail_address(read_image(sample.image), side, side, _QUALITY), *coloured)


def levels_on_one_scale(sample: Sample, results: Sequence[Result]) -> list[NDArray[np.float32]]:
    """Return the density of the truth and of each result, smoothed, as shares of the truth's peak.

    One scale for all: else a prediction that is far too low would look as bright as the truth. A person who stands
    alone sets its least end: an empty place is dark, and so is a haze of a few people spread all over it.
    """
    assert sample.points is not None
    size = sample.height, sample.width
    stride = results[0].stride
    truth = _smoothed(density_map(sample.points, *size, stride=stride))
    centre = np.array([[sample.width / 2, sample.height / 2]], dtype=np.float32)
    alone = _smoothed(density_map(centre, *size, stride=stride))
    peak = max(float(truth.max()), float(alone.max()))
    return [np.clip(each / peak, 0, 1) for each in (truth, *(_smoothed(result.cells) for result in results))]


def _smoothed(cells: NDArray[np.floating]) -> NDArray[np.float32]:
    return np.asarray(gaussian_filter(cells.astype(np.float32), max(cells.shape) / _SMOOTHING))


def _coloured(levels: NDArray[np.float32], width: int, height: int, side: int) -> str:
    scale = min(1.0, side / max(width, height))
    size = scaled_size(width, height, scale)
    small = on_colour_bar(levels).resize(size, Image.Resampling.BOX if scale < 1 else Image.Resampling.BICUBIC)
    return jpeg_address(in_colours(small), _QUALITY)
