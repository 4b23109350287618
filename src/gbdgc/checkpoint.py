"""Checkpoints: one safetensors file each, tensors and a JSON text, nothing that could run when it is read.

`last.safetensors` holds everything a run needs to go on bit for bit; the one before stays as `previous.safetensors`
until the next is whole. `best.safetensors` is a model: the weights that inference needs and how to build the network.
Each carries a digest of its content, which is checked whenever it is read.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from gbdgc.data.transforms import preparation
from gbdgc.errors import InputError, about, as_input_error
from gbdgc.files import AnyPath, atomic_write
from gbdgc.models import Network, build_network
from gbdgc.runs import BEST as BEST  # a model's name belongs to both
from gbdgc.runs import CHECKPOINTS, TrainingRun
from gbdgc.shipped import find_model, shipped_models

LAST, PREVIOUS = "last.safetensors", "previous.safetensors"
_FRESH = "fresh.safetensors"
_PICKLES = {".pth", ".pt", ".ckpt", ".pkl"}
EPOCH = "epoch_{:03d}.safetensors"
_INFO, _DIGEST = "gbdgc", "sha256"


def write(path: Path, tensors: Mapping[str, Tensor], info: Mapping[str, Any]) -> None:
    """Write tensors and a JSON-serialisable description atomically, with a digest of both."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(info)
    with atomic_write(path) as file:
        file.write(save(plain, {_INFO: text, _DIGEST: content_digest(plain, text)}))


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what ``write`` wrote, bit for bit; older files have no digest and are not checked."""
    damaged, reason = (
        (SafetensorError, OSError, ValueError, RecursionError),
        "damaged or not a safetensors file ({error})",
    )
    advice = f"give the {BEST} of a run"
    if path.suffix in _PICKLES:
        reason = "a PyTorch file, which could run code and is never loaded"
    with (
        as_input_error(damaged, path, reason, advice if path.suffix in _PICKLES else ""),
        as_input_error(FileNotFoundError, path, "no such file"),
        as_input_error(KeyError, path, "a safetensors file, but not one of gbdgc's", advice),
    ):
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
        info = json.loads(metadata[_INFO])
        if not isinstance(info, dict):
            raise ValueError("its description is not an object")
    if metadata.get(_DIGEST) not in (None, content_digest(tensors, metadata[_INFO])):
        another = "take another copy of it, or make it again"
        raise InputError(path, "damaged: its content does not match its digest", another)
    return tensors, info


def content_digest(tensors: Mapping[str, Tensor], text: str) -> str:
    """Return the SHA-256 of tensors with their names, types and shapes, and of a text."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"\n{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        # As bytes: numpy does not know every type of torch's.
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def rotate_in(folder: Path, tensors: Mapping[str, Tensor], info: Mapping[str, Any]) -> None:
    """Write `last`, keeping the one before; whenever this is interrupted, one whole checkpoint is there."""
    write(folder / _FRESH, tensors, info)
    if (folder / LAST).exists():
        (folder / LAST).replace(folder / PREVIOUS)
    (folder / _FRESH).replace(folder / LAST)


def has_any(folder: Path) -> bool:
    """Return whether a checkpoint was ever written there."""
    return any((folder / name).exists() for name in (LAST, PREVIOUS))


def read_newest(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any], list[str]]:
    """Return the newest whole checkpoint, and what was wrong with newer ones."""
    problems: list[str] = []
    for name in (LAST, _FRESH, PREVIOUS):
        try:
            return *read(folder / name), problems
        except InputError as error:
            # `fresh` is there only where a rotation was cut off: then it may be the only whole one.
            problems += [] if name == _FRESH else [str(error)]
    raise InputError(folder, f"no whole checkpoint to resume from ({'; '.join(problems)})", "start a new run")


