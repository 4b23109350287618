"""Processing many pictures in parallel, on all cores."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


def usable_cores() -> int:
    """Return how many cores this process may use, fewer than the machine has where it is held to some of them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_unordered(
    function: Callable[[Item], Outcome], items: Sequence[Item], *, workers: int | None = None
) -> Iterator[Outcome]:
    """Yield ``function(item)`` for each item as it completes, in any order.

    When one raises, no further item is started, those in progress are still yielded, and then the error is raised here.
    ``workers`` is the number of threads, by default one per core: decoding, resizing, encoding and hashing release the
    GIL, and processes would first have to import everything again.
    """
    pool = ThreadPoolExecutor(workers or usable_cores())
    futures = {pool.submit(function, item) for item in items}
    failure: BaseException | None = None
    try:
        for future in as_completed(futures):
            if (failure := future.exception()) is not None:
                break
            futures.remove(future)
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)
    if failure is not None:
        yield from (future.result() for future in futures if not future.cancelled() and future.exception() is None)
        raise failure
