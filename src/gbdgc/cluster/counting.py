"""Counting on a cluster: a list of pictures and videos in, a Parquet table of many files out, each picture once.

Ray hands parts of the list to workers. A worker counts its part and writes it as one file, whole or not at all,
under a name that follows from the list; so a part that is done twice, because its node was lost, is there once.
"""

import json
import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path, PurePosixPath
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

from gbdgc import __version__
from gbdgc.cluster.parts import ITEMS, Item, Part, left_to_count
from gbdgc.cluster.session import LOCAL, check_version, connected, warn_if_no_node_fits
from gbdgc.cluster.storage import Place, find_files, locate
from gbdgc.counting import Counter, Failure, Result, Source, Zone, count_sources, find_sources
from gbdgc.counting.sinks import count_columns, flat
from gbdgc.counting.sources import is_film
from gbdgc.counting.video import public_name
from gbdgc.counting.video.opening import STREAMS, load_av
from gbdgc.counting.video.reading import duration
from gbdgc.data.images import MAX_PIXELS, raise_pillow_limit
from gbdgc.data.prefetch import prefetch
from gbdgc.errors import InputError, as_input_error
from gbdgc.files import AnyPath, file_digest
from gbdgc.progress import progress_bar
from gbdgc.shipped import find_model

if TYPE_CHECKING:
    import pyarrow as pa

JOB = "_job.json"
"""The settings of a table, beside its parts; readers of Parquet pass over names with an underscore."""

_AHEAD = 2000
"""How many parts Ray knows of at once, enough for as many cores; the memory for all of a huge job would be large."""
_WHOLE_NUMBERS = frozenset({"width", "height", "domain"})
_TEXTS = frozenset({"source", "clock", "warnings", "overlay", "density"})


@dataclass(frozen=True)
class _WorkerSettings:
    """The settings that a worker needs besides its part."""

    out: str
    weights: str
    engine: str | None
    device: str | None
    threads: int
    tile: int | None
    max_pixels: int
    zones: tuple[Zone, ...]
    every: float
    version: str = __version__
    """The caller's version of gbdgc."""


@dataclass(frozen=True)
class ClusterSummary:
    """The result of a job."""

    out: str
    """The folder or URI of the table."""
    counted: int
    """Rows of counts: one per picture, and one per counted frame of a video."""
    failed: int
    """Rows of errors."""
    parts: int
    """Parts counted now."""
    kept: int
    """Pictures and stretches of video that an earlier run of this job had done."""


def count_on_cluster(
    sources: AnyPath | Iterable[AnyPath],
    out: AnyPath,
    *,
    cluster: str = LOCAL,
    weights: AnyPath | None = None,
    engine: str | None = None,
    device: str | None = None,
    threads: int = 1,
    workers: int | None = None,
    gpus: float = 0,
    tile: int | None = None,
    zones: Sequence[Zone] = (),
    every: float = 1.0,
    stretch: float = 300.0,
    part_size: int = 64,
    recursive: bool = False,
    max_pixels: int = MAX_PIXELS,
) -> ClusterSummary:
    """Count pictures and videos on a Ray cluster, into a Parquet table with the columns of counts.csv and ``error``.

    The same call continues a job that was stopped: what is in the table is not counted again. What cannot be counted
    is a row with an ``error`` and no count. ``smoothed`` is empty, as a stretch of video does not know the one before.

    Parameters
    ----------
    sources : pictures, videos, folders and patterns, or URIs (s3://, gs://, hdfs://, file://) of files and folders.
        Local paths must lead to the same files on every node.
    out : the folder or URI of the table; one job at a time.
    cluster : "local" for this machine alone, "auto", or HOST:PORT of a cluster's head.
    weights, engine, device, tile, max_pixels : as for `Counter.load`; a path must lead to the same model on every node.
    threads : cores of each worker.
    workers : how many work at a time; as many as the cluster has cores for unless given.
    gpus : graphics cards of each worker; a fraction lets several share one.
    zones : areas to count in each picture.
    every : seconds between the frames of a video to count; 0 counts each.
    stretch : videos are cut into stretches of so many seconds, which are counted side by side.
    part_size : pictures per file of the table; no more than these are lost with a worker.
    recursive : look into the folders within folders too.
    """
    for name, number in (("workers", workers), ("part_size", part_size)):
        if number is not None and number < 1:
            raise InputError(f"{name}={number}", "less than one", "leave it out for the default")
    given = [sources] if isinstance(sources, str | os.PathLike) else sources
    address = os.fspath(out)
    place = locate(address)
    path = find_model(weights).absolute()
    # Loaded here once, so that a wrong path or engine is known before anything is started.
    counter = _load(str(path), engine, device, threads, tile, max_pixels)
    where, name = address if "://" in address else place.path, counter.engine.name
    job = _WorkerSettings(where, str(path), name, device, threads, counter.tile, max_pixels, tuple(zones), every)
    _claim(place, job, stretch)
    items = list(dict.fromkeys(_find([os.fspath(each) for each in given], recursive, stretch)))
    if not items or all(item.problem for item in items):
        raise InputError("", "\n".join(item.problem or "" for item in items) or "there is nothing to count")
    parts = left_to_count(items, place, part_size)
    left = sum(len(part.items) for part in parts)
    counted = failed = 0
    if parts:
        cores = None if workers is None else workers * threads
        with connected(cluster, cores=cores) as ray, progress_bar() as bar:
            warn_if_no_node_fits(ray, cores=threads, gpus=gpus)
            task = bar.add_task("counting", total=len(items), completed=len(items) - left)
            with closing(_run(parts, job, workers, gpus)) as outcomes:
                for done in outcomes:
                    counted, failed = counted + done["counted"], failed + done["failed"]
                    bar.advance(task, done["items"])
    return ClusterSummary(job.out, counted, failed, len(parts), len(items) - left)


