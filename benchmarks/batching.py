"""Does it pay to count pictures of several requests together? Time of eight in batches over one after another."""

import argparse
import time

import numpy as np

from gbdgc.counting.counter import Counter
from gbdgc.counting.engines import TorchEngine
from gbdgc.models import build_network

SIZES = ((128, 96), (320, 240), (640, 480))
PICTURES, ROUNDS = 8, 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device")
    arguments = parser.parse_args()
    network = build_network("compact", pretrained=False, style=False)
    engine = TorchEngine(network, device=arguments.device, threads=arguments.threads)
    random = np.random.default_rng(0)
    for width, height in SIZES:
        pictures = [random.integers(0, 256, (height, width, 3), dtype=np.uint8) for _ in range(PICTURES)]
        best = dict.fromkeys((1, 4, 8), float("inf"))
        for _ in range(ROUNDS):  # side by side, so that other load on the machine meets all alike
            for batch in best:
                started = time.perf_counter()
                list(Counter(engine, batch=batch).each(pictures))
                best[batch] = min(best[batch], time.perf_counter() - started)
        ratios = ", ".join(f"{batch} together {seconds / best[1]:.2f}" for batch, seconds in best.items())
        print(f"{width} x {height}: {ratios} (one alone: {1000 * best[1] / PICTURES:.0f} ms)")


if __name__ == "__main__":
    main()
