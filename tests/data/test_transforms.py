import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gbdgc.data import transforms
from gbdgc.data.density import density_map
from gbdgc.data.transforms import Box
from gbdgc.errors import InputError

seeds = st.integers(0, 2**32 - 1)
crowds = st.integers(0, 30).flatmap(
    lambda heads: arrays(np.float32, (heads, 2), elements=st.floats(0, 60, width=32) | st.integers(0, 60).map(float))
)


def resize(image, points, width, height):
    """Bring the whole picture to a size, as a crop of all of it."""
    whole = Box(0, 0, image.shape[1], image.shape[0])
    return transforms.resized_crop(image, points, whole, width, height)


def crop(image, points, left, top, width, height):
    """Cut out whole pixels, with the heads in them."""
    return transforms.resized_crop(image, points, transforms.Box(left, top, width, height), width, height)


def random_crop(image, points, size, random, scale=(1.0, 1.0)):
    """Crop as training does."""
    box = transforms.random_box(image, size, random, scale)
    return transforms.resized_crop(image, points, box, size, size)


def marked_picture(width, height, random, spacing=24.0):
    """Draw one soft white mark for each of a few heads that stand apart, each exactly on its head."""
    columns = np.arange(spacing, width - spacing / 2, spacing)
    rows = np.arange(spacing, height - spacing / 2, spacing)
    points = np.stack(np.meshgrid(columns, rows), axis=-1).reshape(-1, 2)
    points = points + random.uniform(-4, 4, points.shape)
    across = np.exp(-((np.arange(width) + 0.5 - points[:, :1]) ** 2) / 2 / 1.5**2)
    down = np.exp(-((np.arange(height) + 0.5 - points[:, 1:]) ** 2) / 2 / 1.5**2)
    image = (255 * down.T @ across).clip(0, 255)
    return np.repeat(image[..., None], 3, axis=2).round().astype(np.uint8), points.astype(np.float32)


def found_mark(image, x, y, reach):
    """Return the centre of the light around (x, y)."""
    left, top = max(round(x - reach), 0), max(round(y - reach), 0)
    light = image[top : round(y + reach), left : round(x + reach), 1].astype(float)
    rows, columns = np.indices(light.shape)
    return (light * columns).sum() / light.sum() + left + 0.5, (light * rows).sum() / light.sum() + top + 0.5


def assert_points_are_on_their_marks(image, points, scale=1.0, margin=0.0):
    """Hold every head against its mark, within a tenth of a pixel; ``margin`` leaves out marks cut by an edge."""
    height, width = image.shape[:2]
    seen = 0
    for x, y in points:
        if margin <= x <= width - margin and margin <= y <= height - margin:
            assert found_mark(image, x, y, reach=8 * scale) == pytest.approx((x, y), abs=0.1)
            seen += 1
    assert seen


def test_the_marks_of_these_tests_are_where_their_points_are():
    assert_points_are_on_their_marks(*marked_picture(150, 100, np.random.default_rng(0)))


@settings(deadline=None, max_examples=25)
@given(seeds, st.floats(0.5, 3))
def test_points_stay_on_their_heads_when_resized(seed, factor):
    image, points = marked_picture(140, 100, np.random.default_rng(seed))
    image, moved = resize(image, points, round(140 * factor), round(100 * factor))
    assert len(moved) == len(points)
    assert_points_are_on_their_marks(image, moved, scale=factor)


@settings(deadline=None, max_examples=25)
@given(seeds)
def test_points_stay_on_their_heads_when_flipped(seed):
    image, points = marked_picture(141, 100, np.random.default_rng(seed))
    image, moved = transforms.flip(image, points)
    assert len(moved) == len(points)
    assert_points_are_on_their_marks(image, moved)


@settings(deadline=None, max_examples=40)
@given(seeds, st.sampled_from([(1.0, 1.0), (0.6, 1.8)]))
def test_points_stay_on_their_heads_in_a_random_crop(seed, scale):
    random = np.random.default_rng(seed)
    image, points = marked_picture(220, 160, random)
    image, kept = random_crop(image, points, 90, random, scale)
    assert image.shape == (90, 90, 3)
    assert_points_are_on_their_marks(image, kept, scale=scale[0], margin=15)


def test_a_picture_smaller_than_the_crop_is_enlarged_with_its_points():
    random = np.random.default_rng(3)
    image, points = marked_picture(120, 80, random)
    image, kept = random_crop(image, points, 160, random)
    assert image.shape == (160, 160, 3)
    assert_points_are_on_their_marks(image, kept, scale=2, margin=15)


