"""Every number against one worked out by hand."""

import math

import numpy as np
import pytest

from gbdgc.evaluation import METRICS, Row, doubt, errors, summarise, unbiased_gain
from gbdgc.evaluation.metrics import compare, full_summary


def row(truth: int | None, count: float, id: str = "", side: int = 100, **more: object) -> Row:
    return Row(id or f"{truth}-{count}", truth, count, side, 50, **more)  # type: ignore[arg-type]


ROWS = [row(10, 13.0), row(20, 16.0), row(0, 2.0), row(100, 100.0)]
"""Errors +3, -4, +2 and 0."""


@pytest.mark.parametrize(
    ("name", "expected"),
    [("mae", 9 / 4), ("rmse", math.sqrt(29 / 4)), ("nae", (3 / 10 + 4 / 20 + 0) / 3), ("bias", 1 / 4)],
)
def test_each_metric_is_what_paper_and_pencil_give(name: str, expected: float) -> None:
    truth, count = np.array([[r.truth, r.count] for r in ROWS], dtype=float).T
    assert METRICS[name](truth, count) == pytest.approx(expected, rel=1e-12)
    assert errors(ROWS)[name]["value"] == pytest.approx(expected, rel=1e-12)


def test_validation_gets_the_same_numbers_without_intervals() -> None:
    assert summarise(ROWS) == pytest.approx(
        {"mae": 2.25, "rmse": math.sqrt(7.25), "bias": 0.25, "images": 4, "mean": 32.5}
    )


def test_a_bias_beyond_chance_is_taken_out_by_a_factor_and_any_other_is_left() -> None:
    too_low = [row(truth, 0.8 * truth) for truth in (100, 110, 90, 105, 95)]
    assert unbiased_gain(summarise(too_low)) == pytest.approx(1.25)
    assert unbiased_gain(summarise(ROWS)) == 1, "half a standard error is nothing"
    assert unbiased_gain(summarise([row(10, 0.0), row(12, 0.0)])) == 1, "nothing times anything is nothing"


def test_pictures_without_people_have_no_share_and_the_rest_is_not_diluted_by_them() -> None:
    assert errors([row(0, 5.0), row(10, 11.0)])["nae"]["value"] == pytest.approx(0.1)
    assert errors([row(0, 5.0), row(0, 1.0)])["nae"]["value"] is None


def test_bands_of_the_true_count_are_those_of_nwpu_with_their_ends() -> None:
    truths = [0, 1, 100, 101, 500, 501, 5000, 5001]
    by_density = full_summary([row(truth, truth + 1.0) for truth in truths])["by_density"]
    assert {name: part["images"] for name, part in by_density.items()} == {
        "0": 1,
        "1-100": 2,
        "101-500": 2,
        "501-5000": 2,
        "over 5000": 1,
    }


def test_bands_of_size_go_by_the_longer_side() -> None:
    rows = [row(1, 2.0, side=side) for side in (640, 641, 1024, 4000)] + [Row("tall", 1, 5.0, 10, 3000)]
    by_size = full_summary(rows)["by_size"]
    assert {name: part["images"] for name, part in by_size.items()} == {"up to 640": 1, "641-1024": 2, "over 2048": 2}
    assert by_size["over 2048"]["mae"]["value"] == pytest.approx(2.5)


def test_bands_of_brightness_leave_out_pictures_of_tables_that_do_not_tell_it() -> None:
    rows = [row(1, 3.0, brightness=light) for light in (0.0, 60.0, 60.5, 255.0)] + [row(1, 9.0)]
    by_brightness = full_summary(rows)["by_brightness"]
    assert {name: part["images"] for name, part in by_brightness.items()} == {"up to 60": 2, "60-120": 1, "over 120": 1}
    assert by_brightness["up to 60"]["mae"]["value"] == 2.0


def test_tags_split_the_pictures_that_have_them() -> None:
    rows = [row(10, 12.0, tags={"weather": "fog"}), row(10, 9.0, tags={"weather": "rain"}), row(10, 10.0)]
    weather = full_summary(rows)["by_tag"]["weather"]
    assert {value: part["mae"]["value"] for value, part in weather.items()} == {"fog": 2.0, "rain": 1.0}


def test_unlabelled_pictures_stand_in_no_error_but_are_told_of() -> None:
    summary = full_summary([row(10, 12.0), row(None, 500.0)])
    assert (summary["images"], summary["unlabelled"], summary["mae"]["value"]) == (1, 1, 2.0)


def test_runs_are_compared_on_the_pictures_that_both_have() -> None:
    mine = [row(10, 11.0, id="a"), row(20, 21.0, id="b"), row(5, 50.0, id="only mine")]
    other = [row(20, 24.0, id="b"), row(10, 14.0, id="a"), row(5, 5.0, id="only theirs")]
    gains = compare(mine, other)
    assert gains["images"] == 2
    assert gains["mae"]["value"] == pytest.approx(3.0)
    assert compare(other, mine)["mae"]["value"] == pytest.approx(-3.0)


def test_counts_that_are_no_better_than_one_number_are_told() -> None:
    truths = [20, 60, 110, 180, 350]
    assert doubt([row(truth, truth * 1.2) for truth in truths]) is None
    assert doubt([row(truth, 52.0 + truth / 300) for truth in truths]) == (
        "all counts are about 52, where there are 20 to 350 people"
    )
    assert "worse than always saying 144, the mean" in str(doubt([row(truth, 400.0 - truth) for truth in truths]))
    assert doubt([row(truth, 52.0) for truth in truths[:4]]) is None, "too few to tell"
    assert doubt([row(50, 20.0)] * 6) is None, "nothing to tell apart"
