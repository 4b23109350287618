"""Journals: a row is there whole or not at all, wherever the file was cut."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from gbdgc.errors import InputError
from gbdgc.files import csv_line, csv_rows
from gbdgc.runs import Journal

COLUMNS = ("name", "count", "note")
ROWS: list[dict[str, Any]] = [
    {"name": "a.jpg", "count": "1.5", "note": ""},
    {"name": 'two\nlines, "quoted" \udcff\r.jpg', "count": "-2", "note": "x"},
    {"name": "last.jpg", "count": "3", "note": 'ends "so"\nand on'},
]


@pytest.mark.parametrize("columns", [COLUMNS, None], ids=["csv", "json lines"])
def test_wherever_the_file_is_cut_the_whole_rows_stay_and_can_be_appended_to(
    tmp_path: Path, columns: tuple[str, ...] | None
) -> None:
    journal = Journal(tmp_path / "journal", columns)
    ends = []
    for row in ROWS:
        journal.append(row)
        ends.append(journal.path.stat().st_size)
    assert journal.rows() == ROWS
    whole = journal.path.read_bytes()
    for cut in range(len(whole) + 1):
        journal.path.write_bytes(whole[:cut])
        left = sum(end <= cut for end in ends)
        assert journal.rows() == ROWS[:left]
        assert journal.path.stat().st_size == cut  # a reader changes nothing
        assert journal.recover() == ROWS[:left]
        for row in ROWS[left:]:
            journal.append(row, durable=row is ROWS[-1])
        assert journal.path.read_bytes() == whole


def test_all_rows_can_be_written_anew_and_values_that_are_not_there_are_empty(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "table.csv", COLUMNS)
    journal.replace([{"name": "a", "count": None, "more": 3}])
    assert journal.path.read_text() == "name,count,note\na,,\n"
    journal.replace([])
    assert journal.rows() == journal.recover() == []
    assert Journal(tmp_path / "nowhere").recover() == []


def test_a_row_that_is_damaged_though_whole_is_named(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"epoch": 1}\n{"epo\n{"epoch": 3}\n')
    with pytest.raises(InputError, match=r"metrics\.jsonl: row 2 is damaged"):
        Journal(tmp_path / "metrics.jsonl").rows()
    (tmp_path / "table.csv").write_text("name,count,note\na,1,\nb,2\n")
    with pytest.raises(InputError, match=r"row 3 is damaged \(2 cells under 3 columns\)"):
        Journal(tmp_path / "table.csv", COLUMNS).rows()
    (tmp_path / "table.csv").write_text("name,count\na,1\n")
    with pytest.raises(InputError, match="its columns are not those of this run"):
        Journal(tmp_path / "table.csv", COLUMNS).recover()


def test_a_disk_that_takes_no_more_is_named(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no full disk at hand")
    (tmp_path / "metrics.jsonl").symlink_to("/dev/full")
    with pytest.raises(InputError, match=r"metrics\.jsonl: could not be written \(No space left on device\); make"):
        Journal(tmp_path / "metrics.jsonl").append({"epoch": 1})


FORMULAS = ["=cmd|' /C calc'!A0.jpg", "+1+1", "-2+3.png", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1", "'=1", "''@x"]


@pytest.mark.parametrize("name", [*FORMULAS, "plain.jpg", "'quoted'.jpg", "", "-5", "a=b"])
def test_a_name_that_a_spreadsheet_would_run_is_escaped_and_read_back_as_it_was(tmp_path: Path, name: str) -> None:
    journal = Journal(tmp_path / "table.csv", COLUMNS)
    journal.append({"name": name, "count": -1.5, "note": None})
    with journal.path.open(newline="") as file:
        (shown, number, _) = list(csv.reader(file))[1]
    assert not shown.startswith(("=", "+", "@", "\t", "\r")) or name == "-5"
    assert (shown == name) == (name not in FORMULAS)
    assert number == "-1.5"
    assert journal.rows()[0]["name"] == name
    assert csv_rows(csv_line([name])) == [[name]]


def test_json_lines_are_plain_json(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.append({"a": [1, None, "\udcff"]})
    assert json.loads(journal.path.read_text()) == {"a": [1, None, "\udcff"]}


def test_a_row_that_no_longer_fits_on_the_disk_is_refused_and_leaves_no_half_behind(tmp_path):
    resource = pytest.importorskip("resource")
    journal = Journal(tmp_path / "rows.jsonl")
    journal.append({"a": "x" * 40})
    whole = journal.path.read_bytes()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Like a disk that gets full within the row: the system writes what fits and reports no error.
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 10, before[1]))
    try:
        with pytest.raises(InputError, match=r"rows\.jsonl: could not be written"):
            journal.append({"a": "y" * 40})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert journal.path.read_bytes() == whole
    journal.append({"a": "z"})
    assert [row["a"] for row in journal.rows()] == ["x" * 40, "z"]
