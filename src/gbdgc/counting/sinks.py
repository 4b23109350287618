"""Writing results: a folder with tables, overlays, annotated videos and densities.

Each result is written immediately, so that a run can be interrupted and resumed at any point.
"""

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol, Self

import numpy as np

from gbdgc.counting.overlay import peak_of
from gbdgc.counting.pipeline import Failure, Moment, Outcome, Video
from gbdgc.counting.result import Result
from gbdgc.counting.sources import Source
from gbdgc.counting.video import VideoWriter, public_name
from gbdgc.counting.zones import Zone
from gbdgc.data.formats import coco
from gbdgc.errors import as_input_error
from gbdgc.files import atomic_write, csv_rows
from gbdgc.runs import Journal, Resume, RunFolder, changed_keys

COUNTS, VIDEOS, ERRORS, HEADS = "counts.csv", "videos.csv", "errors.csv", "points.json"
ZONE, ZONE_LOW, ZONE_HIGH, PER_M2 = "zone:", "zone_low:", "zone_high:", "per_m2:"
FILES = ("overlay", "density", "points")
"""Columns with the names of the files that sinks made from a result."""
_COLUMNS_BEFORE_ZONES = ("source", "time", "clock", "count", "low", "high", "smoothed")
_COLUMNS_AFTER_ZONES = ("width", "height", "domain", "novelty", "warnings", "milliseconds", *FILES)
_VIDEO_COLUMNS = ("source", "frames", "seconds", "dropped", "mean", "highest")
_SAME = ("weights", "zones", "every", "seconds", "tile")  # settings that must not change within one table

_MOST_BYTES = 120
_UNFIT = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|\udc80-\udcff]+')
"""Characters that some file system does not allow in a name, and bytes that are not text."""

Record = dict[str, Any]


class Sink(Protocol):
    """Writes files made from results."""

    kind: str
    """The column of the table that names them."""

    def write(self, folder: Path, stem: str, result: Result) -> str:
        """Write a file named after ``stem`` and return its name within the folder."""

    def close(self) -> None:
        """Complete what is open: the video is over."""


class Files:
    """One file per picture or frame: its density as .npz, or its points as .csv."""

    def __init__(self, kind: Literal["density", "points"]) -> None:
        self.kind: str = kind
        self._suffix = {"density": ".npz", "points": ".csv"}[kind]

    def write(self, folder: Path, stem: str, result: Result) -> str:
        """Write the file."""
        name = f"{self.kind}/{stem}" + ("" if result.frame is None else f"/{result.frame:06d}") + self._suffix
        result.save(folder / name)
        return name

    def close(self) -> None:
        """Nothing stays open."""


class Overlays:
    """Each picture with the density over it, and one annotated video of all frames of a video.

    The codec is one of `VideoWriter`'s; each frame may also bear the smoothed count, and a dot at each head.
    """

    kind = "overlay"

    def __init__(self, *, codec: str | None = None, smoothed: bool = False, points: bool = False) -> None:
        self._codec, self._smoothed, self._points = codec, smoothed, points
        self._film: VideoWriter | None = None
        self._began = self._peak = 0.0

    def write(self, folder: Path, stem: str, result: Result) -> str:
        """Write the overlay, or append it to the annotated video, in the colours of its densest spot so far."""
        if result.video is None:
            result.save(folder / f"overlays/{stem}.jpg", points=self._points)
            return f"overlays/{stem}.jpg"
        name, time = f"overlays/{stem}.mp4", result.time or 0.0
        self._peak = max(self._peak, peak_of(result))
        picture = result.annotated(peak=self._peak, smoothed=self._smoothed, points=self._points)
        if self._film is None:
            height, width = picture.shape[:2]
            self._film = VideoWriter(folder / name, result.video.rate, (width, height), self._codec)
            self._began = time
        self._film.write(picture, time - self._began)
        return name

    def close(self) -> None:
        """Complete the annotated video."""
        film, self._film, self._peak = self._film, None, 0.0
        if film is not None:
            film.close()


