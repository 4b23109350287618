"""Names over epochs, and what a partition is worth."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gbdgc import align_labels, count_separation, stability

labels = st.lists(st.integers(0, 3), min_size=1, max_size=40)


@given(st.integers(1, 30).flatmap(lambda n: st.tuples(*[st.lists(st.integers(0, 3), min_size=n, max_size=n)] * 2)))
def test_alignment_is_the_best_of_all_renamings(pair):
    new, old = map(np.array, pair)
    kept = (align_labels(new, old) == old).sum()
    best = max((np.array(names)[new] == old).sum() for names in itertools.permutations(range(4)))
    assert kept == best


@given(labels)
def test_alignment_keeps_the_partition_and_undoes_a_renaming(values):
    values = np.array(values)
    assert (align_labels((values * 7 + 2) % 11, values) == values).all()


def test_domains_without_a_counterpart_get_new_names():
    assert align_labels([0, 0, 1, 1, 2], [5, 5, 3, 3, 3]).tolist() == [5, 5, 3, 3, 6]
    assert align_labels([0, 0, 0, 1], [2, 2, 4, 8]).tolist() == [2, 2, 2, 8]


@pytest.mark.parametrize(
    ("new", "old", "message"),
    [
        ([0, 1], [0], "same samples"),
        ([0.5, 1], [0, 1], "whole numbers"),
        ([[0, 1]], [0, 1], "flat list"),
        (["a", "b"], [0, 1], "whole numbers"),
    ],
)
def test_labels_that_are_none_are_refused(new, old, message):
    with pytest.raises(ValueError, match=message):
        align_labels(new, old)


def test_count_separation_is_the_range_and_deviation_of_the_medians():
    result = count_separation([0, 0, 0, 4, 4, 2], [10, 30, 20, 100, 200, 80])
    assert result.medians == {0: 20, 2: 80, 4: 150}
    assert result.delta_median == 130
    assert result.sigma_median == pytest.approx(np.std([20, 80, 150]))


def test_one_domain_separates_nothing():
    assert count_separation([1, 1], [5, 9]).delta_median == 0


def test_counts_of_another_length_are_refused():
    with pytest.raises(ValueError, match="one count per sample"):
        count_separation([0, 1], [5])


def test_stability_has_a_row_for_each_epoch():
    rows = stability([[0, 0, 1, 1], [1, 1, 0, 0], [1, 1, 1, 0]])
    assert [row.epoch for row in rows] == [0, 1, 2]
    assert math.isnan(rows[0].churn)
    assert (rows[1].churn, rows[1].ari, rows[1].nmi) == (0, 1, pytest.approx(1))
    assert (rows[2].churn, rows[2].smallest_share) == (0.25, 0.25)


def test_a_collapsed_partition_shows_in_the_smallest_share():
    collapsed = [0] * 99 + [1]
    assert stability([collapsed, collapsed])[1].smallest_share == 0.01


def test_epochs_of_other_samples_are_refused():
    with pytest.raises(ValueError, match=r"history\[1\] has 1 labels"):
        stability([[0, 1], [0]])
