import json
from types import SimpleNamespace

import pytest
from PIL import Image

from gbdgc.data import READERS, load_dataset
from gbdgc.data.formats.entry import Entry
from gbdgc.errors import InputError


@pytest.fixture
def manifest(tmp_path):
    """Write a manifest of pictures that are not there."""

    def write(count):
        lines = [json.dumps({"id": str(number), "image": f"{number}.jpg"}) for number in range(count)]
        (tmp_path / "m.jsonl").write_text("\n".join(lines))
        return tmp_path / "m.jsonl"

    return write


def test_all_problems_are_listed_up_to_twenty(manifest):
    with pytest.raises(InputError) as caught:
        load_dataset(manifest(25))
    lines = str(caught.value).splitlines()
    assert lines[0].endswith("m.jsonl: 25 problems while reading it as gbdgc manifest:")
    assert all(line.endswith(f"{number}.jpg: no such file") for number, line in enumerate(lines[1:21]))
    assert lines[21:] == ["  and 5 more", lines[-1]]
    assert lines[-1].startswith("fix these, or leave the bad pictures out (skip_bad)")


def test_nothing_left_is_an_error_also_when_bad_pictures_are_skipped(manifest):
    with pytest.raises(
        InputError, match=r"one problem while reading it as gbdgc manifest:\n.*\nnothing is left to use"
    ):
        load_dataset(manifest(1), skip_bad=True)


def test_a_picture_and_its_labels_are_both_reported(tmp_path):
    (tmp_path / "m.jsonl").write_text('{"id": "a", "image": "a.jpg", "points": [["x", 1]]}\n')
    with pytest.raises(InputError) as caught:
        load_dataset(tmp_path / "m.jsonl")
    assert "a.jpg: no such file" in str(caught.value)
    assert "a: a coordinate is not a number" in str(caught.value)


def test_a_format_is_known_by_any_spelling_and_a_typo_is_met_with_help(tmp_path):
    for name in ("UCF-CC-50", "ucf cc 50"):
        with pytest.raises(InputError, match=r"no \*_ann\.mat files"):
            load_dataset(tmp_path, format=name)
    with pytest.raises(InputError, match="no format 'shanghitech'; did you mean 'shanghaitech'"):
        load_dataset(tmp_path, format="shanghitech")
    with pytest.raises(InputError, match="no format 'zzz'; there are: auto, manifest, shanghaitech"):
        load_dataset(tmp_path, format="zzz")


def test_the_point_of_a_box_is_one_of_two(tmp_path):
    with pytest.raises(InputError, match="the point of a box is 'head' or 'centre', not 'feet'"):
        load_dataset(tmp_path, point="feet")


@pytest.mark.parametrize("name", READERS)
def test_every_reader_says_of_an_empty_folder_and_of_a_foreign_file_what_it_wants(tmp_path, name):
    (tmp_path / "notes.txt").write_text("no labels")
    for path in (tmp_path, tmp_path / "notes.txt"):
        assert READERS[name].looks_like(path) is None
        with pytest.raises(InputError):
            load_dataset(path, format=name)


def test_a_format_is_added_by_one_line(tmp_path, monkeypatch):
    def read(path, problems):
        for line in (path / "heads.txt").read_text().splitlines():
            name, x, y = line.split()
            yield Entry(name, path / f"{name}.png", lambda x=x, y=y: [[float(x), float(y)]])

    def looks_like(path):
        return "heads.txt" if (path / "heads.txt").is_file() else None

    Image.new("RGB", (8, 6)).save(tmp_path / "a.png")
    (tmp_path / "heads.txt").write_text("a 3 2.5\n")
    monkeypatch.delitem(READERS, "folder")  # which takes any pictures, and stands last
    monkeypatch.setitem(READERS, "heads", SimpleNamespace(TITLE="Heads", looks_like=looks_like, read=read))
    dataset = load_dataset(tmp_path, format="heads")
    assert dataset.by_id("a").points.tolist() == [[3, 2.5]]
    assert load_dataset(tmp_path).format == "heads"