def test_a_picture_enlarged_to_fit_a_crop_is_seen_from_top_to_bottom():
    points = np.array([[20, 0], [20, 39.9]], np.float32)
    _, kept = random_crop(np.zeros((40, 40, 3), np.uint8), points, 160, np.random.default_rng(0))
    assert kept[:, 1] == pytest.approx([0, 159.6], abs=1e-3)


@settings(deadline=None)
@given(crowds, st.integers(1, 59), st.integers(1, 59))
def test_crops_that_tile_a_picture_share_out_its_heads(points, column, row):
    points = transforms.clamp(points, 60, 60)
    image = np.zeros((60, 60, 3), np.uint8)
    spans = [(0, column), (column, 60 - column)], [(0, row), (row, 60 - row)]
    heads = sum(
        len(crop(image, points, left, top, width, height)[1]) for left, width in spans[0] for top, height in spans[1]
    )
    assert heads == len(points)


@settings(deadline=None)
@given(crowds)
def test_flipping_a_picture_flips_its_density_map(points):
    points = transforms.clamp(points, 60, 60)
    _, mirrored = transforms.flip(np.zeros((60, 60, 3), np.uint8), points)
    np.testing.assert_allclose(
        density_map(mirrored, 60, 60), density_map(points, 60, 60)[:, ::-1], rtol=1e-5, atol=1e-7
    )


@settings(deadline=None)
@given(crowds, seeds, st.integers(8, 100))
def test_every_head_of_a_crop_lies_in_it(points, seed, size):
    image = np.zeros((60, 61, 3), np.uint8)
    _, kept = random_crop(image, points, size, np.random.default_rng(seed), (0.3, 3))
    assert kept.dtype == np.float32
    assert (kept >= 0).all()
    assert (np.floor(kept) < size).all()


def test_a_scaled_crop_is_the_crop_of_the_scaled_picture():
    random = np.random.default_rng(1)
    image = random.integers(0, 256, (90, 120, 3), dtype=np.uint8)
    points = (random.random((50, 2)) * (120, 90)).astype(np.float32)
    for factor in (0.4, 1.5):
        whole, all_points = resize(image, points, round(120 * factor), round(90 * factor))
        expected = crop(whole, all_points, 6, 3, 24, 24)
        box = Box(6 / factor, 3 / factor, 24 / factor, 24 / factor)
        image_part, kept = transforms.resized_crop(image, points, box, 24, 24)
        assert abs(image_part.astype(int) - expected[0]).max() <= 1
        np.testing.assert_allclose(kept, expected[1], atol=1e-4)


def test_random_scales_reach_both_ends_and_halving_is_as_likely_as_doubling():
    random = np.random.default_rng(0)
    image = np.zeros((400, 400, 3), np.uint8)
    factors = np.array([100 / transforms.random_box(image, 100, random, (0.5, 2)).width for _ in range(2000)])
    assert 0.5 <= factors.min() < 0.52
    assert 1.95 < factors.max() <= 2
    assert (factors < 1).mean() == pytest.approx(0.5, abs=0.05)


def test_random_crops_reach_every_edge():
    random = np.random.default_rng(0)
    boxes = [transforms.random_box(np.zeros((12, 14, 3), np.uint8), 10, random) for _ in range(200)]
    assert {(box.left, box.top) for box in boxes} == {(x, y) for x in range(5) for y in range(3)}


@pytest.mark.parametrize("box", [Box(-1, 0, 5, 5), Box(0, 0, 11, 5), Box(0, 6, 5, 5), Box(0, 0, 0, 5)])
def test_a_box_outside_the_picture_is_refused(box):
    with pytest.raises(InputError, match="does not lie in a picture of 10 x 10"):
        transforms.resized_crop(np.zeros((10, 10, 3), np.uint8), np.zeros((0, 2), np.float32), box, 5, 5)


def test_jitter_without_strength_changes_nothing():
    image = np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)
    np.testing.assert_array_equal(transforms.colour_jitter(image, np.random.default_rng(0)), image)


class HighestDraw:
    """A generator whose chance is always the largest, so that a strength is the change."""

    def uniform(self, low, high):
        return high


