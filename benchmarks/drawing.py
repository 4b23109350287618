"""How fast crowds are drawn: python benchmarks/drawing.py [pictures].

Prints pictures of 640x480 a second, written to disk, with one worker and with two, and pictures per second of processor
time, which does not suffer when other programs run beside it.
"""

import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from gbdgc.synthetic import DOMAINS, draw_dataset
from timing import fastest, verdict

WANTED = 20  # pictures per second on two cores


def draw(number: int, workers: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        draw_dataset(Path(folder), images={"train": number}, domains=list(DOMAINS), workers=workers)


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 90
    draw(len(DOMAINS), 1)  # compiles the kernels and renders the sprites, once a process
    works = [partial(draw, number, workers) for workers in (1, 2)]
    one, two = (number / seconds for seconds in fastest(*works, rounds=3))
    processor = number / min(fastest(*works, rounds=1, clock=time.process_time))
    print(f"one worker          {one:6.1f} pictures/s")
    print(f"two workers         {two:6.1f} pictures/s   {two / one:.2f}x")
    print(f"per processor second{processor:6.1f} pictures")
    verdict("pictures per second with two workers", two, at_least=WANTED)


if __name__ == "__main__":
    main()
