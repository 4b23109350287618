"""`gbdgc count`."""

import math
import os
import re
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from cyclopts import Parameter
from cyclopts.validators import Number
from rich.markup import escape

from gbdgc.errors import InputError, UsageError

if TYPE_CHECKING:
    from io import BufferedReader

    from gbdgc.cli.counting_run import CountingRun
    from gbdgc.cli.counting_sources import Job
    from gbdgc.data.images import RGB
    from gbdgc.sources import Source

MAX_PIXELS = 200_000_000  # as in gbdgc.data.images, which help need not import

Flag = Annotated[bool, Parameter(negative="", show_default=False)]


def count(
    *sources: Annotated[str, Parameter(allow_leading_hyphen=True)],
    weights: Path | None = None,
    engine: Literal["torch", "onnx", "openvino"] | None = None,
    tile: int | None = None,
    zones: Path | None = None,
    every: str = "1s",
    seconds: Annotated[float | None, Parameter(validator=Number(gt=0))] = None,
    format: Literal["table", "json", "csv"] = "table",
    out: Path | None = None,
    overlays: bool = True,
    density: Flag = False,
    recursive: Flag = False,
    resume: Flag = False,
    max_pixels: Annotated[int, Parameter(validator=Number(gt=0))] = MAX_PIXELS,
) -> None:
    """Count people in pictures, folders, videos, cameras and streams.

    Each result is printed and written as soon as it is there. What cannot be read is named and passed over; the exit
    code is then 1. Ctrl-C leaves complete files of what was counted until then.

    Parameters
    ----------
    sources
        Pictures, folders, patterns ("cam*/*.jpg"), videos, cameras (0), streams (rtsp://...), or - for a list of
        these on stdin, one a line.
    weights
        A run's folder, a model file or an exported one; the bundled model unless given.
    engine
        What runs the network.
    tile
        Count larger pictures in windows of so many pixels a side.
    zones
        A JSON file of polygons, each of which gets its own count: {"name": [[x, y], ...]}.
    every
        Time between the frames of a video to count: 1s, 500ms, 2min; 0 counts each.
    seconds
        Stop a video or stream after so many; a live stream runs until Ctrl-C otherwise.
    format
        What to print: a table, one JSON object a line, or CSV.
    out
        The folder for the results; otherwise runs/count/NAME-N.
    overlays
        Draw each picture, and each video, with the density over it.
    density
        Also save the density of each picture, as .npz.
    recursive
        Look into the folders within folders too.
    resume
        Go on with the newest run of this name, or with the one in --out, and leave out what is counted there.
    max_pixels
        Refuse larger pictures, and videos of larger pictures.
    """
    _check_usage(sources)
    if seconds is not None and not math.isfinite(seconds):
        raise UsageError(f"--seconds {seconds}: not a time; leave it out to go on to the end, or until Ctrl-C")
    from gbdgc.cli.counting_output import printer
    from gbdgc.cli.counting_run import open_run
    from gbdgc.cli.counting_sources import Job
    from gbdgc.progress import progress_bar, stderr
    from gbdgc.result import load_zones
    from gbdgc.sources import LIST, find_sources
    from gbdgc.tiling import check_tile
    from gbdgc.video import parse_every

    with wrong_option():
        interval = parse_every(every)
        if tile is not None:
            check_tile(tile)
    areas = load_zones(zones) if zones is not None else ()
    listed = LIST in sources
    found = find_sources(sources, recursive=recursive, listed=_stdin() if listed else None)
    work = found if listed else _require_some(list(found))
    if overlays and (listed or any(source.moving for source in work)):
        _check_film(every, interval)
    once = "" if engine in {None, "torch"} else f", which takes a while when {engine} gets it for the first time"
    with stderr.status(f"loading the model{once}"):
        from gbdgc.counter import Counter

        options: dict[str, Any] = {} if tile is None else {"tile": tile}
        counter = Counter.load(weights, engine=engine, max_pixels=max_pixels, **options)
    settings = {
        "sources": [_without_password(source) for source in sources],
        "weights": None if weights is None else str(weights.resolve()),
        "engine": counter.engine.name,
        "tile": counter.tile,
        "zones": {area.name: {"corners": area.corners, "relative": area.relative} for area in areas},
        "every": interval,
        "seconds": seconds,
    }
    stopped = False
    with open_run(_run_name(sources[0]), settings, out, resume=resume) as run, progress_bar() as bar:
        work = _left(work, run) if listed else list(_left(work, run))
        moving = not isinstance(work, list) or any(source.moving for source in work)
        show = printer(format, run, [area.name for area in areas], moving=moving)
        job = Job(counter, areas, run, show, bar, overlays, density)
        try:
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            _count_all(job, work, every=interval, seconds=seconds, max_pixels=max_pixels)
        except KeyboardInterrupt:
            stopped = True
    _report(run, stopped, to_stdout=format == "table")
    sys.exit(130 if stopped else 1 if run.failed else 0)


