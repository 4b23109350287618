"""A result: its number, its density at any stride, zones counted to the last pixel, and the files it writes."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from gbdgc.counting import Result, Zone, load_zones, parse_zones
from gbdgc.errors import InputError

WIDTH, HEIGHT = 61, 47  # no stride but 1 divides them


def crowd(seed: int = 0, width: int = WIDTH, height: int = HEIGHT) -> NDArray[np.float32]:
    return np.random.default_rng(seed).gamma(0.3, 0.1, (height, width)).astype(np.float32)


def a_result(stride: int = 1, **fields: object) -> Result:
    return Result.from_density(crowd(), stride=stride, **fields)


def box(left: float, top: float, right: float, bottom: float) -> list[tuple[float, float]]:
    return [(left, top), (right, top), (right, bottom), (left, bottom)]


def supersampled(density: NDArray[np.float32], polygon: list[tuple[float, float]], fine: int = 8) -> float:
    """The same integral the slow way: is each of fine x fine points of a pixel inside, by the winding number?"""
    height, width = density.shape
    y, x = (np.mgrid[: height * fine, : width * fine] + 0.5) / fine
    winding = np.zeros(x.shape, int)
    for (x0, y0), (x1, y1) in zip(polygon, polygon[1:] + polygon[:1], strict=True):
        side = (x1 - x0) * (y - y0) - (x - x0) * (y1 - y0)
        winding += ((y0 <= y) & (y1 > y) & (side > 0)).astype(int) - ((y1 <= y) & (y0 > y) & (side < 0)).astype(int)
    share = (winding != 0).reshape(height, fine, width, fine).mean(axis=(1, 3))
    return float((density * share).sum())


# The density, at any stride


@pytest.mark.parametrize("stride", [1, 2, 4, 7, 64])
def test_the_density_has_the_size_of_the_image_and_sums_to_the_count(stride: int) -> None:
    result = a_result(stride)
    assert result.density.shape == (HEIGHT, WIDTH)
    assert result.density.dtype == np.float32
    assert result.density.sum(dtype=np.float64) == pytest.approx(result.count, rel=1e-6)
    assert result.count == pytest.approx(crowd().sum(dtype=np.float64), rel=1e-6)


def test_each_cell_keeps_its_people_when_the_density_is_expanded() -> None:
    result = a_result(stride=4)
    again = Result.from_density(result.density, stride=4)
    np.testing.assert_allclose(again.cells, result.cells, rtol=1e-5)


def test_a_large_picture_is_held_at_a_stride_in_little_memory() -> None:
    cells = np.full((3000, 3000), 1e-4, np.float32)
    result = Result(cells, width=12_000, height=12_000, stride=4)
    assert result.cells.nbytes == 36_000_000
    assert result.count_in(box(0, 0, 12_000, 6_000)) == pytest.approx(result.count / 2)


def test_the_overlay_of_a_very_large_picture_is_reduced() -> None:
    result = Result(np.zeros((10, 3000), np.float32), width=12_000, height=40, stride=4)
    assert result.overlay().shape == (14, 4096, 3)


def test_cells_that_do_not_cover_the_picture_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(3, 4\) do"):
        Result(np.zeros((3, 3), np.float32), width=16, height=12, stride=4)


def test_an_image_of_another_size_than_the_density_is_refused() -> None:
    with pytest.raises(ValueError, match="is not 61 x 47 RGB"):
        a_result(image=np.zeros((10, 10, 3), np.uint8))


# Zones


@pytest.mark.parametrize("stride", [1, 4, 7])
def test_the_whole_picture_as_a_zone_holds_exactly_the_count(stride: int) -> None:
    result = a_result(stride)
    assert result.count_in(box(0, 0, WIDTH, HEIGHT)) == result.count
    assert result.count_in(box(0, 0, WIDTH, HEIGHT)[::-1]) == result.count
    assert result.count_in(box(-50, -9, WIDTH + 3.5, HEIGHT + 1000)) == pytest.approx(result.count, rel=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_the_whole_picture_holds_exactly_the_count_however_uneven_the_density(seed: int) -> None:
    result = Result.from_density(np.random.default_rng(seed).lognormal(-5, 6, (300, 400)))
    assert result.count_in(box(0, 0, 400, 300)) == result.count


def test_corners_a_hair_apart_do_not_upset_a_zone() -> None:
    result = a_result()
    assert result.count_in([(0, 0), (61, 5e-311), (61, 0), (61, 47), (0, 47)]) == pytest.approx(result.count)


def test_a_zone_on_pixel_borders_holds_the_sum_of_its_pixels() -> None:
    assert a_result().count_in(box(10, 5, 30, 25)) == pytest.approx(crowd()[5:25, 10:30].sum(dtype=np.float64))


def test_a_pixel_that_is_cut_counts_by_its_area() -> None:
    result = Result.from_density(np.array([[1.0, 10.0], [100.0, 1000.0]]))
    assert result.count_in(box(0.5, 0.25, 2, 1)) == pytest.approx(0.75 * (0.5 * 1 + 10))
    assert result.count_in([(0, 0), (1, 0), (0, 1)]) == pytest.approx(0.5)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([1, 3, 4]),
    st.tuples(st.floats(0, WIDTH), st.floats(0, HEIGHT)),
    st.lists(st.floats(0, 2 * np.pi), min_size=3, max_size=7, unique=True),
)
def test_zones_that_tile_the_picture_add_up_to_the_count(
    stride: int, centre: tuple[float, float], angles: list[float]
) -> None:
    """Cut the picture like a cake from any point: each slice reaches far beyond the border."""
    result = a_result(stride)
    cuts = np.linspace(0, 2 * np.pi, 4).tolist()[:3] + angles  # no slice over half a turn
    rays = [(centre[0] + 500 * np.cos(angle), centre[1] + 500 * np.sin(angle)) for angle in sorted(set(cuts))]
    slices = [[centre, here, there] for here, there in zip(rays, rays[1:] + rays[:1], strict=True)]
    assert sum(result.count_in(corners) for corners in slices) == pytest.approx(result.count, rel=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(-5, WIDTH + 5), st.integers(-5, HEIGHT + 5)), min_size=3, max_size=8))
def test_any_polygon_even_one_that_crosses_itself_holds_what_its_outline_winds_around(
    corners: list[tuple[int, int]],
) -> None:
    polygon = [(float(x), float(y)) for x, y in corners]
    result = a_result()
    assert result.count_in(polygon) == pytest.approx(supersampled(result.density, polygon), abs=0.1)


def test_a_figure_of_eight_holds_both_its_loops() -> None:
    result = Result.from_density(np.ones((10, 10)))
    assert result.count_in([(0, 0), (10, 10), (10, 0), (0, 10)]) == pytest.approx(50)
    assert result.count_in([(0, 0), (5, 5), (10, 10), (10, 0), (5, 5), (0, 10)]) == pytest.approx(50)


def test_a_stride_gives_the_same_zone_count_as_its_full_size_density() -> None:
    reduced = a_result(stride=4)
    full = Result.from_density(reduced.density)
    polygon = [(3.3, 1.7), (55.1, 12.2), (40.9, 46.0), (7.7, 30.3)]
    assert reduced.count_in(polygon) == pytest.approx(full.count_in(polygon), rel=1e-6)


def test_a_zone_outside_the_picture_is_empty() -> None:
    assert a_result().count_in(box(100, 100, 200, 200)) == 0
    assert a_result().count_in(box(-20, -20, -10, 20)) == 0


def test_a_zone_outside_the_picture_is_warned_of_as_long_as_it_is_there() -> None:
    door, left = Zone("door", tuple(box(100, 0, 200, 40))), Zone("left", tuple(box(-20, 0, 0, 20)))
    inside = Zone("inside", tuple(box(-20, -20, 1, 1)))
    outside = a_result(warnings=("dark",)).with_zones([door, inside, left])
    assert outside.warnings == (
        "dark",
        f"zone 'door' lies outside the picture, which is {WIDTH} x {HEIGHT}",
        f"zone 'left' lies outside the picture, which is {WIDTH} x {HEIGHT}",
    )
    assert outside.with_zones([inside]).warnings == ("dark",)


@pytest.mark.parametrize(
    ("polygon", "reason"),
    [
        ([(0, 0), (1, 1)], "2 corners"),
        ([(0, 0), (1, 1), (float("nan"), 2)], "finite"),
        ([1, 2, 3], "pairs of numbers"),
        ([(0, 0), (1, "east"), (2, 2)], "pairs of numbers"),
        (np.random.default_rng(0).random((2000, 2)), "over the limit"),
        (np.random.default_rng(0).random((900, 2)) * 40, "give the corners in order"),
    ],
)
def test_a_polygon_that_is_none_is_refused_with_the_reason(polygon: object, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        a_result().count_in(polygon)  # type: ignore[arg-type]


def test_zones_are_counted_by_name_and_the_original_is_untouched() -> None:
    result = a_result()
    left, right = Zone("left", tuple(box(0, 0, 0.5, 1)), relative=True), Zone("right", tuple(box(30.5, 0, 61, 47)))
    counted = result.with_zones([left, right])
    assert counted.zones["left"] + counted.zones["right"] == pytest.approx(result.count)
    assert result.zones == {}


# Zone files

SQUARE = [[0, 0], [10, 0], [10, 10], [0, 10]]


@pytest.mark.parametrize(
    "content",
    [
        {"door": SQUARE},
        [{"name": "door", "polygon": SQUARE}],
        {"zones": {"door": SQUARE}},
        {"relative": False, "zones": [{"name": "door", "polygon": SQUARE}]},
    ],
)
def test_zones_are_read_in_each_of_their_shapes(tmp_path: Path, content: object) -> None:
    path = tmp_path / "zones.json"
    path.write_text(json.dumps(content))
    assert load_zones(path) == (Zone("door", ((0, 0), (10, 0), (10, 10), (0, 10))),)


def test_relative_zones_fit_any_resolution() -> None:
    half = [[0, 0], [0.5, 0], [0.5, 1], [0, 1]]
    (zone,) = parse_zones({"relative": True, "zones": {"half": half}})
    assert zone.in_pixels(640, 480).tolist() == [[0, 0], [320, 0], [320, 480], [0, 480]]
    assert parse_zones({"half": half}, relative=True) == (zone,)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not JSON"),
        ("[]", "no zone"),
        ('{" ": [[0, 0], [9, 0], [9, 9]]}', "a zone has no name"),
        ('[{"name": null, "polygon": [[0, 0], [9, 0], [9, 9]]}]', "a zone has no name"),
        ("7", "zones must be"),
        ('[{"name": "a"}]', "zones must be"),
        ('{"a": [[0, 0], [9, 9]]}', "zone 'a': 2 corners"),
        ('{"a": [[0, 0], [9, 9], ["x", 1]]}', "zone 'a': corners must be pairs"),
        ('{"a": [[0, 0], [9, 0], [9, 9]], "a": [[0, 0], [5, 0], [5, 5]]}', "'a' is there twice"),
        ('[{"name": "a", "polygon": [[0,0],[9,0],[9,9]]}, {"name": "a", "polygon": [[0,0],[5,0],[5,5]]}]', "twice"),
        ('{"a": [[0, 0], [0.5, 0], [0.5, 1]]}', '"relative": true'),
        ('{"relative": true, "zones": {"a": [[0, 0], [90, 0], [90, 50]]}}', "look like pixels"),
    ],
)
def test_a_bad_zone_file_is_named_with_the_reason(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "zones.json"
    path.write_text(text)
    with pytest.raises(InputError, match=reason) as caught:
        load_zones(path)
    assert str(caught.value).startswith(str(path))


def test_a_missing_zone_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.json: zones could not be read \(No such file"):
        load_zones(tmp_path / "none.json")


# Records and files


def test_a_record_holds_no_density_and_is_small() -> None:
    record = json.loads(a_result(source="a.jpg").to_json())
    assert record["source"] == "a.jpg"
    assert len(json.dumps(record)) < 300


def test_a_result_reads_as_one_friendly_line() -> None:
    result = Result.from_density(np.full((10, 20), 6.17), source="street.jpg", milliseconds=93.2, warnings=("far",))
    assert repr(result) == "<Result street.jpg: 1,234.0 people, 20 x 10, 93 ms, 1 warning>"


@pytest.mark.parametrize("stride", [1, 4])
def test_arrays_are_saved_by_suffix(tmp_path: Path, stride: int) -> None:
    result = a_result(stride)
    np.testing.assert_array_equal(np.load(result.save(tmp_path / "d.npy")), result.density)
    with np.load(result.save(tmp_path / "d.npz")) as saved:
        again = Result(
            saved["cells"], width=int(saved["width"]), height=int(saved["height"]), stride=int(saved["stride"])
        )
        assert again.count == result.count == float(saved["count"])
    assert json.loads(result.save(tmp_path / "d.json").read_text())["count"] == result.count


@pytest.mark.parametrize("name", ["a.png", "a.JPG", "a.webp"])
def test_pictures_are_saved_by_suffix(tmp_path: Path, name: str) -> None:
    path = a_result(image=np.zeros((HEIGHT, WIDTH, 3), np.uint8)).save(tmp_path / name)
    with Image.open(path) as picture:
        assert picture.width == 640  # small ones are enlarged, for the number to be read
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_another_suffix_is_refused_with_the_ones_there_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot save as '\.tiff'; choose \.png"):
        a_result().save(tmp_path / "a.tiff")


# Pictures


def people_at(*places: tuple[int, int], image: NDArray[np.uint8] | None = None) -> Result:
    density = np.zeros((480, 640), np.float32)
    for x, y in places:
        density[y, x] += 1
    return Result.from_density(density, image=image)


def test_the_overlay_is_clear_where_nobody_is_and_coloured_where_somebody_is() -> None:
    grey = np.full((480, 640, 3), 128, np.uint8)
    shown = people_at((100, 100), image=grey).overlay(alpha=0.6)
    assert shown.shape == grey.shape
    assert (shown[200:, 200:] == 128).all()
    assert np.ptp(shown[100, 100].astype(int)) > 60


def test_at_no_opacity_the_overlay_is_the_picture() -> None:
    image = np.random.default_rng(0).integers(0, 255, (480, 640, 3), dtype=np.uint8)
    np.testing.assert_array_equal(people_at((100, 100), image=image).overlay(alpha=0), image)


def test_an_empty_scene_looks_empty_though_its_density_is_not_quite_zero() -> None:
    grey = np.full((480, 640, 3), 128, np.uint8)
    noise = np.random.default_rng(0).random((480, 640)) * 2e-6
    assert (Result.from_density(noise, image=grey).overlay(alpha=1) == 128).all()


def test_one_peak_gives_the_frames_of_a_video_one_scale() -> None:
    alone, crowded = people_at((100, 100)), people_at((100, 100), *[(300, 300)] * 9)
    at_one_peak = [result.overlay(peak=9.0)[100, 100].tolist() for result in (alone, crowded)]
    assert at_one_peak[0] == at_one_peak[1]
    assert alone.overlay()[100, 100].tolist() != crowded.overlay()[100, 100].tolist()


def test_a_person_who_stands_alone_reads_as_one_on_the_colour_bar() -> None:
    from gbdgc.counting import overlay

    heat = overlay._heat(people_at((320, 240)))
    assert heat.levels.max() == pytest.approx(1, rel=0.1)


def test_the_annotated_picture_adds_a_footer_and_zones_and_keeps_the_width() -> None:
    result = people_at((100, 100), image=np.full((480, 640, 3), 128, np.uint8))
    plain, zoned = result.annotated(), result.with_zones([Zone("door", tuple(box(200, 200, 400, 400)))]).annotated()
    assert plain.shape == zoned.shape == (540, 640, 3)
    assert (plain[200] == 128).all()
    assert not (zoned[200] == 128).all()


def test_the_smoothed_count_is_on_the_picture_only_where_it_is_asked_for() -> None:
    raw = replace(people_at((100, 100), image=np.full((480, 640, 3), 128, np.uint8)), time=4.0)
    smoothed = replace(raw, smoothed=97.0)
    np.testing.assert_array_equal(smoothed.annotated(), raw.annotated())
    assert not np.array_equal(smoothed.annotated(smoothed=True), raw.annotated())


@pytest.mark.parametrize(("width", "height", "footer"), [(2, 2500, 40), (1, 9000, 40), (1, 1, 60), (2500, 2, 125)])
def test_a_strip_of_a_picture_has_a_footer_that_can_be_read(
    tmp_path: Path, width: int, height: int, footer: int
) -> None:
    result = Result.from_density(np.zeros((height, width)), image=np.full((height, width, 3), 200, np.uint8))
    result = result.with_zones([Zone("all", tuple(box(0, 0, width, height)))])
    with Image.open(result.save(tmp_path / "strip.png")) as drawn:
        assert drawn.width >= 320
        number = np.asarray(drawn)[-footer:, : drawn.width // 2]
    assert (number > 200).any()


def test_plot_draws_into_given_axes_in_pixel_coordinates() -> None:
    from matplotlib.figure import Figure

    figure = Figure()
    ax = people_at((100, 100), (50, 50)).with_zones([Zone("door", tuple(box(0, 0, 90, 90)))]).plot(figure.subplots())
    assert ax.get_title() == "2 people"
    assert ax.get_xlim() == (0, 640)
    assert [axes.get_ylabel() for axes in figure.axes[1:]] == ["people per 20 × 20 px"]
