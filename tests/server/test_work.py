"""The queue alone: work that nobody waits for ends."""

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

from gbdgc.server.limits import Limits, Refusal
from gbdgc.server.work import Check, WorkQueue


class Endless:
    """Work that goes on until it is told to give up, or the test is over."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.ended = threading.Event()
        self.test_is_over = threading.Event()

    def __call__(self, check: Check) -> None:
        self.begun.set()
        try:
            while not self.test_is_over.wait(0.01):
                check()
        finally:
            self.ended.set()


@pytest.fixture
def endless() -> Iterator[Endless]:
    work = Endless()
    yield work
    work.test_is_over.set()


async def begin(queue: WorkQueue, work: Endless) -> "asyncio.Task[None]":
    running = asyncio.create_task(queue.run(work))
    while not work.begun.is_set():
        await asyncio.sleep(0.01)
    return running


def test_work_that_takes_too_long_ends_and_the_next_in_the_queue_is_done(endless: Endless) -> None:
    async def ask() -> str:
        queue = WorkQueue(Limits(queue=2, seconds=1))
        with pytest.raises(Refusal) as refusal:
            await queue.run(endless)
        assert refusal.value.code == "too_slow"
        return await queue.run(lambda _: "done")

    assert asyncio.run(ask()) == "done"


def test_what_is_to_follow_work_that_was_given_up_waits_for_its_end(endless: Endless) -> None:
    async def ask() -> bool:
        queue, ended = WorkQueue(Limits(queue=2, seconds=600)), list[bool]()
        running = await begin(queue, endless)
        queue.afterwards(lambda: ended.append(endless.ended.is_set()))
        assert not ended
        running.cancel()
        await queue.run(lambda _: None)
        queue.close()
        queue.afterwards(lambda: ended.append(False))  # nothing follows any more, and nobody is told off
        return ended == [True]

    assert asyncio.run(ask())


def test_work_whose_request_is_cut_off_ends(endless: Endless) -> None:
    async def ask() -> None:
        running = await begin(WorkQueue(Limits(queue=2, seconds=600)), endless)
        running.cancel()
        await asyncio.wait([running])

    asyncio.run(ask())
    assert endless.ended.wait(10)


def test_a_closed_queue_ends_what_has_begun_and_never_begins_the_rest(endless: Endless) -> None:
    later = Endless()

    async def ask() -> None:
        queue = WorkQueue(Limits(queue=2, seconds=600))
        waiting = [await begin(queue, endless), asyncio.create_task(queue.run(later))]
        await asyncio.sleep(0)
        # A close that waits for the work would wait for ever, and this test with it.
        rescue = threading.Timer(10, endless.test_is_over.set)
        rescue.start()
        started = time.perf_counter()
        queue.close()
        rescue.cancel()
        assert time.perf_counter() - started < 5
        await asyncio.wait(waiting)

    asyncio.run(ask())
    assert not later.begun.is_set()


def test_what_uploads_hold_in_memory_is_bounded_in_all_and_by_client() -> None:
    queue = WorkQueue(Limits(queue=4, upload_bytes=100))
    with queue.upload("a") as hold_a, queue.upload("b") as hold_b, queue.upload("c") as hold_c:
        hold_a(200)
        with pytest.raises(Refusal, match="memory"):
            hold_a(1)
        hold_b(150)
        with pytest.raises(Refusal, match="memory"):
            hold_c(51)
        hold_c(50)
    with queue.upload("a") as hold:
        hold(200)
