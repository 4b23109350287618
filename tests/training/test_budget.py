"""A budget of time decides how long the schedule is."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gbdgc.cli.train import _seconds
from gbdgc.config import Config, load_config
from gbdgc.errors import InputError, UsageError
from gbdgc.training import train


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("30m", 1800), ("1.5h", 5400), (" 2 m", 120)])
def test_durations_are_read_as_people_write_them(text: str, seconds: float) -> None:
    assert _seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "0m", "-5m", "30", "half an hour", "5d"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="such as 90s, 30m or 8h"):
        _seconds(text)


@pytest.mark.slow
def test_a_budget_fits_the_epochs_and_a_resumed_run_keeps_them(
    tiny_config: Callable[..., Config], tmp_path: Path
) -> None:
    started = time.monotonic()
    config = tiny_config(method__name="erm", train__epochs=10_000)
    run = train(config, folder=tmp_path / "run", budget=25)
    assert run.finished
    # Generous: this machine may be busy. The point is that it is neither two epochs nor ten thousand.
    assert time.monotonic() - started < 90
    epochs = load_config(run.folder / "config.yaml").train.epochs
    assert 3 < epochs == len(run.metrics) < 10_000
    again = train(tiny_config(method__name="erm", train__epochs=10_000), folder=run.folder, resume=True, budget=25)
    assert again.finished
    assert len(again.metrics) == epochs


def test_a_budget_that_no_epoch_fits_is_refused_and_leaves_nothing(
    tiny_config: Callable[..., Config], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"a budget of 0 seconds: one pass over 12 pictures takes about .* here; give"):
        train(tiny_config(method__name="erm"), folder=tmp_path / "run", budget=0.01)
    assert not (tmp_path / "run").exists()
