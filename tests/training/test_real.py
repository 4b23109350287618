"""Real crowds: trained on some of ShanghaiTech A for two epochs, stopped and resumed on the way, counted on B."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gbdgc import checkpoint
from gbdgc.data import load_dataset
from in_process import run_gbdgc

REAL = os.environ.get("GBDGC_DATA")
OVERRIDES = ["train.epochs=2", "train.batch_size=4", "data.repeats=1", "augmentation.crop=160"]


@pytest.mark.slow
@pytest.mark.minutes
@pytest.mark.skipif(REAL is None, reason="GBDGC_DATA names no folder with ShanghaiTech")
def test_two_epochs_on_a_survive_a_stop_and_the_model_counts_b(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    source = load_dataset(f"{REAL}/ShanghaiTech/part_A").where("train")[::3].save(tmp_path / "part_A.jsonl")
    settings = [f"data.source=[{source}]", *OVERRIDES, "train.checkpoint_seconds=0"]
    command = ["train", "compact_sha", *settings, "--out", str(folder)]
    process = subprocess.Popen([sys.executable, "-m", "gbdgc", *command], stderr=subprocess.PIPE)
    last = folder / "checkpoints" / checkpoint.LAST
    until = time.monotonic() + 300
    while not last.exists() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=100)
    assert process.returncode == 130, errors.decode()
    assert (checkpoint.read(last)[1]["epoch"], len(list((folder / "domains").glob("*.csv")))) == (0, 1)

    resumed = run_gbdgc(*command, "--resume", folder=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    first, second = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert second["losses"]["density"] < first["losses"]["density"]
    assert second["validation"]["mae"] < first["validation"]["mae"]
    assert second["validation"]["images"] == 10

    part = load_dataset(f"{REAL}/ShanghaiTech/part_B").where("test")[::16]  # whole, it would take minutes
    target = part.save(tmp_path / "part_B.jsonl")
    counted = run_gbdgc("eval", folder, target, "--out", "eval", folder=tmp_path)
    assert counted.returncode == 0, counted.stderr
    on_b = json.loads((tmp_path / "eval" / "summary.json").read_text())["data"]["part_B.jsonl"]
    assert (on_b["images"], on_b["unreadable"], on_b["split"]) == (20, 0, "test")
    assert 0 < on_b["mae"]["low"] < on_b["mae"]["value"] < on_b["mae"]["high"]
