"""The counting pipeline, shared by the command line, the service and evaluation: sources in, results or errors out."""

import logging
import math
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence, Sized
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from gbdgc.counting.result import Result
from gbdgc.counting.sources import Picture, Source, open_picture, picture_name
from gbdgc.counting.video import HALF_LIFE, Smoother, frames, public_name
from gbdgc.counting.zones import Zone
from gbdgc.data.decoding import Decoded
from gbdgc.data.images import RGB
from gbdgc.data.prefetch import prefetch
from gbdgc.errors import InputError

if TYPE_CHECKING:
    from gbdgc.counting.counter import Counter

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Moment:
    """A count in a video."""

    time: float
    count: float


@dataclass(eq=False)
class Video:
    """A video, camera or stream being counted, and its totals so far, so that memory stays constant over days."""

    source: str
    """Its path or address, without password."""
    live: bool = False
    """True for a camera or an endless stream, which does not wait for the consumer."""
    rate: float = 1.0
    """Counted frames per second."""
    expected: int | None = None
    """How many frames will be counted, where that is known."""
    frames: int = 0
    seconds: float = 0.0
    total: float = 0.0
    highest: float | None = None
    dropped: int = 0
    """Frames of a live source that came faster than they could be counted."""
    smooth: Smoother = field(default_factory=Smoother, repr=False)

    def add(self, moment: Moment) -> float:
        """Take one more count and return it smoothed."""
        self.frames += 1
        self.seconds = moment.time
        self.total += moment.count
        self.highest = moment.count if self.highest is None else max(self.highest, moment.count)
        return self.smooth(moment.count, moment.time)


class Failure(NamedTuple):
    """A source that could not be counted, or a video that could not be counted to its end."""

    source: str
    """Its path or address, without password; empty where it has none."""
    error: InputError
    video: Video | None = None


Outcome = Result | Failure | Video
"""A picture gives a result or a failure; a video a result per frame, and then itself at its end, or a failure."""


def count_sources(
    counter: "Counter",
    sources: Iterable[Source | Picture | Decoded],
    *,
    zones: Sequence[Zone] = (),
    every: float = 1.0,
    seconds: float | None = None,
    half_life: float = HALF_LIFE,
    counted: Mapping[str, Sequence[Moment]] | None = None,
    check: Callable[[], None] | None = None,
    report: Callable[[str], None] = _log.warning,
    **video_options: Any,
) -> Generator[Outcome, None, None]:
    """Count sources in order; one that cannot be counted is yielded as a failure, and the others go on.

    The next picture is read while one is being counted, and a video is decoded in a thread of its own. Sources that
    come one by one from an iterator are not read ahead: the newest would wait for one that may never come.

    Parameters
    ----------
    counter : what counts; up to its ``batch`` pictures of one size in a row are counted together.
    sources : pictures of any kind, or what `find_sources` yields.
    zones : areas to count in each picture, and masks to leave out. One that cannot be counted in raises its
        `InputError`.
    every : seconds between the frames of a video to count; 0 counts each.
    seconds : stop a video after this time. Otherwise a live source has no end, and must be the only source.
    half_life : seconds after which an old count weighs half as much in the smoothed one; 0 leaves a running median.
    counted : counts of an earlier run, by the source's name without password: the video continues after the last of
        them.
    check : called before each window; what it raises ends the count.
    report : called with a line of text when a stream breaks or a video is damaged; by default logs a warning.
    **video_options : further arguments of `gbdgc.counting.video.frames`.
    """
    number = len(sources) if isinstance(sources, Sized) else None
    options = {"max_pixels": counter.max_pixels, "seconds": seconds, "report": report} | video_options
    waiting: list[_Opened] = []
    read = partial(_read, max_pixels=counter.max_pixels)
    with closing(prefetch(read, sources, workers=int((number or 0) > 1), ahead=1)) as opened:
        for each in opened:
            if not isinstance(each, _Opened) or (waiting and waiting[0].shape != each.shape):
                yield from _count_pictures(counter, waiting, zones, check)
                waiting = []
            if isinstance(each, Failure):
                yield each
            elif isinstance(each, Source):
                before = (counted or {}).get(public_name(each.name), ())
                video = Video(public_name(each.name), smooth=Smoother(half_life))
                yield from _count_video(counter, each, video, zones, every, before, check, options, alone=number == 1)
            else:
                waiting.append(each)
                # Not when the next one comes: it may be long in coming, as from a folder that is watched.
                if len(waiting) >= counter.batch:
                    yield from _count_pictures(counter, waiting, zones, check)
                    waiting = []
        yield from _count_pictures(counter, waiting, zones, check)


class _Opened(NamedTuple):
    image: RGB
    name: str | None
    size: tuple[int, int] | None = None

    @property
    def shape(self) -> tuple[Any, ...]:
        """The size, which pictures that are counted together must share."""
        return self.image.shape, self.size


def _read(source: Source | Picture | Decoded, max_pixels: int) -> "_Opened | Source | Failure":
    """Read a picture; a video is opened later, when its turn comes."""
    if isinstance(source, Decoded):
        return _Opened(source.image, None, (source.width, source.height))
    picture: Any = source
    if isinstance(source, Source):
        if source.problem is not None:
            return Failure(public_name(source.name), source.problem)
        if source.moving:
            return source
        picture = source.name
    try:
        return _Opened(open_picture(picture, max_pixels=max_pixels), picture_name(picture))
    except InputError as error:
        return Failure(picture_name(picture) or "", error)


def _count_pictures(
    counter: "Counter", pictures: Sequence[_Opened], zones: Sequence[Zone], check: Callable[[], None] | None
) -> Generator[Result, None, None]:
    """Count pictures of one size together."""
    if not pictures:
        return
    results = counter.count_together([picture.image for picture in pictures], size=pictures[0].size, check=check)
    for picture, result in zip(pictures, results, strict=True):
        yield replace(result.with_zones(zones) if zones else result, source=picture.name)


def _count_video(
    counter: "Counter",
    source: Source,
    video: Video,
    zones: Sequence[Zone],
    every: float,
    before: Sequence[Moment],
    check: Callable[[], None] | None,
    options: Mapping[str, Any],
    *,
    alone: bool,
) -> Generator[Outcome, None, None]:
    """Count the frames of a video, camera or stream, after those that were counted before."""
    try:
        after = {"after": before[-1].time} if before else {}
        with closing(frames(source.name, every, **(after | dict(options)))) as reader:
            seconds = options["seconds"]
            if reader.live and seconds is None and not alone:
                raise InputError(video.source, "a live stream has no end", "count it alone, or set `seconds`")
            video.live = reader.live
            video.rate = min(reader.rate, 1 / every) if every else reader.rate
            lengths = [length for length in (seconds, None if reader.live else reader.duration) if length is not None]
            video.expected = math.ceil(min(lengths) * video.rate) if lengths else None
            for moment in () if reader.live else before:  # the clock of a live stream starts anew
                video.add(moment)
            for frame in reader:
                clock = datetime.now().astimezone().isoformat(timespec="milliseconds") if reader.live else None
                (result,) = counter.count_together([frame.image], check=check)
                result = result.with_zones(zones) if zones else result
                video.dropped = reader.dropped
                yield replace(
                    result,
                    source=video.source,
                    time=frame.time,
                    smoothed=video.add(Moment(frame.time, result.count)),
                    clock=clock,
                    frame=frame.index,
                    video=video,
                )
            video.dropped = reader.dropped
    except InputError as error:
        yield Failure(video.source, error, video)
    else:
        yield video
