"""A model in 8 bits on both engines: how far its counts are from those in 32 bits, and how much faster it is.

    python benchmarks/eight_bits.py --calibrate part_A/train_data/images --test part_A/test_data/images

Without --calibrate on drawn scenes, as `gbdgc export --int8` does. Each engine counts the pictures in 32 bits and in 8,
in turns; times are of the processor, on one thread, so that a busy machine spoils them less.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from gbdgc.cli.export import read_some
from gbdgc.counting import Counter
from gbdgc.counting.engines import EXPORT_SUFFIXES
from gbdgc.counting.export import drawn_scenes, export
from gbdgc.counting.tiling import count_cells
from gbdgc.data.images import RGB
from gbdgc.data.transforms import limit_side
from gbdgc.shipped import find_model


def main() -> None:
    """Export, count, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", default="default")
    parser.add_argument("--calibrate", type=Path, nargs="*", default=[], help="folders of pictures to calibrate on")
    parser.add_argument("--calibration-images", type=int, default=16, help="how many of each folder")
    parser.add_argument("--test", type=Path, nargs="+", required=True, help="folders of pictures to count")
    parser.add_argument("--images", type=int, default=30, help="how many of each folder")
    parser.add_argument("--engines", nargs="+", default=list(EXPORT_SUFFIXES))
    options = parser.parse_args()
    weights = find_model(options.weights)
    calibration = [image for folder in options.calibrate for image in read_some(folder, options.calibration_images)]
    with TemporaryDirectory() as folder:
        for engine in options.engines:
            plain, small = (Path(folder) / f"{bits}{EXPORT_SUFFIXES[engine]}" for bits in (32, 8))
            export(weights, plain)
            export(weights, small, calibration=calibration or drawn_scenes())
            counters = [Counter.load(path, threads=1) for path in (plain, small)]
            for place in options.test:
                compare(f"{engine}, {place}", counters, read_some(place, options.images))


def compare(name: str, counters: list[Counter], images: list[RGB]) -> None:
    """Print what two counters of one model make of the same pictures."""
    counts = np.zeros((2, len(images)))
    seconds = np.zeros((2, len(images)))
    for column, image in enumerate(images):
        for row, counter in enumerate(counters):
            seen = limit_side(image, counter.max_side, counter.test_scale)
            seconds[row, column], counts[row, column] = _timed(
                lambda c=counter, s=seen: count_cells(c.engine, [s]).sum()
            )
    plain, small = counts
    drift, bias = np.abs(small - plain).sum() / plain.sum(), (small - plain).sum() / plain.sum()
    # The first of each engine warms up.
    speedup = float(np.median(seconds[0, 1:] / seconds[1, 1:]))
    print(
        f"{name}: drift {drift:.2%} (bias {bias:+.2%}) of {plain.sum():.0f} people on {len(images)} pictures, ", end=""
    )
    print(f"{speedup:.2f} x as fast as in 32 bits", flush=True)


def _timed(work: Callable[[], float]) -> tuple[float, float]:
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


if __name__ == "__main__":
    main()
