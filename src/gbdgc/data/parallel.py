"""The same work on many pictures, on all cores."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

# Starting a process costs as much as decoding a few dozen pictures.
_ITEMS_WORTH_A_PROCESS = 24


def map_unordered(
    function: Callable[[Item], Outcome], items: Sequence[Item], *, workers: int | None = None
) -> Iterator[Outcome]:
    """Yield ``function(item)`` of each item as it is done, in any order; what it raises stops the rest.

    ``workers`` is the number of processes, by default one a core; few items, or ``workers=1``, stay in this process.
    """
    wanted = workers if workers is not None else min(_cores(), len(items) // _ITEMS_WORTH_A_PROCESS)
    if wanted <= 1:
        yield from map(function, items)
        return
    # Never fork: the caller may hold threads (a progress bar, torch) that a forked child would wait for in vain.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(wanted, len(items)), mp_context=context, initializer=_leave_interrupts_to_the_parent)
    try:
        for future in as_completed([pool.submit(function, item) for item in items]):
            yield future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _cores() -> int:
    """The cores that this process may use, which in a container are fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
