"""Dividing a list into parts: what has a file is left out, however the list was divided then."""

from pathlib import Path
from unittest.mock import Mock

import pytest

from gbdgc import count_on_cluster
from gbdgc.cluster.counting import JOB
from gbdgc.cluster.parts import ITEMS, Item, Part, left_to_count
from gbdgc.cluster.session import connected
from gbdgc.cluster.storage import find_files, locate
from gbdgc.errors import InputError
from gbdgc.shipped import find_model

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def items(*names: str) -> list[Item]:
    return [Item(name, name) for name in names]


def finish(part: Part, out: Path) -> None:
    out.mkdir(exist_ok=True)
    schema = pa.schema([("source", pa.string())]).with_metadata({ITEMS: part.covers.encode()})
    pq.write_table(pa.Table.from_pylist([], schema), out / part.file)


def test_parts_that_have_a_file_are_not_left(tmp_path: Path) -> None:
    out, all_of_it = tmp_path / "out", items(*"abcdefg")
    first, second, third = left_to_count(all_of_it, locate(str(out)), 3)
    assert [len(part.items) for part in (first, second, third)] == [3, 3, 1]
    finish(second, out)
    assert left_to_count(all_of_it, locate(str(out)), 3) == [first, third]


def test_what_was_divided_otherwise_is_still_counted_once(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for part in left_to_count(items(*"bdf"), locate(str(out)), 2):
        finish(part, out)
    left = left_to_count(items(*"abcdefg"), locate(str(out)), 2)
    assert sorted(item.key for part in left for item in part.items) == ["a", "c", "e", "g"]


@pytest.mark.parametrize("content", [b"", b"no table", None, b"{", b"3", b"[[1]]", b"[" * 100_000])
@pytest.mark.parametrize("own", [True, False])
def test_a_part_that_is_not_whole_is_never_taken_for_counted(tmp_path: Path, own: bool, content: bytes | None) -> None:
    first, _ = left_to_count(items(*"abc"), locate(str(tmp_path)), 2)
    file = tmp_path / (first.file if own else "part-0.parquet")
    if content in (b"", b"no table"):
        file.write_bytes(content)
    else:
        schema = pa.schema([("source", pa.string())]).with_metadata(None if content is None else {ITEMS: content})
        pq.write_table(pa.Table.from_pylist([], schema), file)
    with pytest.raises(InputError, match=rf"{file.name}: not a whole part of a table .*; delete it"):
        left_to_count(items(*"abc"), locate(str(tmp_path)), 2)


@pytest.mark.parametrize("content", ["", "{", "[]", "[" * 100_000])
def test_settings_of_a_table_that_are_damaged_are_named(tmp_path: Path, content: str) -> None:
    (tmp_path / JOB).write_text(content)
    model = find_model("sha")
    with pytest.raises(InputError, match=rf"{JOB}: damaged .*; choose another folder"):
        count_on_cluster(tmp_path / "a.png", tmp_path, weights=model)


@pytest.mark.parametrize("option", ["workers", "part_size"])
def test_a_number_with_which_nothing_would_be_counted_is_refused(tmp_path: Path, option: str) -> None:
    with pytest.raises(InputError, match=f"{option}=0: less than one"):
        count_on_cluster(tmp_path / "a.png", tmp_path / "out", **{option: 0})
    assert not (tmp_path / "out").exists()


def test_a_cluster_is_named_also_where_the_error_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(ray, "init", Mock(side_effect=TimeoutError))
    with (
        pytest.raises(InputError, match=r"cluster head:6379: cannot be reached \(TimeoutError\)"),
        connected("head:6379"),
    ):
        pass


def test_stretches_of_one_video_are_told_apart() -> None:
    first, second = (Item("film.mp4", "film.mp4", True, start, None) for start in (0.0, 10.0))
    assert first.key != second.key


def test_files_behind_an_address_come_in_natural_order(tmp_path: Path) -> None:
    for name in ("10.jpg", "9.png", "._9.png", "notes.txt", "film.mp4"):
        (tmp_path / name).touch()
    found = list(find_files(f"file://{tmp_path}"))
    assert found == [f"file://{tmp_path}/{name}" for name in ("9.png", "10.jpg", "film.mp4")]


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    (locate(str(tmp_path)) / "part").write(b"whole")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("part", b"whole")]
