"""How fast crowds are drawn: python benchmarks/drawing.py [pictures].

Prints pictures of 640x480 a second, written to disk, with one worker and with two, and pictures per second of processor
time, which does not suffer when other programs run beside it.
"""

import sys
import tempfile
import time
from pathlib import Path

from gbdgc.data.synthetic import DOMAINS, draw_dataset


def measure(number: int, workers: int) -> tuple[float, float]:
    """Pictures per second by the clock and per second of processor time."""
    with tempfile.TemporaryDirectory() as folder:
        clock, processor = time.perf_counter(), time.process_time()
        draw_dataset(Path(folder), images={"train": number}, domains=list(DOMAINS), workers=workers)
        return number / (time.perf_counter() - clock), number / (time.process_time() - processor)


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 90
    measure(len(DOMAINS), 1)  # compiles the kernels and renders the sprites, once a process
    rounds = [(measure(number, 1), measure(number, 2)) for _ in range(3)]
    one, two = max(one[0] for one, _ in rounds), max(two[0] for _, two in rounds)
    processor = max(max(one[1], two[1]) for one, two in rounds)
    print(f"one worker          {one:6.1f} pictures/s")
    print(f"two workers         {two:6.1f} pictures/s   {two / one:.2f}x")
    print(f"per processor second{processor:6.1f} pictures")


if __name__ == "__main__":
    main()
