"""Training in two processes of which one dies: it is named, and the run goes on to the same bits."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from gbdgc import checkpoint

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes by Linux's /proc")
OVERRIDES = ("train.epochs=4",)


def start(config: Path, out: Path, *options: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "gbdgc", "train", str(config), *OVERRIDES, "--out", str(out), "--devices", "2"]
    return subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: "subprocess.Popen[str]") -> tuple[int, str]:
    _, errors = process.communicate(timeout=400)
    return process.returncode, errors


def kill_second_process(parent: "subprocess.Popen[str]", out: Path) -> None:
    """Wait for a checkpoint, then kill the process of rank 1."""
    deadline = time.monotonic() + 300
    while not (out / "checkpoints" / checkpoint.LAST).exists():
        assert parent.poll() is None, parent.communicate()
        assert time.monotonic() < deadline, "no checkpoint came"
        time.sleep(0.05)
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
    (second,) = [pid for pid in children if b"\0LOCAL_RANK=1\0" in Path(f"/proc/{pid}/environ").read_bytes()]
    subprocess.run(["kill", "-KILL", second], check=True)


@pytest.mark.slow
def test_a_process_that_dies_is_named_and_the_run_goes_on_to_the_same_bits(tiny_file: Path, tmp_path: Path) -> None:
    whole, killed, restarted = (tmp_path / name for name in ("whole", "killed", "restarted"))
    code, errors = finish(start(tiny_file, whole))
    assert code == 0, errors

    process = start(tiny_file, killed)
    kill_second_process(process, killed)
    began = time.monotonic()
    code, errors = finish(process)
    assert code == 1
    assert "(rank 1): ended by SIGKILL" in errors
    assert "--resume" in errors
    assert "Traceback" not in errors
    assert time.monotonic() - began < 60
    code, errors = finish(start(tiny_file, killed, "--resume"))
    assert code == 0, errors

    process = start(tiny_file, restarted, "--max-restarts", "1")
    kill_second_process(process, restarted)
    code, errors = finish(process)
    assert code == 0, errors

    states = [checkpoint.read(folder / "checkpoints" / checkpoint.LAST)[0] for folder in (whole, killed, restarted)]
    for name, tensor in states[0].items():
        assert all(state[name].equal(tensor) for state in states[1:]), name


def test_restarts_need_a_folder_to_go_on_with(tiny_file: Path) -> None:
    command = [sys.executable, "-m", "gbdgc", "train", str(tiny_file), "--devices", "2", "--max-restarts", "1"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert answer.returncode == 2
    assert "--max-restarts: " in answer.stderr
