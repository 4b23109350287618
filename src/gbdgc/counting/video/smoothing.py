"""A smoothed count beside the raw one."""

from collections import deque
from statistics import median

HALF_LIFE = 1.5
"""Seconds: short, so that a crowd that comes or goes is seen at once."""


class Smoother:
    """Smooth counts online: a running median removes single outliers, an exponential mean smooths the rest.

    The first count spans no time, so it has no weight once there is a second. After
    ``half_life`` seconds an old count weighs half as much; 0 leaves the median alone, which is of three counts.
    """

    def __init__(self, half_life: float = HALF_LIFE) -> None:
        self.half_life = half_life
        self._recent: deque[float] = deque(maxlen=3)
        self._sum = self._weight = 0.0
        self._time: float | None = None

    def __call__(self, count: float, time: float) -> float:
        """Take a count and its time in seconds, and return the smoothed count."""
        self._recent.append(count)
        steady = median(self._recent)
        # By the time passed and not by the number of counts: live streams drop frames.
        passed = 0.0 if self._time is None else max(time - self._time, 0.0)
        self._time = time
        if self.half_life <= 0:
            return steady
        kept = 0.5 ** (passed / self.half_life)
        self._sum = kept * self._sum + (1 - kept) * steady
        self._weight = kept * self._weight + (1 - kept)
        return self._sum / self._weight if self._weight else steady
