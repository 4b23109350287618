"""Intervals against scipy's, draw for draw, and against what an interval is for."""

import numpy as np
import pytest
import scipy.stats

from gbdgc.evaluation import METRICS
from gbdgc.evaluation.intervals import Values, bootstrap, paired_bootstrap


def crowd(seed: int, size: int = 60) -> tuple[Values, Values]:
    random = np.random.default_rng(seed)
    truth = random.integers(0, 300, size).astype(float)
    return truth, truth + random.normal(5, 20, size)


@pytest.mark.parametrize("name", METRICS)
def test_an_interval_is_scipys(name: str) -> None:
    truth, count = crowd(1)
    found = bootstrap(METRICS[name], truth, count, seed=7, draws=500)
    expected = scipy.stats.bootstrap(
        (truth, count),
        lambda truth, count, axis: METRICS[name](truth, count),
        paired=True,
        vectorized=True,
        method="percentile",
        n_resamples=500,
        rng=np.random.default_rng(7),
    ).confidence_interval
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-12)


def test_resampling_in_pieces_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    truth, count = crowd(2)
    whole = bootstrap(METRICS["rmse"], truth, count)
    monkeypatch.setattr("gbdgc.evaluation.intervals._CHUNK", 1000)
    assert bootstrap(METRICS["rmse"], truth, count) == whole


def test_the_same_seed_gives_the_same_interval_and_another_seed_another() -> None:
    truth, count = crowd(3)
    assert bootstrap(METRICS["mae"], truth, count, seed=1) == bootstrap(METRICS["mae"], truth, count, seed=1)
    assert bootstrap(METRICS["mae"], truth, count, seed=1) != bootstrap(METRICS["mae"], truth, count, seed=2)


def test_intervals_hold_the_truth_about_as_often_as_they_promise() -> None:
    hits = 0
    for seed in range(200):
        truth, count = crowd(seed, size=80)
        interval = bootstrap(METRICS["bias"], truth, count, seed=seed, draws=400)
        hits += interval.low <= 5 <= interval.high  # type: ignore[operator]
    assert 0.90 <= hits / 200 <= 0.985


def test_the_difference_of_two_runs_is_sure_where_each_alone_is_not() -> None:
    random = np.random.default_rng(0)
    truth = random.integers(10, 500, 100).astype(float)
    hard = random.normal(0, 50, 100)
    better, worse = truth + hard, truth + hard * 1.1
    gain = paired_bootstrap(METRICS["mae"], truth, better, worse)
    alone = bootstrap(METRICS["mae"], truth, better)
    assert gain.value == pytest.approx(0.1 * np.abs(hard).mean())
    assert gain.low is not None
    assert gain.low > 0
    assert gain.value < (alone.high or 0) - (alone.low or 0)


def test_one_picture_has_an_error_but_no_interval_and_none_has_neither() -> None:
    one, nothing = np.array([4.0]), np.array([])
    assert bootstrap(METRICS["mae"], one, one + 2) == (2.0, None, None)
    assert bootstrap(METRICS["mae"], nothing, nothing) == (None, None, None)
