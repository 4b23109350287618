"""One step of optimisation, the same whether the batch is whole, in micro-batches or spread over processes.

L_sem and L_sty compare images with each other, so they need the whole batch at once. Where it does not fit at once,
the comparison is made ahead, on descriptors computed without gradients; its gradient on each descriptor is then carried
into the pass over the micro-batches. By the chain rule that is the gradient of the whole batch, at the price of one
more forward pass.
"""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from lightning_fabric import Fabric
from lightning_fabric.wrappers import _FabricModule
from torch import Tensor

from gbdgc.data.loading import Batch
from gbdgc.descriptors import channel_statistics
from gbdgc.methods.contract import Method, PartialLosses
from gbdgc.models import Network, Output


class Runner(NamedTuple):
    """A network, what `fabric.setup` made of it, and what it is trained for."""

    fabric: Fabric
    network: Network
    forward: _FabricModule
    method: Method


class StepResult(NamedTuple):
    """The result of a step, besides the gradient that it leaves in the parameters."""

    losses: dict[str, float]
    """Each loss as its mean over all processes."""
    counts_B: Tensor
    """People predicted in each crop of this process."""
    statistics_BD: Tensor | None
    """Channel statistics of this process's crops, if asked for."""


def backward(
    runner: Runner, batch: Batch, *, micro_batch: int | None, seed: int, with_statistics: bool = False
) -> StepResult:
    """Leave the gradient of the whole batch in the parameters."""
    fabric, method = runner.fabric, runner.method
    size = len(batch.images)
    micro_batch = min(micro_batch or size, size)
    starts = range(0, size, micro_batch)
    gradients: dict[str, Tensor] = {}
    compared: dict[str, Tensor] = {}
    if len(starts) > 1 and method.needs_domains:
        compared, gradients = _compare_ahead(runner, batch, micro_batch, seed)
    values: dict[str, float] = {}
    statistics, counts = [], []
    for number, start in enumerate(starts):
        rows = slice(start, start + micro_batch)
        share = len(batch.images[rows]) / size
        with fabric.no_backward_sync(runner.forward, enabled=start != starts[-1]):
            partial, output = _forward(runner, batch, rows, seed + number)
            if len(starts) == 1:
                compared = _compare(fabric, method, partial.descriptors, batch.domain)
                objective = _objective(method, partial.losses | compared)
            else:
                carried = [(gradients[name][rows] * value).sum() for name, value in partial.descriptors.items()]
                objective = _objective(method, partial.losses) * share + sum(carried)
            fabric.backward(objective)
        for name, loss in partial.losses.items():
            values[name] = values.get(name, 0.0) + float(loss.detach()) * share
        counts.append(output.density.detach().sum(dim=(1, 2, 3)))
        if with_statistics:
            statistics.append(channel_statistics([level.detach() for level in output.levels]))
    values |= {name: float(loss.detach()) for name, loss in compared.items()}
    means = _mean_over_processes(fabric, values)
    return StepResult(means, torch.cat(counts), torch.cat(statistics) if statistics else None)


def gather(fabric: Fabric, tensor: Tensor) -> Tensor:
    """Return the rows of all processes, in the order of the global batch; gradients find their way back."""
    if fabric.world_size == 1:
        return tensor
    gathered = fabric.all_gather(tensor, sync_grads=tensor.requires_grad)
    assert isinstance(gathered, Tensor)
    return gathered.flatten(0, 1)


def _forward(runner: Runner, batch: Batch, rows: slice, seed: int) -> tuple[PartialLosses, Output]:
    # Dropout and mixing depend on where the run stands and on nothing else: so a run resumes bit for bit, and the two
    # passes over a micro-batch see the same.
    torch.manual_seed(seed * runner.fabric.world_size + runner.fabric.global_rank)
    output: Output = runner.forward(batch.images[rows], runner.method.draw_mixing(batch.domain[rows]))
    partial = runner.method.image_losses(output, batch.people[rows], runner.network.head.weight.flatten())
    return partial, output


def _compare(fabric: Fabric, method: Method, descriptors: Mapping[str, Tensor], domain_B: Tensor) -> dict[str, Tensor]:
    everywhere = {name: gather(fabric, value) for name, value in descriptors.items()}
    return method.batch_losses(everywhere, gather(fabric, domain_B)) if everywhere else {}


def _compare_ahead(
    runner: Runner, batch: Batch, micro_batch: int, seed: int
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the losses that compare images, and their gradient on each row of the descriptors."""
    seen: list[dict[str, Tensor]] = []
    with torch.no_grad():
        for number, start in enumerate(range(0, len(batch.images), micro_batch)):
            rows = slice(start, start + micro_batch)
            seen.append(_forward(runner, batch, rows, seed + number)[0].descriptors)
    if not seen[0]:
        return {}, {}
    leaves = {name: torch.cat([part[name] for part in seen]).requires_grad_() for name in seen[0]}
    compared = _compare(runner.fabric, runner.method, leaves, batch.domain)
    gradients = torch.autograd.grad(_objective(runner.method, compared), list(leaves.values()))
    return compared, dict(zip(leaves, gradients, strict=True))


def _objective(method: Method, losses: Mapping[str, Tensor]) -> Tensor:
    return torch.stack([method.weights[name] * loss for name, loss in losses.items()]).sum()


def _mean_over_processes(fabric: Fabric, values: Mapping[str, float]) -> dict[str, float]:
    if fabric.world_size == 1:
        return dict(values)
    mean = fabric.all_reduce(torch.tensor(list(values.values()), device=fabric.device), reduce_op="mean")
    assert isinstance(mean, Tensor)
    return dict(zip(values, mean.tolist(), strict=True))
