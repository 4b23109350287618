"""What several test files share: one small model with everything in it, and its exports, which take long to make."""

import os
import selectors
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from gbdgc import checkpoint
from gbdgc.counting.tiling import stack
from gbdgc.counting.trust import Trust
from gbdgc.data.transforms import noise, resized
from gbdgc.descriptors import describe
from gbdgc.models import build_network
from gbdgc.synthetic import SOURCE_DOMAINS, draw_scene

BUILD = {"backbone": "compact", "dim": 32, "codewords": 64}
DESCRIPTOR_SIZE = 64


@pytest.fixture(scope="session")
def pictures() -> list[NDArray[np.uint8]]:
    """Drawn scenes of two domains, 160 x 128."""
    random = np.random.default_rng(0)
    return [draw_scene(SOURCE_DOMAINS[number % 2], random, (160, 128))[0] for number in range(24)]


@pytest.fixture(scope="session")
def model(pictures: list[NDArray[np.uint8]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a model that knows two of the pictures; its weights are random, but counts differ from place to place."""
    torch.manual_seed(0)
    network = build_network(**BUILD, pretrained=False, style=False).eval()
    with torch.no_grad():
        network.semantic[0].weight.mul_(4)
    # A training cloud of two pictures seen again and again with the noise of a sensor: near them is near.
    random = np.random.default_rng(0)
    cloud = [noise(resized(pictures[n % 2], DESCRIPTOR_SIZE, DESCRIPTOR_SIZE), 4, random) for n in range(120)]
    _, z_ND = describe(network, [([str(n) for n in range(len(cloud))], torch.from_numpy(stack(cloud)))])
    trust = Trust.fit(z_ND, [n % 2 for n in range(len(cloud))]).to_arrays()
    path = tmp_path_factory.mktemp("model") / "best.safetensors"
    info = {"name": "tiny", "max_side": None, "descriptor_size": DESCRIPTOR_SIZE}
    extras = {name: torch.from_numpy(array) for name, array in trust.items()}
    checkpoint.save_model(path, network, BUILD, info, checkpoint.nest("trust", extras))
    return path


@pytest.fixture(scope="session")
def exports(
    model: Path, pictures: list[NDArray[np.uint8]], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Return the model for other runtimes; traced once, as this is what takes long, and all kinds written from it."""
    from gbdgc.counting.engines import pack
    from gbdgc.counting.export import calibration_windows
    from gbdgc.counting.graph import write_graph, write_onnx, write_openvino

    network, info, tensors = checkpoint.load_model(model)
    description = pack(info, {name: tensor.numpy() for name, tensor in tensors.items()})
    folder = tmp_path_factory.mktemp("exports")
    graph = write_graph(network, folder / "graph.onnx")
    inputs = calibration_windows(pictures[:8])
    made = {name: folder / name for name in ("m.onnx", "m-int8.onnx", "m.xml", "m-int8.xml")}
    for name, path in made.items():
        write = write_onnx if path.suffix == ".onnx" else write_openvino
        write(graph, path, description, inputs if "int8" in name else None)
    return made


class Service(NamedTuple):
    """A real server in a process of its own."""

    url: str
    process: subprocess.Popen[str]
    log: Path


@pytest.fixture(scope="session")
def serving(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., AbstractContextManager[Service]]:
    """Return what runs `gbdgc serve` with options and environment, until the end of the block."""

    @contextmanager
    def run(*options: str, **environment: str) -> Iterator[Service]:
        log = tmp_path_factory.mktemp("service") / "log.txt"
        command = [sys.executable, "-m", "gbdgc", "serve", "--weights", str(model), "--port", "0", "--threads", "1"]
        with log.open("w") as errors:
            process = subprocess.Popen(
                [*command, *options], stdout=subprocess.PIPE, stderr=errors, text=True, env=os.environ | environment
            )
        assert process.stdout is not None
        with process.stdout as announcements, selectors.DefaultSelector() as ready:
            try:
                ready.register(announcements, selectors.EVENT_READ)
                assert ready.select(timeout=90), f"the service did not say where it is: {log.read_text()}"
                url = announcements.readline().strip()
                assert url, log.read_text()
                yield Service(url, process, log)
            finally:
                process.terminate()
                process.wait(timeout=60)

    return run
