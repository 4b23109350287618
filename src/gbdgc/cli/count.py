"""`gbdgc count`."""

import math
import os
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from gbdgc.cli.options import Engine, Flag, Int8, Weights, wrong_option
from gbdgc.errors import InputError, UsageError
from gbdgc.files import MAX_PIXELS
from gbdgc.progress import stderr, stdout
from gbdgc.shipped import find_model

if TYPE_CHECKING:
    from gbdgc.counting import Source
    from gbdgc.counting.sinks import Sink


def count(
    *sources: Annotated[str, Parameter(allow_leading_hyphen=True)],
    weights: Weights = None,
    engine: Engine = None,
    int8: Int8 = False,
    tile: int = 1024,
    zones: Path | None = None,
    every: str = "1s",
    seconds: Annotated[float | None, Parameter(validator=Number(gt=0))] = None,
    smooth: Annotated[float | None, Parameter(validator=Number(gte=0))] = None,
    format: Literal["table", "json", "csv"] = "table",
    out: str | None = None,
    overlays: bool = True,
    codec: Literal["h264", "vp9", "mpeg4"] | None = None,
    density: Flag = False,
    points: Flag = False,
    recursive: Flag = False,
    resume: Flag = False,
    max_pixels: Annotated[int, Parameter(validator=Number(gt=0))] = MAX_PIXELS,
    cluster: str | None = None,
) -> None:
    """Count people in pictures, folders, videos, cameras and streams.

    Each result is printed and written as soon as it is ready. Unreadable inputs are reported and skipped; the exit code
    is then 1. After Ctrl-C the files of everything counted so far are complete.

    Parameters
    ----------
    sources
        Pictures, folders, patterns ("cam*/*.jpg"), videos, cameras (0), streams (rtsp://...), or - for a list of
        these on stdin, one per line.
    tile
        Count larger pictures in windows with sides of this many pixels.
    zones
        A JSON file of polygons, each of which gets its own count: {"name": [[x, y], ...]}. As {"zones": ...,
        "masks": ..., "ground": ...} it also has areas where nobody is to be counted, and four measured points on the
        ground, for people per square metre.
    every
        Time between the frames of a video to count: 1s, 500ms, 2min; 0 counts each.
    seconds
        Stop a video or stream after this time; otherwise a live stream runs until Ctrl-C.
    smooth
        Half-life of the smoothed count of a video, in seconds (default 1.5); also written on the overlay.
    format
        What to print: a table, one JSON object per line, or CSV.
    out
        The folder for the results; by default runs/count/NAME-N.
    overlays
        Draw each picture and video with its density overlaid.
    codec
        Codec of the annotated videos; by default one that needs no GPL encoder.
    density
        Also save the density of each picture, as .npz.
    points
        Also save the heads of each picture, as CSV and all of them as COCO, and draw them in the overlays.
    recursive
        Also look into subfolders.
    resume
        Continue the newest run of this name, or the one in --out, and skip what it has counted.
    max_pixels
        Refuse larger pictures, and videos of larger pictures.
    cluster
        Count on Ray: "local" for the cores of this machine, "auto", or HOST:PORT of a cluster's head. Sources and --out
        may then be URIs (s3://, gs://, hdfs://); --out gets a Parquet table, and the same command continues a job.
    """
    _check_usage(sources, seconds)
    from gbdgc.counting import load_zones
    from gbdgc.counting.tiling import check_tile
    from gbdgc.counting.video import parse_every

    with wrong_option():
        interval, tile = parse_every(every), check_tile(tile)
    areas = load_zones(zones) if zones is not None else ()
    if cluster is not None:
        if density or points or seconds is not None or format != "table":
            raise UsageError("--cluster", "makes a table only", "leave out --density, --points, --seconds and --format")
        if int8:
            reason = "on a cluster models count in the bits they have"
            raise UsageError("--int8", reason, "give one exported with --int8")
        options = {"weights": weights, "engine": engine, "tile": tile, "recursive": recursive, "max_pixels": max_pixels}
        _count_on_cluster(sources, out, cluster=cluster, zones=areas, every=interval, **options)
        return
    from gbdgc.cli.count_output import print_and_write, warn
    from gbdgc.counting import Counter, count_sources, find_sources
    from gbdgc.counting.sinks import ERRORS, Files, Overlays, ResultsFolder
    from gbdgc.counting.sources import LIST, run_name
    from gbdgc.counting.video import HALF_LIFE, public_name
    from gbdgc.counting.video.writing import LONGEST_SECONDS
    from gbdgc.data.images import raise_pillow_limit

    if LIST in sources and sys.stdin is None:  # it was closed, and another file may have its descriptor by now
        raise UsageError("-", "stdin, where the list should be, is closed", "pipe a list into it, or name the sources")
    listed = os.fdopen(0, "rb", closefd=False) if LIST in sources else None
    work: Iterable[Source] = find_sources(sources, recursive=recursive, listed=listed)
    if listed is None:  # a list on stdin may still be growing
        work = list(work)
        if all(source.problem is not None for source in work):  # nothing but problems makes no run
            raise InputError("", "\n".join(str(source.problem) for source in work))
    if overlays and interval > LONGEST_SECONDS and _may_move(work):
        advice = "choose a shorter time, or have no annotated video drawn by --no-overlays"
        raise UsageError(f"--every {every}", "no video shows a frame for more than six hours", advice)
    raise_pillow_limit(max_pixels)
    once = "" if engine in {None, "torch"} else f", which takes a while when {engine} gets it for the first time"
    with stderr.status(f"loading the model{once}"):
        counter = Counter.load(weights, engine=engine, int8=int8, max_pixels=max_pixels, tile=tile)
    settings = {
        "sources": [public_name(source) for source in sources],
        "weights": None if weights is None else str(find_model(weights).resolve()),
        "engine": counter.engine.name,
        "int8": int8,
        "tile": tile,
        "zones": {area.name: area.settings() for area in areas},
        "every": interval,
        "seconds": seconds,
    }
    sinks: list[Sink] = [Overlays(codec=codec, smoothed=smooth is not None, points=points)] if overlays else []
    sinks += [Files("density")] if density else []
    sinks += [Files("points")] if points else []
    folder = Path(out) if out else None
    with ResultsFolder.open(run_name(sources[0]), settings, folder, sinks, zones=areas, resume=resume) as run:
        work = list(run.left(work)) if isinstance(work, list) else run.left(work)
        counted = count_sources(
            counter,
            work,
            zones=areas,
            every=interval,
            seconds=seconds,
            half_life=HALF_LIFE if smooth is None else smooth,
            counted=run.begun,
            report=warn,
        )
        pictures = sum(not source.moving for source in work) if isinstance(work, list) else None
        stopped = not print_and_write(counted, run, format, pictures=pictures, moving=_may_move(work))
    end = "; stopped: the same command with --resume goes on" if stopped else ""
    stderr.print(_tally(run, f"listed in {ERRORS}") + end, soft_wrap=True)
    # Where stdout is for machines, where the results are is for stderr.
    (stdout if format == "table" else stderr).print(f"results: {run.folder}", markup=False, soft_wrap=True)
    sys.exit(130 if stopped else 1 if run.failed else 0)


