"""What the tests of data share: pictures that are told apart by sight."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

Scene = Callable[..., Image.Image]


@pytest.fixture(scope="session")
def scene() -> Scene:
    """Draw a picture with structure on every scale: another seed, another picture."""

    def draw(seed: int, width: int = 160, height: int = 120) -> Image.Image:
        random = np.random.default_rng(seed)
        layers = [random.uniform(0, 255, (side, side, 3)).astype(np.uint8) for side in (4, 12, 40)]
        grown = [Image.fromarray(layer).resize((width, height), Image.Resampling.BICUBIC) for layer in layers]
        return ImageOps.autocontrast(Image.blend(Image.blend(grown[0], grown[1], 0.4), grown[2], 0.25))

    return draw


@pytest.fixture(scope="session")
def save_scene(scene: Scene) -> Callable[..., Path]:
    """Save a scene, in the format of its suffix, and return its path."""

    def save(path: Path, seed: int, width: int = 160, height: int = 120, **options: object) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        scene(seed, width, height).save(path, **options)
        return path

    return save
