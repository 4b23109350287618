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

MANY_DIGITS = "a number of 5000 digits, which json does not write"

junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 10**20),
    st.sampled_from([10**400, MANY_DIGITS]),
    st.floats(),
    st.sampled_from(["", "1", "\0", "..", "/", "x" * 300, "\ud800", "a.png"]),
    st.sampled_from(["http://[redacted]/a.png", "//[a.png", "http://a]/"]),
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


def to_json(value: Any) -> str:
    return json.dumps(value).replace(json.dumps(MANY_DIGITS), "9" * 5000)


def read_and_complain_politely(path: Path, format: str) -> None:
    with suppress(InputError):
        for sample in load_dataset(path, format=format, skip_bad=True):
            assert sample.id.encode("utf-8", "surrogateescape")
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
    (folder / name).write_text(to_json(bad))
    if format == "nwpu":
        (folder / "train.txt").write_text("a\n")
        read_and_complain_politely(folder, format)
    else:
        read_and_complain_politely(folder / name, format)


LONG_QUOTE = b'"' + b"a.png,1,2\n" * 15_000
"""Over the 128 kB at which the csv module gives up."""


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
    inserted = data.draw(st.one_of(st.binary(max_size=4), st.just(LONG_QUOTE), st.just(b"9" * 5000)))
    (folder / name).write_bytes(good[:start] + inserted + good[end:])
    read_and_complain_politely(folder / name, format)


@pytest.mark.parametrize(
    ("format", "name", "good", "place", "bad"),
    [
        ("coco", "labels.json", COCO, ("annotations", 0, "keypoints", 0), 10**400),
        ("coco", "labels.json", COCO, ("images", 0, "width"), MANY_DIGITS),
        ("coco", "labels.json", COCO, ("images", 0, "file_name"), "x" * 300 + ".png"),
        ("label_studio", "tasks.json", LABEL_STUDIO, (0, "data", "image"), "x" * 300 + ".png"),
        ("label_studio", "tasks.json", LABEL_STUDIO, (0, "data", "image"), "http://[redacted]/a.png"),
        ("label_studio", "tasks.json", LABEL_STUDIO, (0, "data", "image"), "//[a.png"),
        ("label_studio", "tasks.json", LABEL_STUDIO, (0, "annotations", 0, "result", 0, "value", "x"), 10**400),
        ("label_studio", "tasks.json", LABEL_STUDIO, (0, "annotations", 0, "result", 0, "original_width"), 10**400),
        ("manifest", "images/lines.jsonl", MANIFEST, ("points", 0, 0), MANY_DIGITS),
        ("manifest", "images/lines.jsonl", MANIFEST, ("points", 0, 0), 10**400),
        *(
            ("manifest", "images/lines.jsonl", MANIFEST, place, "\ud800x")
            for place in [("id",), ("image",), ("split",), ("tags", "a")]
        ),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_what_no_program_writes_is_a_problem_that_can_be_printed(folder, format, name, good, place, bad):
    (folder / name).write_text(to_json(with_junk(good, place, bad)))
    with pytest.raises(InputError) as caught:
        load_dataset(folder / name, format=format, skip_bad=True)
    assert str(caught.value).encode("utf-8", "surrogateescape")


def test_an_address_among_the_texts_of_a_task_is_not_looked_at_as_a_picture(folder):
    task = with_junk(LABEL_STUDIO, (0, "data"), {"note": "http://[redacted]/", "image": "a.png"})
    (folder / "tasks.json").write_text(json.dumps(task))
    assert len(load_dataset(folder / "tasks.json", format="label_studio")) == 1


def test_one_quote_that_is_not_closed_does_not_swallow_the_rows_behind_it(folder):
    for rows in (3, 30_000):
        (folder / "points.csv").write_text('image,x,y\na.png,1,2\na.png,1,"2\n' + "a.png,1,2\n" * rows)
        with pytest.raises(InputError, match=r"points\.csv, line 3: not CSV from there on \(.*\); look for a quote"):
            load_dataset(folder / "points.csv", skip_bad=True)


def test_a_name_that_is_too_long_for_a_file_is_a_problem_of_its_line(folder):
    for kind in ("jsons", "mats"):
        (folder / kind).mkdir(exist_ok=True)
    (folder / "jsons/a.json").write_text(json.dumps(NWPU))
    (folder / "train.txt").write_text("a\n" + "x" * 300 + "\n")
    data = load_dataset(folder, format="nwpu", skip_bad=True)
    assert (data.ids, len(data.problems)) == (["a"], 2)


@pytest.mark.parametrize("compressed", [True, False])
def test_mat_files_that_break_off_anywhere(tmp_path, compressed):
    Image.new("RGB", (64, 48)).save(tmp_path / "1.jpg")
    savemat(tmp_path / "1_ann.mat", {"annPoints": np.ones((3, 2))}, do_compression=compressed)
    good = (tmp_path / "1_ann.mat").read_bytes()
    for size in range(0, len(good), 3):
        (tmp_path / "1_ann.mat").write_bytes(good[:size])
        read_and_complain_politely(tmp_path, "ucf_cc_50")


def test_mat_files_with_any_byte_changed(tmp_path):
    """In a reader that trusts the type of an element, some of these end the process."""
    Image.new("RGB", (64, 48)).save(tmp_path / "1.jpg")
    savemat(tmp_path / "1_ann.mat", {"annPoints": np.ones((3, 2))}, do_compression=False)
    good = (tmp_path / "1_ann.mat").read_bytes()
    for position in range(124, len(good)):
        (tmp_path / "1_ann.mat").write_bytes(good[:position] + b"\xc8" + good[position + 1 :])
        read_and_complain_politely(tmp_path, "ucf_cc_50")
