"""Passing frames from the decoding thread to the counting thread."""

import threading
import time
from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Frame:
    """One picture of many: its time in seconds from the first, itself in RGB, and its number in the source."""

    time: float
    image: NDArray[np.uint8]
    index: int


class Mailbox:
    """Frames on their way between two threads: when full, either the writer waits or the oldest is dropped."""

    def __init__(self, capacity: int, drop: bool) -> None:
        self._frames: deque[Frame] = deque(maxlen=capacity)
        self.drop = drop
        self.dropped = 0
        self._changed = threading.Condition()
        self._finished = self._closed = False
        self._error: BaseException | None = None

    @property
    def _full(self) -> bool:
        return len(self._frames) == self._frames.maxlen

    def put(self, frame: Frame) -> bool:
        """Add a frame; False when the consumer has closed the box."""
        with self._changed:
            if not self.drop:
                self._changed.wait_for(lambda: self._closed or not self._full)
            self.dropped += self._full
            self._frames.append(frame)
            self._changed.notify_all()
            return not self._closed

    def take(self, until: float | None = None) -> Frame | None:
        """Wait for the next frame, up to a time by the clock; None at the end, or the error that ended it."""
        # Longer than some centuries the system does not wait.
        left = None if until is None else min(max(until - time.monotonic(), 0), threading.TIMEOUT_MAX)
        with self._changed:
            if left == 0 or not self._changed.wait_for(lambda: self._frames or self._finished, left):
                return None
            if self._frames:
                frame = self._frames.popleft()
                self._changed.notify_all()
                return frame
            if self._error is None:
                return None
            try:
                raise self._error
            finally:
                self._error = None  # with its traceback it would keep the caller's locals alive in a cycle

    def finish(self, error: BaseException | None = None) -> None:
        """Signal that no more frames will come."""
        with self._changed:
            self._finished, self._error = True, error
            self._changed.notify_all()

    def close(self) -> None:
        """Signal that no more frames will be taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def closed_within(self, seconds: float) -> bool:
        """Wait, but no longer than frames are wanted; True when they no longer are."""
        with self._changed:
            return self._changed.wait_for(lambda: self._closed, seconds)
