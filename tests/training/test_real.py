"""Real crowds: trained on ShanghaiTech A for two epochs, stopped and resumed on the way, counted on B."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gbdgc import checkpoint
from gbdgc.evaluation import evaluate
from gbdgc.training import train

REAL = os.environ.get("GBDGC_DATA")
OVERRIDES = ["train.epochs=2", "train.checkpoint_seconds=5"]


@pytest.mark.slow
@pytest.mark.skipif(REAL is None, reason="GBDGC_DATA names no folder with ShanghaiTech")
def test_two_epochs_on_a_survive_a_stop_and_count_b_better_than_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    command = [sys.executable, "-m", "gbdgc", "train", "compact_sha", *OVERRIDES, "--out", str(folder)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    last = folder / "checkpoints" / checkpoint.LAST
    until = time.monotonic() + 600
    while not last.exists() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130, errors.decode()
    assert (checkpoint.read(last)[1]["epoch"], len(list((folder / "domains").glob("*.csv")))) == (0, 1)

    run = train("compact_sha", OVERRIDES, resume=True, folder=folder)
    assert run.finished
    losses = [record["losses"]["density"] for record in run.metrics]
    assert losses[1] < losses[0]
    assert run.metrics[-1]["validation"]["images"] == 30

    done = evaluate(run.best, [f"{REAL}/ShanghaiTech/part_B"], out=tmp_path / "eval")
    errors_on_b = done.summary["data"]["part_B"]
    assert errors_on_b["images"] == 316
    people_in_b = 39_121 / 316
    assert errors_on_b["mae"]["value"] < 0.8 * people_in_b
