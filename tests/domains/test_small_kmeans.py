"""The compiled K-means does what scikit-learn's does."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from descriptors import draw_descriptors
from gbdgc.domains.clustering import lloyd, plus_plus, small_kmeans


@pytest.mark.parametrize("seed", range(5))
def test_each_start_ends_where_scikit_learn_ends(seed):
    rng = np.random.default_rng(seed)
    points, mass = draw_descriptors(150, seed=seed).epochs[0], rng.uniform(0.5, 20, size=150)
    seeds = points[rng.permutation(150)[:5]]
    theirs = KMeans(5, init=seeds, n_init=1, tol=0).fit(points, sample_weight=mass)
    labels, centers, inertia = lloyd(points, mass, seeds)
    assert (labels == theirs.labels_).all()
    np.testing.assert_allclose(centers, theirs.cluster_centers_, rtol=1e-9, atol=1e-9)
    assert inertia == pytest.approx(theirs.inertia_)


@pytest.mark.parametrize("seed", range(5))
def test_the_best_of_ten_starts_is_as_good_as_scikit_learns(seed):
    points = draw_descriptors(200, condition="overlap", seed=seed).epochs[0]
    ours = small_kmeans(points, 4, np.random.RandomState(0))
    assert ours.inertia <= KMeans(4, n_init=10, random_state=0).fit(points).inertia_ * 1.01


def test_seeds_are_different_points():
    points = np.repeat(np.arange(4.0)[:, None], 10, axis=0)
    for seed in range(20):
        draws = np.random.default_rng(seed).random((4, 3))
        assert sorted(points[plus_plus(points, np.ones(40), draws), 0]) == [0, 1, 2, 3]


def test_a_center_without_points_finds_some():
    points = np.array([[0.0], [1.0], [10.0], [11.0]])
    labels, _, inertia = lloyd(points, np.ones(4), np.array([[0.5], [100.0], [101.0]]))
    assert len(set(labels.tolist())) == 3
    assert inertia <= 1.0