def _count_all(job: "Job", work: "Iterable[Source]", *, every: float, seconds: float | None, max_pixels: int) -> None:
    """Count source after source, while a thread reads the picture that comes next."""
    from gbdgc.cli.counting_sources import count_picture, count_video
    from gbdgc.data.prefetch import made_ahead

    known = len(work) if isinstance(work, list) else None
    pictures = None if known is None else sum(not source.moving for source in work)
    task = job.bar.add_task("counting", total=pictures, visible=pictures != 0)
    # A list that still grows is not read ahead: its newest picture would wait for one that may never come.
    read = partial(_read, max_pixels=max_pixels)
    with closing(made_ahead(read, work, workers=known is not None, ahead=1)) as opened:
        for source, image, problem in opened:
            if problem is not None:
                job.fail(source.name, problem)
            elif image is not None:
                count_picture(job, source.name, image)
            else:
                count_video(job, source.name, every=every, seconds=seconds, max_pixels=max_pixels, alone=known == 1)
            if not source.moving:
                job.bar.advance(task)


class _Opened(NamedTuple):
    source: "Source"
    image: "RGB | None"
    problem: InputError | None


def _read(source: "Source", max_pixels: int) -> _Opened:
    """Read a picture; what moves is opened later, by the one who counts it."""
    from gbdgc.data.images import read_image

    if source.problem is not None or source.moving:
        return _Opened(source, None, source.problem)
    try:
        return _Opened(source, read_image(source.name, max_pixels=max_pixels), None)
    except InputError as error:
        return _Opened(source, None, error)


@contextmanager
def wrong_option() -> Iterator[None]:
    """Make wrong usage of an error over an argument, and name it as it is typed: ``--tile=3``, not ``tile=3``."""
    try:
        yield
    except InputError as error:
        raise UsageError(f"--{error}") from error


def _check_film(every: str, interval: float) -> None:
    """Refuse a time between frames that the annotated video cannot have, before anything is counted."""
    from gbdgc.video.writing import LONGEST_SECONDS

    if interval > LONGEST_SECONDS:
        raise UsageError(
            f"--every {every}: no video shows a frame for more than six hours; choose a shorter time, or have no "
            "annotated video drawn by --no-overlays"
        )


def _stdin() -> "BufferedReader":
    """Return the list on stdin. Where that was closed, another file may have got its number by now."""
    if sys.stdin is None:
        raise UsageError("-: stdin, where the list should be, is closed; pipe a list into it, or name the sources")
    return os.fdopen(0, "rb", closefd=False)


def _require_some(found: "list[Source]") -> "list[Source]":
    """Return what was found; if that is nothing but problems, say them and make no run of it."""
    if all(source.problem is not None for source in found):
        raise InputError("\n".join(str(source.problem) for source in found))
    return found


def _left(work: "Iterable[Source]", run: "CountingRun") -> "Iterator[Source]":
    """Leave out what is counted in the run already."""
    for source in work:
        if _without_password(source.name) in run.done:
            run.kept += 1
        else:
            yield source


def _report(run: "CountingRun", stopped: bool, to_stdout: bool) -> None:
    """Say what was done and, in the last line, where it is; where stdout is for machines, on stderr."""
    from gbdgc.cli.counting_run import ERRORS
    from gbdgc.progress import stderr, stdout

    parts = [f"{run.counted:,} counted"]
    parts += [f"{run.kept:,} counted before"] if run.kept else []
    parts += [f"{run.failed:,} failed, listed in {ERRORS}"] if run.failed else []
    parts += ["stopped: the same command with --resume goes on"] if stopped else []
    stderr.print("; ".join(parts), soft_wrap=True)
    (stdout if to_stdout else stderr).print(f"results: {run.folder}", markup=False, soft_wrap=True)


def _run_name(source: str) -> str:
    """Return the name of a run, from that of its first source."""
    from gbdgc.sources import LIST

    if source == LIST:
        return "list"
    if source.isdecimal() and not Path(source).exists():
        return f"camera-{source}"
    path = Path(re.sub(r"^\w+://", "", _without_password(source)))
    stem = path.stem if path.suffix else Path(source).resolve().name if path.exists() else path.name
    return re.sub(r"[^\w.-]+", "-", stem).strip("-.")[:60] or "count"


def _without_password(source: str) -> str:
    from gbdgc.video.sources import public_name

    return public_name(source)


def _check_usage(sources: tuple[str, ...]) -> None:
    """Exit with code 2 for want of a source, or for a misspelt option: as "-" is a source, options look like some."""
    from gbdgc.cli import app
    from gbdgc.progress import stderr

    if not sources:
        app.help_print(["count"], console=stderr)
        sys.exit(2)
    for source in sources:
        if source.startswith("-") and source != "-" and not Path(source).exists():
            options = [f"--{name.replace('_', '-')}" for name in count.__annotations__]
            near = get_close_matches(source.partition("=")[0], options, n=1)
            hint = f"; did you mean {near[0]}?" if near else "; `gbdgc count --help` lists them"
            stderr.print("[bold red]error:[/]", escape(f"{source}: no such option{hint}"), soft_wrap=True)
            sys.exit(2)