def _may_move(work: "Iterable[Source]") -> bool:
    """Return whether there is a video among the sources, or may come to be."""
    return not isinstance(work, list) or any(source.moving for source in work)


def _count_on_cluster(sources: tuple[str, ...], out: str | None, **options: Any) -> None:
    from gbdgc.cluster import count_on_cluster

    if out is None:
        raise UsageError("--cluster", "needs to know where the table goes", "name a folder or a URI by --out")
    try:
        done = count_on_cluster(sources, out, **options)
    except KeyboardInterrupt:
        stderr.print("stopped: the same command continues")
        sys.exit(130)
    stderr.print(_tally(done, "in the rows with an error"), soft_wrap=True)
    stdout.print(f"results: {done.out}", markup=False, soft_wrap=True)
    sys.exit(1 if done.failed else 0)


def _tally(done: Any, where: str) -> str:
    """Summarise how many sources were counted, now and before, and how many failed."""
    before = f"; {done.kept:,} counted before" if done.kept else ""
    return f"{done.counted:,} counted{before}" + (f"; {done.failed:,} failed, {where}" if done.failed else "")


def _check_usage(sources: tuple[str, ...], seconds: float | None) -> None:
    """Exit with code 2 for want of a source, or for a misspelt option: as "-" is a source, options look like some."""
    if not sources:
        from gbdgc.cli import app

        app.help_print(["count"], console=stderr)
        sys.exit(2)
    for source in sources:
        if source.startswith("-") and source != "-" and not Path(source).exists():
            options = [f"--{name.replace('_', '-')}" for name in count.__annotations__]
            near = get_close_matches(source.partition("=")[0], options, n=1)
            next_step = f"did you mean {near[0]}?" if near else "`gbdgc count --help` lists them"
            raise UsageError(source, "no such option", next_step)
    if seconds is not None and not math.isfinite(seconds):
        raise UsageError(f"--seconds {seconds}", "not a time", "leave it out to go on to the end, or until Ctrl-C")
