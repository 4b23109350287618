"""The commands of docs/scale.md, on a cluster that is started as Ray's users do."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from secrets import token_hex
from socket import socket
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from gbdgc import Counter

ray = pytest.importorskip("ray")
pq = pytest.importorskip("pyarrow.parquet")
pytestmark = pytest.mark.slow

PICTURES = 640
COPIES = PICTURES // 10


@pytest.fixture(scope="module")
def environment() -> Iterator[pytest.MonkeyPatch]:
    """Set the environment of every command: a token, as docs/scale.md says, and time to start on a busy machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", token_hex(32))
        patch.setenv("RAY_raylet_start_wait_time_s", "200")
        yield patch


@pytest.fixture(scope="module")
def address(environment: pytest.MonkeyPatch) -> Iterator[str]:
    """A head and a second node, each with one core; they end with the test, as `ray stop` would end others' too."""
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        head = f"127.0.0.1:{free.getsockname()[1]}"
    common = ["--num-cpus=1", "--object-store-memory=80000000", "--block"]
    # Not below the test's folder: the path of a Unix socket has room for a hundred letters.
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True))
        first = ["--head", f"--port={head.partition(':')[2]}", "--include-dashboard=false", f"--temp-dir={folder}"]
        for options in (first, [f"--address={head}"]):
            command = [sys.executable, "-m", "ray.scripts.scripts", "start", *options, *common]
            said = Path(folder) / f"said-{len(options)}"
            with said.open("w") as output:
                process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
            stack.callback(end, process)
            wait_for(lambda said=said: "Ray runtime started" in said.read_text(), process, said)
        yield head


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(done: Callable[[], bool], process: subprocess.Popen[bytes], said: Path, seconds: float = 300) -> None:
    """Wait until something is the case, while a process runs."""
    last = time.monotonic() + seconds
    while not done():
        assert process.poll() is None, said.read_text()
        assert time.monotonic() < last, said.read_text()
        time.sleep(0.02)


def test_a_job_that_is_stopped_and_killed_is_finished_by_the_same_command(
    address: str, exports: dict[str, Path], pictures: list[NDArray[np.uint8]], tmp_path: Path
) -> None:
    archive, out = tmp_path / "archive", tmp_path / "counts"
    archive.mkdir()
    for number, picture in enumerate(pictures[:10]):
        Image.fromarray(np.kron(picture, np.ones((2, 2, 1), np.uint8))).save(archive / f"{number}-0.png")
        for copy in range(1, COPIES):
            os.link(archive / f"{number}-0.png", archive / f"{number}-{copy}.png")
    command = [sys.executable, "-m", "gbdgc", "count", "file://" + str(archive), "--cluster", address]
    command += ["--weights", str(exports["m.onnx"]), "--out", str(out)]

    def parts() -> set[Path]:
        return set(out.glob("part-*"))

    def stop_after_more(by: signal.Signals) -> tuple[int, str]:
        before = len(parts())
        said = tmp_path / "said"
        with said.open("w") as output:
            process = subprocess.Popen(
                command,
                stdout=output,
                stderr=output,
                # A shell's background jobs ignore Ctrl-C, and so would their children.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )
        wait_for(lambda: len(parts()) > before, process, said)
        process.send_signal(by)
        return process.wait(timeout=120), said.read_text()

    code, said = stop_after_more(signal.SIGINT)
    assert code == 130
    assert said.endswith("stopped: the same command continues\n")
    code, _ = stop_after_more(signal.SIGKILL)
    assert code == -signal.SIGKILL
    written = {path: path.stat().st_mtime_ns for path in parts()}
    assert 2 <= len(written) < PICTURES / 64, "the job was over before it was killed"

    last = subprocess.run(command, capture_output=True, text=True, check=True)
    kept = re.search(r"([\d,]+) counted; ([\d,]+) counted before", last.stderr)
    assert kept is not None
    assert int(kept[1]) + int(kept[2]) == PICTURES
    assert int(kept[2]) >= 64 * len(written)
    assert f"{PICTURES}/{PICTURES}" in last.stderr
    assert re.search(r"[\d.]+ images/s", last.stderr)
    assert last.stdout == f"results: {out}\n"
    assert {path: path.stat().st_mtime_ns for path in written} == written
    alone = Counter.load(exports["m.onnx"], threads=1)
    expected = [alone(archive / f"{number}-0.png").count for number in range(10)]
    counted = dict(zip(*(pq.read_table(out).column(name).to_pylist() for name in ("source", "count")), strict=True))
    assert pq.read_table(out).num_rows == len(counted) == PICTURES
    assert counted == {f"file://{path}": expected[int(path.name.partition("-")[0])] for path in archive.iterdir()}
