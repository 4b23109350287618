"""The folder of results: whole rows, files with names of their own, and a count that goes on where it stopped."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gbdgc.counting import Failure, Moment, Result, Video
from gbdgc.counting.sinks import Files, Overlays, ResultsFolder
from gbdgc.errors import InputError

SETTINGS = {"weights": None, "zones": {}, "every": 1.0, "seconds": None, "tile": 1024}


def result(source: str, count: float = 1.23456, *, time: float | None = None, video: Video | None = None) -> Result:
    """A picture of one pixel, or a frame."""
    frame = None if video is None else round(10 * (time or 0))
    cells, warnings = np.full((1, 1), count, np.float32), ("so", "so")
    return Result(cells, width=1, height=1, source=source, time=time, frame=frame, video=video, warnings=warnings)


def test_names_are_like_their_source_and_never_the_same_twice(tmp_path: Path) -> None:
    run = ResultsFolder(tmp_path)
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
    run = ResultsFolder(tmp_path, sinks=[Overlays()])
    record = run.write(result("x/a.jpg"))
    assert record is not None
    assert (record["overlay"], record["density"]) == ("overlays/a.jpg", None)
    run = ResultsFolder(tmp_path, sinks=[Files("density")])
    record = run.write(result("cam.1.mp4", time=0.3, video=Video("cam.1.mp4")))
    assert record is not None
    assert record["density"] == "density/cam.1/000003.npz"
    again = ResultsFolder(tmp_path)
    assert (again.name_for("y/a.jpg"), again.name_for("z/cam.1.ts")) == ("a-2", "cam.1-2")


def test_all_frames_of_a_video_share_a_name_and_the_next_video_has_its_own(tmp_path: Path) -> None:
    run = ResultsFolder(tmp_path, sinks=[Files("density")])
    for source in ("x/cam.mp4", "y/cam.mp4"):
        video = Video(source)
        for time in (0.0, 0.5):
            run.write(result(source, time=time, video=video))
        run.write(video)
    made = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.npz")}
    assert made == {f"density/{name}/{number}.npz" for name in ("cam", "cam-2") for number in ("000000", "000005")}


def test_what_is_done_is_known_again_and_a_video_by_its_end(tmp_path: Path) -> None:
    run = ResultsFolder(tmp_path)
    run.write(result("two\nlines, \udcff.jpg"))
    for source in ("half.mp4", "whole.mp4"):
        video = Video(source, dropped=7)
        for moment in (Moment(0.0, 2), Moment(0.5, 3)):
            video.add(moment)
            run.write(result(source, moment.count, time=moment.time, video=video))
    run.write(video)
    assert (tmp_path / "videos.csv").read_text().splitlines()[1] == "whole.mp4,2,0.5,7,2.5,3"
    again = ResultsFolder(tmp_path)
    assert again.done == {"two\nlines, \udcff.jpg", "whole.mp4"}
    assert again.begun == {"half.mp4": [Moment(0.0, 2), Moment(0.5, 3)]}


def test_what_failed_is_listed_and_tried_again(tmp_path: Path) -> None:
    run = ResultsFolder(tmp_path)
    assert run.write(Failure("b.jpg", InputError("b.jpg", "damaged", "copy it again"))) is None
    assert run.failed == 1
    assert (tmp_path / "errors.csv").read_text() == "source,error\nb.jpg,b.jpg: damaged; copy it again\n"
    assert ResultsFolder(tmp_path).done == set()
    assert not (tmp_path / "errors.csv").exists()


@pytest.mark.parametrize("cut", [1, 2, 8, 30])
def test_half_a_row_that_a_power_cut_left_is_counted_again(tmp_path: Path, cut: int) -> None:
    run = ResultsFolder(tmp_path)
    for source in ("a.jpg", "b.jpg", 'c "quoted", \nlong.jpg'):
        run.write(result(source))
    table = tmp_path / "counts.csv"
    whole = table.read_bytes()
    table.write_bytes(whole[:-cut])
    again = ResultsFolder(tmp_path)
    assert again.done == {"a.jpg", "b.jpg"}
    again.write(result('c "quoted", \nlong.jpg'))
    assert table.read_bytes() == whole


def test_a_record_is_rounded_for_people_and_never_minus_nothing(tmp_path: Path) -> None:
    run = ResultsFolder(tmp_path)
    counts = [(run.write(result("a.jpg", count)) or {})["count"] for count in (1.23456, -0.0001)]
    assert str(counts) == "[1.235, 0.0]"


def opened(*arguments: Any, **options: Any) -> ResultsFolder:
    """Open a run and let go of it at once."""
    with ResultsFolder.open(*arguments, **options) as run:
        return run


def test_two_processes_do_not_count_into_one_folder(tmp_path: Path) -> None:
    with ResultsFolder.open("in", SETTINGS, tmp_path / "run", resume=False) as run:
        run.write(result("a.jpg"))
        with pytest.raises(InputError, match="another process is at work there"):
            opened("in", SETTINGS, tmp_path / "run", resume=True)
    assert opened("in", SETTINGS, tmp_path / "run", resume=True).done == {"a.jpg"}


def test_a_run_goes_on_only_with_the_same_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = opened("in", SETTINGS, None, resume=False)
    assert opened("in", SETTINGS, None, resume=True).folder == first.folder
    assert opened("in", SETTINGS, None, resume=False).folder != first.folder
    with pytest.raises(InputError, match=r"other settings \(every, tile\)"):
        opened("in", SETTINGS | {"every": 2.0, "tile": 512}, first.folder, resume=True)
    with pytest.raises(InputError, match="holds a run already; resume it, or choose another folder"):
        opened("in", SETTINGS, first.folder, resume=False)
    (first.folder / "config.yaml").write_text("data: sha\n")
    with pytest.raises(InputError, match="not the settings of such a run"):
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
