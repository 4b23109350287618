"""Points against labelled heads."""

import numpy as np
import pytest

from gbdgc.counting.points import half_spacing
from gbdgc.evaluation import Row, localisation
from gbdgc.evaluation.localisation import match_all, match_points, people_near, share_near_heads
from gbdgc.evaluation.table import cells


def test_a_head_is_paired_with_one_point_only() -> None:
    assert match_points([[0, 0], [1, 0]], [[0, 1]], 4) == 1
    assert match_points([[0, 0]], [[0, 1], [1, 0]], 4) == 1
    assert match_points([[9, 0]], [[0, 0]], 8) == 0
    assert match_points([[8, 0]], [[0, 0]], 8) == 1
    assert match_points(np.empty((0, 2)), [[0, 0]], 8) == 0
    assert match_points([[0, 0]], np.empty((0, 2)), 8) == 0


def test_as_many_pairs_are_made_as_can_be() -> None:
    # The point between both heads is nearer to the first, which has another: the greedy choice would lose a pair.
    assert match_points([[0, 0], [-5, 0]], [[-1, 0], [5, 0]], 5) == 2


def test_the_box_free_radius_is_half_the_mean_distance_to_three_neighbours() -> None:
    square = np.array([[0, 0], [10, 0], [0, 10], [10, 10], [500, 500]])
    assert half_spacing(square)[0] == pytest.approx((10 + 10 + 200**0.5) / 6)
    assert half_spacing([[0, 0], [8, 0]]) == pytest.approx([4, 4])
    assert np.isinf(half_spacing([[3, 3]])).all()
    assert len(half_spacing(np.empty((0, 2)))) == 0


def test_scores_are_over_all_heads_together() -> None:
    rows = [
        Row("a", 4, 2.0, 9, 9, points=2, matched_4px=1, matched_8px=2, matched_box_free=2),
        Row("b", 4, 6.0, 9, 9, points=6, matched_4px=3, matched_8px=4, matched_box_free=4),
        Row("unlabelled", None, 6.0, 9, 9),
    ]
    scores = localisation(rows)
    assert scores is not None
    assert scores["4 px"] == {"precision": 4 / 8, "recall": 4 / 8, "f1": 4 / 8}
    assert scores["8 px"]["f1"] == 6 / 8
    assert localisation([Row("old", 4, 4.0, 9, 9)]) is None
    assert cells(rows[0])["matched_8px"] == 2


def test_a_label_that_is_not_a_number_is_no_head() -> None:
    assert match_all([[1, 1]], [[1, 1], [np.nan, 0]]) == dict.fromkeys(
        ("matched_4px", "matched_8px", "matched_box_free"), 1
    )


def test_people_counted_far_from_any_head_are_told_from_those_near_one() -> None:
    cells = np.zeros((8, 10), dtype=np.float32)
    cells[0, 0], cells[3, 4], cells[7, 9] = 1.0, 2.0, 4.0  # centres at (4, 4), (36, 28) and (76, 60)
    assert people_near(cells, 8, [[4, 20], [36, 45]]) == 1.0  # 16 and 17 pixels away
    assert people_near(cells, 8, [[76, 60], [30, 20], [np.nan, 0]]) == 6.0
    assert people_near(cells, 8, np.empty((0, 2))) == 0.0
    rows = [Row("a", 4, 6.0, 9, 9, near_16px=3.0), Row("b", 0, 2.0, 9, 9, near_16px=0.0), Row("old", 4, 4.0, 9, 9)]
    assert share_near_heads(rows) == 3 / 8
    assert share_near_heads(rows[2:]) is None
