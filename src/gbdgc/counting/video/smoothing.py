"""A smoothed count beside the raw one."""

from collections import deque
from statistics import median


class Smoother:
    """Smooth counts as they come: a running median drops single wild ones, an exponential mean steadies the rest.

    Parameters
    ----------
    half_life
        Seconds after which an old count weighs half as much; 0 leaves the median alone.
    window
        Counts in the running median.
    """

    def __init__(self, half_life: float = 5.0, window: int = 5) -> None:
        self.half_life = half_life
        self._recent: deque[float] = deque(maxlen=window)
        self._mean = 0.0
        self._time: float | None = None

    def __call__(self, count: float, time: float) -> float:
        """Take a count and its time in seconds, and return the smoothed count."""
        self._recent.append(count)
        steady = median(self._recent)
        if self._time is None or self.half_life <= 0:
            self._mean = steady
        else:
            # By the time passed and not by the number of counts: live streams drop frames.
            kept = 0.5 ** (max(time - self._time, 0.0) / self.half_life)
            self._mean = kept * self._mean + (1 - kept) * steady
        self._time = time
        return self._mean
