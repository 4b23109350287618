"""Real crowds: trained on ShanghaiTech A for two epochs, stopped and resumed on the way, counted on B."""

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

REAL = os.environ.get("GBDGC_DATA")
GBDGC = [sys.executable, "-m", "gbdgc"]
OVERRIDES = ["train.epochs=2", "data.repeats=1", "augmentation.crop=160", "train.checkpoint_seconds=0"]


@pytest.mark.slow
@pytest.mark.minutes
@pytest.mark.skipif(REAL is None, reason="GBDGC_DATA names no folder with ShanghaiTech")
def test_two_epochs_on_a_survive_a_stop_and_the_model_counts_b(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    command = [*GBDGC, "train", "compact_sha", *OVERRIDES, "--out", str(folder)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    last = folder / "checkpoints" / checkpoint.LAST
    until = time.monotonic() + 300
    while not last.exists() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=100)
    assert process.returncode == 130, errors.decode()
    assert (checkpoint.read(last)[1]["epoch"], len(list((folder / "domains").glob("*.csv")))) == (0, 1)

    subprocess.run([*command, "--resume"], check=True, stderr=subprocess.PIPE)
    first, second = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert second["losses"]["density"] < first["losses"]["density"]
    assert second["validation"]["mae"] < first["validation"]["mae"]
    assert second["validation"]["images"] == 30

    part = load_dataset(f"{REAL}/ShanghaiTech/part_B").where("test")[::4]  # whole, it would take a minute more
    target, out = part.save(tmp_path / "part_B.jsonl"), tmp_path / "eval"
    subprocess.run([*GBDGC, "eval", str(folder), str(target), "--out", str(out)], check=True, stderr=subprocess.PIPE)
    on_b = json.loads((out / "summary.json").read_text())["data"]["part_B.jsonl"]
    assert (on_b["images"], on_b["unreadable"], on_b["split"]) == (79, 0, "test")
    assert 0 < on_b["mae"]["low"] < on_b["mae"]["value"] < on_b["mae"]["high"]
