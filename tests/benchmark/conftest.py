"""Data sets and a network so small that a cell of a benchmark takes a second."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from gbdgc.data import Dataset, Sample

TINY = """
name: tiny
data: {validation: 0.25, crop: 64, workers: 1}
model: {backbone: compact, pretrained: false, dim: 16, codewords: 32}
discovery: {image_size: 64}
train: {epochs: 1, batch_size: 4, learning_rate: 1.0e-4, selection: validation}
"""


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Four data sets under the names that drawn ones have: eight pictures to train on and three to test on each."""
    folder = tmp_path_factory.mktemp("drawn")
    return {name: draw(folder / name, seed) for seed, name in enumerate(("drawn A", "drawn B", "drawn Q", "drawn N"))}


def draw(folder: Path, seed: int) -> Path:
    """Draw dots on plain ground."""
    folder.mkdir()
    random = np.random.default_rng(seed)
    samples = []
    for number in range(11):
        points = random.uniform(4, 60, (int(random.integers(2, 30)), 2)).astype(np.float32)
        image = Image.new("RGB", (80, 64), tuple(random.integers(0, 255, 3).tolist()))
        for x, y in points.tolist():
            ImageDraw.Draw(image).ellipse((x - 3, y - 3, x + 3, y + 3), fill=(230, 180, 150))
        image.save(folder / f"{number}.png")
        split = "train" if number < 8 else "test"
        samples.append(Sample(str(number), folder / f"{number}.png", 80, 64, points, split))
    return Dataset(samples).save(folder / "crowd.jsonl")


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The smallest settings."""
    path = tmp_path_factory.mktemp("config") / "tiny.yaml"
    path.write_text(TINY)
    return path
