"""Nothing phones home: no runtime reports on its use, whichever way it is reached."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EVERY_PATH = """
import sys, time
import numpy as np
from pathlib import Path
from gbdgc.cli.doctor import examine
from gbdgc.counting import Counter
from gbdgc.counting.graph import write_openvino
from gbdgc.counting.rounding import in_8_bits

onnx, openvino, graph, out = map(Path, sys.argv[1:])
picture = np.full((64, 64, 3), 90, dtype=np.uint8)
for exported in (onnx, openvino):
    Counter.load(exported)(picture)
write_openvino(in_8_bits(graph, [np.zeros((1, 3, 64, 64), dtype=np.float32)]), out, "")
list(examine())
time.sleep(3)  # what reports on its use does so in the background
print("done")
"""
CI_VARIABLES = re.compile("CI|BUILD|GITHUB|GITLAB|JENKINS|TRAVIS|TEAMCITY|PYTEST|TF_|NNCF")
"""Under these the runtimes hold their tongues by themselves, and would show nothing."""


@pytest.mark.slow
def test_no_engine_export_or_check_connects_to_anything(exports: dict[str, Path], tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    strace = [shutil.which("strace") or "", "-f", "-e", "trace=connect", "-o", str(trace)]
    if not strace[0] or subprocess.run([*strace, "true"], capture_output=True).returncode:
        pytest.skip("needs strace, and leave to use it")
    environment = {name: value for name, value in os.environ.items() if not CI_VARIABLES.search(name)}
    files = [exports["m.onnx"], exports["m.xml"], exports["m.onnx"].with_name("graph.onnx"), tmp_path / "out.xml"]
    done = subprocess.run(
        [*strace, sys.executable, "-c", EVERY_PATH, *map(str, files)],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment | {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)},
    )
    assert done.stdout == "done\n", done.stderr
    assert [line for line in trace.read_text().splitlines() if "AF_INET" in line] == []
    assert not (tmp_path / "intel").exists()
