"""The ground: four measured points give square metres, and zones people per square metre."""

import json

import numpy as np
import pytest

from gbdgc.counting import Result, zones_from_json
from gbdgc.counting.ground import crowding
from gbdgc.errors import InputError

WIDTH, HEIGHT = 400, 300


def seen(places: list[tuple[float, float]]) -> list[list[float]]:
    """Where a camera 5 m above level ground, with its horizon at row 60, sees places (metres right, metres ahead)."""
    return [[200 + 300 * x / z, 60 + 300 * 5 / z] for x, z in places]


def areas(zones: dict[str, list[list[float]]], ground: object, masks: object = None) -> dict[str, float | None]:
    """The square metres of zones: one person per pixel makes people per square metre pixels per square metre."""
    file = {"zones": zones, "ground": ground, "masks": masks or {}}
    result = Result.from_density(np.ones((HEIGHT, WIDTH))).with_zones(zones_from_json(json.dumps(file)))
    assert result.to_dict()["per_m2"] == result.per_m2
    return {name: each and result.zones[name] / each for name, each in result.per_m2.items()}


RECTANGLE = {"corners": seen([(-2, 8), (2, 8), (2, 14), (-2, 14)]), "metres": [4, 6]}


def test_a_measured_rectangle_gives_the_area_of_any_zone_on_the_ground() -> None:
    zones = {"near": seen([(-1, 7), (1, 7), (1, 10), (-1, 10)]), "far": seen([(0, 15), (6, 15), (6, 20)])}
    assert areas(zones, RECTANGLE) == {"near": pytest.approx(6, rel=0.01), "far": pytest.approx(15, rel=0.01)}


def test_four_sides_and_a_diagonal_measure_any_four_points() -> None:
    patch = [(-3, 9), (2, 7.5), (4, 12), (-1, 15)]
    sides = [float(np.hypot(*np.subtract(patch[i], patch[j]))) for i, j in ((0, 1), (1, 2), (2, 3), (3, 0), (0, 2))]
    zones = {"near": seen([(-1, 8), (1, 8), (1, 10), (-1, 10)])}
    assert areas(zones, {"corners": seen(patch), "metres": sides}) == {"near": pytest.approx(4, rel=0.01)}


def test_a_mask_takes_its_ground_out_of_a_zone_and_what_is_outside_the_picture_is_none() -> None:
    zones = {"near": seen([(-1, 8), (1, 8), (1, 10), (-1, 10)])}
    masks = {"tree": seen([(-1, 8), (0, 8), (0, 10), (-1, 10)])}
    assert areas(zones, RECTANGLE, masks) == {"near": pytest.approx(2, rel=0.02)}
    (inside,) = areas({"lawn": [[0, 200], [WIDTH, 200], [WIDTH, HEIGHT], [0, HEIGHT]]}, RECTANGLE).values()
    beyond = areas({"lawn": [[-90, 200], [WIDTH, 200], [WIDTH, HEIGHT], [-90, HEIGHT]]}, RECTANGLE)["lawn"]
    assert beyond == pytest.approx(inside)


def test_a_zone_that_reaches_above_the_horizon_has_no_density_unless_the_sky_is_masked() -> None:
    whole = {"all": [[0, 0], [WIDTH, 0], [WIDTH, HEIGHT], [0, HEIGHT]]}
    assert areas(whole, RECTANGLE) == {"all": None}
    assert areas({"cloud": [[0, 0], [WIDTH, 0], [WIDTH, 40], [0, 40]]}, RECTANGLE) == {"cloud": None}
    assert areas(whole, RECTANGLE, {"sky": [[0, 0], [WIDTH, 0], [WIDTH, 80], [0, 80]]})["all"] is not None


