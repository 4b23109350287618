"""Counting on a cluster: the counts of one machine, every picture once, whatever happens in between."""

import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from socket import socket
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from gbdgc import Counter, __version__, count_on_cluster
from gbdgc.cluster import counting as cluster_counting
from gbdgc.cluster.session import warn_if_no_node_fits
from gbdgc.cluster.storage import locate
from gbdgc.counting.video import VideoWriter
from gbdgc.errors import InputError

pq = pytest.importorskip("pyarrow.parquet")
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("local_ray")]


def rows(out: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(out).to_pylist()
    return found


def test_a_cluster_counts_what_one_machine_counts_and_goes_on_where_it_was_stopped(
    archive: Path, model: Path, pictures: list[NDArray[np.uint8]], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    summary = count_on_cluster(archive, out, weights=model, part_size=2)
    assert (summary.counted, summary.failed, summary.parts) == (8, 1, 5)
    alone = Counter.load(model, threads=1)
    expected = {str(path): alone(path).count for path in archive.glob("*.png")}
    assert {row["source"]: row["count"] for row in rows(out) if row["error"] is None} == expected
    (bad,) = [row for row in rows(out) if row["error"] is not None]
    assert bad["source"] == str(archive / "bad.jpg")
    assert bad["error"].startswith(f"{archive / 'bad.jpg'}: ")
    assert bad["count"] is None

    before = {path: path.stat().st_mtime_ns for path in out.iterdir()}
    assert count_on_cluster(archive, out, weights=model, part_size=2).parts == 0
    # One part was never finished, and the archive has grown in the middle since.
    lost = sorted(out.glob("part-*"))[2]
    lost.unlink()
    del before[lost]
    Image.fromarray(pictures[9]).save(archive / "15.png")
    again = count_on_cluster(archive, out, weights=model, part_size=2)
    assert again.counted + again.failed == 10 - again.kept <= 3
    assert sorted(row["source"] for row in rows(out)) == sorted(str(path) for path in archive.iterdir())
    kept = {path: path.stat().st_mtime_ns for path in out.iterdir() if path in before}
    assert kept.items() <= before.items()

    with pytest.raises(InputError, match="made with other settings"):
        count_on_cluster(archive, out, weights=model, tile=512)


def test_stretches_of_a_video_give_the_counts_of_the_whole(
    model: Path, pictures: list[NDArray[np.uint8]], tmp_path: Path
) -> None:
    pytest.importorskip("av")
    film = tmp_path / "film.mp4"
    writer = VideoWriter(film, 5, (160, 128))
    for number in range(40):
        writer.write(pictures[number % 24], number / 5)
    writer.close()
    summary = count_on_cluster(film, tmp_path / "out", weights=model, every=0.5, stretch=2)
    assert summary.parts > 2
    alone = [(frame.time, frame.count) for frame in Counter.load(model, threads=1).stream(film, every=0.5)]
    assert sorted((row["time"], row["count"]) for row in rows(tmp_path / "out")) == alone


def test_a_job_that_is_stopped_leaves_nothing_to_a_cluster_that_stays(
    archive: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    for copy in range(100):
        os.link(archive / "0.png", archive / f"copy-{copy}.png")
    out = tmp_path / "out"
    monkeypatch.setattr("rich.progress.Progress.advance", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        count_on_cluster(archive, out, weights=model, part_size=1)
    while ray.available_resources().get("CPU") != 2:
        time.sleep(0.1)
    assert 1 <= len(list(out.glob("part-*"))) < 100


def test_workers_hold_the_cards_that_were_asked_for(archive: Path, model: Path, tmp_path: Path) -> None:
    import ray

    free: list[float] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            free.append(ray.available_resources().get("GPU", 0))
            time.sleep(0.05)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        assert count_on_cluster(archive, tmp_path / "out", weights=model, gpus=0.75, device="cpu").counted == 8
    finally:
        done.set()
        looking.join()
    assert set(free) == {1, 0.25}


def test_the_user_is_told_what_the_cluster_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    import ray

    warn_if_no_node_fits(ray, cores=2, gpus=1)
    assert capsys.readouterr().err == ""
    warn_if_no_node_fits(ray, cores=1, gpus=2)
    warn_if_no_node_fits(ray, cores=3, gpus=0)
    said = capsys.readouterr().err
    assert said.count("waiting for a node") == 2
    assert "1 cores and 2 GPUs" in said


def test_a_node_with_another_version_refuses(
    archive: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = partial(cluster_counting._WorkerSettings, version="0.0.1")
    monkeypatch.setattr(cluster_counting, "_WorkerSettings", job)
    with pytest.raises(InputError, match=rf"has gbdgc {__version__}, and the job comes from 0.0.1"):
        count_on_cluster(archive, tmp_path / "out", weights=model)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the end of an address in a store that speaks S3, on a port of this machine."""
    pytest.importorskip("moto")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(300):
            try:
                create = urllib.request.Request(f"http://127.0.0.1:{port}/crowds", method="PUT")
                urllib.request.urlopen(create, timeout=5)
                break
            except OSError:
                time.sleep(0.2)
        yield f"?scheme=http&endpoint_override=127.0.0.1:{port}&region=us-east-1"
    finally:
        process.terminate()
        process.wait(timeout=30)


def test_pictures_and_table_may_lie_in_an_object_store(archive: Path, model: Path, bucket: str) -> None:
    source = f"s3://test:test@crowds/in{bucket}"
    for path in archive.iterdir():
        (locate(source) / path.name).write(path.read_bytes())
    out = f"s3://test:test@crowds/out{bucket}"
    summary = count_on_cluster([source], out, weights=model, part_size=4)
    assert (summary.counted, summary.failed) == (8, 1)
    place = locate(out)
    table = pq.read_table(place.path, filesystem=place.system)
    alone = Counter.load(model, threads=1)
    counted = {row["source"]: row["count"] for row in table.to_pylist() if row["error"] is None}
    assert sorted(counted.values()) == sorted(alone(path).count for path in archive.glob("*.png"))
    assert all(":test@" not in name and "?" not in name for name in counted)
    assert count_on_cluster([source], out, weights=model, part_size=4).parts == 0


def test_nothing_imports_ray_before_it_is_asked_to() -> None:
    code = "import sys, gbdgc.cluster, gbdgc.cli.count, gbdgc.cli.benchmark; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=os.environ, check=False).returncode == 0
