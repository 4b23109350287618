"""Density maps against one Gaussian filter of the whole image, and against one filtered image a head.

Run with ``python benchmarks/density.py``. All are measured side by side in this run; the ratios are what counts.
"""

import time
from collections.abc import Callable

import numpy as np
from scipy.ndimage import gaussian_filter

from gbdgc.data.density import density_map

HEADS, HEIGHT, WIDTH, KERNEL, SIGMA = 1000, 768, 1024, 15, 4.0
TRUNCATE = (KERNEL // 2) / SIGMA
MEASURED_HEADS = 10
"""A filtered image a head takes the same time for every head, so a few are measured and the rest reckoned."""


def main() -> None:
    random = np.random.default_rng(0)
    points = (random.random((HEADS, 2)) * (WIDTH, HEIGHT)).astype(np.float32)
    marks = np.zeros((HEIGHT, WIDTH), dtype=np.float32)
    np.add.at(marks, (points[:, 1].astype(int), points[:, 0].astype(int)), 1)

    def per_head() -> None:
        density = np.zeros((HEIGHT, WIDTH), dtype=np.float32)
        for x, y in points[:MEASURED_HEADS].astype(int):
            one = np.zeros((HEIGHT, WIDTH), dtype=np.float32)
            one[y, x] = 1
            density += gaussian_filter(one, SIGMA, mode="constant", truncate=TRUNCATE)

    ours, one_filter, some_heads, adaptive, crop = fastest(
        lambda: density_map(points, HEIGHT, WIDTH, kernel=KERNEL, sigma=SIGMA),
        lambda: gaussian_filter(marks, SIGMA, mode="constant", truncate=TRUNCATE),
        per_head,
        lambda: density_map(points, HEIGHT, WIDTH, adaptive=True),
        lambda: density_map(points[:130], 320, 320, kernel=KERNEL, sigma=SIGMA),
    )
    every_head = some_heads / MEASURED_HEADS * HEADS
    print(f"{HEADS:,} heads on {WIDTH} x {HEIGHT}, window {KERNEL}, sigma {SIGMA}")
    print(f"  gbdgc density_map            {ours * 1e3:9.2f} ms")
    print(f"  one gaussian_filter          {one_filter * 1e3:9.2f} ms")
    print(f"  a filtered image per head    {every_head * 1e3:9.0f} ms ({MEASURED_HEADS} heads measured, times 100)")
    print(f"  gbdgc, geometry-adaptive     {adaptive * 1e3:9.2f} ms")
    print(f"  gbdgc, 130 heads in a crop   {crop * 1e3:9.2f} ms (320 x 320)")
    verdict("of one gaussian_filter", ours / one_filter, "at most 2", ours / one_filter <= 2)
    verdict("times faster than per head", every_head / ours, "at least 50", every_head / ours >= 50)


def fastest(*functions: Callable[[], object], rounds: int = 15) -> list[float]:
    """Shortest time of each, taking turns so that a busy moment of the machine meets all of them."""
    times = [[] for _ in functions]
    for _ in range(rounds):
        for function, own in zip(functions, times, strict=True):
            start = time.perf_counter()
            function()
            own.append(time.perf_counter() - start)
    return [min(own) for own in times]


def verdict(what: str, ratio: float, wanted: str, met: bool) -> None:
    print(f"{ratio:8.2f} {what} (wanted: {wanted}): {'met' if met else 'NOT met'}")


if __name__ == "__main__":
    main()
