"""A small Ray on this machine, shared by the tests of a file, and pictures on disk."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

SMALL: dict[str, Any] = {"include_dashboard": False, "object_store_memory": 80_000_000, "log_to_driver": False}


@pytest.fixture(scope="module")
def local_ray() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray = pytest.importorskip("ray")
        ray.init(address="local", num_cpus=2, num_gpus=1, **SMALL)  # never one that happens to run here
        yield
        ray.shutdown()


@pytest.fixture
def archive(pictures: list[NDArray[np.uint8]], tmp_path: Path) -> Path:
    """Eight pictures, and one that is none."""
    folder = tmp_path / "archive"
    folder.mkdir()
    for number, picture in enumerate(pictures[:8]):
        Image.fromarray(picture).save(folder / f"{10 * number}.png")
    (folder / "bad.jpg").write_bytes(b"not a picture")
    return folder
