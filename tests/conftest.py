"""What several test files share: one small model with everything in it, and its exports, which take long to make."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from gbdgc import checkpoint
from gbdgc.data.synthetic import SOURCE_DOMAINS, draw_scene
from gbdgc.data.transforms import noise, resized
from gbdgc.descriptors import describe
from gbdgc.models import build_network
from gbdgc.tiling import stack
from gbdgc.trust import Trust

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
    from gbdgc import export
    from gbdgc.engines import pack

    network, info, tensors = checkpoint.load_model(model)
    description = pack(info, {name: tensor.numpy() for name, tensor in tensors.items()})
    folder = tmp_path_factory.mktemp("exports")
    graph = export.write_graph(network, folder / "graph.onnx")
    inputs = export.calibration_windows(pictures[:8])
    made = {name: folder / name for name in ("m.onnx", "m-int8.onnx", "m.xml", "m-int8.xml")}
    for name, path in made.items():
        write = export.write_onnx if path.suffix == ".onnx" else export.write_openvino
        write(graph, path, description, inputs if "int8" in name else None)
    return made
