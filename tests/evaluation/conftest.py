"""Small crowds to count: two data sets, of which the second has a tag."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gbdgc.data import Dataset, Sample

Crowd = Callable[..., Path]


@pytest.fixture
def crowd(tmp_path: Path) -> Crowd:
    """Return a function that makes a data set of grey pictures, one for each count, and returns its manifest."""

    def make(name: str, counts: list[int | None], split: str | None = "test", **tags: list[str]) -> Path:
        random = np.random.default_rng(len(counts))
        samples = []
        for number, count in enumerate(counts):
            path = tmp_path / name / f"{number:02d}.png"
            path.parent.mkdir(exist_ok=True)
            Image.fromarray(random.integers(0, 255, (64, 96, 3), dtype=np.uint8)).save(path)
            points = None if count is None else random.uniform(0, 60, (count, 2)).astype(np.float32)
            own = {tag: values[number] for tag, values in tags.items()}
            samples.append(Sample(path.stem, path, 96, 64, points, split, own))
        return Dataset(samples).save(tmp_path / name / f"{name}.jsonl")

    return make
