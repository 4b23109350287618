"""One service for all tests that only ask it things, and pictures to send."""

from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from gbdgc import Counter


@pytest.fixture(scope="session")
def service(serving: Callable[..., object]) -> Iterator[object]:
    with serving("--max-upload", "4", "--max-pixels", "2000000") as running:
        yield running


@pytest.fixture
def client(service: object) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.url, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def counter(model: Path) -> Counter:
    return Counter.load(model, device="cpu", threads=1)


@pytest.fixture(scope="session")
def street(pictures: list[NDArray[np.uint8]]) -> bytes:
    file = BytesIO()
    Image.fromarray(pictures[0]).save(file, "PNG")
    return file.getvalue()
