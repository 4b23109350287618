"""Engines that run the network: torch, onnxruntime or OpenVINO, behind one interface.

Every engine takes normalised images (B, 3, H, W), float32, with sides that are multiples of 16, and returns people per
pixel (B, 1, H, W), float32. Images are padded with zeros, as in training.
"""

import json
import os
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from gbdgc.data.parallel import usable_cores
from gbdgc.errors import InputError, as_input_error, install_advice

if TYPE_CHECKING:
    from gbdgc.models import Network

INPUT, DENSITY, STATISTICS = "images", "density", "statistics"
"""The names of an exported graph's input and of its two outputs."""

DESCRIPTION_KEY = "gbdgc"
"""The metadata key of an exported file's packed description."""

_SEALS = {
    # One more entry of ONNX's own metadata: field 14 of the model, key and value as protocol buffers write them.
    ".onnx": (b"\x72\x4a\x0a\x06sha256\x12\x40", b""),
    ".xml": (b"<!-- sha256 ", b" -->\n"),
}
"""The bytes around the digest at the end of an exported file, which its runtime ignores."""
_DIGITS = 64

_CARD_BATCH = 8
"""Pictures of one size counted together on a GPU; a CPU gains nothing from it and needs the memory."""


class Description(NamedTuple):
    """The content of a model's file besides the weights."""

    info: dict[str, Any]
    """How it was made, and how pictures are prepared for it."""
    extras: dict[str, NDArray[np.generic]]
    """Further arrays by name, such as those of its trust."""


