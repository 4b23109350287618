"""Freed memory stays in a process that trains, and goes back in all others."""

import subprocess
import sys

import pytest

ALLOCATE = """
import numpy as np, resource
from gbdgc.memory import keep_freed_memory
if {keep}:
    keep_freed_memory()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
np.ones(16_000_000)  # 128 MB, freed at once
before = faults()
np.ones(16_000_000)
print(faults() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="about the C library of Linux")
def test_a_freed_block_is_used_again_where_asked() -> None:
    fresh, again = (
        int(subprocess.run([sys.executable, "-c", ALLOCATE.format(keep=keep)], capture_output=True, check=True).stdout)
        for keep in (False, True)
    )
    assert again < fresh / 10
