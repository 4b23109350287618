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
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from gbdgc.server.limits import Limits, Refusal

T = TypeVar("T")

_NEWEST_WEIGHS = 0.2

Check = Callable[[], None]
"""Called now and then by work in progress; raises `GivenUp` once nobody waits for the work any more."""


class GivenUp(Exception):
    """Ends work that nobody waits for; no thread can be stopped from outside."""


@dataclass
class Quota:
    """So much of something at one time, in all and for each client."""

    most: int
    most_per_client: int
    taken: int = 0
    _by_client: Counter[str] = field(default_factory=Counter)

    def take(self, client: str, amount: int = 1) -> bool:
        """Take an amount, if the client may have it."""
        if self.taken + amount > self.most or self._by_client[client] + amount > self.most_per_client:
            return False
        self.taken += amount
        self._by_client[client] += amount
        return True

    def give_back(self, client: str, amount: int = 1) -> None:
        """Return an amount, and forget a client that holds nothing."""
        self.taken -= amount
        self._by_client[client] -= amount
        if not self._by_client[client]:
            del self._by_client[client]


class WorkQueue:
    """A bounded queue; whoever finds it full is sent away rather than let it grow.

    An upload takes no slot until all of it is here, so that slow clients keep nobody else out. What uploads hold of the
    memory is bounded by itself. Used from one event loop only, so that the plain counters need no lock.
    """

    def __init__(self, limits: Limits) -> None:
        self.seconds = limits.seconds
        self._slots = Quota(limits.queue, limits.share_of(limits.queue))
        # Half of the connections, so that there is always one for whoever asks for nothing but a sign of life.
        uploads = max(limits.queue, limits.connections // 2)
        self._uploads = Quota(uploads, limits.share_of(uploads))
        bytes_held = limits.queue * limits.upload_bytes
        self._bytes = Quota(bytes_held, max(limits.upload_bytes, limits.share_of(bytes_held)))
        self._usual_seconds = 1.0
        self._closed = threading.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="counter")

    @property
    def slots(self) -> int:
        """How many requests the queue holds."""
        return self._slots.most

    @property
    def taken(self) -> int:
        """How many requests wait or are being counted."""
        return self._slots.taken

    @contextmanager
    def upload(self, client: str) -> Iterator[Callable[[int], None]]:
        """Admit an upload; the block calls what it gets with the number of bytes of each piece that arrives."""
        held = 0

        def hold(amount: int) -> None:
            nonlocal held
            if not self._bytes.take(client, amount):
                raise self._busy("its memory for uploads is taken")
            held += amount

        if not self._uploads.take(client):
            raise self._busy("it is receiving as many uploads as it can")
        try:
            yield hold
        finally:
            self._uploads.give_back(client)
            self._bytes.give_back(client, held)

    @contextmanager
    def slot(self, client: str) -> Iterator[None]:
        """Hold a slot of the queue."""
        if not self._slots.take(client):
            whose = "" if self.taken >= self.slots else " for one client"
            number = self.slots if self.taken >= self.slots else self._slots.most_per_client
            raise self._busy(f"all {number} slots of its queue{whose} are taken")
        try:
            yield
        finally:
            self._slots.give_back(client)

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
            message = f"the count: not done after {self.seconds:g} seconds"
            step = "ask again later, or send a smaller picture"
            raise Refusal(503, "too_slow", message, step, self._retry_after()) from error
        finally:
            # Also when a stop cancels us. What has begun ends at its next check; what still waits never begins.
            left.set()

    def afterwards(self, job: Callable[[], None]) -> None:
        """Do something in the thread once the work that is there now is over, given up or not, and holds nothing."""
        if not self._closed.is_set():
            self._thread.submit(job)

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

    def _busy(self, reason: str) -> Refusal:
        step = "ask again after the seconds that Retry-After names"
        # Closing keeps a refused client from holding the connection by what it goes on to send.
        return Refusal(503, "busy", f"the service: {reason}", step, self._retry_after() | {"Connection": "close"})

    def _retry_after(self) -> dict[str, str]:
        """When half of the queue will have been served, going by how long pictures took of late."""
        return {"Retry-After": str(max(1, math.ceil(self.taken / 2 * self._usual_seconds)))}
