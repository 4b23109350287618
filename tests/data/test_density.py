import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gbdgc.data.density import density_map
from gbdgc.errors import InputError

anywhere = st.floats(-1e6, 1e6, width=32) | st.integers(-5, 70).map(float)
crowds = st.integers(0, 40).flatmap(lambda heads: arrays(np.float32, (heads, 2), elements=anywhere))
sides = st.integers(1, 60)


def total(density):
    return density.sum(dtype=np.float64)


def by_definition(points, height, width, kernel, sigma):
    """One full-size image a head, cut and renormalised: slow and obvious."""
    rows, columns = np.mgrid[:height, :width]
    density = np.zeros((height, width))
    for x, y in points:
        column = min(max(int(np.floor(x)), 0), width - 1)
        row = min(max(int(np.floor(y)), 0), height - 1)
        window = np.exp(-((rows - row) ** 2 + (columns - column) ** 2) / (2 * sigma**2))
        window[(abs(rows - row) > kernel // 2) | (abs(columns - column) > kernel // 2)] = 0
        density += window / window.sum()
    return density


@settings(deadline=None)
@given(crowds, sides, sides, st.integers(0, 20).map(lambda n: 2 * n + 1), st.floats(0.1, 50), st.integers(1, 9))
def test_the_sum_is_the_count_whatever_the_points_window_and_stride(points, height, width, kernel, sigma, stride):
    density = density_map(points, height, width, kernel=kernel, sigma=sigma, stride=stride)
    assert density.dtype == np.float32
    assert density.shape == (-(-height // stride), -(-width // stride))
    assert total(density) == pytest.approx(len(points), rel=1e-4)
    assert density.min(initial=0) >= 0


@settings(deadline=None)
@given(crowds, sides, sides, st.sampled_from([1, 5, 15]), st.floats(0.5, 8))
def test_the_map_is_what_the_definition_says(points, height, width, kernel, sigma):
    density = density_map(points, height, width, kernel=kernel, sigma=sigma)
    np.testing.assert_allclose(density, by_definition(points, height, width, kernel, sigma), rtol=1e-5, atol=1e-6)


@settings(deadline=None)
@given(crowds, sides, sides, st.integers(2, 9))
def test_a_coarser_map_holds_the_block_sums_of_the_fine_one(points, height, width, stride):
    fine = density_map(points, height, width).astype(np.float64)
    padded = np.pad(fine, ((0, -height % stride), (0, -width % stride)))
    blocks = padded.reshape(padded.shape[0] // stride, stride, -1, stride).sum(axis=(1, 3))
    np.testing.assert_allclose(density_map(points, height, width, stride=stride), blocks, rtol=1e-5, atol=1e-6)


def test_a_head_in_a_corner_weighs_one():
    assert total(density_map(np.array([[0, 0]], np.float32), 100, 100)) == pytest.approx(1, rel=1e-6)


def test_a_head_belongs_to_the_pixel_that_it_stands_in():
    density = density_map(np.array([[30.9, 20.1]], np.float32), 50, 60)
    assert np.unravel_index(density.argmax(), density.shape) == (20, 30)


def test_two_heads_on_one_pixel_count_as_two():
    once = density_map(np.array([[10.2, 10.7]], np.float32), 40, 40)
    twice = density_map(np.array([[10.2, 10.7], [10.9, 10.1]], np.float32), 40, 40)
    np.testing.assert_allclose(twice, 2 * once, rtol=1e-6)


def test_no_one_is_lost_where_a_million_heads_share_a_pixel():
    assert total(density_map(np.full((1_000_000, 2), 8.0, np.float32), 16, 16)) == pytest.approx(1e6, rel=1e-6)


def test_an_empty_scene_is_all_zeros():
    density = density_map(np.zeros((0, 2), np.float32), 30, 40)
    assert density.shape == (30, 40)
    assert not density.any()


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"kernel": 14}, "must be odd"),
        ({"kernel": -1}, "must be odd"),
        ({"sigma": 0.0}, "must be above 0"),
        ({"sigma": float("nan")}, "must be above 0"),
        ({"stride": 0}, "at least 1"),
    ],
)
def test_settings_without_sense_are_refused(settings, reason):
    with pytest.raises(InputError, match=reason):
        density_map(np.array([[1, 1]], np.float32), 10, 10, **settings)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_position_that_is_no_number_is_refused(bad):
    with pytest.raises(InputError, match="not a finite number"):
        density_map(np.array([[bad, 1]], np.float32), 10, 10)


@pytest.mark.slow
@pytest.mark.skipif("GBDGC_DATA" not in os.environ, reason="GBDGC_DATA does not name a folder with ShanghaiTech")
@pytest.mark.parametrize(("part", "heads"), [("part_A", 162_413 + 78_862), ("part_B", 49_151 + 39_121)])
def test_every_map_of_shanghaitech_sums_to_its_count(part, heads):
    from gbdgc.data import load_dataset

    dataset = load_dataset(Path(os.environ["GBDGC_DATA"]) / "ShanghaiTech" / part)
    for sample in dataset:
        for stride in (1, 4):
            density = density_map(sample.points, sample.height, sample.width, stride=stride)
            assert total(density) == pytest.approx(sample.count, rel=1e-4), sample.id
    assert sum(sample.count for sample in dataset) == heads
