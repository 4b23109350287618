"""Training over two machines: two network namespaces, joined by a virtual cable, that share a disk."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from gbdgc import checkpoint
from gbdgc.runs import TrainingRun

ADDRESSES = ("10.203.0.1", "10.203.0.2")


def ip(*words: str) -> str:
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout


def cut_power(namespace: str) -> None:
    """Kill all that runs on a node."""
    for process in ip("netns", "pids", namespace).split():
        os.kill(int(process), signal.SIGKILL)


@pytest.fixture
def namespaces() -> Iterator[list[str]]:
    """Two hosts that see each other and nothing else."""
    names = [f"gbdgc-{os.getpid()}-{number}" for number in range(2)]
    cables = [f"gb{os.getpid()}n{number}" for number in range(2)]
    if shutil.which("ip") is None:
        pytest.skip("no command ip")
    with ExitStack() as stack:
        try:
            for name in names:
                ip("netns", "add", name)
                stack.callback(ip, "netns", "delete", name)
                stack.callback(cut_power, name)
            ip(
                "link",
                "add",
                cables[0],
                "netns",
                names[0],
                "type",
                "veth",
                "peer",
                "name",
                cables[1],
                "netns",
                names[1],
            )
            for name, cable, address in zip(names, cables, ADDRESSES, strict=True):
                ip("-n", name, "address", "add", f"{address}/24", "dev", cable)
                ip("-n", name, "link", "set", cable, "up")
                ip("-n", name, "link", "set", "lo", "up")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no network namespaces here ({error.stderr.strip()})")
        yield names


def start(node: int, namespaces: list[str], command: list[str]) -> "subprocess.Popen[str]":
    """Run torchrun on a node, as docs/training.md says."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1"]
    torchrun += ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"{ADDRESSES[0]}:29500"]
    # The namespaces share the name of this host, which leads to neither of them.
    torchrun += ["--local-addr", ADDRESSES[node], "--rdzv-conf", f"is_host={node == 0}"]
    return subprocess.Popen(
        ["ip", "netns", "exec", namespaces[node], *torchrun, "-m", "gbdgc", *command],
        env=os.environ | {"GLOO_SOCKET_IFNAME": f"gb{os.getpid()}n{node}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_a_training_over_two_nodes_goes_on_after_one_was_lost(
    namespaces: list[str], tiny_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    command = ["train", str(tiny_file), "train.epochs=8", "--out", str(out)]
    nodes = [start(node, namespaces, command) for node in range(2)]
    while not (out / "checkpoints" / checkpoint.LAST).exists():
        assert all(node.poll() is None for node in nodes), [node.communicate() for node in nodes]
        time.sleep(0.02)
    cut_power(namespaces[1])
    _, said = nodes[0].communicate(timeout=300)
    assert nodes[0].returncode, said
    assert "lost the connection to the other processes: one of them has ended" in said
    assert not TrainingRun(out).finished

    nodes = [start(node, namespaces, [*command, "--resume"]) for node in range(2)]
    answers = [node.communicate(timeout=300) for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], answers
    assert TrainingRun(out).finished
    assert [record["epoch"] for record in TrainingRun(out).metrics] == list(range(1, 9))
