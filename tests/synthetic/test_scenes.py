"""Drawn crowds: same seed same bytes, heads where the labels say, perspective, and domains that differ."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.io import loadmat
from scipy.ndimage import find_objects, label

from gbdgc.data import load_dataset
from gbdgc.errors import InputError
from gbdgc.synthetic import DOMAINS, SOURCE_DOMAINS, TARGET_DOMAINS, draw_dataset, draw_demo, draw_scene
from gbdgc.synthetic.camera import Camera
from gbdgc.synthetic.cast import Cast
from gbdgc.synthetic.painting import paint_figures
from gbdgc.synthetic.people import ACCENT, HAIR, PARTS, SKIN, WARDROBES
from gbdgc.synthetic.scene import Air, Scene, draw_light
from gbdgc.synthetic.sprites import BODIES, CHANNELS, ELEVATIONS, SIDES, atlas, person_sprite, thing_sprite
from gbdgc.synthetic.things import THINGS

SMALL = (160, 120)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw_dataset(tmp_path_factory.mktemp("drawn"), images={"train": 5, "test": 2}, size=SMALL, workers=1)


def test_every_domain_draws_a_picture_with_heads_inside_it() -> None:
    for name in DOMAINS:
        image, points = draw_scene(name, np.random.default_rng(1), SMALL)
        assert image.shape == (120, 160, 3)
        assert image.dtype == np.uint8
        assert image.std() > 10, f"{name} is nearly one colour"
        assert points.dtype == np.float32
        assert (points >= 0).all()
        assert (points < SMALL).all()


def test_the_same_seed_draws_the_same_bits_and_another_seed_does_not() -> None:
    image, points = draw_scene("rain-dusk", np.random.default_rng(3), SMALL)
    again, points_again = draw_scene("rain-dusk", np.random.default_rng(3), SMALL)
    other, _ = draw_scene("rain-dusk", np.random.default_rng(4), SMALL)
    assert np.array_equal(image, again)
    assert np.array_equal(points, points_again)
    assert not np.array_equal(image, other)


def test_a_data_set_has_the_same_bytes_whatever_the_number_of_workers(drawn: Path, tmp_path: Path) -> None:
    draw_dataset(tmp_path, images={"train": 5, "test": 2}, size=SMALL, workers=4)
    assert contents(tmp_path) == contents(drawn)


def test_label_files_do_not_tell_the_time(drawn: Path) -> None:
    header = (drawn / "train_data/ground-truth/GT_IMG_1.mat").read_bytes()[:116]
    assert header.strip() == b"MATLAB 5.0 MAT-file, drawn by gbdgc"


def test_drawing_more_pictures_leaves_the_first_ones_as_they_were(drawn: Path, tmp_path: Path) -> None:
    draw_dataset(tmp_path, images={"train": 7}, size=SMALL)
    more, fewer = contents(tmp_path), contents(drawn)
    for number in range(1, 6):
        assert more[f"train_data/images/IMG_{number}.jpg"] == fewer[f"train_data/images/IMG_{number}.jpg"]


def test_labels_have_the_official_nesting(drawn: Path) -> None:
    info = loadmat(drawn / "train_data/ground-truth/GT_IMG_1.mat")["image_info"]
    assert info.shape == (1, 1)
    assert info.dtype == object
    assert info[0, 0].dtype.names == ("location", "number")
    location, number = info[0, 0][0, 0]
    assert location.dtype == np.float64
    assert number.shape == (1, 1)
    assert location.shape == (number[0, 0], 2)


def test_the_ordinary_reader_reads_it_with_the_truth_in_a_tag(drawn: Path) -> None:
    data = load_dataset(drawn)
    assert data.format == "shanghaitech"
    assert data.split_sizes() == {"train": 5, "test": 2}
    assert {sample.tags["domain"] for sample in data.where("train")} == set(SOURCE_DOMAINS)
    assert all(sample.count is not None for sample in data)


def test_the_demo_has_a_mixed_source_and_targets_it_has_never_seen(tmp_path: Path) -> None:
    draw_demo(tmp_path, train=5, test=1, size=SMALL)
    source = load_dataset(tmp_path / "source")
    assert source.split_sizes() == {"train": 5, "test": 1}
    seen = {sample.tags["domain"] for sample in source}
    assert sorted(folder.name for folder in (tmp_path / "targets").iterdir()) == sorted(TARGET_DOMAINS)
    for name in TARGET_DOMAINS:
        target = load_dataset(tmp_path / "targets" / name)
        assert [sample.tags["domain"] for sample in target] == [name]
        assert name not in seen


def test_counts_span_from_empty_to_thousands() -> None:
    few = [len(draw_scene("park-fog", np.random.default_rng(seed), SMALL)[1]) for seed in range(40)]
    many = [len(draw_scene("stadium-dense", np.random.default_rng(seed), SMALL)[1]) for seed in range(24)]
    assert min(few) == 0
    assert max(few) > 20
    assert min(many) > 150
    assert max(many) > 2000


def test_an_empty_scene_is_the_same_place_without_people() -> None:
    domain = replace(DOMAINS["plaza-day"], counts=(20, 25, 30))
    crowded, points = draw_scene(domain, np.random.default_rng(5))
    empty, nobody = draw_scene(domain, np.random.default_rng(5), empty=True)
    same = (crowded == empty).all(axis=-1)
    columns, rows = points.astype(int).T
    assert nobody.shape == (0, 2)
    assert len(points) > 10
    assert same.mean() > 0.6
    assert (~same[rows, columns]).mean() > 0.97


@pytest.mark.parametrize("wardrobe", WARDROBES)
def test_the_labelled_point_of_every_sprite_is_on_its_head(wardrobe: str) -> None:
    sprites = atlas(wardrobe)
    for sprite in range(len(ELEVATIONS) * BODIES * SIDES):
        offset, height, width = sprites.table[sprite, 0]
        pixels = sprites.pixels[offset : offset + height * width].reshape(height, width, CHANNELS).astype(float)
        column, row = (sprites.anchor[sprite] + sprites.head[sprite] * sprites.pixels_per_metre[sprite]).astype(int)
        around = pixels[row - 2 : row + 3, column - 2 : column + 3].mean(axis=(0, 1))
        assert around[PARTS] == 255
        assert around[[SKIN, HAIR, ACCENT]].sum() > 0.6 * around[:PARTS].sum()


def test_people_shrink_towards_the_horizon() -> None:
    domain = replace(
        DOMAINS["plaza-day"],
        counts=(10, 12, 15),
        altitude=(6, 6),
        pitch=(20, 20),
        view=(60, 60),
        clutter_count=(0, 0),
        sun=0.0,
        noise=(0, 0),
    )
    heights, feet = [], []
    for seed in range(6):
        crowded, _ = draw_scene(domain, np.random.default_rng(seed))
        empty, _ = draw_scene(domain, np.random.default_rng(seed), empty=True)
        changed = np.abs(crowded.astype(int) - empty).max(axis=-1) > 3
        for rows, columns in find_objects(label(changed)[0]):
            tall, wide = rows.stop - rows.start, columns.stop - columns.start
            alone_and_whole = tall > 1.4 * wide and tall > 10 and rows.start > 0 and rows.stop < 480
            if alone_and_whole:
                heights.append(tall)
                feet.append(rows.stop)
    assert len(heights) > 15
    assert np.corrcoef(heights, feet)[0, 1] > 0.8


def line_up(*kinds: str) -> int:
    """How many heads are labelled when these stand one behind the other, the first nearest to the camera."""
    camera = Camera(320, 240, focal=300, pitch=0.1, altitude=2.2, slope=0.0, reach=60)
    z = 8.0 + 1.5 * np.arange(len(kinds))
    n, front = len(kinds), np.zeros(1, np.int64)
    sprites = [
        person_sprite(camera.elevation(z[i : i + 1]), front, front)
        if kind == "person"
        else thing_sprite(camera.elevation(z[i : i + 1]), front + list(THINGS).index(kind), front)
        for i, kind in enumerate(kinds)
    ]
    cast = Cast(
        sprite=np.concatenate(sprites),
        mirrored=np.zeros(n, bool),
        thing=np.array([kind != "person" for kind in kinds]),
        x=np.zeros(n),
        z=z,
        stature=np.ones(n),
        colours=np.full((n, PARTS, 3), 0.5),
        crowding=np.zeros(n),
        shadow_radius=np.ones(n),
        shadow_height=np.ones(n),
    )
    domain = DOMAINS["plaza-day"]
    light = draw_light(domain, camera, np.random.default_rng(0))
    return len(paint_figures(Scene(domain, camera, light, cast, Air(np.zeros(3), 0.0))).heads)


def test_a_head_behind_a_thing_is_not_labelled_but_one_behind_a_person_is() -> None:
    assert line_up("person", "person") == 2
    assert line_up("van", "person") == 0
    assert line_up("person", "van") == 1


def test_latent_domains_can_be_told_apart_by_simple_statistics() -> None:
    features, truth = [], []
    for index, name in enumerate(DOMAINS):
        for seed in range(8):
            image = draw_scene(name, np.random.default_rng([seed, index]), SMALL)[0] / 255
            rough = np.abs(np.diff(image.mean(axis=-1), axis=1)).mean()
            features.append([*image.mean(axis=(0, 1)), *image.std(axis=(0, 1)), 3 * rough])
            truth.append(index)
    points, domains = np.array(features), np.array(truth)
    correct = 0
    for held_out in range(len(points)):
        others = np.arange(len(points)) != held_out
        centres = [points[others & (domains == index)].mean(axis=0) for index in range(len(DOMAINS))]
        correct += np.linalg.norm(centres - points[held_out], axis=1).argmin() == domains[held_out]
    assert correct / len(points) > 0.6, "chance would be one in nine"


def test_an_unknown_domain_is_named_with_those_there_are() -> None:
    with pytest.raises(InputError, match=r"'moon'.*plaza-day"):
        draw_scene("moon", np.random.default_rng(0))


def test_no_domain_at_all_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least one domain"):
        draw_dataset(tmp_path, domains=[])


def test_a_folder_with_other_pictures_is_refused(drawn: Path) -> None:
    with pytest.raises(InputError, match="choose another folder"):
        draw_dataset(drawn, images={"train": 3}, size=SMALL)
