"""The folder of a run, written as training and evaluation write it, without the hours."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw

from gbdgc import checkpoint
from gbdgc.config import load_config, save_config
from gbdgc.counting.trust import Trust
from gbdgc.data import Dataset, Sample, load_dataset
from gbdgc.data.loading import descriptor_images
from gbdgc.descriptors import describe
from gbdgc.evaluation import evaluate
from gbdgc.models import build_network
from gbdgc.runs import write_environment

BUILD = {"backbone": "compact", "dim": 16, "codewords": 32}
NAMES = [f"street_{number:02d}" for number in range(24)]


@pytest.fixture(scope="session")
def streets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two kinds of pictures in turn: dark and crowded, light and sparse."""
    folder = tmp_path_factory.mktemp("streets")
    random = np.random.default_rng(0)
    samples = []
    for number, name in enumerate(NAMES):
        crowded = number % 2 == 0
        points = random.uniform(4, 92, (30 + number if crowded else 5, 2)).astype(np.float32)
        image = Image.new("RGB", (112, 96), (40, 40, 50 + number) if crowded else (200, 190, 180 + number))
        draw = ImageDraw.Draw(image)
        for x, y in points.tolist():
            draw.ellipse((x - 3, y - 3, x + 3, y + 3), fill=(230, 180, 150))
        image.save(folder / f"{name}.png")
        samples.append(Sample(name, folder / f"{name}.png", 112, 96, points, "train" if number < 20 else "test"))
    return Dataset(samples).save(folder / "streets.jsonl")


@pytest.fixture(scope="session")
def model(streets: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model as training leaves it, but for the training: random weights, and the streets in two domains in turn."""
    torch.manual_seed(0)
    network = build_network(**BUILD, pretrained=False, style=False).eval()
    batches = descriptor_images(load_dataset(streets), size=64, workers=0)
    _, z_ND = describe(network, batches)
    trust = Trust.fit(z_ND, [number % 2 for number in range(len(NAMES))]).to_arrays()
    info = {
        "name": "streets",
        "selection": "validation",
        "max_side": None,
        "descriptor_size": 64,
        "epoch": 2,
        "validation": {"mae": 9.0, "rmse": 12.0, "bias": -1.0, "images": 4},
    }
    path = tmp_path_factory.mktemp("model") / "best.safetensors"
    extras = {name: torch.from_numpy(array) for name, array in trust.items()}
    checkpoint.save_model(path, network, BUILD, info, checkpoint.nest("trust", extras))
    return path


@pytest.fixture
def write_run(streets: Path, model: Path, tmp_path: Path) -> Callable[..., Path]:
    """Write a finished run; ``labels`` are the domains of each discovery, ``overrides`` settings."""

    def write(*overrides: str, labels: list[list[int]] | None = None) -> Path:
        folder = tmp_path / "streets-1"
        (folder / "checkpoints").mkdir(parents=True)
        (folder / "domains").mkdir()
        settings = ["name=streets", f"data.source=[{streets}]", "train.epochs=2", *overrides]
        save_config(load_config("demo", settings), folder / "config.yaml")
        write_environment(folder)
        records = [
            {"epoch": epoch, "losses": {"density": 20 / epoch, "style": 0.1}, "validation": {"mae": 9.0, "rmse": 12.0}}
            for epoch in (1, 2)
        ]
        (folder / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        by_half = [[number % 2 for number in range(24)]] * 3
        for epoch, domains in enumerate(by_half if labels is None else labels):
            rows = [f"{name},{domain}" for name, domain in zip(NAMES, domains, strict=True)]
            (folder / "domains" / f"epoch_{epoch:03d}.csv").write_text("\n".join(["id,domain", *rows]))
            row = {"churn": None if epoch == 0 else 0.1, "ari": None if epoch == 0 else 0.8, "smallest_share": 0.5}
            (folder / "domains" / f"epoch_{epoch:03d}.json").write_text(json.dumps(row))
        shutil.copy(model, folder / "checkpoints" / checkpoint.BEST)
        return folder

    return write


@pytest.fixture
def run(write_run: Callable[..., Path]) -> Path:
    """A finished run that nothing was counted with."""
    return write_run()


@pytest.fixture(scope="session")
def counted(streets: Path, model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An evaluation of all streets."""
    return evaluate(model, {"streets": streets}, split="all", out=tmp_path_factory.mktemp("counted") / "eval").folder


@pytest.fixture
def counted_run(run: Path, counted: Path) -> Path:
    """A finished run with an evaluation in its folder."""
    shutil.copytree(counted, run / "eval")
    return run
