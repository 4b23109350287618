"""What the benchmarks share: times taken in turns, and the verdict on a figure."""

import time
from collections.abc import Callable

Work = Callable[[], object]


def fastest(*works: Work, rounds: int = 5, clock: Callable[[], float] = time.perf_counter) -> list[float]:
    """Shortest time of each in seconds; they take turns, so that a busy moment of the machine meets all of them.

    ``time.process_time`` as the clock counts the processor's seconds, which other programs do not lengthen.
    """
    best = [float("inf")] * len(works)
    for _ in range(rounds):
        for index, work in enumerate(works):
            start = clock()
            work()
            best[index] = min(best[index], clock() - start)
    return best


def verdict(what: str, value: float, *, at_most: float | None = None, at_least: float | None = None) -> None:
    """Print a figure, what was asked of it and whether it is met."""
    met = (at_most is None or value <= at_most) and (at_least is None or value >= at_least)
    wanted = f"at most {at_most:g}" if at_most is not None else f"at least {at_least:g}"
    print(f"  {what:<58} {value:8.3f}   {wanted:<14} {'met' if met else 'NOT MET'}")
