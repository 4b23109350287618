"""What a model counts in real places without people: the largest parts of labelled pictures that have no head in them.

    python benchmarks/empty.py default $GBDGC_DATA/ShanghaiTech/part_B $GBDGC_DATA/JHU-CROWD++ [--engine openvino]

Every labelled picture of the test part (or of val) is shrunk to the limit of the model, as in counting. The
largest rectangle that keeps its distance from every labelled head is cut out of it and counted alone. What is counted
there is wrong, unless the labels are: the highest counts are listed with their rectangles, to be looked at. Everything
happens in memory; nothing of the data is written.
"""

import argparse
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gbdgc import Counter, load_dataset
from gbdgc.data.images import read_image
from gbdgc.data.transforms import limit_side

CELL = 16
"""Pixels from one possible side of a rectangle to the next."""


class Part(NamedTuple):
    """A rectangle of a picture, in pixels."""

    left: int
    top: int
    right: int
    bottom: int

    @property
    def area(self) -> int:
        return (self.right - self.left) * (self.bottom - self.top)


def main() -> None:
    """Print a row for each data set, and the parts with the highest counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a run's folder, a model file or a name")
    parser.add_argument("data", nargs="+")
    parser.add_argument("--side", type=int, default=256, help="the least side of a part, in pixels")
    parser.add_argument("--margin", type=int, default=32, help="pixels between a part and any labelled head")
    parser.add_argument("--engine", default=None, help="what runs the model")
    parser.add_argument("--worst", type=int, default=5, help="how many of the highest counts to list")
    options = parser.parse_args()
    counter = Counter.load(options.model, engine=options.engine)
    print("| data | pictures | parts | mean side, px | people counted, mean | median | 95 % | highest | over 2 |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|", flush=True)
    highest: dict[str, list[tuple[float, str, Part]]] = {}
    for path in options.data:
        labelled = load_dataset(path).labelled
        pictures = labelled.where("test" if "test" in labelled.split_sizes() else "val")
        found = []
        for sample in pictures:
            image = limit_side(read_image(sample.image), counter.max_side)
            rows, columns = image.shape[:2]
            heads = np.asarray(sample.points) * (columns / sample.width, rows / sample.height)
            part = largest_part(heads, columns, rows, side=options.side, margin=options.margin)
            if part is not None:
                crop = np.ascontiguousarray(image[part.top : part.bottom, part.left : part.right])
                found.append((counter(crop).count, sample.id, part))
        if not found:
            print(f"| {path} | {len(pictures)} | 0 |{' – |' * 6}", flush=True)
            continue
        counts = np.array([count for count, _, _ in found])
        side = np.mean([part.area**0.5 for _, _, part in found])
        values = (counts.mean(), np.median(counts), np.quantile(counts, 0.95), counts.max())
        cells = [path, len(pictures), len(found), f"{side:.0f}", *(f"{value:.1f}" for value in values)]
        print(f"| {' | '.join(map(str, cells))} | {(counts > 2).mean():.0%} |", flush=True)
        highest[path] = sorted(found, reverse=True)[: options.worst]
    for path, parts in highest.items():
        print(f"\n{path}, the highest; left, top, right, bottom in pixels of the limited picture:")
        for count, name, part in parts:
            print(f"{count:7.1f}  {name}  {tuple(part)}")


def largest_part(heads: ArrayLike, width: int, height: int, *, side: int, margin: int) -> Part | None:
    """Return the largest rectangle with sides of at least ``side`` and no head nearer than ``margin``, if any."""
    columns, rows, least = width // CELL, height // CELL, -(-side // CELL)
    taken = np.zeros((rows + 1, columns), dtype=np.int64)  # how many cells above each line are too near to a head
    near = np.stack([np.asarray(heads) - margin, np.asarray(heads) + margin + CELL], axis=1) // CELL
    for (left, top), (right, bottom) in near.clip(min=0).astype(int):
        taken[top + 1 : bottom + 1, left:right] = 1
    above = taken.cumsum(axis=0)
    best = None
    for top in range(rows - least + 1):
        for bottom in range(top + least, rows + 1):
            left, right = longest_run(above[bottom] == above[top])
            part = Part(left * CELL, top * CELL, right * CELL, bottom * CELL)
            if right - left >= least and (best is None or part.area > best.area):
                best = part
    return best


def longest_run(free: NDArray[np.bool_]) -> tuple[int, int]:
    """Return the first place of the longest run of true values, and the place behind its last."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], np.asarray(free, dtype=np.int8), [0]])))
    starts, ends = edges[::2], edges[1::2]
    if len(starts) == 0:
        return 0, 0
    longest = int(np.argmax(ends - starts))
    return int(starts[longest]), int(ends[longest])


if __name__ == "__main__":
    main()
