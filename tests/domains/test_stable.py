"""mode="stable": what outliers and epochs may not do."""

import io

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from descriptors import draw_descriptors
from gbdgc import GranularBallDomains, KMeansDomains, stability
from gbdgc.domains import stable

both = pytest.mark.parametrize(
    "estimator", [GranularBallDomains(4, mode="stable"), KMeansDomains(4, mode="stable")], ids=["balls", "kmeans"]
)


def follow(estimator, epochs):
    history, previous = [], None
    for table in epochs:
        previous = estimator.fit(table, previous_labels=previous).labels_
        history.append(previous)
    return history


@both
def test_churn_is_at_most_a_quarter_of_plain_kmeans_and_truth_no_farther(estimator):
    drawn = draw_descriptors(300, n_domains=4, n_epochs=5, condition="10 % outliers", seed=11)
    ours, plain = follow(clone(estimator), drawn.epochs), follow(KMeansDomains(4), drawn.epochs)
    churn = [np.mean([row.churn for row in stability(history)[1:]]) for history in (ours, plain)]
    assert churn[0] <= churn[1] / 4
    assert adjusted_rand_score(drawn.truth, ours[-1]) >= adjusted_rand_score(drawn.truth, plain[-1])
    assert stability(ours)[-1].smallest_share > 0.05


@both
def test_a_saved_memory_continues_bit_for_bit(estimator):
    epochs = draw_descriptors(200, n_epochs=4, condition="drift", seed=2).epochs
    through = clone(estimator)
    history = follow(through, epochs[:2])
    file = io.BytesIO()
    np.savez(file, **through.memory_)
    file.seek(0)
    resumed = clone(estimator).restore(np.load(file))
    labels = history[-1]
    for table in epochs[2:]:
        expected = through.fit(table, previous_labels=labels).labels_
        found = resumed.fit(table, previous_labels=labels)
        assert (found.labels_ == expected).all()
        assert found.domain_centers_.tobytes() == through.domain_centers_.tobytes()
        labels = expected


@both
def test_a_fit_without_previous_labels_forgets_the_past(estimator):
    epochs = draw_descriptors(200, n_epochs=2, seed=3).epochs
    used = clone(estimator).fit(epochs[0]).fit(epochs[1])
    assert used.embedding_.tobytes() == clone(estimator).fit(epochs[1]).embedding_.tobytes()


@both
def test_memory_of_other_samples_is_refused(estimator):
    table = draw_descriptors(100, seed=1).epochs[0]
    fitted = clone(estimator).fit(table)
    with pytest.raises(ValueError, match="memory_ is of 100 samples, there are 90 now"):
        fitted.fit(table[:90], previous_labels=fitted.labels_[:90])
    with pytest.raises(ValueError, match="lacks epochs"):
        fitted.restore({"descriptors": table})


@both
def test_another_number_of_domains_than_before_is_fine(estimator):
    table = draw_descriptors(200, n_domains=5, seed=1).epochs[0]
    four = clone(estimator).fit(table)
    five = clone(estimator).set_params(n_domains=5).fit(table, previous_labels=four.labels_)
    assert five.n_domains_ == len(np.unique(five.labels_)) == 5
    assert set(four.domains_) < set(five.domains_)


def test_clipping_keeps_direction_and_leaves_the_near_alone():
    clipped = stable.clip_radially(np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]]), 2.0)
    np.testing.assert_allclose(clipped, [[1.2, 1.6], [0.3, 0.4], [0.0, 0.0]])


def test_procrustes_undoes_a_rotation_and_widens_without_distortion():
    rng = np.random.default_rng(0)
    target = rng.normal(size=(50, 4))
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    np.testing.assert_allclose((target @ turn.T) @ stable.procrustes(target @ turn.T, target), target, atol=1e-12)
    wider = stable.procrustes(target[:, :3], target)
    np.testing.assert_allclose(wider @ wider.T, np.eye(3), atol=1e-12)


def test_a_sample_stays_unless_another_domain_is_clearly_nearer():
    to_center = np.array([[1.0, 1.2], [1.0, 1.4], [1.2, 1.0], [1.0, 5.0]])
    previous = np.array([7, 7, 3, 3])
    assert stable.apply_hysteresis(to_center, np.array([3, 7]), previous).tolist() == [7, 3, 3, 3]


def test_holding_on_never_starves_a_domain():
    to_center = np.array([[1.0, 1.1], [1.0, 5.0]])
    assert stable.apply_hysteresis(to_center, np.array([0, 1]), np.array([1, 0])).tolist() == [1, 0]
    assert stable.apply_hysteresis(np.array([[1.0, 1.1], [1.1, 1.0]]), np.array([0, 1]), np.array([0, 0])).tolist() == [
        0,
        1,
    ]


def test_wards_method_counts_points_by_weight():
    points = np.array([[0.0], [1.0], [3.0]])
    assert stable.weighted_ward(points, np.array([100.0, 100.0, 0.1]), 2).tolist() == [0, 1, 1]
    assert stable.weighted_ward(points, np.ones(3), 2).tolist() == [0, 0, 1]
