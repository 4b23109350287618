"""What is written reads back: COCO, CSV, manifest."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from gbdgc.data import WRITERS, Dataset, Sample, load_dataset
from gbdgc.errors import InputError

FILES = {"manifest": "data.jsonl", "coco": "data.json", "csv": "data.csv"}

coordinates = st.floats(-1e4, 1e4, width=32)
names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8).filter(
    lambda name: name.strip() == name
)
points = st.integers(0, 4).flatmap(lambda size: arrays(np.float32, (size, 2), elements=coordinates))
records = st.tuples(names, points, st.sampled_from([None, "train", "val"]), st.dictionaries(names, names, max_size=2))


def same(first: Sample, second: Sample) -> bool:
    def identity(sample: Sample) -> tuple[object, ...]:
        return sample.id, sample.image.resolve(), sample.width, sample.height, sample.split, sample.count

    if first.points is not None and second.points is not None and not np.array_equal(first.points, second.points):
        return False
    return identity(first) == identity(second)


@pytest.mark.parametrize("format", WRITERS)
@settings(max_examples=30, deadline=None)
@given(rows=st.lists(records, min_size=1, max_size=3, unique_by=lambda row: row[0]))
def test_every_format_that_is_written_reads_back_to_the_same_samples(format, rows):
    with TemporaryDirectory() as folder:
        samples = []
        for number, (id, heads, split, tags) in enumerate(rows):
            image = Path(folder, "images", f"picture {number}, größer.png")
            image.parent.mkdir(exist_ok=True)
            Image.new("RGB", (64, 48)).save(image)
            samples.append(Sample(id, image, 64, 48, heads, split, tags if format != "csv" else {}))
        file = Path(folder, FILES[format])
        WRITERS[format](Dataset(samples), file)
        back = load_dataset(file)
    assert back.format == format
    assert len(back) == len(samples)
    for before, after in zip(samples, back, strict=True):
        assert same(before, after)
        assert dict(before.tags) == dict(after.tags)


@pytest.mark.parametrize("format", ["manifest", "coco"])
def test_a_picture_without_labels_stays_without(tmp_path, draw, format):
    data = Dataset([Sample("a", draw(tmp_path / "a.png"), 64, 48)])
    WRITERS[format](data, tmp_path / FILES[format])
    assert load_dataset(tmp_path / FILES[format])[0].points is None


def test_a_csv_cannot_say_that_a_picture_has_no_labels(tmp_path, draw):
    data = Dataset([Sample("a", draw(tmp_path / "a.png"), 64, 48)])
    with pytest.raises(InputError, match="a: has no labels, which a CSV cannot say; write a manifest or COCO"):
        WRITERS["csv"](data, tmp_path / "data.csv")
    assert not (tmp_path / "data.csv").exists()


@pytest.mark.parametrize("name", [" a.png", "a\nb.png", "a\rb.png", "\udcff.png"])
def test_a_csv_refuses_names_that_would_be_read_back_as_others(tmp_path, draw, name):
    data = Dataset([Sample(name, draw(tmp_path / name), 64, 48, np.zeros((0, 2), np.float32))])
    with pytest.raises(InputError, match=r"a CSV of points cannot hold this name: .*; rename it"):
        WRITERS["csv"](data, tmp_path / "data.csv")
    assert not (tmp_path / "data.csv").exists()


def test_a_csv_holds_no_name_that_a_spreadsheet_would_run(tmp_path, draw):
    image = draw(tmp_path / "=cmd|'!A0.png")
    WRITERS["csv"](Dataset([Sample("@x", image, 64, 48, np.ones((1, 2), np.float32), "=y")]), tmp_path / "data.csv")
    row = (tmp_path / "data.csv").read_text().splitlines()[1]
    assert row == "'=cmd|'!A0.png,1.0,1.0,'@x,'=y"
    (back,) = load_dataset(tmp_path / "data.csv")
    assert (back.id, back.image.name, back.split) == ("@x", image.name, "=y")


@pytest.mark.parametrize("format", ["coco", "csv"])
def test_labels_for_others_do_not_point_out_of_their_folder(tmp_path, draw, format):
    data = Dataset([Sample("a", draw(tmp_path / "a.png"), 64, 48, np.zeros((0, 2), np.float32))])
    with pytest.raises(InputError, match=r"a\.png: not beneath .*deeper, where the label file is to be"):
        WRITERS[format](data, tmp_path / "deeper" / FILES[format])


def test_a_coco_file_among_annotations_names_pictures_from_the_folder_above(tmp_path, draw):
    data = Dataset([Sample("a", draw(tmp_path / "images/a.png"), 64, 48, np.zeros((0, 2), np.float32))])
    WRITERS["coco"](data, tmp_path / "annotations/data.json")
    assert load_dataset(tmp_path)[0].image == tmp_path / "images/a.png"


def test_a_manifest_moves_with_its_pictures_and_may_lie_elsewhere(tmp_path, draw):
    data = Dataset([Sample("a", draw(tmp_path / "one/images/a.png"), 64, 48)])
    data.save(tmp_path / "one/manifest.jsonl")
    (tmp_path / "one").rename(tmp_path / "two")
    moved = load_dataset(tmp_path / "two")
    assert moved[0].image == tmp_path / "two/images/a.png"
    moved.save(tmp_path / "runs/elsewhere.jsonl")
    assert load_dataset(tmp_path / "runs/elsewhere.jsonl").ids == ["a"]
