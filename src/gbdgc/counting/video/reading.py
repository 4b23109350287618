"""Frames of a video or a stream, decoded in a thread of their own.

A file waits for the consumer and loses no frame. A live stream does not wait: of the frames that arrive while one is
being counted only the newest is kept; and a stream that breaks is reopened.
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gbdgc.counting.video.mailbox import Frame, Mailbox
from gbdgc.counting.video.opening import is_live, load_av, open_source, public_name, reason_of
from gbdgc.errors import InputError

if TYPE_CHECKING:
    from av import VideoFrame
    from av.container import InputContainer
    from av.video.stream import VideoStream

_WAITING = 4
_LONGEST_PAUSE = 30.0
_STOP_SECONDS = 2.0
_ROUNDING = 1e-3  # many containers round timestamps to a millisecond

_log = logging.getLogger(__name__)

Upright = Callable[["VideoFrame"], NDArray[np.uint8]]
"""Converts a decoded picture to an array."""


class _TooLarge(InputError):
    """A picture of more pixels than are allowed."""


class Frames(Iterator[Frame]):
    """The frames of an open source, taken one by one from the thread that decodes them.

    A ``live`` source does not wait: a camera, or a stream without an end. As far as the source says, it has ``rate``
    pictures per second, which last ``duration`` seconds.
    """

    def __init__(self, delivery: Generator[Frame, None, None], box: Mailbox, container: "InputContainer") -> None:
        self._delivery, self._box = delivery, box
        self.live = box.drop
        self.rate = float(container.streams.video[0].average_rate or 25)
        self.duration = duration(container)

    @property
    def dropped(self) -> int:
        """Frames of a live source that were due but never taken, as newer ones came first."""
        return self._box.dropped

    def __next__(self) -> Frame:
        return next(self._delivery)

    def close(self) -> None:
        """End the decoding."""
        self._delivery.close()


def frames(
    source: str | int | Path,
    every: float = 1.0,
    *,
    after: float = -1.0,
    start: float = 0.0,
    seconds: float | None = None,
    max_pixels: int | None = None,
    live: bool | None = None,
    retries: int = 8,
    pause: float = 0.5,
    report: Callable[[str], None] = _log.warning,
) -> Frames:
    """Open a source now and return an iterator over its frames; closing the iterator ends the decoding.

    Parameters
    ----------
    source : a file, a camera (its number or ``/dev/videoN``), or the address of a stream.
    every : seconds between frames; 0 gives each one. Of a file the first frame at or after each multiple.
    after : of a file leave out the frames up to this time, as they were seen in an earlier run.
    start : of a file leave out the frames before this time without decoding them all. Stretches from one ``start`` to
        the next, which is the ``seconds`` of the one before, give the frames of the whole; only their numbers, which
        are then reckoned from the time, may be off.
    seconds : stop after this time: by timestamps for a file, by the clock for a live source.
    max_pixels : refuse a source with larger pictures.
    live : whether to drop frames rather than fall behind, and to reconnect; detected by default.
    retries : how many times in a row to try to reconnect before giving up with an `InputError`.
    pause : seconds before the first attempt; each further pause is twice as long, up to half a minute.
    report : called with a line of text when a stream breaks or a file is damaged; by default logs a warning.
    """
    if not every >= 0:
        raise InputError(f"every={every}", "must be seconds, 0 or more")
    if seconds is not None and not math.isfinite(seconds):
        raise InputError(f"seconds={seconds}", "must be a number of seconds", "leave it out for no end")
    upright = partial(_upright, name=public_name(source), max_pixels=max_pixels)
    container = open_source(source)
    try:
        _check_size(container.streams.video[0], public_name(source), max_pixels)
    except InputError:
        container.close()
        raise
    if live is None:
        live = is_live(source, container)
    box = Mailbox(capacity=1 if live else _WAITING, drop=live)
    if live:
        read = partial(_read_live, source, container, every, box, upright, retries, pause, report)
    else:
        read = partial(_read_file, source, container, every, after, start, seconds, box, upright, report)
    return Frames(_deliver(box, read, seconds if live else None), box, container)


def _deliver(box: Mailbox, read: Callable[[], None], seconds: float | None) -> Generator[Frame, None, None]:
    """Run ``read`` in a thread and yield what it puts into the box, for ``seconds`` at most."""

    def run() -> None:
        try:
            read()
        except BaseException as error:  # carried over to the thread that takes the frames
            box.finish(error)
        else:
            box.finish()

    thread = threading.Thread(target=run, name="gbdgc-video", daemon=True)
    thread.start()
    until = None if seconds is None else time.monotonic() + seconds
    try:
        while (frame := box.take(until)) is not None:
            yield frame
    finally:
        box.close()
        thread.join(_STOP_SECONDS)


def _read_file(
    source: str | int | Path,
    container: "InputContainer",
    every: float,
    after: float,
    start: float,
    limit: float | None,
    box: Mailbox,
    upright: Upright,
    report: Callable[[str], None],
) -> None:
    """Put one frame for each multiple of ``every`` into the box, by the file's own timestamps."""
    av, name, damaged = load_av(), public_name(source), list[Exception]()
    first: float | None = None
    seconds, due = 0.0, 0.0
    with ExitStack() as opened:
        opened.enter_context(container)
        rate = float(container.streams.video[0].average_rate or 25)
        whole = duration(container)
        try:
            pictures, skipped = _decoded(container, damaged, threads="AUTO"), 0
            if start > 0 and (opening := next(pictures, None)) is not None and opening.pts is not None:
                first = opening.time
                # One interval early: which frame is due after ``start`` depends on the frames just before it.
                early = first + max(0.0, start - every - _ROUNDING)
                container.seek(int(early * av.time_base))
                pictures = _decoded(container, damaged, threads="AUTO")
                landed = next(pictures, None)
                if landed is None or landed.pts is None or landed.time > early:  # not every container seeks well
                    container = opened.enter_context(open_source(source))
                    pictures = _decoded(container, damaged, threads="AUTO")
                else:
                    pictures = chain([landed], pictures)
            for index, picture in enumerate(pictures):
                stamp = index / rate if picture.pts is None else picture.time
                first = stamp if first is None else first
                seconds = stamp - first
                if index == 0 and start > 0:
                    skipped = round(seconds * rate)
                if limit is not None and seconds >= limit:
                    return
                if seconds < due - _ROUNDING:
                    continue
                due = _next_due(seconds, every)
                if seconds <= after + _ROUNDING or seconds < start:
                    continue
                if not box.put(Frame(seconds, upright(picture), skipped + index)):
                    return
        except av.FFmpegError as error:
            raise InputError(name, f"damaged after {seconds:.1f} s ({reason_of(error)})") from error
    if first is None:
        raise InputError(name, "damaged or truncated: not one picture can be decoded")
    if damaged:
        report(f"{name}: {len(damaged)} damaged parts were skipped")
    # The last picture lasts too: of a film with one a minute that is much.
    if whole is not None and seconds + 1 / rate < 0.9 * whole - 1:
        reason = f"truncated: it ends at {seconds:.1f} s of {whole:.1f} s"
        raise InputError(name, reason, "copy it again from its origin")


