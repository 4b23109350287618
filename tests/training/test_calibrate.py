"""The chosen model's counts are freed of the bias that the validation part shows."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gbdgc import checkpoint
from gbdgc.config import Config
from gbdgc.evaluation import count_dataset, summarise
from gbdgc.training import train
from gbdgc.training.epoch import finish_model
from gbdgc.training.run import make_fabric
from gbdgc.training.state import build_state, load_source


def test_counts_lose_the_bias_that_the_validation_part_shows_once(
    tiny_config: Callable[..., Config], tmp_path: Path
) -> None:
    config = tiny_config(method__name="erm", train__epochs=1, train__calibrate=True, data__validation=0.5)
    run = train(config, folder=tmp_path / "run")
    state = build_state(config, run.folder, make_fabric(config, 1))
    _, held_out = load_source(config)
    assert held_out is not None
    network, info, _ = checkpoint.load_model(run.best)
    network.scale_density(20)
    before = summarise(count_dataset(network, held_out))
    checkpoint.save_model(run.best, network, state.build, {"validation": before}, {})
    for _ in range(2):  # the second time as in a run that was stopped at its very end and resumed
        finish_model(state)
        network, info, _ = checkpoint.load_model(run.best)
        assert info["gain"] == pytest.approx(before["mean"] / (before["mean"] + before["bias"]))
        assert info["gain"] < 0.5
        assert summarise(count_dataset(network, held_out))["bias"] == pytest.approx(0, abs=1e-3 * before["mean"])


def test_without_a_validation_part_there_is_nothing_to_go_by(
    tiny_config: Callable[..., Config], tmp_path: Path
) -> None:
    config = tiny_config(
        method__name="erm", train__epochs=1, train__calibrate=True, data__validation=0, train__selection="last"
    )
    run = train(config, folder=tmp_path / "run")
    assert "gain" not in checkpoint.load_model(run.best)[1]
