"""Where results go: a folder with tables of them, overlays, annotated videos and densities.

What is counted is written at once, so that a run can stop and go on anywhere.
"""

import csv
import io
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from gbdgc.counting.overlay import peak_of
from gbdgc.counting.pipeline import Failure, Moment, Outcome, Video
from gbdgc.counting.result import Result
from gbdgc.counting.video import VideoWriter
from gbdgc.errors import InputError
from gbdgc.files import atomic_write

COUNTS, VIDEOS, ERRORS = "counts.csv", "videos.csv", "errors.csv"
ZONE = "zone:"
_COLUMNS_BEFORE_ZONES = ("source", "time", "clock", "count", "smoothed")
_COLUMNS_AFTER_ZONES = (
    *("width", "height", "domain", "novelty", "warnings", "milliseconds"),
    *("overlay", "density"),
)
_VIDEO_COLUMNS = ("source", "frames", "seconds", "dropped", "mean", "highest")

_MOST_BYTES = 120
_UNFIT = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|\udc80-\udcff]+')
"""What some file system does not allow in a name, and bytes that are no text."""

Record = dict[str, Any]


class Sink(Protocol):
    """What makes files of results."""

    kind: str
    """The column of the table that names them."""

    def write(self, folder: Path, stem: str, result: Result) -> str:
        """Write a file named after ``stem`` and return its name within the folder."""

    def close(self) -> None:
        """Complete what is open: the video is over."""


class Densities:
    """The density of each picture and frame, as .npz."""

    kind = "density"

    def write(self, folder: Path, stem: str, result: Result) -> str:
        """Write the density."""
        name = f"density/{stem}.npz" if result.frame is None else f"density/{stem}/{result.frame:06d}.npz"
        result.save(folder / name)
        return name

    def close(self) -> None:
        """Nothing stays open."""


class Overlays:
    """Each picture with the density over it, and one annotated video of all frames of a video."""

    kind = "overlay"

    def __init__(self) -> None:
        self._film: VideoWriter | None = None
        self._began = self._peak = 0.0

    def write(self, folder: Path, stem: str, result: Result) -> str:
        """Write the overlay, or append it to the annotated video, in the colours of its densest spot so far."""
        if result.video is None:
            result.save(folder / f"overlays/{stem}.jpg")
            return f"overlays/{stem}.jpg"
        name, time = f"overlays/{stem}.mp4", result.time or 0.0
        self._peak = max(self._peak, peak_of(result))
        picture = result.annotated(peak=self._peak)
        if self._film is None:
            height, width = picture.shape[:2]
            self._film = VideoWriter(folder / name, result.video.rate, (width, height))
            self._began = time
        self._film.write(picture, time - self._began)
        return name

    def close(self) -> None:
        """Complete the annotated video."""
        film, self._film, self._peak = self._film, None, 0.0
        if film is not None:
            film.close()


