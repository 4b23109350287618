"""Cells on a cluster: the files of one machine."""

import json
from pathlib import Path

import pytest

from gbdgc.benchmark import Settings, run_benchmark
from gbdgc.benchmark.drawn import draw_benchmark_data

TINY = """
name: tiny
data: {validation: 0.25, workers: 1}
augmentation: {crop: 64}
model: {backbone: compact, pretrained: false, dim: 16, codewords: 32}
discovery: {image_size: 64}
train: {epochs: 1, batch_size: 4, learning_rate: 1.0e-4, selection: validation}
"""


@pytest.mark.slow
@pytest.mark.usefixtures("local_ray")
def test_a_cluster_writes_the_cells_that_one_machine_writes(tmp_path: Path) -> None:
    from gbdgc.cluster.benchmarking import benchmark_on_cluster

    data = draw_benchmark_data(tmp_path / "drawn")
    config = tmp_path / "tiny.yaml"
    config.write_text(TINY)
    two = {name: data[name] for name in list(data)[:2]}
    source = next(iter(two))
    alone, spread = (
        Settings(data=two, config=config, sources=[source], out=tmp_path / where, runs=tmp_path / f"{where}-runs")
        for where in ("alone", "spread")
    )
    cells = benchmark_on_cluster("transfer", spread)
    assert len(cells) == 2
    assert cells == run_benchmark("transfer", spread)
    run_benchmark("transfer", alone)
    for path in sorted((tmp_path / "alone").rglob("*.json")):
        other = tmp_path / "spread" / path.relative_to(tmp_path / "alone")
        assert json.loads(path.read_text()) == json.loads(other.read_text())
