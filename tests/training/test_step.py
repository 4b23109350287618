"""The step is the same for a whole batch, for micro-batches and for several processes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning_fabric import Fabric

from gbdgc import checkpoint
from gbdgc.data.loading import Batch
from gbdgc.methods import MethodOptions
from gbdgc.methods.build import METHODS, build_method
from gbdgc.models import BACKBONES, build_network
from gbdgc.training import TrainingRun, step, train
from gbdgc.training.step import Runner, backward


def make_batch(size: int = 6, side: int = 64, cell: int = 8) -> Batch:
    random = torch.Generator().manual_seed(0)
    images = torch.randn(size, 3, side, side, generator=random)
    people = cell**2 * torch.rand(size, side // cell, side // cell, generator=random) / 1000
    return Batch(images, people, torch.arange(size) % 3, [str(number) for number in range(size)])


def make_runner(method: str = "gbdgc", backbone: str = "compact", dropout: float = 0.0, **options: Any) -> Runner:
    torch.manual_seed(0)
    chosen = build_method(MethodOptions(name=method, **options))
    network = build_network(
        backbone, pretrained=False, dim=16, codewords=32, dropout=dropout, **chosen.network_options
    ).train()
    fabric = Fabric(accelerator="cpu", devices=1)
    return Runner(fabric, network, fabric.setup_module(network), chosen)


def gradients(runner: Runner, batch: Batch, micro_batch: int | None) -> tuple[dict[str, float], torch.Tensor]:
    runner.network.zero_grad()
    losses = backward(runner, batch, micro_batch=micro_batch, seed=7).losses
    return losses, torch.cat([p.grad.flatten() for p in runner.network.parameters() if p.grad is not None])


@pytest.mark.parametrize(
    "options",
    [
        {"semantic": 1.0, "style": 1.0, "orthogonality": 1.0},
        {"semantic": 1.0, "style": 1.0, "orthogonality": 1.0, "alignment": "count_free", "style_form": "separated"},
        {"method": "mixing", "mix": 0.0, "equal_density": 1.0},
        {"method": "mixing", "mix": 0.0},
    ],
    ids=["paper", "count-free and separated", "equal density", "mixing"],
)
@pytest.mark.parametrize("micro_batch", [1, 2, 4])
def test_micro_batches_give_the_losses_and_gradients_of_the_whole_batch(
    options: dict[str, Any], micro_batch: int
) -> None:
    runner = make_runner(**options)
    whole_losses, whole = gradients(runner, make_batch(), None)
    losses, parts = gradients(runner, make_batch(), micro_batch)
    assert losses == pytest.approx(whole_losses, rel=1e-5)
    assert torch.linalg.vector_norm(parts - whole) < 1e-5 * torch.linalg.vector_norm(whole)


def test_both_passes_over_a_micro_batch_see_the_same_dropout(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = make_runner(semantic=1.0, style=1.0, orthogonality=0.0, dropout=0.5)
    seen: list[dict[str, torch.Tensor]] = []

    def forward(*arguments: Any) -> Any:
        partial, output = original(*arguments)
        seen.append({name: value.detach().clone() for name, value in partial.descriptors.items()})
        return partial, output

    original = step._forward
    monkeypatch.setattr(step, "_forward", forward)
    gradients(runner, make_batch(), 2)
    ahead, again = seen[:3], seen[3:]
    assert len(again) == 3
    torch.testing.assert_close(ahead, again, rtol=0, atol=0)
    assert not torch.equal(ahead[0]["style"], ahead[1]["style"])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("backbone", BACKBONES)
def test_every_method_trains_with_every_backbone_for_two_steps(method: str, backbone: str) -> None:
    runner = make_runner(method, backbone, dropout=0.5)
    optimizer = torch.optim.Adam(runner.network.parameters(), lr=1e-4)
    before = [parameter.clone() for parameter in runner.network.parameters()]
    batch = make_batch(4, cell=runner.network.backbone.cell)
    expected = runner.method.weights.keys() - (set() if runner.network.occupancy else {"occupancy"})
    for number in range(2):
        optimizer.zero_grad()
        losses, counts, statistics = backward(runner, batch, micro_batch=None, seed=number, with_statistics=True)
        assert losses.keys() == expected
        assert len(counts) == 4
        assert statistics is not None
        assert len(statistics) == 4
        optimizer.step()
    changed = [not torch.equal(a, b) for a, b in zip(before, runner.network.parameters(), strict=True)]
    assert all(changed)


WHOLE_BATCH = [
    "train.precision=32-true",
    "model.dropout=0",
    "train.epochs=1",
    "train.batch_size=12",
    "method.semantic=1",
    "method.style=1",
]


@pytest.fixture(scope="module")
def one(tiny_file: Path, tmp_path_factory: pytest.TempPathFactory) -> TrainingRun:
    """A run of one process."""
    return train(tiny_file, WHOLE_BATCH, folder=tmp_path_factory.mktemp("one") / "run")


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["devices", "torchrun"])
def test_two_processes_with_half_the_batch_each_are_one_with_the_whole(
    one: TrainingRun, tiny_file: Path, tmp_path: Path, launcher: str
) -> None:
    two = tmp_path / "two"
    arguments = ["train", str(tiny_file), *WHOLE_BATCH, "--out", str(two)]
    start = {
        "devices": [sys.executable, "-m", "gbdgc", *arguments, "--devices", "2"],
        "torchrun": [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "-m", "gbdgc", *arguments],
    }
    answer = subprocess.run(start[launcher], capture_output=True, text=True, timeout=300)
    assert answer.returncode == 0, answer.stderr
    # One step of Adam leaves the gradient itself in its first moment, times 0.1.
    (alone, _), (together, _) = (checkpoint.read(f / "checkpoints" / checkpoint.LAST) for f in (one.folder, two))
    moments = [name for name in alone if name.endswith("exp_avg")]
    a, b = (torch.cat([tensors[name].flatten() for name in moments]) for tensors in (alone, together))
    assert torch.linalg.vector_norm(a - b) < 1e-5 * torch.linalg.vector_norm(a)
    record = json.loads((two / "metrics.jsonl").read_text())
    assert record["losses"] == pytest.approx(one.metrics[0]["losses"], rel=1e-5)
    assert record["validation"] == pytest.approx(one.metrics[0]["validation"], rel=1e-3)
    for path in (one.folder / "domains").glob("*.csv"):
        assert (two / "domains" / path.name).read_bytes() == path.read_bytes()
