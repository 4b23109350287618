"""Whatever stands in a label file, reading it gives samples or an InputError, never a traceback."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy.io import savemat

from gbdgc.data import load_dataset
from gbdgc.errors import InputError

COCO = {
    "images": [
        {"id": 1, "file_name": "a.png", "width": 64, "height": 48, "gbdgc": {"id": "a", "split": None, "tags": {}}}
    ],
    "annotations": [
        {"id": 1, "image_id": 1, "category_id": 1, "keypoints": [1, 2, 2], "bbox": [1, 2, 3, 4], "iscrowd": 0}
    ],
    "categories": [{"id": 1, "name": "person", "keypoints": ["head"]}],
}
LABEL_STUDIO = [
    {
        "id": 1,
        "data": {"image": "/data/upload/1/a.png"},
        "annotations": [
            {
                "result": [
                    {
                        "type": "rectanglelabels",
                        "original_width": 64,
                        "original_height": 48,
                        "value": {"x": 1, "y": 2, "width": 3, "height": 4, "rectanglelabels": ["head"]},
                    }
                ],
                "was_cancelled": False,
                "ground_truth": False,
            }
        ],
    }
]
MANIFEST = {
    "id": "a",
    "image": "a.png",
    "width": 64,
    "height": 48,
    "points": [[1, 2]],
    "split": "x",
    "tags": {"a": "b"},
}
NWPU = {"img_id": "a.png", "human_num": 1, "points": [[1, 2]], "boxes": []}

junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 10**20),
    st.floats(),
    st.sampled_from(["", "1", "\0", "..", "/", "x" * 300, "\ud800", "a.png"]),
    st.lists(st.integers(0, 3), max_size=2),
    st.dictionaries(st.sampled_from(["id", "x"]), st.integers(0, 3), max_size=1),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where in a JSON value another could stand."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, each in inside for place in places(each, (*path, key)))]


def with_junk(value: Any, path: tuple[Any, ...], replacement: Any) -> Any:
    if not path:
        return replacement
    copy = json.loads(json.dumps(value))
    target = copy
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = replacement
    return copy


def read_and_complain_politely(path: Path, format: str) -> None:
    with suppress(InputError):
        for sample in load_dataset(path, format=format, skip_bad=True):
            assert isinstance(sample.id, str)
            assert sample.split is None or isinstance(sample.split, str)
            assert sample.points is None or np.isfinite(sample.points).all()


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("damaged")
    for name in ("images/a.png", "images/a.jpg"):
        (root / "images").mkdir(exist_ok=True)
        Image.new("RGB", (64, 48)).save(root / name)
    return root


@pytest.mark.parametrize(
    ("format", "name", "good"),
    [
        ("coco", "labels.json", COCO),
        ("label_studio", "tasks.json", LABEL_STUDIO),
        ("manifest", "images/lines.jsonl", MANIFEST),
        ("nwpu", "jsons/a.json", NWPU),
    ],
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_json_with_anything_anywhere(folder, format, name, good, data):
    bad = with_junk(good, data.draw(st.sampled_from(places(good))), data.draw(junk))
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(bad))
    if format == "nwpu":
        (folder / "train.txt").write_text("a\n")
        read_and_complain_politely(folder, format)
    else:
        read_and_complain_politely(folder / name, format)


@pytest.mark.parametrize(
    ("format", "name", "good"),
    [
        ("csv", "points.csv", b"image,x,y\na.png,1,2\n"),
        (
            "cvat",
            "annotations.xml",
            b'<annotations><image id="0" name="a.png" width="64" height="48">'
            b'<points label="head" points="1,2;3,4"/></image></annotations>',
        ),
    ],
)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_text_with_any_bytes_in_it(folder, format, name, good, data):
    start = data.draw(st.integers(0, len(good)))
    end = data.draw(st.integers(start, min(start + 4, len(good))))
    (folder / name).write_bytes(good[:start] + data.draw(st.binary(max_size=4)) + good[end:])
    read_and_complain_politely(folder / name, format)


@pytest.mark.parametrize("compressed", [True, False])
def test_mat_files_that_break_off_anywhere(tmp_path, compressed):
    Image.new("RGB", (64, 48)).save(tmp_path / "1.jpg")
    savemat(tmp_path / "1_ann.mat", {"annPoints": np.ones((3, 2))}, do_compression=compressed)
    good = (tmp_path / "1_ann.mat").read_bytes()
    for size in range(0, len(good), 3):
        (tmp_path / "1_ann.mat").write_bytes(good[:size])
        read_and_complain_politely(tmp_path, "ucf_cc_50")
