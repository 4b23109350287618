"""What several test files share: one small model with everything in it, and its exports, which take long to make."""

import os
import selectors
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from filelock import FileLock
from numpy.typing import NDArray

BUILD = {"backbone": "compact", "dim": 32, "codewords": 64}
DESCRIPTOR_SIZE = 64
Once = Callable[[str, Callable[[Path], object]], Path]

if "PYTEST_XDIST_WORKER" in os.environ:
    # Two workers with two threads each would only wait for each other. Before torch is imported, and for every
    # process that a test starts.
    os.environ["OMP_NUM_THREADS"] = "1"
# By default Ray's workers let every other process go first, and on a busy machine a test of theirs never ends.
os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 (as Ray spells it)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes minutes, then files with slow tests, so that no worker is left alone with one at the end.

    A file stays together, as what its tests share is made once per file.
    """
    with_slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.get_closest_marker("minutes") is None, item.path not in with_slow))


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """Return a function that fills a folder once per test run: the first worker makes it, the others wait for it."""
    root = tmp_path_factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root

    def make(name: str, fill: Callable[[Path], object]) -> Path:
        folder, done = root / "shared" / name, root / "shared" / f"{name}.done"
        folder.parent.mkdir(exist_ok=True)
        with FileLock(f"{folder}.lock"):
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                fill(folder)
                done.touch()
        return folder

    return make


@pytest.fixture(scope="session")
def pictures(once: Once) -> list[NDArray[np.uint8]]:
    """Drawn scenes of two domains, 160 x 128."""

    def draw(folder: Path) -> None:
        from gbdgc.synthetic import SOURCE_DOMAINS, draw_scene

        random = np.random.default_rng(0)
        scenes = [draw_scene(SOURCE_DOMAINS[number % 2], random, (160, 128))[0] for number in range(24)]
        np.save(folder / "pictures.npy", scenes)

    return list(np.load(once("pictures", draw) / "pictures.npy"))


@pytest.fixture(scope="session")
def model(pictures: list[NDArray[np.uint8]], once: Once) -> Path:
    """Return a model that knows two of the pictures; its weights are random, but counts differ from place to place."""
    return once("model", lambda folder: write_model(folder / "best.safetensors", pictures)) / "best.safetensors"


def write_model(path: Path, pictures: list[NDArray[np.uint8]]) -> None:
    import torch

    from gbdgc import checkpoint
    from gbdgc.counting.tiling import stack
    from gbdgc.counting.trust import Trust
    from gbdgc.data.transforms import noise, resized
    from gbdgc.descriptors import describe
    from gbdgc.models import build_network

    torch.manual_seed(0)
    network = build_network(**BUILD, pretrained=False, style=False).eval()
    with torch.no_grad():
        network.semantic[0].weight.mul_(4)
    # A training cloud of two pictures seen again and again with the noise of a sensor: near them is near.
    random = np.random.default_rng(0)
    cloud = [noise(resized(pictures[n % 2], DESCRIPTOR_SIZE, DESCRIPTOR_SIZE), 4, random) for n in range(120)]
    _, z_ND = describe(network, [([str(n) for n in range(len(cloud))], torch.from_numpy(stack(cloud)))])
    trust = Trust.fit(z_ND, [n % 2 for n in range(len(cloud))]).to_arrays()
    info = {"name": "tiny", "max_side": None, "descriptor_size": DESCRIPTOR_SIZE}
    extras = {name: torch.from_numpy(array) for name, array in trust.items()}
    checkpoint.save_model(path, network, BUILD, info, checkpoint.nest("trust", extras))


@pytest.fixture(scope="session")
def exports(model: Path, pictures: list[NDArray[np.uint8]], once: Once) -> dict[str, Path]:
    """Return the model for other runtimes; traced once, as this is what takes long, and all kinds written from it."""
    names = ("m.onnx", "m-int8.onnx", "m.xml", "m-int8.xml")

    def export(folder: Path) -> None:
        from gbdgc import checkpoint
        from gbdgc.counting.engines import pack
        from gbdgc.counting.export import calibration_windows
        from gbdgc.counting.graph import write_graph, write_onnx, write_openvino
        from gbdgc.counting.rounding import in_8_bits

        network, info, arrays = checkpoint.load_model(model)
        description = pack(info, arrays)
        graph = write_graph(network, folder / "graph.onnx")
        small = in_8_bits(graph, calibration_windows(pictures[:8]))
        for name in names:
            write = write_onnx if name.endswith(".onnx") else write_openvino
            write(small if "int8" in name else graph, folder / name, description)

    folder = once("exports", export)
    return {name: folder / name for name in names}


@pytest.fixture
def traced(exports: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let exports of the model begin with the trace that `exports` was made of, as tracing takes long."""

    def copy_trace(network: object, path: Path) -> Path:
        return Path(shutil.copyfile(exports["m.onnx"].with_name("graph.onnx"), path))

    monkeypatch.setattr("gbdgc.counting.export.write_graph", copy_trace)


class Service(NamedTuple):
    """A real server in a process of its own."""

    url: str
    process: subprocess.Popen[str]
    log: Path


@pytest.fixture(scope="session")
def serving(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., AbstractContextManager[Service]]:
    """Return what runs `gbdgc serve`, or another command, with options and environment, until the end of the block."""

    @contextmanager
    def run(
        *options: str,
        command: tuple[str, ...] = ("serve",),
        port: str = "0",
        weights: Path = model,
        **environment: str,
    ) -> Iterator[Service]:
        log = tmp_path_factory.mktemp("service") / "log.txt"
        start = [sys.executable, "-m", "gbdgc", *command, "--weights", str(weights), "--port", port, "--threads", "1"]
        with log.open("w") as errors:
            process = subprocess.Popen(
                [*start, *options], stdout=subprocess.PIPE, stderr=errors, text=True, env=os.environ | environment
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
