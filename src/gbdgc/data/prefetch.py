"""Preparing items ahead of their use, in order."""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")


def prefetch(
    make: Callable[[Given], Made], given: Iterable[Given], *, workers: int, ahead: int
) -> Generator[Made, None, None]:
    """Yield ``make`` of each, in order, while threads make up to ``ahead`` more.

    What ``make`` raises is raised here. The threads end with the generator: close it when leaving early. Without
    workers each item is made on demand.
    """
    if workers == 0:
        yield from map(make, given)
        return
    pool = ThreadPoolExecutor(workers, thread_name_prefix="gbdgc-data")
    pending: deque[Future[Made]] = deque()
    try:
        for each in given:
            pending.append(pool.submit(make, each))
            if len(pending) > ahead:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
