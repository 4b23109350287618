"""The one thread that counts, and the bounded queue of requests before it.

There is no batching of requests. On a CPU it does not pay at the sizes of cameras (benchmarks/batching.py, one thread:
eight pictures together take 1.1 to 1.3 times as long as one after another at 320 x 240, 1.5 to 1.7 times at 640 x 480;
only thumbnails gain), and everybody would wait for the last of the batch. One thread, as the engines use all cores for
each picture already.
"""

import asyncio
import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from gbdgc.server.limits import Refusal

T = TypeVar("T")

_NEWEST_WEIGHS = 0.2

Check = Callable[[], None]
"""What work calls now and then: it raises `GivenUp` when nobody waits for the work any more."""


class GivenUp(Exception):
    """Ends work that nobody waits for; no thread can be stopped from outside."""


class WorkQueue:
    """A bounded queue; whoever finds it full is sent away rather than let it grow.

    Used from one event loop only, so that the plain counter of slots needs no lock.
    """

    def __init__(self, slots: int, seconds: float) -> None:
        self.slots = slots
        self.taken = 0
        self.seconds = seconds
        self._usual_seconds = 1.0
        self._closed = threading.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="counter")

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Hold a slot, from before the upload is read: so the queue bounds the memory of uploads as well."""
        if self.taken >= self.slots:
            raise Refusal(
                503,
                "busy",
                f"the service: all {self.slots} slots of its queue are taken",
                "ask again after the seconds that Retry-After names",
                self._retry_after(),
            )
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1

    async def run(self, work: Callable[[Check], T]) -> T:
        """Do the work in the thread, behind the work of those who came before."""
        left = threading.Event()

        def check() -> None:
            if left.is_set() or self._closed.is_set():
                raise GivenUp

        future = self._thread.submit(self._timed, work, check)
        try:
            async with asyncio.timeout(self.seconds):
                return await asyncio.wrap_future(future)
        except TimeoutError as error:
            raise Refusal(
                503,
                "too_slow",
                f"the count: not done after {self.seconds:g} seconds",
                "ask again later, or send a smaller picture",
                self._retry_after(),
            ) from error
        finally:
            # Also when a stop cancels us. What has begun ends at its next check; what still waits never begins.
            left.set()

    def close(self) -> None:
        """Give up the work at hand: by now all who waited for it are answered, or were cut off."""
        self._closed.set()
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _timed(self, work: Callable[[Check], T], check: Check) -> T:
        started = time.perf_counter()
        try:
            return work(check)
        finally:
            self._usual_seconds += _NEWEST_WEIGHS * (time.perf_counter() - started - self._usual_seconds)

    def _retry_after(self) -> dict[str, str]:
        """When half of the queue will have been served, going by how long pictures took of late."""
        return {"Retry-After": str(max(1, math.ceil(self.taken / 2 * self._usual_seconds)))}
