"""Progress on stderr, so that stdout stays data."""

import sys
from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

T = TypeVar("T")

_SHORTEST_SECONDS = 0.5  # from which a speed is measured well enough to be shown

# No emoji: rich would make a thumb of the ":-1:" in an address, and a dog of the ":dog:" in a file's name.
stderr = Console(stderr=True, highlight=False, emoji=False)
stdout = Console(highlight=False, emoji=False)


class _Rate(ProgressColumn):
    """Items per second; empty until enough time has passed to measure it."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self.unit = unit

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        # Not by the time since the start: rich takes the speed from the first item on, and two may be ready at once.
        if speed is None or task.completed < speed * _SHORTEST_SECONDS:
            return Text("")
        return Text(f"{speed:.1f} {self.unit}/s")


def progress_bar(unit: str = "images") -> Progress:
    """Return a bar on stderr with count, rate and time left; on a file it prints its last state only."""
    # A description may hold the name of a file, and that brackets, which are markup to rich.
    description = TextColumn("{task.description}", markup=False)
    columns = (description, BarColumn(), MofNCompleteColumn(), _Rate(unit), TimeRemainingColumn())
    # The bar takes what is printed to its own terminal; but what goes to a pipe or a file must arrive there.
    return Progress(*columns, console=stderr, redirect_stdout=sys.stdout.isatty())


def track(items: Iterable[T], description: str, total: int | None = None, unit: str = "images") -> Iterator[T]:
    """Yield the items behind a progress bar."""
    if total is None and isinstance(items, Sized):
        total = len(items)
    with progress_bar(unit) as bar:
        task = bar.add_task(description, total=total)
        for item in items:
            yield item
            bar.advance(task)
