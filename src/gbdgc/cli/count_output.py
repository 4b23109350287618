"""The output of `gbdgc count`: data to stdout as each result comes, and everything else to stderr."""

import io
import json
import os
import signal
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal

from rich.markup import escape
from rich.progress import Progress, TaskID

from gbdgc.counting import Failure, Outcome, Result, Video
from gbdgc.counting.conformal import range_text
from gbdgc.counting.ground import crowding
from gbdgc.counting.overlay import clock
from gbdgc.counting.sinks import FILES, PER_M2, ZONE, Record, ResultsFolder, flat
from gbdgc.files import csv_line
from gbdgc.progress import progress_bar, stderr

Format = Literal["table", "json", "csv"]

_NARROWEST, _WITH_COLOUR, _WITH_INTERVAL = 8, 11, 20
_ANSI = {"green": "32", "yellow": "33", "orange": "38;5;208", "red": "1;31"}


def print_and_write(
    outcomes: Generator[Outcome, None, None],
    run: ResultsFolder,
    format: Format,
    *,
    pictures: int | None,
    moving: bool,
) -> bool:
    """Write outcomes into a run's folder and print them as they come; return False if Ctrl-C stopped that.

    Parameters
    ----------
    format : ``table`` for people, ``json`` with one object per line, ``csv`` with the columns of counts.csv.
    pictures : how many pictures there are, None where that is not known.
    moving : whether there may be videos: then the table has their columns.
    """
    with progress_bar() as bar:
        show = _printer(format, run, moving=moving)
        try:
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            with closing(outcomes), closing(_Messages(bar, pictures)) as messages:
                for outcome in outcomes:
                    messages.add(outcome)
                    if (record := run.write(outcome)) is not None:
                        show(record)
        except KeyboardInterrupt:
            return False
    return True


def _printer(format: Format, run: ResultsFolder, *, moving: bool) -> Callable[[Record], None]:
    """Return a function that prints one record; a table prints its heading with its first row, CSV at once."""
    # A file name may hold bytes that are no text: in JSON they become escapes, elsewhere they come out as they are.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace" if format == "json" else "surrogateescape")

    def located(record: Record) -> Record:
        """Return the record with the paths of its files as they are found from here."""
        return record | {kind: str(run.folder / record[kind]) for kind in FILES if record[kind]}

    if format == "json":
        return lambda record: print(json.dumps(located(record), ensure_ascii=False), flush=True)
    if format == "csv":
        print(csv_line(run.columns), end="", flush=True)
        return lambda record: print(csv_line(map(flat(located(record)).get, run.columns)), end="", flush=True)
    areas = [name for name in run.columns if name.startswith((ZONE, PER_M2))]
    return _Table(["people", *areas, *(("smoothed", "time") if moving else ())])


class _Messages:
    """Progress, warnings and failures on stderr; ``pictures`` is how many there are, None where that is not known."""

    def __init__(self, bar: Progress, pictures: int | None) -> None:
        self.bar = bar
        self._pictures = bar.add_task("counting", total=pictures, visible=pictures != 0)
        self._video: Video | None = None
        self._frames: TaskID | None = None
        self._doubtful = 0

    def add(self, outcome: Outcome) -> None:
        """Show the outcome of a source."""
        if isinstance(outcome, Result) and outcome.video is not None:
            self._add_frame(outcome, outcome.video)
            return
        if isinstance(outcome, Result):
            for warning in outcome.warnings:
                warn(f"{outcome.source}: {warning}")
        elif isinstance(outcome, Failure):
            _say("failed", str(outcome.error), "bold red")
        if isinstance(outcome, Video) or (isinstance(outcome, Failure) and outcome.video is not None):
            self.close()
        else:
            self.bar.advance(self._pictures)

    def close(self) -> None:
        """Summarise the current video, complete or not."""
        video, self._video = self._video, None
        if video is None:
            return
        if self._frames is not None:
            self.bar.update(self._frames, total=video.frames)
        if self._doubtful > 1:
            warn(f"{video.source}: {self._doubtful:,} of its frames have such a warning")
        if video.dropped:
            reason = "which came faster than they could be counted"
            _say("note", f"{video.source}: {video.dropped:,} frames dropped, {reason}", "dim")

    def _add_frame(self, frame: Result, video: Video) -> None:
        if video is not self._video:
            self._video, self._doubtful = video, 0
            name = visible(Path(video.source).name)
            self._frames = self.bar.add_task(name, total=video.expected, completed=video.frames - 1)
        if frame.warnings and not self._doubtful:
            warn(f"{video.source}: from {frame.time:.1f} s on: {'; '.join(frame.warnings)}")
        self._doubtful += bool(frame.warnings)
        if self._frames is not None:
            self.bar.advance(self._frames)


def warn(message: str) -> None:
    """Print a warning about one source to stderr, above the progress bar."""
    _say("warning", message, "yellow")


def _say(kind: str, message: str, colour: str) -> None:
    stderr.print(f"[{colour}]{kind}:[/] {escape(visible(message))}", soft_wrap=True)


def visible(text: str) -> str:
    """Return the text on one line, newlines and other controls as escapes: a strange name cannot move the cursor."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


class _Table:
    """Prints rows below a heading, which is printed with the first row: with nothing left to count there is none."""

    def __init__(self, names: Sequence[str]) -> None:
        self._titles = {
            name: visible(f"{name.removeprefix(PER_M2)}/m²" if name.startswith(PER_M2) else name.removeprefix(ZONE))
            for name in names
        }
        self._begun = False
        self._widths: dict[str, int] = {}

    def __call__(self, record: Record) -> None:
        intervals = {ZONE + name: interval for name, interval in record["zone_intervals"].items()}
        intervals |= {"people": record["interval"]} if record["interval"] else {}
        if not self._begun:
            for name, title in self._titles.items():
                # A model has intervals for all its counts, or for none.
                least = _WITH_COLOUR if name.startswith(PER_M2) else _WITH_INTERVAL if name in intervals else _NARROWEST
                self._widths[name] = max(least, len(title))
            self._print(self._titles, "source")
            self._begun = True
        counts = flat(record) | {"people": record["count"]}
        values = {name: _number(name, counts[name]) for name in self._titles if name != "time"}
        values |= {name: f"{values[name]} ({range_text(interval)})" for name, interval in intervals.items()}
        values["time"] = "" if record["time"] is None else clock(record["time"], tenths=True)
        self._print(values, visible(record["source"]))

    def _print(self, values: Mapping[str, str], source: str) -> None:
        cells = (f"{values[name]:>{width}}" for name, width in self._widths.items())
        print(*(_coloured(cell) for cell in cells), source, sep="  ", flush=True)


def _number(name: str, people: float | None) -> str:
    """Write people, or people per square metre with its level of crowding as a colour."""
    if people is None:
        return ""
    return f"{people:.2f} {crowding(people):<6}" if name.startswith(PER_M2) else f"{people:,.1f}"


def _coloured(cell: str) -> str:
    """Colour a cell that ends in the name of a colour, on terminals only."""
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        return cell
    code = _ANSI.get(cell.split()[-1] if cell.strip() else "")
    return f"\x1b[{code}m{cell}\x1b[0m" if code else cell
