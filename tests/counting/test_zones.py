"""Masks: areas of the zones file in which nobody is counted."""

import numpy as np
import pytest

from gbdgc.counting import Result, zones_from_json
from gbdgc.errors import InputError

FILE = (
    '{"zones": {"all": [[0, 0], [40, 0], [40, 20], [0, 20]]}, '
    '"masks": {"tree": [[10, 0], [20, 0], [20, 20], [10, 20]]}}'
)


@pytest.mark.parametrize("stride", [1, 4])
def test_nobody_is_counted_inside_a_mask(stride: int) -> None:
    result = Result.from_density(np.full((20, 40), 0.1), stride=stride).with_zones(zones_from_json(FILE))
    assert result.count == pytest.approx(60, rel=1e-5), "a quarter of the 80 is masked"
    assert result.zones == {"all": pytest.approx(60, rel=1e-5)}
    assert list(result.masks) == ["tree"]
    assert len(result.points) == 60


def test_a_slanted_mask_takes_as_many_as_a_zone_of_its_shape_holds() -> None:
    density = np.random.default_rng(0).random((60, 90))
    whole = Result.from_density(density)
    triangle = [[5.3, 50.2], [70.9, 55.5], [40.1, 3.7]]
    masks = zones_from_json(f'{{"masks": {{"triangle": {triangle}}}}}')
    masked = whole.with_zones(masks)
    assert whole.count - masked.count == pytest.approx(whole.count_in(triangle), rel=2e-3)
    assert masked.with_zones(masks).count == pytest.approx(masked.count, rel=0.02), "masking twice is masking once"


def test_masks_that_overlap_take_each_person_once() -> None:
    twice = '{"masks": {"a": [[0, 0], [20, 0], [20, 20], [0, 20]], "b": [[0, 0], [20, 0], [20, 20], [0, 20]]}}'
    assert Result.from_density(np.full((20, 40), 0.1)).with_zones(zones_from_json(twice)).count == pytest.approx(40)


def test_a_mask_is_dark_in_the_annotated_picture() -> None:
    image = np.full((200, 400, 3), 255, dtype=np.uint8)
    plain = Result.from_density(np.zeros((200, 400)), image=image)
    masks = zones_from_json('{"masks": {"tree": [[100, 0], [200, 0], [200, 200], [100, 200]]}}')
    shown = plain.with_zones(masks).annotated()
    scale = shown.shape[1] / 400
    assert shown[int(100 * scale), int(150 * scale)].max() < 120
    assert shown[int(100 * scale), int(300 * scale)].min() > 200


def test_a_zone_may_be_called_masks_and_names_are_unique_over_both() -> None:
    (zone,) = zones_from_json('{"masks": [[0, 0], [9, 0], [9, 9]]}')
    assert zone.name == "masks"
    assert not zone.mask
    corners = "[[0, 0], [9, 0], [9, 9]]"
    with pytest.raises(InputError, match="zone 'a' is there twice"):
        zones_from_json(f'{{"zones": {{"a": {corners}}}, "masks": {{"a": {corners}}}}}')
