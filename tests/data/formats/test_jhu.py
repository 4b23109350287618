import pytest

from gbdgc.data import load_dataset
from gbdgc.errors import InputError


@pytest.fixture
def root(tmp_path, draw):
    for split in ("train", "val", "test"):
        draw(tmp_path / split / "images/0001.jpg")
        draw(tmp_path / split / "images/0002.jpg")
        (tmp_path / split / "gt").mkdir()
        (tmp_path / split / "gt/0001.txt").write_text("10 20 5 6 1 0\n30 40 7 8 2 1\n")
        (tmp_path / split / "gt/0002.txt").write_text("")
        (tmp_path / split / "image_labels.txt").write_text("0001,2,stadium,3,0\n0002,0,,0,1\n")
    return tmp_path


def test_heads_scene_and_weather_are_read(root):
    data = load_dataset(root)
    assert data.format == "jhu"
    assert data.split_sizes() == {"train": 2, "val": 2, "test": 2}
    crowd, empty = data.by_id("val/0001"), data.by_id("val/0002")
    assert crowd.points.tolist() == [[10, 20], [30, 40]]
    assert crowd.tags == {"scene": "stadium", "weather": "snow", "distractor": "no"}
    assert (empty.count, empty.tags) == (0, {"weather": "clear", "distractor": "yes"})


def test_one_split_can_be_read_by_its_folder(root):
    assert load_dataset(root / "test").ids == ["test/0001", "test/0002"]


def test_a_word_where_a_number_should_be_is_named_with_its_line(root):
    (root / "train/gt/0001.txt").write_text("10 20 5 6 1 0\nten 20 5 6 1 0\n")
    (root / "test/image_labels.txt").write_text("0001;2;stadium;3;0\n")
    with pytest.raises(InputError) as caught:
        load_dataset(root)
    assert "0001.txt, line 2: 'ten 20 5 6 1 0' does not begin with two numbers" in str(caught.value)
    assert "image_labels.txt, line 1: 1 columns where there should be five" in str(caught.value)
