"""Density maps against one Gaussian filter of the whole image, and against one filtered image a head.

Run with ``python benchmarks/density.py``. All are measured side by side in this run; the ratios are what counts.
"""

import numpy as np
from scipy.ndimage import gaussian_filter

from gbdgc.data.density import density_map
from timing import fastest, verdict

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

    ours, one_filter, some_heads, crop = fastest(
        lambda: density_map(points, HEIGHT, WIDTH, kernel=KERNEL, sigma=SIGMA),
        lambda: gaussian_filter(marks, SIGMA, mode="constant", truncate=TRUNCATE),
        per_head,
        lambda: density_map(points[:130], 320, 320, kernel=KERNEL, sigma=SIGMA),
        rounds=15,
    )
    every_head = some_heads / MEASURED_HEADS * HEADS
    print(f"{HEADS:,} heads on {WIDTH} x {HEIGHT}, window {KERNEL}, sigma {SIGMA}")
    print(f"  gbdgc density_map            {ours * 1e3:9.2f} ms")
    print(f"  one gaussian_filter          {one_filter * 1e3:9.2f} ms")
    print(f"  a filtered image per head    {every_head * 1e3:9.0f} ms ({MEASURED_HEADS} heads measured, times 100)")
    print(f"  gbdgc, 130 heads in a crop   {crop * 1e3:9.2f} ms (320 x 320)")
    verdict("density_map / one gaussian_filter", ours / one_filter, at_most=2)
    verdict("a filtered image per head / density_map", every_head / ours, at_least=50)


if __name__ == "__main__":
    main()
