"""Run folders: numbered, each its own, and a clear word where there can be none."""

from pathlib import Path

import pytest

from gbdgc.errors import InputError
from gbdgc.runs import claim, new_run_folder


def test_every_run_gets_the_next_number(tmp_path: Path) -> None:
    made = [new_run_folder("eval", "street", tmp_path) for _ in range(2)]
    assert made == [tmp_path / "eval" / "street-1", tmp_path / "eval" / "street-2"]
    assert new_run_folder("eval", "square", tmp_path).name == "square-1"


def test_a_place_where_no_folder_can_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "runs").touch()
    with pytest.raises(InputError, match=r"runs/eval: this folder cannot be made"):
        new_run_folder("eval", "street", tmp_path / "runs")
    with pytest.raises(InputError, match=r"street-1: this folder cannot be made"):
        new_run_folder("", "no/such/street", tmp_path)


def test_a_folder_is_for_one_at_a_time(tmp_path: Path) -> None:
    with claim(tmp_path), pytest.raises(InputError, match="another process is at work there"), claim(tmp_path):
        pass
    with claim(tmp_path):
        pass
