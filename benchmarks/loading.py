"""Training crops a second: a first epoch that decodes JPEGs against a second that finds them in memory.

Run with ``python benchmarks/loading.py``. The pictures are drawn: 1024 x 768, with as many bytes as those of a public
crowd data set (about 150 kB), and the crops are 320 x 320 with their density maps, normalised and put into batches.
"""

import cProfile
import pstats
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

from gbdgc.data.loading import Augmentation, Batches, TrainingSet, descriptor_images
from gbdgc.data.manifest import Dataset
from gbdgc.data.sample import Sample
from timing import verdict

PICTURES, WIDTH, HEIGHT, HEADS, BATCH = 96, 1024, 768, 500, 8
PLAIN = Augmentation(crop=320)
RICH = Augmentation(
    crop=320, scale=(0.6, 1.6), brightness=0.3, contrast=0.3, saturation=0.3, hue=0.05, grey=0.1, blur=0.1
)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        dataset = draw_pictures(Path(folder))
        size = np.mean([sample.image.stat().st_size for sample in dataset]) / 1000
        print(f"{PICTURES} JPEGs of {WIDTH} x {HEIGHT}, {size:.0f} kB each, {HEADS} heads; crops of 320, one core")
        if "--profile" in sys.argv:
            profile(dataset)
            return
        one_epoch(TrainingSet(dataset, PLAIN), 0)  # compiles what is compiled
        ratios = {
            name: compare(name, dataset, augmentation)
            for name, augmentation in {"flip only": PLAIN, "scale, colour, grey, blur": RICH}.items()
        }
        descriptors(dataset)
        for name, ratio in ratios.items():
            verdict(f"times faster from memory, {name}", ratio, at_least=2)


def compare(name: str, dataset: Dataset, augmentation: Augmentation) -> float:
    """Print crops a second and core, of the first epoch and of a later one; return how many times faster it is."""
    firsts, laters = [], []
    for _ in range(5):
        training_set = TrainingSet(dataset, augmentation, cache_bytes=2**30)
        firsts.append(one_epoch(training_set, 0))
        laters.append(one_epoch(training_set, 1))
    first, later = (PICTURES / min(times) for times in (firsts, laters))
    print(f"  {name:28} first epoch {first:6.0f} a second, from memory {later:6.0f} a second")
    return later / first


def one_epoch(training_set: TrainingSet, epoch: int) -> float:
    """Return the processor's seconds, which other work on the machine does not lengthen as it does the clock's."""
    start = time.process_time()
    for _ in Batches(training_set, BATCH, epoch, workers=0):
        pass
    return time.process_time() - start


def descriptors(dataset: Dataset) -> None:
    training_set = TrainingSet(dataset, PLAIN, cache_bytes=2**30)
    rates = []
    for _ in range(2):
        start = time.process_time()
        for _ in descriptor_images(dataset, size=224, workers=0, cache=training_set.cache):
            pass
        rates.append(PICTURES / (time.process_time() - start))
    print(f"  {'whole pictures at 224':28} first pass  {rates[0]:6.0f} a second, from memory {rates[1]:6.0f} a second")


def profile(dataset: Dataset) -> None:
    training_set = TrainingSet(dataset, RICH, cache_bytes=2**30)
    one_epoch(training_set, 0)
    with cProfile.Profile() as profiler:
        one_epoch(training_set, 1)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(18)


def draw_pictures(folder: Path) -> Dataset:
    """Write smooth shapes under fine grain, which compress like photographs of crowds."""
    random = np.random.default_rng(0)
    samples = []
    for number in range(PICTURES):
        coarse = Image.fromarray(random.integers(0, 256, (48, 64, 3), dtype=np.uint8)).resize((WIDTH, HEIGHT))
        grain = random.normal(0, 6.5, (HEIGHT, WIDTH, 1))
        image = np.clip(np.asarray(coarse) + grain, 0, 255).astype(np.uint8)
        path = folder / f"{number}.jpg"
        Image.fromarray(image).save(path, quality=75)
        points = (random.random((HEADS, 2)) * (WIDTH, HEIGHT)).astype(np.float32)
        samples.append(Sample(str(number), path, WIDTH, HEIGHT, points))
    return Dataset(samples)


if __name__ == "__main__":
    main()
