"""A crowd so small that a whole run takes seconds."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from omegaconf import OmegaConf
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
def tiny_file(once: Callable[..., Path]) -> Path:
    """The settings of a tiny run, beside its source."""
    return once("tiny", lambda folder: write_settings(folder / "tiny.yaml", draw_source(folder))) / "tiny.yaml"


def draw_source(folder: Path) -> Path:
    """Sixteen pictures, half of them dark and crowded, half light and sparse."""
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


def write_settings(path: Path, source: Path) -> None:
    settings = OmegaConf.from_dotlist([f"{key}={value}" for key, value in TINY.items()])
    OmegaConf.update(settings, "data.source", [str(source)])
    OmegaConf.save(settings, path)


@pytest.fixture(scope="session")
def tiny_source(tiny_file: Path) -> Path:
    """The pictures that a tiny run is trained on."""
    return tiny_file.with_name("manifest.jsonl")


@pytest.fixture(scope="session")
def tiny_config(tiny_file: Path) -> Callable[..., Config]:
    """Return the settings of a tiny run; keywords such as train__epochs=3 change them."""

    def make(**changes: object) -> Config:
        return load_config(tiny_file, [f"{key.replace('__', '.')}={changes[key]}" for key in changes])

    return make


@pytest.fixture(scope="session")
def trained_config(tiny_config: Callable[..., Config]) -> Config:
    """The settings of the finished run."""
    return tiny_config(train__schedule="onecycle")


@pytest.fixture(scope="session")
def trained(trained_config: Config, once: Callable[..., Path]) -> Path:
    """The folder of a finished run, to look at; `trained_copy` is there to be changed."""
    from gbdgc.training import train

    return once("trained", lambda folder: train(trained_config, folder=folder / "run")) / "run"


@pytest.fixture
def trained_copy(trained: Path, tmp_path: Path) -> Path:
    """A copy of the finished run."""
    return shutil.copytree(trained, tmp_path / "run")