def nest(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Prefix every key with a name."""
    return {f"{prefix}/{name}": tensor for name, tensor in tensors.items()}


def nested(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors with that prefix, without it."""
    return {
        name.removeprefix(f"{prefix}/"): tensor for name, tensor in tensors.items() if name.startswith(f"{prefix}/")
    }


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's moments, keyed by parameter number and name."""
    state = optimizer.state_dict()["state"]
    return {f"{number}/{name}": value for number, values in state.items() for name, value in values.items()}


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Put the moments back; settings such as the rate come from the config, not from the file."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        number, name = key.split("/", 1)
        state.setdefault(int(number), {})[name] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def save_model(
    path: Path, network: nn.Module, build: Mapping[str, Any], info: Mapping[str, Any], extras: Mapping[str, Tensor]
) -> None:
    """Write a model: weights without the style branch, how to build it, and whatever else belongs to it."""
    weights = {name: tensor for name, tensor in network.state_dict().items() if not name.startswith("style")}
    write(path, nest("network", weights) | dict(extras), {**info, "build": dict(build)})


def save_half(model: AnyPath, out: Path) -> None:
    """Write a copy of a model with 16-bit weights: half the size, for counting and not for training."""
    tensors, info = read(model_file(model))
    halves = {
        name: tensor.half() if name.startswith("network/") and tensor.is_floating_point() else tensor
        for name, tensor in tensors.items()
    }
    if over := [name for name, tensor in halves.items() if tensor.is_floating_point() and not tensor.isfinite().all()]:
        raise InputError(model, f"{over[0]} holds numbers beyond what 16 bits reach", "keep it in 32")
    write(out, halves, info)


def amend_model(
    model: AnyPath,
    out: Path,
    info: Mapping[str, Any],
    tensors: Mapping[str, Tensor] = MappingProxyType({}),
) -> None:
    """Write a copy of a model with additions to its description and its further tensors."""
    before, description = read(model_file(model))
    write(out, before | dict(tensors), description | dict(info))


def model_file(path: AnyPath) -> Path:
    """Return the model file: the best one of a run's folder, or the one that ships under a name."""
    path = find_model(path)
    advice = f"give a run's folder, a model file, or one of: {', '.join(shipped_models())}"
    with (
        as_input_error((OSError, ValueError), path, "cannot be read ({error})", advice),
        as_input_error(FileNotFoundError, path, "no such file", advice),
    ):
        if not path.is_dir():
            path.stat()
            return path
        for file in (TrainingRun(path).best, path / BEST):
            if file.exists():
                return file
    raise InputError(path, f"no {BEST} in it, nor in its {CHECKPOINTS}", "give the folder that `gbdgc train` printed")


def load_model(path: AnyPath) -> tuple[Network, dict[str, Any], dict[str, NDArray[np.generic]]]:
    """Load a model file or a run's folder: the network, ready to count, its description and its further arrays."""
    path = model_file(path)
    tensors, info = read(path)
    if "build" not in info:
        raise InputError(path, "the state of a run, not a model", f"give the {BEST} beside it")
    weights = nested("network", tensors)
    try:
        with torch.device("meta"):  # sizes are compared before memory is taken for what a file claims
            build_network(**info["build"], style=False, pretrained=False).load_state_dict(weights, assign=True)
        network = build_network(**info["build"], style=False, pretrained=False)
        network.load_state_dict(weights)
    except (RuntimeError, TypeError, ValueError) as error:
        reason = f"made by another version of gbdgc, or damaged ({' '.join(str(error).split()):.300})"
        raise InputError(path, reason, "take another copy of the model, or make it again") from error
    extras = {name: tensor for name, tensor in tensors.items() if not name.startswith("network/")}
    with about(path):
        preparation(info)
        return network.eval(), info, to_arrays(extras)


def to_arrays(tensors: Mapping[str, Tensor]) -> dict[str, NDArray[np.generic]]:
    """Return tensors as arrays; not all types of torch's are numpy's too."""
    arrays: dict[str, NDArray[np.generic]] = {}
    for name, tensor in tensors.items():
        with as_input_error(TypeError, "", f"{name}: {tensor.dtype}, which numpy does not have", "make it again"):
            arrays[name] = tensor.numpy()
    return arrays
