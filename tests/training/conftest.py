"""A crowd so small that a whole run takes seconds."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from gbdgc.config import Config, load_config
from gbdgc.data import Dataset, Sample

TINY = {
    "name": "tiny",
    "augmentation.crop": 64,
    "data.validation": 0.25,
    "data.workers": 1,
    "model.backbone": "compact",
    "model.pretrained": "false",
    "model.dim": 16,
    "model.codewords": 32,
    "discovery.n_domains": 2,
    "discovery.image_size": 64,
    "train.epochs": 2,
    "train.batch_size": 4,
    "train.learning_rate": 1e-4,
    "train.selection": "validation",
}


@pytest.fixture(scope="session")
def tiny_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixteen pictures, half of them dark and crowded, half light and sparse."""
    folder = tmp_path_factory.mktemp("tiny")
    random = np.random.default_rng(0)
    samples = []
    for number in range(16):
        crowded = number % 2 == 0
        points = random.uniform(4, 92, (30 if crowded else 6, 2)).astype(np.float32)
        image = Image.new("RGB", (112, 96), (40, 40, 60) if crowded else (200, 190, 180))
        draw = ImageDraw.Draw(image)
        for x, y in points.tolist():
            draw.ellipse((x - 3, y - 3, x + 3, y + 3), fill=(230, 180, 150))
        path = folder / f"{number:02d}.png"
        image.save(path)
        samples.append(Sample(path.stem, path, 112, 96, points, "train", {"domain": str(int(crowded))}))
    return Dataset(samples).save(folder / "manifest.jsonl")


@pytest.fixture(scope="session")
def tiny_config(tiny_source: Path) -> Callable[..., Config]:
    """Return the settings of a tiny run; keywords such as train__epochs=3 change them."""

    def make(**changes: object) -> Config:
        return load_config(config_file(tiny_source), [f"{key.replace('__', '.')}={changes[key]}" for key in changes])

    return make


def config_file(source: Path) -> Path:
    """Write the tiny settings beside the tiny source."""
    from omegaconf import OmegaConf

    path = source.parent / "tiny.yaml"
    settings = OmegaConf.from_dotlist([f"{key}={value}" for key, value in TINY.items()])
    OmegaConf.update(settings, "data.source", [str(source)])
    OmegaConf.save(settings, path)
    return path


@pytest.fixture(scope="session")
def tiny_file(tiny_source: Path) -> Path:
    """The same settings as a file, for the command line."""
    return config_file(tiny_source)
