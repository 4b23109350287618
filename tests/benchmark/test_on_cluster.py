"""Cells on a cluster: the files of one machine, whatever becomes of a worker."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

from gbdgc import checkpoint
from gbdgc.benchmark import Settings, run_benchmark
from gbdgc.cluster.benchmarking import benchmark_on_cluster
from gbdgc.cluster.session import connected
from gbdgc.errors import InputError
from gbdgc.runs import TrainingRun

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("cluster")]


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """A local Ray, which every call here finds and uses."""
    pytest.importorskip("ray")
    with connected(cores=1):
        yield


def test_a_cluster_writes_the_cells_of_one_machine_though_a_worker_is_killed(
    settings: Callable[..., Settings], tmp_path: Path
) -> None:
    one_row = {"variants": ["plain regression"], "epochs": 4}
    records: list[str] = []

    def kill_one() -> None:
        """Kill whoever trains, when the first epoch is on record and in a checkpoint."""
        while not (found := [path for path in (tmp_path / "runs").glob("*/metrics.jsonl") if path.stat().st_size]):
            time.sleep(0.02)
        folder, recorded = found[0].parent, found[0].stat().st_mtime_ns
        while not saved_since(recorded, folder / "checkpoints" / checkpoint.LAST):
            time.sleep(0.02)
        os.kill(at_work_in(folder), signal.SIGKILL)
        records.extend(TrainingRun(folder).journal.path.read_text().splitlines())

    killer = Thread(target=kill_one, daemon=True)
    killer.start()
    cells = benchmark_on_cluster("transfer", settings(**one_row))
    killer.join()
    (run,) = (tmp_path / "runs").iterdir()
    after = TrainingRun(run).journal.path.read_text().splitlines()
    # A record has the speed of its epoch: the same line was not written twice.
    assert 1 <= len(records) < len(after) == 4
    assert after[0] == records[0]

    alone = run_benchmark("transfer", settings(**one_row, out=tmp_path / "alone", runs=tmp_path / "alone-runs"))
    assert cells == alone
    (file,) = (path.relative_to(tmp_path / "alone") for path in (tmp_path / "alone").rglob("*.json"))
    assert [json.loads((tmp_path / "out" / file).read_text())] == cells
    written = (tmp_path / "out" / file).stat().st_mtime_ns
    assert benchmark_on_cluster("transfer", settings(**one_row)) == cells
    assert (tmp_path / "out" / file).stat().st_mtime_ns == written


def test_what_is_wrong_with_a_cell_is_said_as_on_one_machine(settings: Callable[..., Settings]) -> None:
    wrong = settings(variants=["plain regression"], overrides=["data.max_side=0"])
    with pytest.raises(InputError, match=r"^data\.max_side=0: at least one pixel, or null for pictures as they are$"):
        benchmark_on_cluster("transfer", wrong)


def saved_since(time_ns: int, file: Path) -> bool:
    with suppress(FileNotFoundError):
        return file.stat().st_mtime_ns >= time_ns
    return False


def at_work_in(folder: Path) -> int:
    """Return the process that has claimed a folder."""
    inode = folder.stat().st_ino
    for line in Path("/proc/locks").read_text().splitlines():
        _, kind, _, _, process, file, *_ = line.split()
        if kind == "FLOCK" and int(file.split(":")[2]) == inode:
            return int(process)
    raise AssertionError(f"nobody is at work in {folder}")
