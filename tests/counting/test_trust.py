"""Trust: a calibrated rank of how far out a descriptor lies."""

import numpy as np
import pytest

from gbdgc.counting.trust import FAR, Trust


@pytest.fixture(scope="module")
def clouds() -> tuple[np.ndarray, np.ndarray]:
    """Two groups in 50 dimensions: the first 300 rows to learn from, the rest of the same kind."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, 900)
    return random.normal(size=(900, 50)) * np.linspace(3, 0.1, 50) + 20 * labels[:, None], labels


def test_the_novelty_of_pictures_like_those_of_training_is_uniform(clouds: tuple[np.ndarray, np.ndarray]) -> None:
    rows, labels = clouds
    trust = Trust.fit(rows[:300], labels[:300])
    novelty = np.array([trust.judge(row).novelty for row in rows[300:]])
    assert np.quantile(novelty, [0.25, 0.5, 0.75]) == pytest.approx([0.25, 0.5, 0.75], abs=0.1)
    assert (novelty > FAR).mean() < 0.04


def test_a_stranger_is_far_and_a_picture_of_training_is_near(clouds: tuple[np.ndarray, np.ndarray]) -> None:
    rows, labels = clouds
    trust = Trust.fit(rows[:300], labels[:300])
    assert trust.judge(rows[0] + 100).novelty > FAR
    assert trust.judge(rows[0]).novelty < 0.5


def test_a_stranger_is_far_from_a_small_training_set_too(clouds: tuple[np.ndarray, np.ndarray]) -> None:
    rows, labels = clouds
    trust = Trust.fit(rows[:20], labels[:20])
    assert trust.judge(rows[0] + 100).novelty > FAR
    assert np.mean([trust.judge(row).novelty > FAR for row in rows[300:]]) < 0.25


def test_the_domain_is_that_of_the_nearest_training_picture(clouds: tuple[np.ndarray, np.ndarray]) -> None:
    rows, labels = clouds
    trust = Trust.fit(rows[:300], labels[:300])
    assert [trust.judge(row).domain for row in rows[300:]] == labels[300:].tolist()


def test_scale_changes_nothing(clouds: tuple[np.ndarray, np.ndarray]) -> None:
    rows, labels = clouds
    plain, scaled = Trust.fit(rows[:300], labels[:300]), Trust.fit(rows[:300] * 1000, labels[:300])
    for row in rows[300:320]:
        assert plain.judge(row).novelty == pytest.approx(scaled.judge(row * 1000).novelty, abs=0.01)


def test_arrays_bring_it_back(clouds: tuple[np.ndarray, np.ndarray]) -> None:
    rows, labels = clouds
    trust = Trust.fit(rows[:300], labels[:300])
    again = Trust.from_arrays(trust.to_arrays())
    assert again.judge(rows[500]) == trust.judge(rows[500])


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_handful_of_pictures_and_pictures_all_alike_are_enough(count: int) -> None:
    for rows in (np.eye(count, 5), np.ones((count, 5))):
        verdict = Trust.fit(rows, np.zeros(count)).judge(np.ones(5))
        assert verdict.domain == 0
        assert 0 <= verdict.novelty <= 1
