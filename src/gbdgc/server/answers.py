"""The shapes of the answers, as /docs shows them, and how a Result becomes one."""

from base64 import b64encode
from io import BytesIO
from typing import Any

from pydantic import BaseModel, Field

from gbdgc import __version__
from gbdgc.counting import Counter, Result, count_sources
from gbdgc.counting.conformal import OFFSET
from gbdgc.counting.overlay import layer
from gbdgc.counting.tiling import sum_cells
from gbdgc.data.decoding import Decoder
from gbdgc.data.images import NotEnoughMemory, PictureTooLarge
from gbdgc.errors import InputError
from gbdgc.server.limits import Limits, Refusal, sendable
from gbdgc.server.upload import Upload, bad_zones
from gbdgc.server.work import Check

_GRID = 160
"""Cells along the longer side of the density that is sent: fine enough for zones, small enough for every frame."""


class Overlay(BaseModel):
    """The density in colour, to be stretched over the picture at any opacity."""

    png: str = Field(description="a small PNG with an alpha channel, clear where nobody is; base64")
    peak: float = Field(description="people per square at the brightest colour")
    square: int = Field(description="the side of that square, in pixels of the picture")


class Density(BaseModel):
    """People in each cell, from the upper left corner, row by row; the sum is the count."""

    people: str = Field(description="float32, little endian; base64")
    columns: int
    rows: int
    cell: int = Field(description="a cell's side, in pixels of the picture")


class Spread(BaseModel):
    """The ends of an interval: (people + offset) times low or high, less the offset, and at least 0."""

    low: float
    high: float
    offset: float = OFFSET


class Count(BaseModel):
    """How many people, and how far to trust it."""

    count: float = Field(description="people in the picture")
    interval: tuple[float, float] | None = Field(
        description="what holds the true number nine times in ten, low and high; none where the model is not calibrated"
    )
    width: int = Field(description="of the upright picture, in pixels")
    height: int
    zones: dict[str, float] = Field(description="people in each zone that was sent")
    zone_intervals: dict[str, tuple[float, float]] = Field(description="the interval of each of them")
    spread: Spread | None = Field(description="what gives the interval of any other part of the picture")
    per_m2: dict[str, float | None] | None = Field(
        default=None,
        description="people per square metre of each zone, where the ground was sent; null above the horizon",
    )
    domain: int | None = Field(description="the latent domain of the training pictures that this one is nearest to")
    novelty: float | None = Field(description="0 like the training pictures, 1 unlike all of them")
    warnings: list[str] = Field(description="what to know before trusting the number")
    points: list[tuple[float, float, float]] | None = Field(
        default=None, description="where asked for: each head's x and y in pixels, and how sure it is, from 0 to 1"
    )
    milliseconds: float | None = Field(description="time that counting took, without decoding and waiting")
    overlay: Overlay | None = Field(default=None, description="where asked for")
    density: Density | None = Field(default=None, description="where asked for")


class Problem(BaseModel):
    """Why there is no count."""

    code: str = Field(description="the reason in one word, for programs")
    message: str = Field(description="the thing and the reason")
    next_step: str


class ProblemAnswer(BaseModel):
    """Every answer that is not 200."""

    error: Problem


class Health(BaseModel):
    """Whether the service works, and how busy it is."""

    status: str
    queued: int = Field(description="requests waiting or being counted")
    slots: int = Field(description="requests that the queue holds")


class Model(BaseModel):
    """The model behind the service, and its limits."""

    name: str
    engine: str
    version: str = Field(description="of gbdgc")
    about: dict[str, str | int | float | None] = Field(description="how the model came to be")
    trust: bool = Field(description="whether it can tell how familiar a picture is")
    limits: Limits


_ABOUT = ("backbone", "method", "selection", "epoch", "max_side")
"""The part of a model file's description that is public; the rest may name folders of whoever trained it."""


def count_upload(counter: Counter, decoder: Decoder, upload: Upload, check: Check) -> Count:
    """Do what was asked, or give up where ``check`` says so. Runs in the counting thread."""
    try:
        picture = decoder.read(upload.image, check)
    except InputError as error:
        raise _bad_picture(error) from error
    try:
        (result,) = count_sources(counter, [picture], zones=upload.zones, check=check)
    except InputError as error:
        raise bad_zones(f"{error.thing}: {error.reason}", error.next_step) from error
    assert isinstance(result, Result)
    return Count(
        **result.to_dict(points=upload.points),
        spread=None if result.spread is None else Spread(**result.spread._asdict()),
        overlay=_overlay(result) if upload.overlay else None,
        density=_density(result) if upload.density else None,
    )


def describe_model(counter: Counter, limits: Limits) -> Model:
    """Describe the model behind the service."""
    build = counter.info.get("build")
    info: dict[str, Any] = counter.info | (build if isinstance(build, dict) else {})
    return Model(
        name=sendable(info.get("name", "unnamed")),
        engine=counter.engine.name,
        version=__version__,
        about={
            key: value if isinstance(value := info.get(key), int | float) else sendable(value)
            for key in _ABOUT
            if isinstance(info.get(key), str | int | float)
        },
        trust=counter.trust is not None,
        limits=limits,
    )


def _bad_picture(error: InputError) -> Refusal:
    status, code, next_step = 400, "bad_picture", error.next_step
    if isinstance(error, PictureTooLarge):
        next_step = "make it smaller, or have the service started with a larger --max-pixels"
        status, code = 413, "picture_too_large"
    elif isinstance(error, NotEnoughMemory):
        status, code, next_step = 503, "out_of_memory", "ask again later, or send a smaller picture"
    next_step = next_step or "send a JPEG, PNG, WebP, BMP, TIFF, GIF or PPM file"
    return Refusal(status, code, f"image: {error.reason}", next_step)


def _overlay(result: Result) -> Overlay:
    colours = layer(result)
    file = BytesIO()
    colours.image.save(file, "PNG", compress_level=6)
    return Overlay(png=b64encode(file.getvalue()).decode(), peak=colours.peak, square=colours.square)


def _density(result: Result) -> Density:
    step = max(1, -(-max(result.cells.shape) // _GRID))
    cells = sum_cells(result.cells, step)
    rows, columns = cells.shape
    people = b64encode(cells.astype("<f4").tobytes()).decode()
    return Density(people=people, columns=columns, rows=rows, cell=step * result.stride)
