import json

import numpy as np
import pytest

from gbdgc.data import load_dataset
from gbdgc.errors import InputError


@pytest.fixture
def root(tmp_path, draw, write_mat):
    for number in range(1, 5):
        draw(tmp_path / f"images/{number:04}.jpg")
    write_mat(
        tmp_path / "mats/0001.mat", annPoints=np.array([[1, 2], [3, 4]], dtype=np.float64), annBoxes=np.ones((2, 4))
    )
    write_mat(tmp_path / "mats/0002.mat", annPoints=np.zeros((0, 0)), annBoxes=np.zeros((0, 0)))
    write_mat(tmp_path / "mats/0003.mat", annPoints=np.array([[5.5, 6]]), annBoxes=np.ones((1, 4)))
    (tmp_path / "train.txt").write_text("0001 1 0\n0002 0 2\n")
    (tmp_path / "val.txt").write_text("0003 2 1\n")
    (tmp_path / "test.txt").write_text("0004\n")
    return tmp_path


def test_lists_give_the_splits_and_the_test_part_has_no_labels(root):
    data = load_dataset(root)
    assert data.format == "nwpu"
    assert [(sample.id, sample.split, sample.count) for sample in data] == [
        ("0001", "train", 2),
        ("0002", "train", 0),
        ("0003", "val", 1),
        ("0004", "test", None),
    ]
    assert data.by_id("0001").points.tolist() == [[1, 2], [3, 4]]
    assert data.by_id("0002").tags == {"level": "0", "luminance": "2"}


def test_jsons_serve_as_well_as_mats(root):
    (root / "jsons").mkdir()
    for number, points in ((1, [[1, 2], [3, 4]]), (2, []), (3, [[5.5, 6]])):
        (root / f"mats/{number:04}.mat").unlink()
        record = {"img_id": f"{number:04}.jpg", "human_num": len(points), "points": points, "boxes": []}
        (root / f"jsons/{number:04}.json").write_text(json.dumps(record))
    (root / "mats").rmdir()
    data = load_dataset(root)
    assert [sample.count for sample in data] == [2, 0, 1, None]


def test_a_label_that_is_missing_where_it_must_be_is_a_problem(root):
    (root / "mats/0003.mat").unlink()
    with pytest.raises(InputError, match=r"0003\.mat: no such label file"):
        load_dataset(root)


def test_a_list_cannot_lead_out_of_the_folder(root):
    (root / "val.txt").write_text("../../secret 1 1\n")
    with pytest.raises(InputError, match=r"'\.\./\.\./secret\.jpg' is not beneath"):
        load_dataset(root)