def _run(
    parts: Sequence[Part], job: _WorkerSettings, workers: int | None, gpus: float
) -> Generator[dict[str, int], None, None]:
    """Hand the parts to workers, and yield what came of each as it is done."""
    import ray

    # Tasks and not Ray Data, whose workers wait a tenth of a second and more for the next one (ray-project/ray#45934).
    # Tasks and not actors: what waits at a lost actor waits for its restart, for which a smaller cluster has no room.
    count = ray.remote(num_cpus=job.threads, num_gpus=gpus, max_retries=-1)(_count_part)
    left, running = iter(parts), list[Any]()
    try:
        while True:
            running += [count.remote(part, job) for part in islice(left, (workers or _AHEAD) - len(running))]
            if not running:
                return
            done, running = ray.wait(running)
            yield from ray.get(done)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from error  # as on one machine: an InputError stays one
    finally:
        for each in running:  # where the job fails or is stopped, on a cluster that stays
            ray.cancel(each)


def _count_part(part: Part, job: _WorkerSettings) -> dict[str, int]:
    """Count a part and write it, in a worker."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    check_version(job.version)
    raise_pillow_limit(job.max_pixels)
    counter = _load(job.weights, job.engine, job.device, job.threads, job.tile, job.max_pixels)
    rows = list(_count_items(counter, part.items, job))
    schema = _schema(job.zones).with_metadata({ITEMS: part.covers.encode()})
    buffer = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, schema), buffer)
    (locate(job.out) / part.file).write(buffer.getvalue().to_pybytes())
    failed = sum(row["error"] is not None for row in rows)
    return {"items": len(part.items), "counted": len(rows) - failed, "failed": failed}


@lru_cache(maxsize=1)
def _load(
    weights: str, engine: str | None, device: str | None, threads: int, tile: int | None, max_pixels: int
) -> Counter:
    """Return the model; a worker loads it for its first part and keeps it for the others."""
    options: dict[str, Any] = {} if tile is None else {"tile": tile}
    return Counter.load(weights, engine=engine, device=device, threads=threads, max_pixels=max_pixels, **options)


def _count_items(counter: Counter, items: Sequence[Item], job: _WorkerSettings) -> Iterator[dict[str, Any]]:
    """Yield a row for each picture and for each frame of a video."""
    columns = (*count_columns(job.zones), "error")
    blank = dict.fromkeys(columns)
    for item in items:
        if item.moving:
            yield from (blank | _row(found, item.source, columns) for found in _count_stretch(counter, item, job))
    pictures = [item for item in items if not item.moving]
    # Fetched ahead, so that the network and the processor are busy at once.
    with closing(prefetch(_fetch, pictures, workers=min(2, len(pictures)), ahead=4)) as fetched:
        outcomes = count_sources(counter, fetched, zones=job.zones)
        # A picture gives one outcome, and they come in order.
        for item, counted in zip(pictures, outcomes, strict=True):
            yield blank | _row(counted, item.source, columns)


def _fetch(item: Item) -> bytes | Source:
    if item.problem is not None:
        return Source(item.source, problem=InputError("", item.problem))
    try:
        return locate(item.address).read()
    except OSError as error:
        return Source(item.source, problem=InputError(item.source, f"cannot be read ({error})"))


def _count_stretch(counter: Counter, item: Item, job: _WorkerSettings) -> Iterator[Result | Failure]:
    """Count the frames of a stretch of video; one behind a URI is copied to this machine first."""
    place = locate(item.address)
    options: dict[str, Any] = {"zones": job.zones, "every": job.every, "start": item.start, "seconds": item.end}
    if place.system.type_name == "local":
        outcomes = list(count_sources(counter, [Source(place.path, moving=True)], **options))
    else:
        with NamedTemporaryFile(suffix=Path(place.path).suffix) as copy:
            copy.write(place.read())
            copy.flush()
            outcomes = list(count_sources(counter, [Source(copy.name, moving=True)], **options))
    yield from (outcome for outcome in outcomes if isinstance(outcome, Result | Failure))


def _row(outcome: Any, source: str, columns: Sequence[str]) -> dict[str, Any]:
    named = {"source": source.encode(errors="backslashreplace").decode()}  # Parquet holds text only
    if isinstance(outcome, Failure):
        return named | {"error": str(InputError(source, outcome.error.reason, outcome.error.next_step))}
    record = flat(outcome.to_dict()) | {"smoothed": None}
    return {name: value for name, value in record.items() if name in columns} | named


def _schema(zones: Sequence[Zone]) -> "pa.Schema":
    import pyarrow as pa

    def kind(name: str) -> "pa.DataType":
        return pa.int32() if name in _WHOLE_NUMBERS else pa.string() if name in _TEXTS else pa.float64()

    columns = count_columns(zones)
    return pa.schema([*((name, kind(name)) for name in columns), ("error", pa.string())])


def _find(arguments: Iterable[str], recursive: bool, stretch: float) -> Iterator[Item]:
    """Yield what is to be counted; videos in stretches."""
    for argument in arguments:
        scheme = argument.partition("://")[0].lower() if "://" in argument else None
        if scheme in STREAMS:
            raise InputError(public_name(argument), "a stream cannot be cut in parts", "count it on one machine")
        try:
            if scheme is not None:
                for address in find_files(argument, recursive=recursive):
                    yield from _items(public_name(address.partition("?")[0]), address, stretch)
                continue
            for source in find_sources([argument], recursive=recursive):
                if source.problem is not None:
                    raise source.problem
                path = str(Path(str(source.name)).absolute())
                yield from _items(path, path, stretch)
        except InputError as error:
            yield Item(argument, argument, problem=str(error))


def _items(source: str, address: str, stretch: float) -> Iterator[Item]:
    """Yield a picture, or the stretches of a video; the last has no end, as a file may be longer than it says."""
    if not is_film(PurePosixPath(address.partition("?")[0] if "://" in address else address)):
        yield Item(source, address)
        return
    place = locate(address)
    av = load_av()
    try:
        with place.system.open_input_file(place.path) as file, av.open(file) as container:
            seconds = duration(container) or 0.0
    except (OSError, IndexError):  # whoever counts it says what is wrong with it
        seconds = 0.0
    starts = [number * stretch for number in range(max(1, int(seconds / stretch)))]
    yield from (Item(source, address, True, start, end) for start, end in zip(starts, [*starts[1:], None], strict=True))


def _claim(place: Place, job: _WorkerSettings, stretch: float) -> None:
    """Write what the table is made with, or refuse to add to one that was made with something else."""
    zones = {zone.name: zone.settings() for zone in job.zones}
    settings = {"engine": job.engine, "tile": job.tile, "zones": zones, "every": job.every, "stretch": stretch}
    model = Path(job.weights)
    if model.is_dir():
        from gbdgc.checkpoint import model_file

        model = model_file(model)
    # By its content, as nodes may have it in different places.
    settings = json.loads(json.dumps(settings | {"weights": file_digest(model)}))
    names = place.names()
    if JOB in names:
        damaged = (OSError, ValueError, RecursionError)
        with as_input_error(damaged, f"{job.out}/{JOB}", "damaged ({error})", "choose another folder"):
            before = json.loads((place / JOB).read())
            if not isinstance(before, dict):
                raise ValueError("not an object")
        if changed := [name for name in settings if before.get(name) != settings[name]]:
            raise InputError(job.out, f"made with other settings ({', '.join(changed)})", "choose another folder")
    elif names:
        raise InputError(job.out, "there is something else in this folder", "choose another")
    else:
        (place / JOB).write(json.dumps(settings, indent=2).encode())