class ResultsFolder:
    """A folder of results, new or resumed: the files of each result, then its row in the table.

    Parameters
    ----------
    folder : what it holds already is kept.
    zones : the zones that each result has.
    sinks : what to make of each result besides its row.

    Attributes
    ----------
    done : the sources that have been counted completely.
    begun : the counts so far of each video that has not.
    """

    def __init__(self, folder: Path, zones: Sequence[Zone] = (), sinks: Sequence[Sink] = ()) -> None:
        self.folder, self.sinks = folder, sinks
        self.columns = count_columns(zones)
        self.counted = self.kept = self.failed = 0
        self._names: defaultdict[str, int] = defaultdict(int)
        self._taken: set[str] = set()
        self._video: Video | None = None
        self._stem = ""
        (folder / ERRORS).unlink(missing_ok=True)  # what failed is tried again
        self._counts = Journal(folder / COUNTS, self.columns)
        self._videos = Journal(folder / VIDEOS, _VIDEO_COLUMNS)
        self._errors = Journal(folder / ERRORS, ("source", "error"))
        rows = self._counts.recover()
        finished = {row["source"] for row in self._videos.recover()}
        self.begun: defaultdict[str, list[Moment]] = defaultdict(list)
        damaged = (ValueError, IndexError)
        with as_input_error(damaged, folder / COUNTS, "not the counts of a run ({error})", "choose another folder"):
            for row in rows:
                if row["time"] and row["source"] not in finished:
                    self.begun[row["source"]].append(Moment(float(row["time"]), float(row["count"])))
                for made in (Path(row[kind]) for kind in FILES if row[kind]):
                    # The stem in overlays/STEM.jpg, or in density/STEM/000001.npz.
                    self._taken.add(made.parts[1].removesuffix(made.suffix).casefold())
        self.done = finished | {row["source"] for row in rows if not row["time"]}

    @classmethod
    @contextmanager
    def open(
        cls,
        name: str,
        settings: Mapping[str, Any],
        out: Path | None = None,
        sinks: Sequence[Sink] = (),
        *,
        zones: Sequence[Zone] = (),
        resume: bool = False,
    ) -> Iterator[Self]:
        """Make the folder of a run, or resume the one in ``out`` or the newest of this name: see `RunFolder.open`."""
        changed = partial(changed_keys, settings={name: settings[name] for name in _SAME})
        products = (COUNTS, VIDEOS, ERRORS)
        resuming: Resume = "auto" if resume else False
        with (
            RunFolder.open("count", name, settings, out, resuming, products=products, changed=changed) as folder,
            closing(cls(folder.path, zones, sinks)) as results,
        ):
            try:
                yield results
            finally:
                if any(sink.kind == "points" for sink in sinks):
                    results.write_coco()

    def left(self, sources: Iterable[Source]) -> Iterator[Source]:
        """Yield the sources that have not been counted yet."""
        for source in sources:
            if public_name(source.name) in self.done:
                self.kept += 1
            else:
                yield source

    def write(self, outcome: Outcome) -> Record | None:
        """Write an outcome; for a result return its record: `Result.to_dict`, rounded, and the files made of it."""
        if isinstance(outcome, Result):
            if outcome.video is None or outcome.video is not self._video:
                self._video, self._stem = outcome.video, self.name_for(outcome.source or "")
            made = {sink.kind: sink.write(self.folder, self._stem, outcome) for sink in self.sinks}
            record: Record = rounded(outcome.to_dict()) | dict.fromkeys(FILES) | made
            self._counts.append(flat(record))
            self.counted += 1
            return record
        self.close()
        if isinstance(outcome, Failure):
            self._errors.append({"source": outcome.source, "error": str(outcome.error)})
            self.failed += 1
        else:
            facts = {name: getattr(outcome, name) for name in ("source", "frames", "seconds", "dropped", "highest")}
            facts["mean"] = outcome.total / outcome.frames if outcome.frames else None
            self._videos.append(rounded(facts))
        return None

    def write_coco(self) -> None:
        """Write points.json: the heads of all pictures, as COCO keypoints with a score each.

        Pictures are named relative to the folder that holds all of them, as `load_dataset` reads the file from there.
        """
        rows = [row for row in self._counts.rows() if row["points"] and not row["time"]]
        if not rows:
            return
        root = os.path.commonpath([Path(row["source"]).absolute().parent for row in rows])
        pictures = []
        for row in rows:
            name = os.path.relpath(row["source"], root).replace(os.sep, "/")
            file, advice = self.folder / row["points"], f"take its row out of {COUNTS}, then resume the run"
            with as_input_error((OSError, ValueError), file, "its points cannot be read ({error})", advice):
                heads = csv_rows(file.read_text(encoding="utf-8"))[1:]
                points = np.array(heads, dtype=float).reshape(-1, 3)
            pictures.append(coco.CocoImage(name, int(row["width"]), int(row["height"]), points))
        with atomic_write(self.folder / HEADS, "w") as file:
            json.dump(coco.document(pictures), file)

    def close(self) -> None:
        """Complete the files of a video, wherever it stands."""
        for sink in self.sinks:
            sink.close()

    def name_for(self, source: str) -> str:
        """Return a unique file name, without suffix, for what is made of a source: like its own where that is free."""
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


def count_columns(zones: Sequence[Zone]) -> tuple[str, ...]:
    """Return the columns of a table of counts, with three for each zone: people, and the ends of their interval.

    There is another for each where there is ground.
    """
    counted = [zone.name for zone in zones if zone.counted]
    areas = [kind + name for name in counted for kind in (ZONE, ZONE_LOW, ZONE_HIGH)]
    areas += [PER_M2 + name for name in counted] if any(zone.metres for zone in zones) else []
    return (*_COLUMNS_BEFORE_ZONES, *areas, *_COLUMNS_AFTER_ZONES)


def flat(record: Record) -> Record:
    """Return a record as a table has it: a column for each number of a zone or an interval, the warnings in one."""
    nothing = None, None
    numbers = dict(zip(("low", "high"), record["interval"] or nothing, strict=True))
    for name, people in record["zones"].items():
        low, high = record["zone_intervals"].get(name, nothing)
        numbers |= {ZONE + name: people, ZONE_LOW + name: low, ZONE_HIGH + name: high}
    numbers |= {PER_M2 + name: people for name, people in record.get("per_m2", {}).items()}
    return record | numbers | {"warnings": "; ".join(record["warnings"])}


def rounded(value: Any) -> Any:
    """Round all numbers to what a count can mean, for people to read."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return round(value, 3) + 0.0 if isinstance(value, float) else value
