"""Checkpoints: whole or not at all, and nothing in them that could run."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from gbdgc import checkpoint
from gbdgc.errors import InputError
from gbdgc.models import build_network


def test_tensors_and_description_come_back(tmp_path: Path) -> None:
    tensors = {"a": torch.arange(6.0).reshape(2, 3).T, "b/c": torch.tensor(3)}
    checkpoint.write(tmp_path / "file", tensors, {"epoch": 3, "text": "é"})
    read, info = checkpoint.read(tmp_path / "file")
    assert info == {"epoch": 3, "text": "é"}
    assert all(torch.equal(read[name], tensors[name]) for name in tensors)


def test_the_one_before_stays_until_the_next_is_whole(tmp_path: Path) -> None:
    for epoch in range(3):
        checkpoint.rotate_in(tmp_path, {"x": torch.tensor(epoch)}, {"epoch": epoch})
    assert checkpoint.read(tmp_path / checkpoint.LAST)[1]["epoch"] == 2
    assert checkpoint.read(tmp_path / checkpoint.PREVIOUS)[1]["epoch"] == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [checkpoint.LAST, checkpoint.PREVIOUS]


@pytest.mark.parametrize("damage", ["truncate", "empty", "garbage", "remove", "flip", "zero"])
def test_a_damaged_last_gives_way_to_the_one_before_and_is_named(tmp_path: Path, damage: str) -> None:
    for epoch in range(2):
        checkpoint.rotate_in(tmp_path, {"x": torch.ones(100)}, {"epoch": epoch})
    last = tmp_path / checkpoint.LAST
    content = last.read_bytes()
    damaged = {
        "truncate": content[:-10],
        "empty": b"",
        "garbage": b"\x80\x04garbage" * 50,
        "flip": content[:-7] + bytes([content[-7] ^ 1]) + content[-6:],
        "zero": content[:-200] + bytes(200),
    }
    if damage == "remove":
        last.unlink()
    else:
        last.write_bytes(damaged[damage])
    _, info, problems = checkpoint.read_newest(tmp_path)
    assert info["epoch"] == 0
    assert checkpoint.LAST in problems[0]


def test_a_rotation_that_was_cut_off_leaves_the_new_checkpoint_to_go_on_from(tmp_path: Path) -> None:
    for epoch in range(3):
        checkpoint.rotate_in(tmp_path, {"x": torch.zeros(100)}, {"epoch": epoch})
    (tmp_path / checkpoint.PREVIOUS).write_bytes(b"damaged before")
    (tmp_path / checkpoint.LAST).rename(tmp_path / "fresh.safetensors")
    assert checkpoint.read_newest(tmp_path)[1]["epoch"] == 2


def test_with_no_whole_checkpoint_the_error_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / checkpoint.LAST).write_bytes(b"")
    with pytest.raises(InputError, match=r"no whole checkpoint to resume from .*start a new run"):
        checkpoint.read_newest(tmp_path)


def test_no_flipped_bit_changes_what_is_read(tmp_path: Path) -> None:
    tensors = {"a": torch.arange(3, dtype=torch.bfloat16), "b": torch.tensor(True), "c": torch.zeros(0, 2)}
    path = tmp_path / "file"
    checkpoint.write(path, tensors, {"epoch": 3})
    content = path.read_bytes()
    refused = 0
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        try:
            read, info = checkpoint.read(path)
        except InputError:
            refused += 1
        else:  # in the blanks, or in the name of the digest
            assert info == {"epoch": 3}
            assert all(torch.equal(read[name], tensors[name]) for name in tensors)
    assert refused > 0.9 * len(content)


def test_a_model_with_a_flipped_byte_is_not_counted_with_and_one_without_a_digest_is(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    build = {"backbone": "compact", "dim": 16, "codewords": 32}
    path = tmp_path / checkpoint.BEST
    checkpoint.save_model(path, build_network(**build, pretrained=False), build, {}, {})
    content = bytearray(path.read_bytes())
    save_file(load_file(path), tmp_path / "old", {"gbdgc": json.dumps({"build": build})})
    checkpoint.load_model(tmp_path / "old")
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"best\.safetensors: damaged: its content does not match its digest"):
        checkpoint.load_model(tmp_path)


def test_the_optimiser_goes_on_to_the_bit(tmp_path: Path) -> None:
    def new() -> tuple[torch.nn.Linear, torch.optim.Optimizer]:
        torch.manual_seed(0)
        layer = torch.nn.Linear(4, 2)
        return layer, torch.optim.AdamW([{"params": [layer.weight]}, {"params": [layer.bias]}], lr=0.1)

    def step(layer: torch.nn.Linear, optimizer: torch.optim.Optimizer) -> None:
        optimizer.zero_grad()
        layer(torch.ones(3, 4)).square().sum().backward()
        optimizer.step()

    layer, optimizer = new()
    step(layer, optimizer)
    checkpoint.write(tmp_path / "file", checkpoint.optimizer_tensors(optimizer), {})
    weights = {name: tensor.clone() for name, tensor in layer.state_dict().items()}
    step(layer, optimizer)

    other, resumed = new()
    other.load_state_dict(weights)
    checkpoint.restore_optimizer(resumed, checkpoint.read(tmp_path / "file")[0])
    step(other, resumed)
    assert torch.equal(layer.weight, other.weight)
    assert torch.equal(layer.bias, other.bias)


def test_a_model_has_no_style_branch_and_counts_the_same_without_it(tmp_path: Path) -> None:
    build = {"backbone": "compact", "dim": 16, "codewords": 32}
    network = build_network(**build, pretrained=False).eval()
    path = tmp_path / checkpoint.BEST
    checkpoint.save_model(path, network, build, {"name": "tiny"}, {"trust/mean": torch.zeros(2)})
    loaded, info, extras = checkpoint.load_model(tmp_path)
    assert not [name for name in loaded.state_dict() if name.startswith("style")]
    assert info["name"] == "tiny"
    assert list(extras) == ["trust/mean"]
    image = torch.rand(1, 3, 48, 64)
    with torch.inference_mode():
        assert torch.equal(loaded.count_map(image), network.count_map(image))


def test_the_state_of_a_run_and_files_of_others_are_told_from_models(tmp_path: Path) -> None:
    checkpoint.write(tmp_path / "state", {"x": torch.zeros(1)}, {"epoch": 1})
    with pytest.raises(InputError, match=r"state of a run.*best\.safetensors"):
        checkpoint.load_model(tmp_path / "state")
    from safetensors.torch import save_file

    save_file({"x": torch.zeros(1)}, tmp_path / "foreign")
    with pytest.raises(InputError, match="not one of gbdgc's"):
        checkpoint.load_model(tmp_path / "foreign")
    with pytest.raises(InputError, match="no such file"):
        checkpoint.load_model(tmp_path / "nowhere")
    with pytest.raises(InputError, match="cannot be read"):
        checkpoint.load_model(tmp_path / ("a" * 300))
    with pytest.raises(InputError, match=r"no best\.safetensors in it.*the folder that `gbdgc train` printed"):
        checkpoint.load_model(tmp_path)
    torch.save({"weight": torch.zeros(3)}, tmp_path / "theirs.pth")
    with pytest.raises(InputError, match=r"theirs\.pth: a PyTorch file, which could run code and is never loaded"):
        checkpoint.load_model(tmp_path / "theirs.pth")


CHANGES = {
    "an option more": {"depth": 3},
    "an option that cannot be": {"dropout": -1},
    "no number": {"dropout": float("nan")},
    "more memory than there is time to fill": {"dim": 100_000, "codewords": 100_000},
    "no name of a network": {"backbone": "x" * 1_000_000},
}


@pytest.mark.timeout(30)
@pytest.mark.parametrize("change", ["a layer more", *CHANGES])
def test_a_model_of_another_version_is_named_as_such(tmp_path: Path, change: str) -> None:
    build = {"backbone": "compact", "dim": 16, "codewords": 32}
    checkpoint.save_model(tmp_path / "model", build_network(**build, pretrained=False), build, {}, {})
    tensors, info = checkpoint.read(tmp_path / "model")
    if change == "a layer more":
        tensors["network/depth.weight"] = torch.zeros(3)
    else:
        info["build"] |= CHANGES[change]
    checkpoint.write(tmp_path / "model", tensors, info)
    reason = r"model: made by another version.*(depth|dropout|size mismatch|no such network|'x+).*make it again"
    with pytest.raises(InputError, match=reason) as refused:
        checkpoint.load_model(tmp_path / "model")
    assert len(str(refused.value)) < 600


@pytest.mark.parametrize("description", ["null", "3", "[" * 100_000 + "]" * 100_000])
def test_a_description_that_is_no_object_is_a_damaged_file(tmp_path: Path, description: str) -> None:
    from safetensors.torch import save_file

    save_file({"x": torch.zeros(1)}, tmp_path / "strange", {"gbdgc": description})
    with pytest.raises(InputError, match="strange: damaged or not a safetensors file"):
        checkpoint.load_model(tmp_path / "strange")


def test_a_model_in_sixteen_bits_takes_half_the_room_and_counts_the_same(tmp_path: Path, model: Path) -> None:
    checkpoint.save_half(model, half := tmp_path / "half.safetensors")
    full, small = (checkpoint.load_model(path) for path in (model, half))
    assert half.stat().st_size < 0.6 * model.stat().st_size
    assert small[1] == full[1]
    assert all(np.array_equal(small[2][name], array) for name, array in full[2].items())
    images = torch.randn(1, 3, 64, 96)
    with torch.inference_mode():
        counts = [float(network.count_map(images).sum()) for network, *_ in (full, small)]
    assert counts[1] == pytest.approx(counts[0], rel=2e-3)


def test_weights_beyond_sixteen_bits_are_refused(tmp_path: Path, model: Path) -> None:
    tensors, info = checkpoint.read(model)
    tensors["network/head.weight"] = tensors["network/head.weight"] + 1e6
    checkpoint.write(huge := tmp_path / "huge.safetensors", tensors, info)
    with pytest.raises(InputError, match=r"head\.weight holds numbers beyond what 16 bits reach; keep it in 32"):
        checkpoint.save_half(huge, tmp_path / "half.safetensors")
    assert not (tmp_path / "half.safetensors").exists()
