"""A network whose density is zero everywhere: it is told, and can be let come back."""

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


def test_a_density_that_cannot_come_back_is_told_with_what_to_do(
    tiny_config: Callable[..., Config], tmp_path: Path
) -> None:
    state = dead_state(tiny_config(method__name="erm"), tmp_path)
    with pytest.warns(GbdgcWarning, match=r"zero on every picture.*model\.revive=true"):
        run_epoch(state, lambda *_: None)


def test_with_revive_it_comes_back_in_an_epoch(tiny_config: Callable[..., Config], tmp_path: Path) -> None:
    config = tiny_config(train__learning_rate=1e-2, train__batch_size=1, model__revive="true", model__dropout=0.0)
    state = dead_state(config, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error", GbdgcWarning)
        before = validate(state)
        assert before is not None
        assert before["bias"] == pytest.approx(-before["mae"])  # nobody is counted
        after = run_epoch(state, lambda *_: None)["validation"]
    assert after["mae"] < before["mae"]
