"""UCF-QNRF and UCF_CC_50, which both keep name_ann.mat beside name.jpg."""

import numpy as np
import pytest

from gbdgc.data import load_dataset
from gbdgc.errors import InputError


@pytest.fixture
def qnrf(tmp_path, draw, write_mat):
    for split in ("Train", "Test"):
        for number in (1, 2):
            draw(tmp_path / split / f"img_{number:04}.jpg")
            write_mat(tmp_path / split / f"img_{number:04}_ann.mat", annPoints=np.full((number, 2), 7.5))
    return tmp_path


@pytest.fixture
def ucf_cc_50(tmp_path, draw, write_mat):
    for number in (1, 2, 10):
        draw(tmp_path / f"{number}.jpg")
        write_mat(tmp_path / f"{number}_ann.mat", annPoints=np.full((number, 2), 7.5))
    return tmp_path


def test_qnrf_is_read_with_its_splits(qnrf):
    data = load_dataset(qnrf)
    assert data.format == "qnrf"
    assert data.ids == ["train/img_0001", "train/img_0002", "test/img_0001", "test/img_0002"]
    assert data.by_id("test/img_0002").points.tolist() == [[7.5, 7.5], [7.5, 7.5]]
    assert load_dataset(qnrf / "Test").ids == ["test/img_0001", "test/img_0002"]


def test_qnrf_reports_labels_and_pictures_that_stand_alone(qnrf):
    (qnrf / "Train/img_0001.jpg").unlink()
    (qnrf / "Test/img_0002_ann.mat").unlink()
    with pytest.raises(InputError) as caught:
        load_dataset(qnrf)
    assert "img_0001_ann.mat: no picture for it" in str(caught.value)
    assert "img_0002_ann.mat: no such label file" in str(caught.value)


def test_ucf_cc_50_is_read_in_the_order_of_its_numbers(ucf_cc_50):
    data = load_dataset(ucf_cc_50)
    assert data.format == "ucf_cc_50"
    assert [(sample.id, sample.count, sample.split) for sample in data] == [
        ("1", 1, None),
        ("2", 2, None),
        ("10", 10, None),
    ]


def test_the_wrong_one_of_the_public_formats_is_told_from_the_right_one(ucf_cc_50):
    with pytest.raises(
        InputError, match=r"this looks like UCF_CC_50 \(1_ann\.mat and the like\); read it as ucf_cc_50"
    ):
        load_dataset(ucf_cc_50, format="jhu")
