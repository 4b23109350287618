"""What the arguments of a count stand for, and in which order."""

import io
import os
import threading
import time
from pathlib import Path

import pytest

from gbdgc.counting.sources import Source, find_sources


def touch(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return folder


def found(*arguments: object, **options: bool) -> list[str]:
    """The names found, relative to the working folder as the arguments are."""
    sources = list(find_sources(map(str, arguments), **options))
    assert not [source.problem for source in sources if source.problem]
    return [source.name for source in sources]


def problem(*arguments: object) -> str:
    (source,) = find_sources(map(str, arguments))
    assert source.problem is not None
    return str(source.problem)


@pytest.fixture(autouse=True)
def _working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_folder_gives_its_pictures_and_videos_as_people_count(tmp_path: Path) -> None:
    touch(tmp_path / "in", "f10.jpg", "f2.JPG", "f1.png", "clip.MP4", "notes.txt", ".hidden.jpg", "sub/deep.jpg")
    assert found("in") == ["in/clip.MP4", "in/f1.png", "in/f2.JPG", "in/f10.jpg"]
    assert found("in", recursive=True)[-1] == "in/sub/deep.jpg"
    assert [source.moving for source in find_sources(["in"])] == [True, False, False, False]


def test_a_pattern_gives_what_matches_and_of_folders_what_is_in_them(tmp_path: Path) -> None:
    touch(tmp_path, "cam1/a.jpg", "cam2/b.jpg", "cam2/x/c.jpg", "cam2/labels.json")
    assert found("cam*/*.jpg") == ["cam1/a.jpg", "cam2/b.jpg"]
    assert found("**/*.jpg") == ["cam1/a.jpg", "cam2/b.jpg", "cam2/x/c.jpg"]
    assert found("cam?") == found("cam*/*") == ["cam1/a.jpg", "cam2/b.jpg"]
    assert found(tmp_path / "cam1" / "*") == [str(tmp_path / "cam1/a.jpg")]


def test_what_exists_under_a_name_is_meant_by_it(tmp_path: Path) -> None:
    touch(tmp_path, "a[1].jpg", "a1.jpg", "with space.png", "straße 東京.jpg", "two\nlines.jpg", "0", "b[2]/c.jpg")
    names = ["a[1].jpg", "with space.png", "straße 東京.jpg", "two\nlines.jpg", "0", "b[2]/c.jpg"]
    assert found(*names) == names
    assert found("b[2]") == ["b[2]/c.jpg"]


def test_cameras_and_streams_move_and_are_not_looked_for_on_disk() -> None:
    names = ["7", "rtsp://host/a?b=[1]", "https://host/live.m3u8"]
    assert list(find_sources(names)) == [Source(name, moving=True) for name in names]


def test_what_is_named_twice_is_found_once(tmp_path: Path) -> None:
    touch(tmp_path, "in/a.jpg", "in/b.jpg")
    assert found("in/b.jpg", "in", "in/*.jpg", "./in/a.jpg", tmp_path / "in") == ["in/b.jpg", "in/a.jpg"]


def test_what_leads_nowhere_is_said_in_its_place_and_the_rest_is_found(tmp_path: Path) -> None:
    touch(tmp_path, "street.jpg", "in/a.jpg")
    names = [(source.name, source.problem is None) for source in find_sources(["street.jpg", "nowhere", "in"])]
    assert names == [("street.jpg", True), ("nowhere", False), ("in/a.jpg", True)]


def test_problems_say_what_to_do_next(tmp_path: Path) -> None:
    touch(tmp_path, "street.jpg", "outer/inner/a.jpg", "texts/a.txt")
    (tmp_path / "empty").mkdir()
    assert problem("empty") == "empty: no pictures or videos in it; name a folder that has some"
    assert problem("outer") == "outer: no pictures or videos in it; look into the folders in it too (recursive)"
    assert problem("steet.jpg") == "steet.jpg: no such file or folder; did you mean street.jpg?"
    assert problem("nowhere/a.mp4") == "nowhere/a.mp4: no such file or folder"
    assert problem("*.png") == "*.png: nothing matches this pattern"
    assert problem("texts/*") == "texts/*: no picture or video matches this pattern"
    assert "not a name" in problem("")


def test_a_name_that_the_system_refuses_is_said_in_its_place_too(tmp_path: Path) -> None:
    touch(tmp_path, "street.jpg")
    first, second = find_sources(["a" * 300 + ".jpg", "street.jpg"])
    assert "cannot be read (File name too long)" in str(first.problem)
    assert (second.name, second.problem) == ("street.jpg", None)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_no_empty_one(tmp_path: Path) -> None:
    touch(tmp_path / "secret", "a.jpg").chmod(0)
    try:
        assert "cannot be read (Permission denied)" in problem("secret")
    finally:
        (tmp_path / "secret").chmod(0o700)


@pytest.mark.parametrize(("end", "names"), [("\n", ["a b.jpg", "ß.jpg"]), ("\0", ["two\nlines.jpg", "a b.jpg"])])
def test_a_list_has_one_argument_a_line_or_ends_each_by_a_zero_byte(tmp_path: Path, end: str, names: list[str]) -> None:
    touch(tmp_path, *names, "in/c.jpg")
    text = end.join([*names, "in", ""]).encode()
    listed = io.BufferedReader(io.BytesIO(text))
    assert [source.name for source in find_sources(["-"], listed=listed)] == [*names, "in/c.jpg"]


def test_a_list_written_on_windows_has_no_carriage_returns_in_its_names(tmp_path: Path) -> None:
    touch(tmp_path, "a.jpg", "b.jpg")
    listed = io.BufferedReader(io.BytesIO(b"a.jpg\r\nb.jpg"))
    assert [source.name for source in find_sources(["-"], listed=listed)] == ["a.jpg", "b.jpg"]


def test_a_list_that_still_grows_is_worked_on_as_it_comes(tmp_path: Path) -> None:
    touch(tmp_path, "a.jpg", "b.jpg")
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as listed, os.fdopen(writing, "wb", buffering=0) as script:
        sources = find_sources(["-"], listed=listed)
        script.write(b"a.jpg\n")
        assert next(sources).name == "a.jpg"
        threading.Timer(0.1, script.write, [b"b.jpg\n"]).start()
        assert next(sources).name == "b.jpg"


def test_ten_thousand_files_are_found_at_once(tmp_path: Path) -> None:
    touch(tmp_path / "in", *(f"{number}.jpg" for number in range(10_000)))
    began = time.perf_counter()
    names = found("in")
    assert (len(names), names[2], names[10]) == (10_000, "in/2.jpg", "in/10.jpg")
    assert time.perf_counter() - began < 2
