"""The run folder of `gbdgc count`: nobody else's, and gone on with only by the same settings."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gbdgc.cli.count_run import open_run
from gbdgc.counting import Result
from gbdgc.counting.sinks import ResultsFolder
from gbdgc.errors import InputError

SETTINGS = {"weights": None, "zones": {}, "every": 1.0, "seconds": None, "tile": 1024}


def opened(*arguments: Any, **options: Any) -> ResultsFolder:
    """Open a run and let go of it at once."""
    with open_run(*arguments, **options) as run:
        return run


def test_two_processes_do_not_count_into_one_folder(tmp_path: Path) -> None:
    with open_run("in", SETTINGS, tmp_path / "run", resume=False) as run:
        run.write(Result(np.ones((1, 1), np.float32), width=1, height=1, source="a.jpg"))
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
