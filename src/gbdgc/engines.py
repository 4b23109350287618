"""What runs the network: torch, onnxruntime or openvino, behind one call.

Every engine takes normalised images (B, 3, H, W), float32, sides multiples of 16, and gives people per pixel
(B, 1, H, W), float32. What reaches outside an image is zeros, as around every image in training.
"""

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from gbdgc.errors import InputError, install_advice

if TYPE_CHECKING:
    from gbdgc.models import Network

EngineName = Literal["torch", "onnx", "openvino"]
ENGINES: tuple[EngineName, ...] = ("torch", "onnx", "openvino")

SUFFIXES: dict[str, EngineName] = {".onnx": "onnx", ".xml": "openvino"}
"""Exported files, and the engine that runs each."""

INPUT, DENSITY, STATISTICS = "images", "density", "statistics"
"""The names of an exported graph's input and of its two outputs."""

DESCRIPTION_KEY = "gbdgc"
"""Under this name an exported file carries its packed description."""


class Engine(Protocol):
    """A network, ready to count."""

    name: EngineName

    def __call__(self, images_B3HW: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return people per pixel (B, 1, H, W)."""

    def describe(self, images_B3HW: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the channel statistics of the encoder's levels, one row an image: what trust is judged by."""


class Description(NamedTuple):
    """What is to be known of a model beside its weights."""

    info: dict[str, Any]
    """How it came to be, and how pictures are brought before it."""
    extras: dict[str, NDArray[np.generic]]
    """Further arrays, such as those of its trust, by name."""


class TorchEngine:
    """The network itself, as evaluation runs it."""

    name: EngineName = "torch"

    def __init__(self, network: "Network", *, device: str | None = None, threads: int | None = None) -> None:
        import torch

        if threads is not None:
            torch.set_num_threads(threads)
        try:
            self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
            self.network = network.eval().to(self.device)
        except (RuntimeError, AssertionError) as error:
            raise InputError(f"device {device!r}: torch cannot use it ({error}); leave it out for the CPU") from error

    def __call__(self, images_B3HW: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return people per pixel (B, 1, H, W)."""
        import torch

        with torch.inference_mode():
            density = self.network.count_map(torch.from_numpy(images_B3HW).to(self.device))
            return np.asarray(density.float().cpu().numpy())

    def describe(self, images_B3HW: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the channel statistics of the encoder's levels."""
        import torch

        from gbdgc.descriptors import channel_statistics

        with torch.inference_mode():
            levels = self.network.feature_maps(torch.from_numpy(images_B3HW).to(self.device))
            return np.asarray(channel_statistics(levels).float().cpu().numpy())


class OnnxEngine:
    """An exported .onnx file in onnxruntime."""

    name: EngineName = "onnx"

    def __init__(self, path: Path, *, device: str | None = None, threads: int | None = None) -> None:
        runtime = require("onnxruntime", "export")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads or _allowed_cores()
        provider = f"{(device or 'cpu').upper()}ExecutionProvider"
        if provider not in runtime.get_available_providers():
            available = ", ".join(runtime.get_available_providers())
            raise InputError(f"device {device!r}: this onnxruntime has no {provider}, only {available}")
        with _reading(path):
            self.session = runtime.InferenceSession(str(path), options, providers=[provider])
            self.description = unpack(self.session.get_modelmeta().custom_metadata_map[DESCRIPTION_KEY])

    def __call__(self, images_B3HW: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return people per pixel (B, 1, H, W)."""
        return self._run(DENSITY, images_B3HW)

    def describe(self, images_B3HW: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the channel statistics of the encoder's levels."""
        return self._run(STATISTICS, images_B3HW)

    def _run(self, output: str, images_B3HW: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.asarray(self.session.run([output], {INPUT: np.ascontiguousarray(images_B3HW)})[0])


class OpenVinoEngine:
    """An exported .xml and .bin pair in OpenVINO."""

    name: EngineName = "openvino"

    def __init__(self, path: Path, *, device: str | None = None, threads: int | None = None) -> None:
        openvino = require("openvino", "openvino")
        # Without the hint some processors would run this in bf16, and the same picture count differently there.
        options: dict[str, Any] = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
        if threads is not None:
            options["INFERENCE_NUM_THREADS"] = threads
        core = openvino.Core()
        place = (device or "CPU").upper()
        if place not in (known := [*core.available_devices, "AUTO"]):
            raise InputError(f"device {device!r}: OpenVINO finds only {', '.join(known)} here")
        with _reading(path):
            model = core.read_model(path)
            self.description = unpack(model.get_rt_info(DESCRIPTION_KEY).astype(str))
            self.model = core.compile_model(model, place, options)

    def __call__(self, images_B3HW: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return people per pixel (B, 1, H, W)."""
        return self._run(DENSITY, images_B3HW)

    def describe(self, images_B3HW: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the channel statistics of the encoder's levels."""
        return self._run(STATISTICS, images_B3HW)

    def _run(self, output: str, images_B3HW: NDArray[np.float32]) -> NDArray[np.float32]:
        # A request of its own: callers in several threads must not write into each other's tensors.
        request = self.model.create_infer_request()
        return np.array(request.infer([np.ascontiguousarray(images_B3HW)], share_inputs=True)[output])


EXPORTED: dict[EngineName, type[OnnxEngine] | type[OpenVinoEngine]] = {"onnx": OnnxEngine, "openvino": OpenVinoEngine}


def _allowed_cores() -> int:
    """Return how many cores this process is held to, 0 for no limit: onnxruntime itself asks for all, and waits."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    return allowed if allowed < (os.cpu_count() or 1) else 0


def pack(info: Mapping[str, Any], extras: Mapping[str, NDArray[np.generic]]) -> str:
    """Write a description as the text that exported files carry within them, so that it cannot be lost."""
    arrays = {name: np.ascontiguousarray(array) for name, array in extras.items()}
    return b64encode(save(arrays, {DESCRIPTION_KEY: json.dumps(dict(info))})).decode("ascii")


def unpack(text: str) -> Description:
    """Return what ``pack`` wrote."""
    content = b64decode(text, validate=True)
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return Description(json.loads(header["__metadata__"][DESCRIPTION_KEY]), load(content))


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn whatever a runtime raises over a file into an error that names the file."""
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        yield
    except (KeyError, ValueError, SafetensorError) as error:
        raise InputError(f"{path}: not exported by gbdgc; make it with: gbdgc export WEIGHTS") from error
    except Exception as error:
        # Each runtime has errors of its own, and they have no common ancestor.
        raise InputError(f"{path}: damaged, or of a version this runtime cannot read ({error})") from error


def require(module: str, extra: str) -> ModuleType:
    """Import a runtime, or say which extra brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(f"{module} is not installed; {install_advice(extra)}") from error
