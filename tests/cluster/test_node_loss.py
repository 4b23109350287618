"""A cluster of two nodes, one of which is killed in the middle."""

import threading
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from gbdgc import count_on_cluster

ray = pytest.importorskip("ray")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.mark.slow
def test_every_picture_is_counted_once_when_a_node_is_killed(
    model: Path, pictures: list[NDArray[np.uint8]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    archive, out = tmp_path / "archive", tmp_path / "out"
    archive.mkdir()
    for number in range(96):
        Image.fromarray(np.kron(pictures[number % 24], np.ones((3, 3, 1), np.uint8))).save(archive / f"{number}.png")
    small = {"num_cpus": 1, "object_store_memory": 80_000_000, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=small)
    node = cluster.add_node(num_cpus=1, object_store_memory=80_000_000)
    killed = threading.Event()

    def kill() -> None:
        while len(list(out.glob("part-*"))) < 3:
            time.sleep(0.05)
        cluster.remove_node(node, allow_graceful=False)  # kill -9
        killed.set()

    try:
        ray.init(address=cluster.address, log_to_driver=False)
        threading.Thread(target=kill, daemon=True).start()
        summary = count_on_cluster(archive, out, weights=model, part_size=3)
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert killed.is_set(), "the job was over before the node was"
    assert summary.counted == 96
    counted = pq.read_table(out).column("source").to_pylist()
    assert sorted(counted) == sorted(str(path) for path in archive.iterdir())
