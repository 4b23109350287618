"""Data sets and a network so small that a cell of a benchmark takes a second."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from gbdgc.benchmark import Settings, read_cells, run_benchmark
from gbdgc.benchmark.declaration import Cell
from gbdgc.data import Dataset, Sample

TINY = """
name: tiny
data: {validation: 0.25, crop: 64, workers: 1}
model: {backbone: compact, pretrained: false, dim: 16, codewords: 32}
discovery: {image_size: 64}
train: {epochs: 1, batch_size: 4, learning_rate: 1.0e-4, selection: validation}
"""


@pytest.fixture(scope="session")
def drawn(once: Callable[..., Path]) -> dict[str, Path]:
    """Four data sets under the names that drawn ones have: eight pictures to train on and three to test on each."""
    names = ("drawn A", "drawn B", "drawn Q", "drawn N")

    def draw_all(folder: Path) -> None:
        for seed, name in enumerate(names):
            draw(folder / name, seed)

    folder = once("drawn", draw_all)
    return {name: folder / name / "crowd.jsonl" for name in names}


def draw(folder: Path, seed: int) -> None:
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
    Dataset(samples).save(folder / "crowd.jsonl")


@pytest.fixture(scope="session")
def tiny(once: Callable[..., Path]) -> Path:
    """The smallest settings."""
    return once("tiny-benchmark", lambda folder: (folder / "tiny.yaml").write_text(TINY)) / "tiny.yaml"


@pytest.fixture
def settings(drawn: dict[str, Path], tiny: Path, tmp_path: Path) -> Callable[..., Settings]:
    """Return the settings of a tiny benchmark: one source and one target; keywords change them."""
    return lambda **changes: Settings(**(tiny_settings(drawn, tiny, tmp_path) | changes))


def tiny_settings(drawn: dict[str, Path], tiny: Path, folder: Path) -> dict[str, Any]:
    two = {name: drawn[name] for name in ("drawn A", "drawn N")}
    return {"data": two, "config": tiny, "out": folder / "out", "runs": folder / "runs"}


@pytest.fixture
def finished(drawn: dict[str, Path], tiny: Path, once: Callable[..., Path], tmp_path: Path) -> list[Cell]:
    """The cells of a finished transfer table, whose results and runs lie where `settings` says."""

    def fill(folder: Path) -> None:
        run_benchmark("transfer", Settings(**tiny_settings(drawn, tiny, folder)))

    shutil.copytree(once("finished-benchmark", fill), tmp_path, dirs_exist_ok=True)
    return read_cells(tmp_path / "out", "transfer")
