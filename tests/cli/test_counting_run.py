"""The run folder of a count: whole rows, names of their own, and a run that goes on where it stopped."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gbdgc.cli.counting_run import CountingRun, Moment, Tally, open_run
from gbdgc.errors import InputError
from gbdgc.result import Result

SETTINGS = {"weights": None, "zones": {}, "every": 1.0, "seconds": None, "tile": 1024}


def result(source: str, count: float = 1.23456, time: float | None = None) -> Result:
    return Result(
        np.full((1, 1), count, np.float32), width=1, height=1, source=source, time=time, warnings=("so", "so")
    )


def test_names_are_like_their_source_and_never_the_same_twice(tmp_path: Path) -> None:
    run = CountingRun(tmp_path)
    sources = [
        "x/a.jpg",
        "y/a.png",
        "y/A.png",
        "a-2.jpg",
        "b\n[1]ß.jpg",
        "rtsp://host:554/door?x=1",
        "rtsp://..",
        "w" * 300,
    ]
    names = [run.name_for(source) for source in sources]
    assert names[:7] == ["a", "a-2", "A-3", "a-2-2", "b_[1]ß", "host_554_door_x=1", "_"]
    assert len(names[7]) < 200
    assert len({name.casefold() for name in names}) == len(names)


def test_names_taken_in_an_earlier_run_stay_taken(tmp_path: Path) -> None:
    run = CountingRun(tmp_path)
    run.add(result("x/a.jpg"), overlay="overlays/a.jpg")
    run.add(result("cam.1.mp4", time=0.0), density="density/cam.1/000000.npz")
    again = CountingRun(tmp_path)
    assert (again.name_for("y/a.jpg"), again.name_for("z/cam.1.ts")) == ("a-2", "cam.1-2")


def test_what_is_done_is_known_again_and_a_video_by_its_end(tmp_path: Path) -> None:
    run = CountingRun(tmp_path)
    run.add(result("two\nlines, \udcff.jpg"))
    for source in ("half.mp4", "whole.mp4"):
        run.add(result(source, 2, time=0.0))
        run.add(result(source, 3, time=0.5))
    tally = Tally()
    for moment in (Moment(0.0, 2), Moment(0.5, 3)):
        tally.add(moment)
    run.finish_video("whole.mp4", tally, dropped=7)
    assert (tmp_path / "videos.csv").read_text().splitlines()[1] == "whole.mp4,2,0.5,7,2.5,3"
    again = CountingRun(tmp_path)
    assert again.done == {"two\nlines, \udcff.jpg", "whole.mp4"}
    assert again.begun == {"half.mp4": [Moment(0.0, 2), Moment(0.5, 3)]}


@pytest.mark.parametrize("cut", [1, 2, 8, 30])
def test_half_a_row_that_a_power_cut_left_is_counted_again(tmp_path: Path, cut: int) -> None:
    run = CountingRun(tmp_path)
    for source in ("a.jpg", "b.jpg", 'c "quoted", \nlong.jpg'):
        run.add(result(source))
    table = tmp_path / "counts.csv"
    whole = table.read_bytes()
    table.write_bytes(whole[:-cut])
    again = CountingRun(tmp_path)
    assert again.done == {"a.jpg", "b.jpg"}
    again.add(result('c "quoted", \nlong.jpg'))
    assert table.read_bytes() == whole


def test_a_record_is_rounded_for_people_and_never_minus_nothing(tmp_path: Path) -> None:
    run = CountingRun(tmp_path)
    assert run.add(result("a.jpg"))["count"] == 1.235
    assert str(run.add(result("b.jpg", -0.0001))["count"]) == "0.0"


def opened(*arguments: Any, **options: Any) -> CountingRun:
    """Open a run and let go of it at once."""
    with open_run(*arguments, **options) as run:
        return run


def test_two_processes_do_not_count_into_one_folder(tmp_path: Path) -> None:
    with open_run("in", SETTINGS, tmp_path / "run", resume=False) as run:
        run.add(result("a.jpg"))
        with pytest.raises(InputError, match="another process is at work there"):
            opened("in", SETTINGS, tmp_path / "run", resume=True)
    assert opened("in", SETTINGS, tmp_path / "run", resume=True).done == {"a.jpg"}


def test_a_run_goes_on_only_with_the_same_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = opened("in", SETTINGS, None, resume=False)
    assert opened("in", SETTINGS, None, resume=True).folder == first.folder
    assert opened("in", SETTINGS, None, resume=False).folder != first.folder
    with pytest.raises(InputError, match="begun with another --every, --tile"):
        opened("in", SETTINGS | {"every": 2.0, "tile": 512}, first.folder, resume=True)
    with pytest.raises(InputError, match="has counts in it; go on with them by --resume"):
        opened("in", SETTINGS, first.folder, resume=False)
    (first.folder / "config.yaml").write_text("data: sha\n")
    with pytest.raises(InputError, match="is not one of `gbdgc count`"):
        opened("in", SETTINGS, first.folder, resume=True)


@pytest.mark.parametrize("name", ["counts.csv", "videos.csv", "errors.csv"])
def test_a_folder_with_such_a_file_of_the_users_own_is_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(InputError, match=f"has a {name} that is not of a run"):
        opened("street", SETTINGS, tmp_path, resume=False)
    assert (tmp_path / name).read_text() == "mine"


def test_resume_without_an_earlier_run_begins_one(tmp_path: Path) -> None:
    assert opened("in", SETTINGS, tmp_path / "new", resume=True).done == set()
    assert (tmp_path / "new/config.yaml").exists()
