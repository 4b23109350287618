"""Each equation against the numbers one gets by hand."""

import equations as eq
import numpy as np
import pytest

SQUARE = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 4.0], [2.0, 4.0]])


def test_the_center_is_the_mean():
    assert eq.center(SQUARE).tolist() == [1.0, 2.0]


def test_the_weighted_distance_weighs_squares_by_axis():
    distance = eq.weighted_distance(np.array([[3.0, 4.0]]), np.zeros(2), np.array([0.25, 0.75]))
    assert distance[0] == pytest.approx(np.sqrt(0.25 * 9 + 0.75 * 16))


def test_the_within_scatter_is_taken_about_each_childs_own_center():
    first = np.array([True, True, False, False])
    scatter = eq.within_scatter(SQUARE, first, np.array([1.0, 0.0]), np.array([1.0, 4.0]))
    assert scatter.tolist() == [4.0, 0.0]


def test_the_objective_weighs_the_scatter_by_w_to_the_beta():
    first = np.array([True, True, False, False])
    theta = np.array([1.0, 0.0]), np.array([1.0, 4.0])
    assert eq.objective(SQUARE, first, *theta, w=np.array([0.5, 0.5]), beta=3.0) == pytest.approx(0.125 * 4)


def test_feature_weights_are_the_printed_formula():
    D, beta = np.array([1.0, 4.0, 9.0]), 3.0
    printed = [1 / sum((D[j] / D[t]) ** (1 / (beta - 1)) for t in range(3)) for j in range(3)]
    assert eq.feature_weights(D, beta) == pytest.approx(printed, rel=1e-6)


def test_feature_weights_minimise_the_objective_for_fixed_assignments():
    D, beta = np.array([1.0, 4.0, 9.0]), 2.5
    best = eq.feature_weights(D, beta)
    rng = np.random.default_rng(0)
    others = rng.dirichlet(np.ones(3), size=1000)
    assert (best**beta * D).sum() <= (others**beta * D).sum(axis=1).min()


def test_axes_without_scatter_weigh_nothing_and_the_others_sum_to_one():
    w = eq.feature_weights(np.array([0.0, 2.0, 8.0]), 2.0)
    assert w[0] == 0
    assert w.sum() == pytest.approx(1)


def test_no_scatter_at_all_gives_no_weights_rather_than_nan():
    assert eq.feature_weights(np.zeros(3), 2.0).tolist() == [0, 0, 0]


def test_extreme_sharpness_neither_overflows_nor_loses_the_sum():
    for beta in (1.001, 2.0, 1e6):
        w = eq.feature_weights(np.array([1e-12, 1.0, 1e12]), beta)
        assert np.isfinite(w).all()
        assert w.sum() == pytest.approx(1)


def test_sharpness_is_the_root_of_the_size_but_at_least_two():
    assert eq.sharpness(100, 0.0) == 10
    assert eq.sharpness(3, 0.0) == 2
    assert eq.sharpness(100, 4.5) == 4.5


def test_compactness_is_the_mean_weighted_distance_to_the_center():
    assert eq.compactness(SQUARE, np.array([1.0, 2.0]), np.array([0.5, 0.5])) == pytest.approx(np.sqrt(2.5))


def test_child_compactness_counts_children_by_size():
    assert eq.child_compactness(3, 1.0, 1, 5.0) == pytest.approx(2.0)


def test_a_split_must_get_below_the_margin():
    assert eq.split_accepted(1.04, 1.0, 1.05)
    assert not eq.split_accepted(1.05, 1.0, 1.05)