class ResultsFolder:
    """A folder of results, new or gone on with: the files of each result, then its row in the table.

    Parameters
    ----------
    folder
        What it holds already is kept.
    zones
        The names of the zones that each result has.
    sinks
        What to make of each result besides its row.

    Attributes
    ----------
    done : set of str
        The sources that are counted to their end.
    begun : dict
        Of each video that is not, the counts so far.
    """

    def __init__(self, folder: Path, zones: Sequence[str] = (), sinks: Sequence[Sink] = ()) -> None:
        self.folder, self.sinks = folder, sinks
        self.columns = (*_COLUMNS_BEFORE_ZONES, *(ZONE + name for name in zones), *_COLUMNS_AFTER_ZONES)
        self.counted = self.failed = 0
        self._names: defaultdict[str, int] = defaultdict(int)
        self._taken: set[str] = set()
        self._video: Video | None = None
        self._stem = ""
        (folder / ERRORS).unlink(missing_ok=True)  # what failed is tried again
        rows = _restore(folder / COUNTS, self.columns)
        finished = {row["source"] for row in _restore(folder / VIDEOS, _VIDEO_COLUMNS)}
        self.begun: defaultdict[str, list[Moment]] = defaultdict(list)
        for row in rows:
            if row["time"] and row["source"] not in finished:
                self.begun[row["source"]].append(Moment(float(row["time"]), float(row["count"])))
            self._taken |= {_stem_of(row[kind]).casefold() for kind in ("overlay", "density") if row[kind]}
        self.done = finished | {row["source"] for row in rows if not row["time"]}

    def write(self, outcome: Outcome) -> Record | None:
        """Write what came of a source; of a result return its record: `Result.to_dict` rounded, and the files made."""
        if isinstance(outcome, Result):
            if outcome.video is None or outcome.video is not self._video:
                self._video, self._stem = outcome.video, self.name_for(outcome.source or "")
            made = {sink.kind: sink.write(self.folder, self._stem, outcome) for sink in self.sinks}
            record = round_all(outcome.to_dict()) | {"overlay": None, "density": None} | made
            _append(self.folder / COUNTS, self.columns, flat(record))
            self.counted += 1
            return record
        self.close()
        if isinstance(outcome, Failure):
            row = {"source": outcome.source, "error": str(outcome.error)}
            _append(self.folder / ERRORS, ("source", "error"), row)
            self.failed += 1
        else:
            facts = {name: getattr(outcome, name) for name in ("source", "frames", "seconds", "dropped", "highest")}
            facts["mean"] = outcome.total / outcome.frames if outcome.frames else None
            _append(self.folder / VIDEOS, _VIDEO_COLUMNS, round_all(facts))
        return None

    def close(self) -> None:
        """Complete the files of a video, wherever it stands."""
        for sink in self.sinks:
            sink.close()

    def name_for(self, source: str) -> str:
        """Return a file name without suffix for what is made of a source: like its own, and nobody else's."""
        stem = _UNFIT.sub("_", re.sub(r"^\w+://", "", source) if "://" in source else Path(source).stem)
        stem = stem.encode()[:_MOST_BYTES].decode(errors="ignore").strip(". ") or "_"
        while True:
            # Two names that differ in case only are one on some file systems.
            key = stem.casefold()
            self._names[key] += 1
            name = stem if self._names[key] == 1 else f"{stem}-{self._names[key]}"
            if name.casefold() not in self._taken:
                self._taken.add(name.casefold())
                return name


def flat(record: Record) -> Record:
    """Return a record as a table has it: a column for each zone, and the warnings in one."""
    zones = {ZONE + name: people for name, people in record["zones"].items()}
    return record | zones | {"warnings": "; ".join(record["warnings"])}


def csv_line(values: Iterable[object]) -> str:
    """Return one row of CSV, with its newline."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue()


def round_all(record: Mapping[str, Any]) -> Record:
    """Round to what a count can mean, for people to read."""
    return {name: _rounded(value) for name, value in record.items()}


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return round_all(value)
    return round(value, 3) + 0.0 if isinstance(value, float) else value


def _stem_of(made: str) -> str:
    """Return the name that `ResultsFolder.name_for` gave: of overlays/NAME.jpg, or density/NAME/000001.npz."""
    path = Path(made)
    return path.parts[1].removesuffix(path.suffix)


def _restore(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """Return the whole rows of a table; half a row, as a power cut leaves it, is taken out of the file."""
    if not path.exists():
        return []
    content = path.read_bytes()
    text = content.decode("utf-8", "surrogateescape")
    header, *rows = csv.reader(io.StringIO(text, newline="")) if text else [[]]
    if rows and header != list(columns):
        raise InputError(str(path), "its columns are not those of this run", "start a new run")
    whole = [row for row in rows if len(row) == len(columns)]
    if rows and whole and not text.endswith("\n") and rows[-1] is whole[-1]:
        whole.pop()
    kept = b"".join(_line(row) for row in [columns, *whole])
    if kept != content:
        with atomic_write(path) as file:
            file.write(kept)
    return [dict(zip(columns, row, strict=True)) for row in whole]


def _append(path: Path, columns: Sequence[str], row: Mapping[str, object]) -> None:
    """Add a row in one write, so that it is there whole or not at all."""
    try:
        with path.open("ab", buffering=0) as file:
            header = b"" if os.fstat(file.fileno()).st_size else _line(columns)
            file.write(header + _line(row.get(name) for name in columns))
    except OSError as error:
        raise InputError(
            str(path), f"could not be written ({error.strerror})", "make room, then resume the run"
        ) from error


def _line(values: Iterable[object]) -> bytes:
    return csv_line(values).encode("utf-8", "surrogateescape")
