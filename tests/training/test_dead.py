"""A network whose density is zero everywhere, or the same everywhere: it is told, and zeros come back."""

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from gbdgc.config import Config
from gbdgc.errors import GbdgcWarning
from gbdgc.training.epoch import run_epoch, validate
from gbdgc.training.run import make_fabric
from gbdgc.training.state import TrainState, build_state


def dead_state(config: Config, folder: Path) -> TrainState:
    """Make a fresh run, and turn its head round."""
    state = build_state(config, folder, make_fabric(config, 1))
    with torch.no_grad():
        state.network.head.weight.neg_()
    return state


def test_a_density_of_zero_is_told_with_what_to_do(tiny_config: Callable[..., Config], tmp_path: Path) -> None:
    state = dead_state(tiny_config(method__name="erm"), tmp_path)
    with pytest.warns(GbdgcWarning, match=r"zero on every picture.*lower train\.head_learning_rate"):
        validate(state)


def test_a_density_of_zero_comes_back_in_an_epoch(tiny_config: Callable[..., Config], tmp_path: Path) -> None:
    rates = {"train__learning_rate": 1e-3, "train__head_learning_rate": 3e-2}
    config = tiny_config(**rates, train__batch_size=1, model__dropout=0.0)
    state = dead_state(config, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GbdgcWarning)
        before = validate(state)
        assert before is not None
        assert before["bias"] == pytest.approx(-before["mae"])  # nobody is counted
        after = run_epoch(state, lambda *_: None)["validation"]
    assert after["bias"] > before["bias"]