def test_the_picture_may_have_its_horizon_through_its_corner_and_any_size() -> None:
    shifted = {"corners": [[x, y - 60] for x, y in RECTANGLE["corners"]], "metres": [4, 6]}
    near = [[x, y - 60] for x, y in seen([(-1, 9), (1, 9), (1, 12), (-1, 12)])]
    assert areas({"near": near}, shifted) == {"near": pytest.approx(6, rel=0.01)}
    large = Result.from_density(np.ones((4 * HEIGHT, 4 * WIDTH)), stride=4)
    file = {
        "relative": True,
        "zones": {"near": [[x / WIDTH, y / HEIGHT] for x, y in near]},
        "ground": {"corners": [[x / WIDTH, y / HEIGHT] for x, y in shifted["corners"]], "metres": [4, 6]},
    }
    result = large.with_zones(zones_from_json(json.dumps(file)))
    assert result.zones["near"] / (result.per_m2["near"] or 0) == pytest.approx(6, rel=0.01)


@pytest.mark.parametrize(
    ("ground", "reason"),
    [
        ({"corners": [[0, 0], [9, 0], [9, 9]], "metres": [4, 6]}, "3 corners and 2 distances"),
        ({"corners": RECTANGLE["corners"], "metres": [4]}, "4 corners and 1 distances"),
        ({"corners": RECTANGLE["corners"], "metres": [4, -6]}, "at least"),
        ({"corners": RECTANGLE["corners"], "metres": [4, 1e-200]}, "at least"),
        ({"corners": RECTANGLE["corners"], "metres": [4, float("nan")]}, "at least"),
        ({"corners": RECTANGLE["corners"], "metres": [4, 10**400]}, "not a list of numbers"),
        ({"corners": RECTANGLE["corners"], "metres": "wide"}, "not a list of numbers"),
        ({"corners": RECTANGLE["corners"], "metres": [4, 6, 4, 6, 20]}, "no triangle has the sides 20, 4 and 6 m"),
        ({"corners": RECTANGLE["corners"], "metres": [1, 1.9, 1.9, 1, 1]}, "no convex patch"),
        ({"corners": [[0, 0], [9, 9], [9, 0], [0, 9]], "metres": [4, 6]}, "do not go around"),
        ({"corners": [[0, 0], [1e-5, 0], [1e-5, 1e-5], [0, 1e-5]], "metres": [4, 6]}, "do not go around"),
        ({"corners": [[0, 0], [9e8, 1], [9e8, 2], [0, 1]], "metres": [4, 6]}, "do not go around"),
        ({"metres": [4, 6]}, "the ground must be"),
        (7, "the ground must be"),
    ],
)
def test_ground_that_cannot_be_is_refused(ground: object, reason: str) -> None:
    file = {"zones": {"a": [[0, 0], [90, 0], [90, 90]]}, "ground": ground}
    with pytest.raises(InputError, match=reason):
        zones_from_json(json.dumps(file))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e-3, 1, 1e8])
def test_ground_of_any_size_gives_numbers_or_none(size: float) -> None:
    """What no camera shows: a patch of a thousandth of a pixel, or one that is a million times the picture."""
    corners = [[5, 5], [5 + size, 5], [5 + 0.999 * size, 5 + size], [5, 5 + 0.998 * size]]
    whole = {"all": [[0, 0], [WIDTH, 0], [WIDTH, HEIGHT], [0, HEIGHT]]}
    for metres in ([1, 1000], [3, 4, 3, 4, 5]):
        (area,) = areas(whole, {"corners": corners, "metres": metres}).values()
        assert area is None or 0 < area < np.inf


def test_the_colours_are_those_of_crowd_safety() -> None:
    assert [crowding(value) for value in (0, 2, 2.1, 4, 4.5, 5, 5.1, 9)] == [
        *("green", "green", "yellow", "yellow", "orange", "orange", "red", "red")
    ]


def test_a_zone_may_be_called_ground_where_there_is_none() -> None:
    (zone,) = zones_from_json('{"ground": [[0, 0], [9, 0], [9, 9]]}')
    assert zone.counted
    (alone,) = zones_from_json(json.dumps({"zones": {}, "masks": {}, "ground": RECTANGLE}))
    assert not alone.counted
