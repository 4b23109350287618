import os
from pathlib import Path

import numpy as np
import pytest

from gbdgc.data import load_dataset
from gbdgc.errors import InputError

HEADS = {"IMG_1": [[1.5, 2.25], [60, 47]], "IMG_2": [], "IMG_10": [[3, 4]]}


@pytest.fixture
def root(tmp_path: Path, draw, shanghaitech_label) -> Path:
    for part in ("part_A", "part_B"):
        for half in ("train_data", "test_data"):
            folder = tmp_path / part / half
            for name, points in HEADS.items():
                draw(folder / "images" / f"{name}.jpg")
                shanghaitech_label(folder / "ground-truth" / f"GT_{name}.mat", points)
    return tmp_path


def test_points_size_split_and_id_are_those_of_the_files(root):
    data = load_dataset(root / "part_A")
    assert data.format == "shanghaitech"
    assert data.ids == [f"part_A/{split}/{name}" for split in ("train", "test") for name in HEADS]
    sample = data.by_id("part_A/train/IMG_1")
    assert (sample.width, sample.height, sample.split) == (64, 48, "train")
    assert sample.points is not None
    assert sample.points.dtype == np.float32
    assert sample.points.tolist() == HEADS["IMG_1"]
    assert data.by_id("part_A/test/IMG_2").points.shape == (0, 2)


def test_a_picture_has_one_id_from_whichever_folder_it_is_read(root, monkeypatch):
    ids = set(load_dataset(root).ids)
    assert len(ids) == 12
    assert set(load_dataset(root / "part_A").ids) < ids
    assert set(load_dataset(root / "part_A" / "train_data").ids) < ids
    monkeypatch.chdir(root / "part_B" / "test_data")
    assert set(load_dataset(".").ids) < ids


def test_a_split_can_be_read_alone(root):
    assert load_dataset(root / "part_A").where("test").split_sizes() == {"test": 3}
    with pytest.raises(InputError, match=r"no sample has the split 'val'; there are: train, test"):
        load_dataset(root / "part_A").where("val")


def test_the_other_spellings_of_the_folders_are_read(root):
    part = (root / "part_A").rename(root / "part_A_final")
    for half in part.iterdir():
        (half / "ground-truth").rename(half / "ground_truth")
    assert "part_A/train/IMG_10" in load_dataset(part).ids


def test_tags_beside_the_labels_become_tags(root):
    (root / "part_A/train_data/tags.csv").write_text("image,domain,scene\nIMG_1.jpg,night,\nIMG_2.jpg,fog,street\n")
    data = load_dataset(root / "part_A")
    assert data.by_id("part_A/train/IMG_1").tags == {"domain": "night"}
    assert data.by_id("part_A/train/IMG_2").tags == {"domain": "fog", "scene": "street"}
    assert data.by_id("part_A/train/IMG_10").tags == {}
    (root / "part_A/train_data/tags.csv").write_text("picture,domain\nIMG_1.jpg,night\n")
    with pytest.raises(InputError, match=r"tags\.csv: no column 'image' \(found picture, domain\)"):
        load_dataset(root / "part_A")


def test_tags_with_a_quote_that_is_not_closed_are_a_problem_of_their_file_only(root):
    rows = "IMG_2.jpg,fog\n" * 12_000
    (root / "part_A/train_data/tags.csv").write_text('image,domain\nIMG_1.jpg,"night\n' + rows)
    data = load_dataset(root / "part_A", skip_bad=True)
    assert len(data) == 6
    assert [problem for problem in data.problems if "tags.csv: not CSV (field larger" in problem] == list(data.problems)


def test_labels_of_matlab_7_3_are_read(root, hdf5_label):
    folder = root / "part_A/train_data/ground-truth"
    hdf5_label(folder / "GT_IMG_1.mat", [[7, 8.5], [9, 10]])
    hdf5_label(folder / "GT_IMG_10.mat", [])
    data = load_dataset(root / "part_A")
    assert data.by_id("part_A/train/IMG_1").points.tolist() == [[7, 8.5], [9, 10]]
    assert data.by_id("part_A/train/IMG_10").points.shape == (0, 2)


def test_labels_of_another_data_set_are_named(root, write_mat):
    write_mat(root / "part_A/train_data/ground-truth/GT_IMG_1.mat", annPoints=np.ones((3, 2)))
    with pytest.raises(
        InputError,
        match=r"GT_IMG_1\.mat: no 'image_info' \(found 'annPoints'\): this looks like UCF-QNRF; read it as qnrf",
    ):
        load_dataset(root / "part_A")


def test_a_struct_without_locations_a_broken_file_and_a_missing_one_are_all_reported(root, write_mat):
    folder = root / "part_A/train_data/ground-truth"
    write_mat(folder / "GT_IMG_1.mat", image_info={"number": 3})
    (folder / "GT_IMG_2.mat").write_bytes(b"MATLAB 5.0 MAT-file, but that is all there is")
    (folder / "GT_IMG_10.mat").rename(folder / "GT_IMG_11.mat")
    with pytest.raises(InputError) as caught:
        load_dataset(root / "part_A")
    message = str(caught.value)
    assert "GT_IMG_1.mat: 'image_info' has no field 'location'" in message
    assert "GT_IMG_2.mat: not a .mat file, or a damaged one" in message
    assert "GT_IMG_10.mat: no such label file" in message
    assert "GT_IMG_11.mat: no picture for it" in message
    kept = load_dataset(root / "part_A", skip_bad=True)
    assert kept.split_sizes() == {"test": 3}
    assert len(kept.problems) == 4


def test_labels_in_a_folder_of_the_wrong_name_are_not_passed_over(root):
    for half in (root / "part_A").iterdir():
        (half / "ground-truth").rename(half / "labels")
    with pytest.raises(InputError, match=r"GT_IMG_1\.mat may be labels of ShanghaiTech, but the layout is not"):
        load_dataset(root / "part_A")
    with pytest.raises(InputError, match=r"no train_data or test_data folder with images/ and ground-truth/"):
        load_dataset(root / "part_A", format="shanghaitech")
    assert load_dataset(root / "part_A", format="folder").labelled.ids == []


@pytest.mark.skipif("GBDGC_DATA" not in os.environ, reason="GBDGC_DATA does not name the folder of the real data")
@pytest.mark.parametrize(
    ("part", "split", "images", "heads"),
    [
        ("part_A", "train", 300, 162_413),
        ("part_A", "test", 182, 78_862),
        ("part_B", "train", 400, 49_151),
        ("part_B", "test", 316, 39_121),
    ],
)
def test_the_real_data_has_its_published_numbers(part, split, images, heads):
    data = load_dataset(Path(os.environ["GBDGC_DATA"]) / "ShanghaiTech" / part).where(split)
    assert (len(data), sum(sample.count for sample in data)) == (images, heads)
