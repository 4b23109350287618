"""The division: the kernel equals the reference, and what must not matter does not."""

import itertools

import numpy as np
import plain_division
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from descriptors import CONDITIONS, draw_descriptors
from gbdgc.domains import balls
from gbdgc.domains.balls import DivisionRules, divide
from gbdgc.domains.tree import REASONS

rules = st.builds(
    DivisionRules,
    split_margin=st.sampled_from([0.8, 0.95, 1.05, 2.0]),
    sharpness=st.sampled_from(["sqrt", 1.5, 4.0]),
    max_depth=st.integers(0, 12),
    min_ball_size=st.integers(1, 4),
    max_iter=st.integers(1, 10),
    weight_power=st.sampled_from(["assignment", "objective"]),
)


@st.composite
def descriptors(draw, rounded=True):
    """Real-looking rows, with duplicates, rounded values (many ties) and constant columns among them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, d = draw(st.integers(1, 120)), draw(st.integers(1, 8))
    Z = rng.normal(size=(n, d)) * np.exp(rng.normal(size=d)) + rng.choice([0.0, 6.0], size=(n, 1))
    if draw(st.booleans()):
        Z = Z[rng.integers(0, n, size=n)]
    if draw(st.booleans()):
        Z[:, 0] = 3.0
    if rounded and draw(st.booleans()):
        Z = np.round(Z, 1)
    return Z


def partition(tree, rows=None):
    """The final balls as sets of rows; ``rows`` names the rows that the tree was given."""
    names = np.arange(tree.size[0]) if rows is None else rows
    return {frozenset(names[tree.members(leaf)].tolist()) for leaf in tree.leaves}


@settings(max_examples=60, deadline=None)
@given(descriptors(), rules)
def test_the_kernel_equals_the_reference_ball_for_ball(Z, rules):
    tree = divide(Z, rules)
    plain = {tuple(ball.members): ball for ball in plain_division.divide(Z, rules)}
    assert {tuple(tree.members(leaf)) for leaf in tree.leaves} == plain.keys()
    for leaf in tree.leaves:
        ball = plain[tuple(tree.members(leaf))]
        assert (tree.depth[leaf], tree.reason[leaf]) == (ball.depth, ball.reason)
        scale = np.ptp(Z) or 1.0
        for name in ("center", "weights", "compactness", "radius"):
            np.testing.assert_allclose(getattr(tree, name)[leaf], getattr(ball, name), rtol=1e-6, atol=1e-8 * scale)


@settings(max_examples=60, deadline=None)
@given(descriptors(), rules, st.integers(0, 2**32))
def test_the_order_of_rows_does_not_matter(Z, rules, seed):
    shuffled = np.random.default_rng(seed).permutation(len(Z))
    same_rows = balls.on_grid(Z).rows
    tree, other = divide(Z, rules), divide(Z[shuffled], rules)
    # Which of two equal rows goes where cannot matter: compare what the balls hold.
    assert _contents(tree, same_rows) == _contents(other, same_rows[shuffled])


def _contents(tree, rows):
    return sorted(sorted(map(tuple, rows[tree.members(leaf)].tolist())) for leaf in tree.leaves)


@pytest.mark.parametrize("sides", [(5,), (5, 3), (3, 3, 3), (2, 2, 2)], ids=str)
@pytest.mark.parametrize("depth", [1, 2])
def test_ties_go_by_value_and_never_by_position(sides, depth):
    lattice = np.array(list(itertools.product(*map(range, sides))), dtype=np.float64)
    rules = DivisionRules(max_depth=depth)
    for seed in range(10):
        shuffled = np.random.default_rng(seed).permutation(len(lattice))
        assert partition(divide(lattice, rules)) == partition(divide(lattice[shuffled], rules), rows=shuffled)


@settings(max_examples=60, deadline=None)
@given(descriptors(rounded=False), rules, st.integers(0, 2**32))
def test_the_sign_of_an_axis_does_not_matter(Z, rules, seed):
    # Not rounded: where a ball is its own mirror image, such as 0.1, 0.2, 0.3, no rule can tell left from right.
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=Z.shape[1])
    assert partition(divide(Z, rules)) == partition(divide(Z * signs, rules))


@settings(max_examples=60, deadline=None)
@given(descriptors(), rules, st.floats(1e-6, 1e6))
def test_a_positive_scale_does_not_matter(Z, rules, scale):
    assert partition(divide(Z, rules)) == partition(divide(Z * scale, rules))


@settings(max_examples=40, deadline=None)
@given(descriptors(), rules)
def test_balls_are_a_partition_and_the_tree_is_consistent(Z, rules):
    tree = divide(Z, rules)
    assert sorted(np.concatenate([tree.members(leaf) for leaf in tree.leaves]).tolist()) == list(range(len(Z)))
    for ball in range(len(tree)):
        left, right = tree.children[ball]
        assert (tree.reason[ball] == "split") == (left >= 0)
        assert tree.size[ball] >= min(rules.min_ball_size, len(Z))
        assert tree.depth[ball] <= rules.max_depth
        assert tree.weights[ball].sum() == pytest.approx(1)
        if left >= 0:
            assert tree.parent[left] == tree.parent[right] == ball
            assert tree.size[left] + tree.size[right] == tree.size[ball]
            assert tree.depth[left] == tree.depth[right] == tree.depth[ball] + 1
            assert set(tree.members(left)) | set(tree.members(right)) == set(tree.members(ball))
    labels = tree.spread(np.arange(len(tree.leaves)))
    for position, leaf in enumerate(tree.leaves):
        assert (labels[tree.members(leaf)] == position).all()
        np.testing.assert_allclose(tree.center[leaf], Z[tree.members(leaf)].mean(axis=0), atol=1e-8 * (1 + np.ptp(Z)))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_kernel_equals_the_reference_on_drawn_domains(condition):
    Z = draw_descriptors(400, condition=condition, seed=3).epochs[0]
    tree = divide(Z)
    assert partition(tree) == {frozenset(ball.members.tolist()) for ball in plain_division.divide(Z, DivisionRules())}


def test_every_reason_for_not_splitting_is_told():
    apart = np.array([[0.0], [1.0], [10.0], [11.0]])
    assert divide(apart, DivisionRules(max_depth=0)).reason.tolist() == ["depth"]
    assert divide(apart[:1]).reason.tolist() == ["size"]
    assert divide(apart, DivisionRules(min_ball_size=3)).reason.tolist() == ["size"]
    assert divide(np.ones((5, 2))).reason.tolist() == ["duplicates"]
    assert divide(apart, DivisionRules(split_margin=1e-3)).reason.tolist() == ["margin"]
    assert set(divide(apart).reason) <= set(REASONS)


def test_two_groups_of_duplicates_become_two_balls_that_keep_the_weights():
    tree = divide(np.repeat([[0.0, 0.0], [3.0, 4.0]], 5, axis=0))
    assert partition(tree) == {frozenset(range(5)), frozenset(range(5, 10))}
    assert tree.weights.tolist() == [[0.5, 0.5]] * 3
    assert tree.reason.tolist() == ["split", "duplicates", "duplicates"]


def test_a_constant_column_weighs_nothing_below_the_root():
    Z = np.random.default_rng(0).normal(size=(50, 3))
    Z[:, 1] = 7.0
    tree = divide(Z)
    assert (tree.weights[1:, 1] == 0).all()
    assert np.isfinite(tree.weights).all()


def test_values_far_from_zero_lose_nothing():
    Z = np.round(np.random.default_rng(0).normal(size=(60, 3)), 6)
    assert partition(divide(Z)) == partition(divide(Z + 1e4))


def test_very_large_and_very_small_values_are_divided_alike():
    Z = np.random.default_rng(0).normal(size=(60, 3))
    assert partition(divide(Z)) == partition(divide(Z * 1e300)) == partition(divide(Z * 1e-300))


def test_deep_division_goes_down_to_single_samples():
    Z = np.random.default_rng(0).normal(size=(200, 4))
    tree = divide(Z, DivisionRules(max_depth=200, split_margin=100.0))
    assert len(tree.leaves) == 200


def test_the_input_is_not_changed():
    Z = np.random.default_rng(0).normal(size=(100, 4))
    before = Z.copy()
    divide(Z)
    assert (before == Z).all()


def test_the_tree_can_be_looked_at():
    tree = divide(np.array([[0.0], [1.0], [10.0]]))
    assert repr(tree) == "BallTree(balls=5, final=3, depth=2, samples=3)"


@pytest.mark.parametrize(
    "wrong",
    [
        {"sharpness": 1.0},
        {"sharpness": "root"},
        {"split_margin": 0.0},
        {"max_depth": -1},
        {"min_ball_size": 0},
        {"max_iter": 0},
        {"weight_power": "none"},
    ],
)
def test_rules_that_make_no_sense_are_refused_by_name(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        DivisionRules(**wrong)
