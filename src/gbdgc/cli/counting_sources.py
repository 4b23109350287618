"""Counting one source of `gbdgc count`: a picture, or something that moves."""

import math
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import Progress

from gbdgc.cli.counting_output import Printer, say, visible
from gbdgc.cli.counting_run import CountingRun, Moment, Tally
from gbdgc.errors import InputError

if TYPE_CHECKING:
    from gbdgc.counter import Counter
    from gbdgc.data.images import RGB
    from gbdgc.result import Result, Zone
    from gbdgc.video import Frames, Smoother, VideoWriter


@dataclass(frozen=True)
class Job:
    """What is done with every source, and where it goes."""

    counter: "Counter"
    zones: "Sequence[Zone]"
    run: CountingRun
    show: Printer
    bar: Progress
    overlays: bool
    density: bool

    def count(self, image: "RGB", name: str) -> "Result":
        """Count one picture or frame, zones and all."""
        return replace(self.counter(image).with_zones(self.zones), source=name)

    def fail(self, name: str, error: InputError) -> None:
        """Say and note that a source could not be counted."""
        say("failed", str(error))
        self.run.fail(name, error)


def count_picture(job: Job, name: str, image: "RGB") -> None:
    """Count a picture and write what is wanted of it; its row in the table comes last, when all the rest is there."""
    result = job.count(image, name)
    for warning in result.warnings:
        say("warning", f"{name}: {warning}")
    stem = job.run.name_for(name)
    overlay = f"overlays/{stem}.jpg" if job.overlays else None
    density = f"density/{stem}.npz" if job.density else None
    for made in (overlay, density):
        if made is not None:
            result.save(job.run.folder / made)
    job.show(job.run.add(result, overlay=overlay, density=density))


def count_video(job: Job, source: str, *, every: float, seconds: float | None, max_pixels: int, alone: bool) -> None:
    """Count the frames of a video, camera or stream, and draw them into an annotated video.

    One thread decodes while this one counts. A video that an earlier run left half counted is gone on with behind its
    last counted frame, into a second annotated video.

    Parameters
    ----------
    job
        What to do with the frames.
    source
        A path, a camera's number or a stream's address; a password in it is written nowhere.
    every
        Seconds between the frames to count; 0 for each.
    seconds
        Stop after so many.
    max_pixels
        Refuse larger pictures.
    alone
        Whether nothing waits behind it: a live stream without an end would keep the others waiting for ever.
    """
    from gbdgc.video import Smoother, frames
    from gbdgc.video.sources import public_name

    name = public_name(source)
    before = job.run.begun[name]
    after = before[-1].time if before else -1.0
    try:
        reader = frames(
            source,
            every,
            after=after,
            seconds=seconds,
            max_pixels=max_pixels,
            report=lambda text: say("warning", text),
        )
        if reader.live and seconds is None and not alone:
            raise InputError(f"{name}: a live stream has no end; count it alone, or give --seconds")
    except InputError as error:
        job.fail(name, error)
        return
    if reader.live:
        before.clear()  # its clock starts anew
    tally, smoother = Tally(), Smoother()
    for moment in before:
        tally.add(moment)
        smoother(moment.count, moment.time)
    rate = min(reader.rate, 1 / every) if every else reader.rate
    lengths = [length for length in (seconds, None if reader.live else reader.duration) if length is not None]
    expected = math.ceil(min(lengths) * rate) if lengths else None
    task = job.bar.add_task(visible(Path(name).name), total=expected, completed=tally.frames)
    try:
        with closing(_counted_frames(job, name, reader, smoother, fps=rate)) as results:
            for result in results:
                tally.add(Moment(result.time or 0.0, result.count))
                job.bar.advance(task)
        job.run.finish_video(name, tally, reader.dropped)
    except InputError as error:
        job.fail(name, error)
    finally:
        job.bar.update(task, total=tally.frames)
        if reader.dropped:
            say("note", f"{name}: {reader.dropped:,} frames dropped, which came faster than they could be counted")


def _counted_frames(
    job: Job, name: str, reader: "Frames", smoother: "Smoother", fps: float
) -> "Generator[Result, None, None]":
    """Count frame after frame; each is yielded when all that is made of it is written."""
    stem = job.run.name_for(name)
    overlay = f"overlays/{stem}.mp4" if job.overlays else None
    doubtful = 0
    with closing(reader), closing(_Film(job.run.folder / f"overlays/{stem}.mp4", fps)) as film:
        for frame in reader:
            clock = datetime.now().astimezone().isoformat(timespec="milliseconds") if reader.live else None
            result = job.count(frame.image, name)
            result = replace(result, time=frame.time, smoothed=smoother(result.count, frame.time))
            if result.warnings and not doubtful:
                say("warning", f"{name}: from {frame.time:.1f} s on: {'; '.join(result.warnings)}")
            doubtful += bool(result.warnings)
            density = f"density/{stem}/{frame.index:06d}.npz" if job.density else None
            if density is not None:
                result.save(job.run.folder / density)
            if overlay is not None:
                film.add(result)
            job.show(job.run.add(result, overlay=overlay, density=density, clock=clock))
            yield result
    if doubtful > 1:
        say("warning", f"{name}: {doubtful:,} of its frames have such a warning")


class _Film:
    """The annotated video, opened when the first frame says how large it is."""

    def __init__(self, path: Path, fps: float) -> None:
        self.path, self.fps = path, fps
        self._writer: VideoWriter | None = None
        self._began = self._peak = 0.0

    def add(self, result: "Result") -> None:
        """Append a frame at its time, in the colours of the densest spot so far: a film keeps its colours."""
        from gbdgc.result.drawing import peak_of
        from gbdgc.video import VideoWriter

        self._peak = max(self._peak, peak_of(result))
        picture = result.annotated(peak=self._peak)
        time = result.time or 0.0
        if self._writer is None:
            height, width = picture.shape[:2]
            self._writer = VideoWriter(self.path, self.fps, (width, height))
            self._began = time
        self._writer.write(picture, time - self._began)

    def close(self) -> None:
        """Complete the file."""
        if self._writer is not None:
            self._writer.close()