def _read_live(
    source: str | int | Path,
    container: "InputContainer | None",
    every: float,
    box: Mailbox,
    upright: Upright,
    retries: int,
    pause: float,
    report: Callable[[str], None],
) -> None:
    """Put frames into the box as they come, by the clock; open the stream again whenever it breaks."""
    name = public_name(source)
    began, due = time.monotonic(), 0.0
    index, failures = 0, 0
    while True:
        try:
            with container or open_source(source) as container:
                for picture in _decoded(container, [], threads="SLICE"):
                    failures = 0
                    seconds = time.monotonic() - began
                    if seconds >= due:
                        due = _next_due(seconds, every)
                        if not box.put(Frame(seconds, upright(picture), index)):
                            return
                    elif box.closed_within(0):
                        return
                    index += 1
            reason = "it ended"
        except load_av().FFmpegError as error:
            reason = reason_of(error)
        except _TooLarge:
            raise  # to connect again would not help
        except InputError as error:
            reason = error.reason
        container = None
        failures += 1
        if failures > retries:
            raise InputError(name, f"lost ({reason}); {retries} attempts to connect again failed")
        delay = min(pause * 2 ** (failures - 1), _LONGEST_PAUSE)
        report(f"{name}: lost ({reason}); connecting again in {delay:g} s, attempt {failures} of {retries}")
        if box.closed_within(delay):
            return


def _next_due(seconds: float, every: float) -> float:
    """Return the first multiple of ``every`` that is still to come."""
    return (int((seconds + _ROUNDING) / every) + 1) * every if every else 0.0


def _decoded(container: "InputContainer", damaged: list[Exception], threads: Any) -> Iterator["VideoFrame"]:
    """Yield pictures, going on behind a damaged packet; frame threads ("AUTO") are faster but hold frames back."""
    av = load_av()
    stream = container.streams.video[0]
    if not stream.codec_context.is_open:  # after a seek it is, with the threads it was given
        stream.thread_type = threads
    for packet in container.demux(stream):
        try:
            yield from packet.decode()
        except av.error.InvalidDataError as error:
            damaged.append(error)


def duration(container: "InputContainer") -> float | None:
    """Seconds the pictures should last, where the file says so; sound may last longer."""
    stream = container.streams.video[0]
    if stream.duration is not None and stream.time_base is not None:
        return float(stream.duration * stream.time_base)
    alone = len(container.streams) == 1 and container.duration is not None
    return container.duration / 1e6 if alone and container.duration is not None else None


def _check_size(picture: "VideoFrame | VideoStream", name: str, max_pixels: int | None) -> None:
    """Refuse what is too large; a stream says its size when it is opened, but any later picture may have another."""
    if max_pixels is not None and picture.width * picture.height > max_pixels:
        size = f"{picture.width} x {picture.height}"
        raise _TooLarge(name, f"{size} is over the limit of {max_pixels:,} pixels", "raise max_pixels to read it")


def _upright(picture: "VideoFrame", name: str, max_pixels: int | None) -> NDArray[np.uint8]:
    """Return the picture in RGB, turned as the camera was held."""
    _check_size(picture, name, max_pixels)
    image = np.asarray(picture.to_ndarray(format="rgb24"), dtype=np.uint8)
    return np.ascontiguousarray(np.rot90(image, round(picture.rotation / 90)))
