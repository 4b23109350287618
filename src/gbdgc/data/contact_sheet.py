"""Contact sheets: many thumbnails with their heads on one self-contained HTML page."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path

import numpy as np
from jinja2 import Environment

from gbdgc.data.images import MAX_PIXELS, read_image, scaled_size, thumbnail_address
from gbdgc.data.parallel import map_unordered
from gbdgc.data.sample import Points, Sample
from gbdgc.data.statistics import Bin
from gbdgc.errors import InputError
from gbdgc.files import AnyPath, atomic_write
from gbdgc.progress import track

_HEIGHT, _MAX_WIDTH = 200, 400
_QUALITY = 78


@dataclass(frozen=True, slots=True)
class Group:
    """Pictures that belong together, what is to be said about them, and points to mark in them."""

    samples: Sequence[Sample]
    caption: str = ""
    marks: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, a sentence, and groups of pictures; ``more`` says what is not shown."""

    title: str
    text: str
    groups: Sequence[Group]
    more: str = ""


@dataclass(frozen=True, slots=True)
class _Thumbnail:
    """A small picture; its address is empty where the file does not decode."""

    width: int
    height: int
    scale: float
    address: str

    def dots(self, points: Points | Sequence[tuple[float, float]]) -> str:
        """Return an SVG path: a stroke of no length, which a round pen makes a dot, at each point of the picture."""
        scaled = np.reshape(np.asarray(points, dtype=np.float64) * self.scale, (-1, 2))
        # What lies outside shows on the edge; as whole tenths, which are short to write.
        inside = np.clip(scaled[np.isfinite(scaled).all(axis=1)], 0, (self.width, self.height))
        return "".join(f"M{x:.1f} {y:.1f}h0" for x, y in inside)


def write_contact_sheet(
    path: AnyPath,
    title: str,
    facts: Mapping[str, str],
    sections: Sequence[Section],
    *,
    bars: Sequence[Bin] = (),
    max_pixels: int = MAX_PIXELS,
) -> Path:
    """Write the page, with a chart of the bars at its top, and return its path."""
    samples = {sample.id: sample for section in sections for group in section.groups for sample in group.samples}
    drawn = map_unordered(partial(_draw, max_pixels=max_pixels), list(samples.values()))
    thumbnails = dict(track(drawn, "drawing the contact sheet", total=len(samples)) if samples else ())
    template = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(
        files("gbdgc.data").joinpath("contact_sheet.html").read_text(encoding="utf-8")
    )
    page = template.render(title=title, facts=facts, sections=sections, bars=bars, thumbnails=thumbnails)
    with atomic_write(path, "w") as file:
        file.write(page)
    return Path(path)


def _draw(sample: Sample, max_pixels: int) -> tuple[str, _Thumbnail]:
    """Return the sample's id and thumbnail."""
    scale = min(_HEIGHT / sample.height, _MAX_WIDTH / sample.width)
    width, height = scaled_size(sample.width, sample.height, scale)
    address = ""
    with suppress(InputError):
        # Twice the pixels that it takes on the page, for sharp screens, but never more than there are.
        image = read_image(sample.image, max_pixels=max_pixels)
        address = thumbnail_address(image, 2 * width, 2 * height, _QUALITY)
    return sample.id, _Thumbnail(width, height, scale, address)
