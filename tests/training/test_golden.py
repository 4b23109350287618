"""The demo's first steps, held to the bit: a change that was meant to change nothing shows here if it did.

After a change that was meant to: GBDGC_WRITE_GOLDEN=1 pytest tests/training/test_golden.py, and say why in the commit.
"""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

GOLDEN = Path(__file__).with_name("golden.json")
SCRIPT = """
import json, sys
from pathlib import Path
from gbdgc.synthetic import draw_dataset
from gbdgc.training import train
folder = Path(sys.argv[1])
source = draw_dataset(folder / "source", images={"train": 15}, size=(160, 120), seed=0)
run = train("demo", [f"data.source=[{source}]", "augmentation.crop=96", "data.validation=0.2", "model.pretrained=false",
            "train.epochs=2", "train.batch_size=4", "train.precision=32-true", "discovery.n_domains=3"],
            folder=folder / "run")
print(json.dumps([record["losses"] for record in run.metrics]))
"""


def machine() -> dict[str, str]:
    """What bits depend on besides the code."""
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {"torch": torch.__version__, "cpu": torch.backends.cpu.get_cpu_capability(), "name": names[0]}


@pytest.mark.slow
def test_the_first_steps_of_the_demo_are_what_they_were(tmp_path: Path) -> None:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    answer = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, timeout=300, env=environment
    )
    assert answer.returncode == 0, answer.stderr
    losses = json.loads(answer.stdout.splitlines()[-1])
    domains = "".join(path.read_text() for path in sorted((tmp_path / "run" / "domains").glob("*.csv")))
    found = {
        "machine": machine(),
        "losses": [{name: value.hex() for name, value in epoch.items()} for epoch in losses],
        "domains": hashlib.sha256(domains.encode()).hexdigest(),
    }
    if "GBDGC_WRITE_GOLDEN" in os.environ:
        GOLDEN.write_text(json.dumps(found, indent=2) + "\n")
    golden = json.loads(GOLDEN.read_text())
    if golden["machine"] == machine():
        assert found == golden
    else:  # another processor or torch rounds otherwise, but not by much
        for epoch, expected in zip(losses, golden["losses"], strict=True):
            assert epoch == pytest.approx({name: float.fromhex(text) for name, text in expected.items()}, rel=0.02)
