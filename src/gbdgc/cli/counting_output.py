"""What `gbdgc count` prints: data to stdout as each result comes, and everything else to stderr."""

import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from rich.markup import escape

from gbdgc.cli.counting_run import ZONE, CountingRun, Record, csv_line, flat
from gbdgc.progress import stderr

Format = Literal["table", "json", "csv"]
Printer = Callable[[Record], None]

_NARROWEST = 8


def printer(format: Format, run: CountingRun, zones: Sequence[str], *, moving: bool) -> Printer:
    """Return what prints one record; a table for people has its heading above its first row, CSV has it in any case.

    Parameters
    ----------
    format
        ``table`` for people, ``json`` with one object a line, ``csv`` with the columns of counts.csv.
    run
        The run, whose folder goes before the names of files made in it, for the reader of stdout to find them.
    zones
        The names of the zones.
    moving
        Whether there may be videos: then the table has their columns.
    """
    # A file name may hold bytes that are no text: in JSON they become escapes, elsewhere they come out as they are.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace" if format == "json" else "surrogateescape")
    if format == "json":
        return lambda record: print(json.dumps(_located(record, run.folder), ensure_ascii=False), flush=True)
    if format == "csv":
        print(csv_line(run.columns), end="", flush=True)
        return partial(_print_csv, run=run)
    return _Table(["people", *(ZONE + name for name in zones), *(("smoothed", "time") if moving else ())])


def say(kind: str, message: str) -> None:
    """Print a message about one source to stderr, above the progress bar; a strange name cannot move the cursor."""
    colour = {"failed": "bold red", "warning": "yellow"}.get(kind, "dim")
    stderr.print(f"[{colour}]{kind}:[/] {escape(visible(message))}", soft_wrap=True)


def visible(text: str) -> str:
    """Return the text on one line: newlines and other controls as escapes."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _located(record: Record, folder: Path) -> Record:
    """Return the record with its files' names as they are found from here."""
    return record | {kind: str(folder / record[kind]) for kind in ("overlay", "density") if record[kind]}


def _print_csv(record: Record, run: CountingRun) -> None:
    row = flat(_located(record, run.folder))
    print(csv_line(row[name] for name in run.columns), end="", flush=True)


class _Table:
    """Prints rows under a heading, which waits for the first of them: where nothing is left to count there is none."""

    def __init__(self, names: Sequence[str]) -> None:
        self._widths = {name: max(_NARROWEST, len(_title(name))) for name in names}
        self._begun = False

    def __call__(self, record: Record) -> None:
        if not self._begun:
            self._print({name: _title(name) for name in self._widths}, "source")
            self._begun = True
        values = {
            "time": _clock(record["time"]),
            "smoothed": _people(record["smoothed"]),
            "people": _people(record["count"]),
        }
        values |= {ZONE + name: _people(people) for name, people in record["zones"].items()}
        self._print(values, visible(record["source"]))

    def _print(self, values: Mapping[str, str], source: str) -> None:
        print(*(f"{values[name]:>{width}}" for name, width in self._widths.items()), source, sep="  ", flush=True)


def _title(column: str) -> str:
    return visible(column.removeprefix(ZONE))


def _people(count: float | None) -> str:
    return "" if count is None else f"{count:,.1f}"


def _clock(seconds: float | None) -> str:
    """Write a time in a video as a player does."""
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds, 1), 60)
    hours, minutes = divmod(int(minutes), 60)
    return f"{hours}:{minutes:02d}:{rest:04.1f}" if hours else f"{minutes}:{rest:04.1f}"
