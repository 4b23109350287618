"""A network whose density is zero everywhere, or the same everywhere: it is told, and zeros come back."""

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from gbdgc.config import Config
from gbdgc.errors import GbdgcWarning
from gbdgc.evaluation import summarise
from gbdgc.training.epoch import count_held_out, run_epoch, watch_early
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
        count_held_out(state)


def test_a_density_of_zero_comes_back_in_an_epoch(tiny_config: Callable[..., Config], tmp_path: Path) -> None:
    rates = {"train__learning_rate": 1e-3, "train__head_learning_rate": 3e-2}
    config = tiny_config(**rates, train__batch_size=1, model__dropout=0.0)
    state = dead_state(config, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GbdgcWarning)
        before = summarise(count_held_out(state))
        assert before["bias"] == pytest.approx(-before["mae"])  # nobody is counted
        after = run_epoch(state, lambda *_: None)["validation"]
    assert after["bias"] > before["bias"]


class TestFirstHundredSteps:
    """What the counts of the first crops tell."""

    @pytest.fixture
    def state(self, tiny_config: Callable[..., Config], tmp_path: Path) -> TrainState:
        config = tiny_config(method__name="erm")
        return build_state(config, tmp_path, make_fabric(config, 1))

    @staticmethod
    def watch(state: TrainState, counts: Callable[[torch.Tensor], torch.Tensor]) -> list[str]:
        random = torch.Generator().manual_seed(0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for state.step in range(1, 131):
                people = 40 * torch.rand(4, 1, 1, generator=random)
                watch_early(state, counts(people[:, 0, 0]), people)
        return [str(warning.message) for warning in caught]

    def test_a_network_that_counts_nobody_is_told_once(self, state: TrainState) -> None:
        (told,) = self.watch(state, torch.zeros_like)
        assert "after 100 steps the network counts nobody, where there are 0 to 40" in told
        assert "gbdgc data check" in told

    def test_a_network_that_always_counts_the_same_is_told_once(self, state: TrainState) -> None:
        (told,) = self.watch(state, lambda truth: torch.full_like(truth, 52.0))
        assert "counts about 52.0 people whatever it sees" in told

    def test_a_network_that_learns_is_left_in_peace(self, state: TrainState) -> None:
        assert self.watch(state, lambda truth: 15 + 0.2 * truth) == []
