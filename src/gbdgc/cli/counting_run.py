"""The run folder of `gbdgc count`: what is counted is written at once, so that a run can stop and go on anywhere."""

import csv
import io
import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gbdgc.errors import InputError
from gbdgc.files import atomic_write, make_folder
from gbdgc.runs import claim, new_run_folder, newest_run_folder, write_environment

if TYPE_CHECKING:
    from gbdgc.result import Result

COUNTS, VIDEOS, ERRORS, CONFIG = "counts.csv", "videos.csv", "errors.csv", "config.yaml"
ZONE = "zone:"
_COLUMNS_BEFORE_ZONES = ("source", "time", "clock", "count", "smoothed")
_COLUMNS_AFTER_ZONES = (
    *("width", "height", "domain", "novelty", "warnings", "milliseconds"),
    *("overlay", "density"),
)
_VIDEO_COLUMNS = ("source", "frames", "seconds", "dropped", "mean", "highest")
_SAME = ("weights", "zones", "every", "seconds", "tile")
"""Settings that must not change within one table."""

_MOST_BYTES = 120
_UNFIT = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|\udc80-\udcff]+')
"""What some file system does not allow in a name, and bytes that are no text."""

Record = dict[str, Any]


@dataclass(frozen=True)
class Moment:
    """A count in a video."""

    time: float
    count: float


@dataclass
class Tally:
    """What came of a video so far; of a stream that runs for days no more is kept."""

    frames: int = 0
    seconds: float = 0.0
    total: float = 0.0
    highest: float | None = None

    def add(self, moment: Moment) -> None:
        """Take one more count."""
        self.frames += 1
        self.seconds = moment.time
        self.total += moment.count
        self.highest = moment.count if self.highest is None else max(self.highest, moment.count)


class CountingRun:
    """One run folder, new or gone on with.

    Parameters
    ----------
    folder
        The run's folder; what it holds already is kept.
    zones
        The names of the zones that each result has.

    Attributes
    ----------
    done : set of str
        The sources that are counted to their end.
    begun : dict
        Of each video that is not, the counts so far.
    """

    def __init__(self, folder: Path, zones: Sequence[str] = ()) -> None:
        self.folder = folder
        self.columns = (*_COLUMNS_BEFORE_ZONES, *(ZONE + name for name in zones), *_COLUMNS_AFTER_ZONES)
        self.counted = self.kept = self.failed = 0
        self._names: defaultdict[str, int] = defaultdict(int)
        self._taken: set[str] = set()
        (folder / ERRORS).unlink(missing_ok=True)  # what failed is tried again
        rows = _restore(folder / COUNTS, self.columns)
        finished = {row["source"] for row in _restore(folder / VIDEOS, _VIDEO_COLUMNS)}
        self.begun: defaultdict[str, list[Moment]] = defaultdict(list)
        for row in rows:
            if row["time"] and row["source"] not in finished:
                self.begun[row["source"]].append(Moment(float(row["time"]), float(row["count"])))
            self._taken |= {_name_in(row[kind]).casefold() for kind in ("overlay", "density") if row[kind]}
        self.done = finished | {row["source"] for row in rows if not row["time"]}

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

    def add(self, result: "Result", **more: str | None) -> Record:
        """Write a result into the table and return it as a record: what `Result.to_dict` gives, rounded, and more."""
        record = round_all(result.to_dict()) | {"clock": None, "overlay": None, "density": None} | more
        _append(self.folder / COUNTS, self.columns, flat(record))
        self.counted += 1
        return record

    def finish_video(self, source: str, tally: Tally, dropped: int) -> None:
        """Note that a video is counted to its end, and what came of it."""
        facts = {
            "source": source,
            "frames": tally.frames,
            "seconds": tally.seconds,
            "dropped": dropped,
            "mean": tally.total / tally.frames if tally.frames else None,
            "highest": tally.highest,
        }
        _append(self.folder / VIDEOS, _VIDEO_COLUMNS, round_all(facts))

    def fail(self, source: str, error: InputError) -> None:
        """Note what could not be counted, and why."""
        _append(self.folder / ERRORS, ("source", "error"), {"source": source, "error": str(error)})
        self.failed += 1


@contextmanager
def open_run(name: str, settings: Mapping[str, Any], out: Path | None, *, resume: bool) -> Iterator[CountingRun]:
    """Make a run folder, or go on with the one in ``out`` or the newest of this name, and keep others out of it."""
    folder = out or (newest_run_folder("count", name) if resume else None)
    begun = folder is not None and (folder / CONFIG).exists()
    if folder is None:
        folder = new_run_folder("count", name)
    elif begun and not resume:
        raise InputError(f"--out {folder}: has counts in it; go on with them by --resume, or choose another folder")
    elif begun:
        _require_same(folder, settings)
    elif strange := next((file for file in (COUNTS, VIDEOS, ERRORS) if (folder / file).exists()), None):
        raise InputError(f"--out {folder}: has a {strange} that is not of a run; choose another folder")
    make_folder(folder)
    with claim(folder):
        run = CountingRun(folder, tuple(settings["zones"] or ()))
        if not begun:
            write_environment(folder)
            with atomic_write(folder / CONFIG, "w") as file:
                json.dump(settings, file, indent=2)  # JSON is YAML too
        yield run


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


def _name_in(made: str) -> str:
    """Return the name that `CountingRun.name_for` gave: of overlays/NAME.jpg, or density/NAME/000001.npz."""
    path = Path(made)
    return path.parts[1].removesuffix(path.suffix)


def _require_same(folder: Path, settings: Mapping[str, Any]) -> None:
    try:
        before = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        now = json.loads(json.dumps(settings))
        changed = [name for name in _SAME if before[name] != now[name]]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder}: its {CONFIG} is not one of `gbdgc count`; choose another folder") from error
    if changed:
        options = ", ".join(f"--{name}" for name in changed)
        raise InputError(f"{folder}: was begun with another {options}; give the same, or start anew without --resume")


def _restore(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """Return the whole rows of a table; half a row, as a power cut leaves it, is taken out of the file."""
    if not path.exists():
        return []
    content = path.read_bytes()
    text = content.decode("utf-8", "surrogateescape")
    header, *rows = csv.reader(io.StringIO(text, newline="")) if text else [[]]
    if rows and header != list(columns):
        raise InputError(f"{path}: its columns are not those of this run; start anew without --resume")
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
            f"{path}: could not be written ({error.strerror}); make room, then go on with --resume"
        ) from error


def _line(values: Iterable[object]) -> bytes:
    return csv_line(values).encode("utf-8", "surrogateescape")
