"""Run folders: numbered, each its own, resumed with the same settings only, and a clear word where there is none."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from gbdgc.errors import InputError
from gbdgc.files import claim
from gbdgc.runs import RunFolder, new_run_folder
from gbdgc.runs.folder import newest_run_folder


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def opened(settings: dict[str, Any] | None = None, **options: Any) -> RunFolder:
    """Open a run's folder and leave it again."""
    with RunFolder.open("eval", "street", settings or {"tile": 1}, **options) as run:
        return run


def test_every_run_gets_the_next_number(tmp_path: Path) -> None:
    made = [new_run_folder("eval", "street") for _ in range(2)]
    assert made == [Path("runs/eval/street-1"), Path("runs/eval/street-2")]
    assert all((tmp_path / folder).is_dir() for folder in made)
    assert new_run_folder("eval", "square").name == "square-1"


def test_a_place_where_no_folder_can_be_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"-1: this folder cannot be made"):
        new_run_folder("eval", "street" * 100)
    (tmp_path / "runs/domains").touch()
    with pytest.raises(InputError, match=r"runs/domains: this folder cannot be made"):
        new_run_folder("domains", "street")
    for out in ("street" * 100, "a\0b"):
        with pytest.raises(InputError, match=r": this folder cannot be (used|made)"):
            opened(out=out)


@pytest.mark.parametrize("name", ["../../X", "/etc/X", "a/b", "..", ".", "", " ", "a\0b"])
def test_the_name_of_a_run_is_a_name_and_no_way_out_of_the_folder_of_runs(name: str) -> None:
    for resume in (False, True):
        with pytest.raises(InputError, match="not a name for a run"), RunFolder.open("eval", name, {}, resume=resume):
            pass
    assert not [path for path in Path().rglob("*") if path.name != "runs" and path.name != "eval"]


def test_a_folder_is_for_one_at_a_time(tmp_path: Path) -> None:
    with claim(tmp_path), pytest.raises(InputError, match="another process is at work there"), claim(tmp_path):
        pass
    with claim(tmp_path):
        pass
    with (
        RunFolder.open("eval", "street", {}) as run,
        pytest.raises(InputError, match="another process is at work there"),
        RunFolder.open("eval", "street", {}, out=run.path, resume=True),
    ):
        pass


def test_a_run_says_how_it_is_made_and_is_resumed_with_the_same_settings_only() -> None:
    run = opened()
    assert (run.path, run.resumed) == (Path("runs/eval/street-1"), False)
    assert {path.name for path in run.path.iterdir()} == {"settings.json", "environment.json"}
    assert opened().path.name == "street-2"
    again = opened(resume=True)
    assert (again.path.name, again.resumed) == ("street-2", True)
    assert opened(resume=True, out=run.path).resumed
    with pytest.raises(InputError, match=r"street-2: was started with other settings \(tile\); resume with the same"):
        opened({"tile": 2}, resume=True)
    with pytest.raises(InputError, match="street-1: holds a run already; resume it, or choose another folder"):
        opened(out=run.path)
    (run.path / "settings.json").write_text("[]")
    with pytest.raises(InputError, match="not the settings of such a run"):
        opened(resume=True, out=run.path)


def test_there_must_be_a_run_to_resume_unless_one_is_started_where_there_is_none(tmp_path: Path) -> None:
    for options in ({}, {"out": tmp_path / "new"}):
        with pytest.raises(InputError, match="no run to resume; start it without resuming"):
            opened(resume=True, **options)
        assert not (tmp_path / "new").exists()
        assert not opened(resume="auto", **options).resumed
        assert opened(resume="auto", **options).resumed


def test_a_folder_that_was_made_and_never_begun_is_not_the_newest_run() -> None:
    begun = opened()
    new_run_folder("eval", "street")
    assert newest_run_folder("eval", "street") == begun.path


def test_the_files_of_somebody_else_are_not_taken_for_those_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "counts.csv").touch()
    with pytest.raises(InputError, match=r"has a counts\.csv that is not of a run; choose another folder"):
        opened(out=tmp_path, products=["counts.csv"])
    opened(out=tmp_path)
    assert opened(out=tmp_path, resume=True, products=["counts.csv"]).resumed


def test_a_run_that_could_not_start_is_forgotten_but_for_what_the_user_keeps_there(tmp_path: Path) -> None:
    run = opened()
    opened(out=run.path, resume=True).forget()
    assert (run.path / "settings.json").exists()
    run.forget()
    assert not run.path.exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").touch()
    opened(out=tmp_path / "mine").forget()
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_what_killed_writers_left_is_swept_when_the_folder_is_claimed_again(tmp_path: Path) -> None:
    run = opened()
    other = opened(out=run.path / "eval")
    litter = [run.path / ".best.safetensors.0123456789ab.part", run.path / "deep" / ".a\nb.csv.ba9876543210.part"]
    kept = [run.path / ".mine.part", run.path / "b.part", other.path / ".c.0123456789ab.part"]
    (run.path / "deep").mkdir()
    for path in litter + kept:
        path.write_bytes(b"half")
    with ExitStack() as stack:
        stack.enter_context(claim(other.path))  # at work in a folder of its own
        opened(out=run.path, resume=True)
    assert not any(path.exists() for path in litter)
    assert all(path.exists() for path in kept)