class Engine(Protocol):
    """A network, ready to count."""

    name: str
    batch: int
    """How many pictures of one size it counts together best."""
    description: Description

    def __call__(self, images_B3HW: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return people per pixel (B, 1, H, W)."""

    def describe(self, images_B3HW: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the channel statistics of the encoder's levels, one row per image: what trust is judged by."""


class TorchEngine:
    """The network itself, as evaluation runs it."""

    name, batch = "torch", 1

    def __init__(
        self,
        network: "Network",
        *,
        device: str | None = None,
        threads: int | None = None,
        description: Description | None = None,
    ) -> None:
        import torch

        self.threads = threads
        self.description = description or Description({}, {})
        unusable, advice = (RuntimeError, AssertionError), "leave it out for the CPU"
        with as_input_error(unusable, f"device {device!r}", "torch cannot use it ({error})", advice):
            self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
            self.network = network.eval().to(self.device)
        if self.device.type != "cpu":
            self.batch = _CARD_BATCH

    @classmethod
    def load(cls, path: Path, *, device: str | None = None, threads: int | None = None) -> Self:
        """Open a model file or a run's folder."""
        require("torch", "torch")
        from gbdgc.checkpoint import load_model

        network, info, arrays = load_model(path)
        return cls(network, device=device, threads=threads, description=Description(info, arrays))

    def __call__(self, images_B3HW: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return people per pixel (B, 1, H, W)."""
        import torch

        with torch.inference_mode(), self._own_threads():
            density = self.network.count_map(torch.from_numpy(images_B3HW).to(self.device))
            return np.asarray(density.float().cpu().numpy())

    def describe(self, images_B3HW: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the channel statistics of the encoder's levels."""
        import torch

        from gbdgc.descriptors import channel_statistics

        with torch.inference_mode(), self._own_threads():
            levels = self.network.feature_maps(torch.from_numpy(images_B3HW).to(self.device))
            return np.asarray(channel_statistics(levels).float().cpu().numpy())

    @contextmanager
    def _own_threads(self) -> Iterator[None]:
        """Use this engine's number of threads, which torch only sets process-wide, for one call."""
        import torch

        before = torch.get_num_threads()
        if self.threads is not None:
            torch.set_num_threads(self.threads)
        try:
            yield
        finally:
            if self.threads is not None:
                torch.set_num_threads(before)


class _ExportedEngine:
    """What engines of exported files share: one output of the graph is the density, the other the statistics."""

    batch = 1
    run: Callable[[str, NDArray[np.float32]], NDArray[np.float32]]

    def __call__(self, images_B3HW: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return people per pixel (B, 1, H, W)."""
        return self.run(DENSITY, np.ascontiguousarray(images_B3HW))

    def describe(self, images_B3HW: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the channel statistics of the encoder's levels."""
        return self.run(STATISTICS, np.ascontiguousarray(images_B3HW))


class OnnxEngine(_ExportedEngine):
    """An exported .onnx file in onnxruntime."""

    name = "onnx"

    def __init__(self, path: Path, *, device: str | None = None, threads: int | None = None) -> None:
        runtime = require("onnxruntime", "onnx")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads or _cores_allowed()
        provider = f"{(device or 'cpu').upper()}ExecutionProvider"
        if provider not in runtime.get_available_providers():
            available = ", ".join(runtime.get_available_providers())
            raise InputError(f"device {device!r}", f"this onnxruntime has no {provider}, only {available}")
        with _reading(path):
            _check_seal(path)
            self.session = runtime.InferenceSession(str(path), options, providers=[provider])
            self.description = unpack(self.session.get_modelmeta().custom_metadata_map[DESCRIPTION_KEY])

    def run(self, output: str, images_B3HW: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return one output of the graph."""
        return np.asarray(self.session.run([output], {INPUT: images_B3HW})[0])


class OpenVinoEngine(_ExportedEngine):
    """An exported .xml and .bin pair in OpenVINO."""

    name = "openvino"

    def __init__(self, path: Path, *, device: str | None = None, threads: int | None = None) -> None:
        openvino = require("openvino", "openvino")
        # Without the hint some processors would run this in bf16, and the same picture count differently there.
        options: dict[str, Any] = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
        core = openvino.Core()
        place = (device or "CPU").upper()
        if count := threads or (_cores_allowed() if place == "CPU" else 0):
            options["INFERENCE_NUM_THREADS"] = count
        if place not in (known := [*core.available_devices, "AUTO"]):
            raise InputError(f"device {device!r}", f"OpenVINO finds only {', '.join(known)} here")
        with _reading(path):
            _check_seal(path)
            model = core.read_model(path)
            self.description = unpack(model.get_rt_info(DESCRIPTION_KEY).astype(str))
            self.model = core.compile_model(model, place, options)

    def run(self, output: str, images_B3HW: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return one output of the graph."""
        # A request of its own: callers in several threads must not write into each other's tensors.
        request = self.model.create_infer_request()
        return np.array(request.infer([images_B3HW], share_inputs=True)[output])


ENGINES: dict[str, Callable[..., Engine]] = {"torch": TorchEngine.load, "onnx": OnnxEngine, "openvino": OpenVinoEngine}
"""Opens a model's file by engine: (path, device=..., threads=...), the device under the engine's own name for it."""

EXPORT_SUFFIXES = {"onnx": ".onnx", "openvino": ".xml"}
"""The suffix of exported files, for engines that read such files; other engines open the model file itself."""


def _cores_allowed() -> int:
    """Return how many cores this process is held to; 0 for no limit. Runtimes ask for all, and their threads wait."""
    allowed = usable_cores()
    return allowed if allowed < (os.cpu_count() or 1) else 0


def pack(info: Mapping[str, Any], extras: Mapping[str, NDArray[np.generic]]) -> str:
    """Write a description as text that is embedded in exported files, so that it cannot get lost."""
    arrays = {name: np.ascontiguousarray(array) for name, array in extras.items()}
    return b64encode(save(arrays, {DESCRIPTION_KEY: json.dumps(dict(info))})).decode("ascii")


def unpack(text: str) -> Description:
    """Return what ``pack`` wrote."""
    content = b64decode(text, validate=True)
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    info = json.loads(header["__metadata__"][DESCRIPTION_KEY])
    if not isinstance(info, dict):
        raise ValueError("its description is not an object")
    return Description(info, load(content))


def sealed(content: bytes, suffix: str, beside: bytes = b"") -> bytes:
    """Return the content of an exported file with a digest of it, and of the file ``beside`` it, at its end."""
    before, after = _SEALS[suffix]
    return content + before + sha256(content + beside).hexdigest().encode() + after


def seal_holds(path: Path) -> bool | None:
    """Return whether a file matches its digest; None for an older file without one."""
    before, after = _SEALS[path.suffix.lower()]
    content, weights = path.read_bytes(), path.with_suffix(".bin")
    start = len(content) - len(before) - _DIGITS - len(after)
    if start < 0 or not content.startswith(before, start):
        return None
    beside = weights.read_bytes() if path.suffix.lower() == ".xml" and weights.exists() else b""
    return content == sealed(content[:start], path.suffix.lower(), beside)


def _check_seal(path: Path) -> None:
    if seal_holds(path) is False:
        reason = "damaged: its content does not match its digest"
        raise InputError(path, reason, "export it again with: gbdgc export WEIGHTS")


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn whatever a runtime raises about a file into an `InputError` that names the file."""
    if not path.is_file():
        raise InputError(path, "no such file")
    # Each runtime has errors of its own, and they have no common ancestor.
    damaged = as_input_error(Exception, path, "damaged, or of a version this runtime cannot read ({error})")
    foreign, advice = (KeyError, ValueError, SafetensorError), "make it with: gbdgc export WEIGHTS"
    with damaged, as_input_error(foreign, path, "not exported by gbdgc", advice):
        yield


def require(module: str, extra: str) -> ModuleType:
    """Import a runtime, or name the extra that installs it."""
    # Both send usage data to their vendors unless this is disabled before the import: OpenVINO through a separate
    # package that it does not need, onnxruntime from its native code.
    sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    with as_input_error(ImportError, "", f"{module} is not installed", install_advice(extra)):
        return import_module(module)


def exported_for(path: Path) -> str | None:
    """Return the engine that a file was exported for, None for any other file."""
    return next((engine for engine, suffix in EXPORT_SUFFIXES.items() if suffix == path.suffix.lower()), None)
