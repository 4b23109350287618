import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gbdgc.data import Dataset, Sample, load_dataset
from gbdgc.data.checking import KINDS, Finding, check
from gbdgc.data.images import image_size
from gbdgc.data.manifest import Problem

SIDEWAYS = Image.Exif()
SIDEWAYS[0x0112] = 6


@pytest.fixture
def make(tmp_path: Path, save_scene):
    """Draw a picture for a sample, which has one head in its middle unless told."""

    def sample(
        id: str, seed: int, points: object = ((80, 60),), split: str | None = "train", **options: object
    ) -> Sample:
        path = save_scene(tmp_path / f"{id}.jpg", seed, **options)
        array = None if points is None else np.array(points, dtype=np.float32).reshape(-1, 2)
        return Sample(id, path, *image_size(path), array, split)

    return sample


def found(*samples: Sample, problems: tuple[str, ...] = ()) -> list[Finding]:
    return check(Dataset(samples, problems=problems))


def kinds(*samples: Sample) -> list[tuple[str, tuple[str, ...]]]:
    return [(finding.kind, finding.ids) for finding in found(*samples)]


def test_nothing_is_found_where_nothing_is_wrong(make):
    assert found(make("a", 1), make("b", 2), make("c", 3, split="test")) == []


def test_points_outside_are_found_and_those_on_the_edge_are_not(make):
    (finding,) = found(make("a", 1, [(0, 0), (160, 120)]), make("b", 2, [(-1, 5), (5, 120.5), (5, 5)]))
    assert finding == Finding("outside", ("b",), "2 of 3 points are not within 160 x 120", ((-1, 5), (5, 120.5)))
    assert finding.wrong


def test_a_point_that_stands_twice_is_found_once(make):
    (finding,) = found(make("a", 1, [(5, 6), (7, 8), (5, 6), (5, 6)]))
    assert (finding.kind, finding.points) == ("doubled", ((5, 6),))
    assert finding.detail.startswith("2 of 4 points")


def test_points_that_are_no_numbers_are_found(make):
    assert kinds(make("a", 1, [(np.nan, 6), (7, np.inf), (5, 6)])) == [("not_finite", ("a",))]


def test_a_picture_whose_end_is_missing_is_found_though_its_header_is_good(make):
    sample = make("a", 1)
    sample.image.write_bytes(sample.image.read_bytes()[:-900])
    (finding,) = found(sample, make("b", 2))
    assert (finding.kind, finding.ids) == ("undecodable", ("a",))
    assert "damaged or truncated" in finding.detail


def test_labels_made_before_the_exif_rotation_are_told_from_points_outside(make):
    upright_width, upright_height = 120, 160
    before = make("before", 1, [(150, 10), (20, 110)], exif=SIDEWAYS)
    assert (before.width, before.height) == (upright_width, upright_height)
    after = make("after", 2, [(110, 150)], exif=SIDEWAYS)
    astray = make("astray", 3, [(500, 10)], exif=SIDEWAYS)
    upright = make("upright", 4, [(110, 150)])
    assert kinds(before, after, astray, upright) == [
        ("rotation", ("before",)),
        ("outside", ("astray",)),
        ("outside", ("upright",)),
    ]


def test_an_empty_scene_is_news_but_not_wrong(make):
    (finding,) = found(make("a", 1, []))
    assert finding.kind == "empty"
    assert not finding.wrong


def test_labels_are_missing_only_where_others_of_the_split_have_some(make):
    samples = [make("a", 1), make("b", 2, None), make("c", 3, None, "test"), make("d", 4, None, "test")]
    assert kinds(*samples) == [("unlabelled", ("b",)), ("unlabelled_split", ())]
    assert not KINDS["unlabelled_split"].wrong


def test_the_same_picture_in_two_splits_is_graver_than_twice_in_one(make):
    samples = [make("a", 1), make("b", 1, quality=40), make("c", 2), make("d", 2, [(1, 1), (2, 2)], split="test")]
    first, second = found(*samples)
    assert (first.kind, first.ids) == ("shared", ("c", "d"))
    assert first.detail == "equal in every pixel; 1 or 2 heads"
    assert (second.kind, second.ids) == ("repeated", ("a", "b"))
    assert second.detail == "resized, recompressed or retouched"


def test_what_the_reader_left_out_is_found_too(make):
    (finding,) = found(make("a", 1), problems=[Problem("b.jpg: the file is empty")])
    assert (finding.kind, finding.detail) == ("unread", "b.jpg: the file is empty")
    assert finding.wrong


def test_many_at_a_time_find_what_one_finds(make, monkeypatch):
    samples = Dataset([make(str(number), number % 5, [(number, 500)]) for number in range(8)])
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2})
    found_together = check(samples)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
    assert found_together == check(samples) != []


@pytest.mark.slow
@pytest.mark.skipif("GBDGC_DATA" not in os.environ, reason="GBDGC_DATA does not name the folder of the real data")
def test_shanghaitech_a_has_six_test_pictures_in_its_training_set_and_b_none():
    root = Path(os.environ["GBDGC_DATA"], "ShanghaiTech")
    findings = check(load_dataset(root / "part_A"))
    # Each of these pairs was looked at: they are the same photographs.
    same = {tuple(id.removeprefix("part_A/") for id in f.ids): f for f in findings if len(f.ids) > 1}
    assert same["train/IMG_121", "test/IMG_98"].detail.startswith("equal in every pixel")
    assert set(same) == {
        ("train/IMG_121", "test/IMG_98"),
        ("train/IMG_2", "test/IMG_173"),
        ("train/IMG_60", "test/IMG_40"),
        ("train/IMG_97", "test/IMG_142"),
        ("train/IMG_139", "test/IMG_82"),
        ("train/IMG_154", "test/IMG_181"),
        ("train/IMG_118", "train/IMG_283"),
        ("train/IMG_167", "train/IMG_169"),
    }
    assert {finding.kind for finding in check(load_dataset(root / "part_B"))} == {"doubled"}
