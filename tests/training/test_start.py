"""A run can start from a model: its own, or the bundled one."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from gbdgc import checkpoint
from gbdgc.config import Config
from gbdgc.errors import InputError
from gbdgc.training import train
from gbdgc.training.run import make_fabric
from gbdgc.training.state import build_state


def test_a_run_starts_where_another_ended(tiny_config: Callable[..., Config], tmp_path: Path) -> None:
    first = train(tiny_config(method__name="erm", train__epochs=1), folder=tmp_path / "first")
    config = tiny_config(method__name="erm", train__start=first.folder)
    state = build_state(config, tmp_path, make_fabric(config, 1))
    trained, _, _ = checkpoint.load_model(first.folder)
    for name, tensor in trained.state_dict().items():
        assert torch.equal(state.network.state_dict()[name], tensor), name


def test_the_bundled_model_is_called_default_and_keeps_its_frozen_blocks(
    tiny_config: Callable[..., Config], tmp_path: Path
) -> None:
    build = checkpoint.read(checkpoint.model_file("default"))[1]["build"]
    shape = {f"model__{key}": "null" if build[key] is None else build[key] for key in ("dim", "codewords")}
    options = {"method__name": "erm", "model__options": "{frozen_blocks: 3}", **shape}
    config = tiny_config(**options, train__start="default")
    network = build_state(config, tmp_path, make_fabric(config, 1)).network
    assert not any(parameter.requires_grad for parameter in network.backbone.encoder.stem.parameters())
    assert all(parameter.requires_grad for parameter in network.backbone.decoder.parameters())


def test_a_model_of_another_shape_is_refused(tiny_config: Callable[..., Config], tmp_path: Path) -> None:
    config = tiny_config(method__name="erm", model__dim=8, train__start="default")
    with pytest.raises(InputError, match=r"train\.start=default: a network of another shape .*take its model"):
        build_state(config, tmp_path, make_fabric(config, 1))