def test_each_kind_of_jitter_changes_what_its_name_says():
    image = np.random.default_rng(0).integers(90, 150, (40, 50, 3), dtype=np.uint8)
    luma = np.array([0.299, 0.587, 0.114])

    brighter = transforms.colour_jitter(image, HighestDraw(), brightness=0.5)
    assert brighter.mean() == pytest.approx(1.5 * image.mean(), rel=0.01)
    contrasted = transforms.colour_jitter(image, HighestDraw(), contrast=0.5)
    assert contrasted.mean() == pytest.approx(image.mean(), abs=1)
    assert contrasted.std() == pytest.approx(1.5 * image.std(), rel=0.02)
    saturated = transforms.colour_jitter(image, HighestDraw(), saturation=0.5)
    assert abs(saturated @ luma - image @ luma).max() < 1.5
    assert np.ptp(saturated, axis=2).mean() == pytest.approx(1.5 * np.ptp(image, axis=2).mean(), rel=0.02)
    turned = transforms.colour_jitter(image, HighestDraw(), hue=0.2)
    assert abs(turned @ luma - image @ luma).max() < 1.5
    assert abs(turned.astype(int) - image).mean() > 10


def test_jitter_draws_between_less_and_more():
    random = np.random.default_rng(0)
    image = np.full((4, 4, 3), 100, np.uint8)
    levels = [transforms.colour_jitter(image, random, brightness=0.5)[0, 0, 0] for _ in range(300)]
    assert 50 <= min(levels) < 53
    assert 147 < max(levels) <= 150


def test_hue_and_saturation_leave_grey_alone():
    image = np.repeat(np.arange(256, dtype=np.uint8)[None, :, None], 3, axis=2)
    changed = transforms.colour_jitter(image, np.random.default_rng(0), saturation=0.9, hue=0.5)
    assert abs(changed.astype(int) - image).max() <= 1


def test_half_a_turn_of_hue_makes_red_cyan():
    red = np.zeros((1, 1, 3), np.uint8)
    red[..., 0] = 120
    turned = transforms.colour_jitter(red, HighestDraw(), hue=0.5)[0, 0]
    assert turned[0] < 5
    assert min(turned[1:]) > 50


def test_grey_has_three_equal_channels_and_the_same_light():
    image = np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)
    grey = transforms.grey(image)
    assert (grey == grey[..., :1]).all()
    np.testing.assert_allclose(grey[..., 0], image @ [0.299, 0.587, 0.114], atol=1)


def test_blur_spreads_light_and_keeps_it():
    image = np.zeros((41, 41, 3), np.uint8)
    image[20, 20] = 255
    image = transforms.blur(image, 1.0)
    rows = np.arange(41) - 20
    share = image[..., 0].astype(float) / image[..., 0].sum()
    assert np.sqrt((share.sum(axis=1) * rows**2).sum()) == pytest.approx(1, abs=0.15)


def test_shade_changes_the_light_evenly_from_one_side_to_the_other():
    image = np.full((40, 60, 3), 100, dtype=np.uint8)
    across, down = transforms.shade(image, 0.0, 0.5, 1.5), transforms.shade(image, np.pi / 2, 0.5, 1.5)
    assert (across[:, 0] == 50).all()
    assert (across[:, -1] == 150).all()
    assert (np.diff(across[0, :, 0].astype(int)) >= 0).all()
    assert (abs(down[0].astype(int) - 50) <= 1).all()
    assert (abs(down[-1].astype(int) - 150) <= 1).all()
    assert transforms.shade(image, 0.7, 3.0, 3.0).max() == 255


def test_noise_has_the_strength_that_was_asked_for():
    image = np.full((100, 100, 3), 128, np.uint8)
    assert transforms.noise(image, 7.0, np.random.default_rng(0)).std() == pytest.approx(7, rel=0.05)
    assert transforms.noise(np.full((9, 9, 3), 255, np.uint8), 50.0, np.random.default_rng(0)).max() == 255


@pytest.mark.parametrize("mirrored", [False, True])
def test_normalised_pictures_are_what_imagenet_networks_expect(mirrored):
    image = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    image = image[:, ::-1] if mirrored else image
    expected = (image / 255 - transforms.IMAGENET_MEAN) / transforms.IMAGENET_STD
    normalised = transforms.normalise(image)
    assert normalised.dtype == np.float32
    np.testing.assert_allclose(normalised, expected.transpose(2, 0, 1), atol=1e-5)


def test_normalised_pictures_lie_in_memory_pixel_by_pixel():
    assert transforms.normalise(np.zeros((20, 30, 3), np.uint8)).transpose(1, 2, 0).flags.c_contiguous
