"""Steps and discovery, side by side in one run on the CPU.

    python benchmarks/training.py [--rounds 3] [--backbones vgg16 compact] [--threads 1]

The ratios count, not the seconds: both sides of each are measured in turns. VGG16 takes seconds a picture on two cores,
so its batches are small; every part of a step grows with the batch alike.
"""

import argparse
from functools import partial
from unittest.mock import patch

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn
from torch.nn import functional

from former_compact import FormerCompact
from gbdgc.data.loading import Batch
from gbdgc.descriptors import channel_statistics, describe
from gbdgc.domains import GranularBallDomains
from gbdgc.memory import keep_freed_memory
from gbdgc.methods import MethodOptions
from gbdgc.methods.build import build_method
from gbdgc.models import Network, build_network, compact
from gbdgc.training.precision import cpu_has_bf16
from gbdgc.training.step import Runner, backward
from timing import fastest, verdict

PICTURES, DESCRIPTOR_SIZE = 300, 224
BATCH = {"vgg16": 2, "compact": 8}
CROP = {"vgg16": 320, "compact": 256}
OPTIONS = {"vgg16": {}, "compact": {"frozen_blocks": 3}}
LOSS = {"vgg16": "squared", "compact": "poisson"}
STEP_LIMIT = {"vgg16": 1.10, "compact": 1.25}


def make_runner(backbone: str, method: str, precision: str = "32-true") -> Runner:
    torch.manual_seed(0)
    chosen = build_method(MethodOptions(name=method, density=LOSS[backbone]))
    network = build_network(backbone, pretrained=False, **chosen.network_options, **OPTIONS[backbone])
    freeze(network, backbone)
    fabric = Fabric(accelerator="cpu", devices=1, precision=precision)
    return Runner(fabric, network.train(), fabric.setup_module(network), chosen)


def freeze(network: Network, backbone: str) -> None:
    """Freeze what training from ImageNet weights freezes; random weights are left to learn otherwise."""
    if backbone == "compact":
        encoder = network.backbone.encoder
        for part in (encoder.stem, *encoder.blocks[: OPTIONS[backbone]["frozen_blocks"]]):
            part.requires_grad_(False)


def make_batch(backbone: str, cell: int) -> Batch:
    size, crop = BATCH[backbone], CROP[backbone]
    images = torch.randn(size, 3, crop, crop).contiguous(memory_format=torch.channels_last)
    people = cell**2 * torch.rand(size, crop // cell, crop // cell) / 1000
    return Batch(images, people, torch.arange(size) % 2, [str(number) for number in range(size)])


def step(runner: Runner, batch: Batch, with_statistics: bool = False) -> None:
    runner.network.zero_grad()
    backward(runner, batch, micro_batch=None, seed=0, with_statistics=with_statistics)


def bare_step(runner: Runner, batch: Batch) -> None:
    """The same layers and the squared error, with nothing of ours around them."""
    runner.network.zero_grad()
    density = runner.network(batch.images).density[:, 0]
    (density - batch.people).square().mean().backward()


def former_step(network: nn.Module, batch: Batch) -> None:
    network.zero_grad()
    network(batch.images).square().mean().backward()


def library_step(runner: Runner, batch: Batch) -> None:
    """The same step with torch's own gradient of depthwise convolutions."""
    with patch.object(compact, "depthwise", library_depthwise):
        step(runner, batch)


def library_depthwise(signal: Tensor, weight: Tensor, bias: Tensor | None, stride: int, padding: int) -> Tensor:
    return functional.conv2d(signal, weight, bias, stride, padding, groups=len(weight))


def encoder_step(encoder: nn.Module, batch: Batch) -> None:
    encoder.zero_grad()
    torch.stack([level.square().mean() for level in encoder(batch.images)]).sum().backward()


def compare_steps(backbone: str, rounds: int) -> None:
    gbdgc, erm = make_runner(backbone, "gbdgc"), make_runner(backbone, "erm")
    batch = make_batch(backbone, erm.network.backbone.cell)
    works = [partial(step, gbdgc, batch), partial(step, erm, batch), partial(bare_step, erm, batch)]
    if backbone == "compact":
        works.append(partial(encoder_step, erm.network.backbone.encoder, batch))
        works.append(partial(former_step, FormerCompact().train(), batch))
    for work in works:
        work()  # the first time allocates and chooses kernels
    ours, plain, bare, *others = fastest(*works, rounds=rounds)
    print(f"{backbone}, batches of {BATCH[backbone]} crops of {CROP[backbone]}: erm step {plain:.2f} s")
    verdict("gbdgc step / erm step", ours / plain, at_most=STEP_LIMIT[backbone])
    verdict("erm step / bare forward and backward of its layers", plain / bare, at_most=1.05)
    if others:
        encoder, former = others
        verdict("erm step / its encoder's forward and backward", plain / encoder, at_most=1.7)
        verdict("gbdgc step / its encoder's forward and backward", ours / encoder, at_most=1.7)
        verdict("crops per second, erm / the network before", former / plain, at_least=2.3)
        verdict("crops per second, gbdgc / the network before", former / ours, at_least=2.3)


def compare_gradients(rounds: int) -> None:
    """Our gradient of depthwise convolutions against the library's, in 32 bits and in bf16 where the CPU has it."""
    precisions = ["32-true", "bf16-mixed"] if cpu_has_bf16() else ["32-true"]
    runners = [make_runner("compact", "erm", precision) for precision in precisions]
    batch = make_batch("compact", runners[0].network.backbone.cell)
    works = [partial(work, runner, batch) for runner in runners for work in (step, library_step)]
    for work in works:
        work()
    times = fastest(*works, rounds=rounds)
    for precision, ours, library in zip(precisions, times[::2], times[1::2], strict=True):
        verdict(f"{precision}: step with the library's depthwise gradient / ours", library / ours, at_least=1.0)
    if len(times) > 2:
        verdict("32 bits with the library's gradient / bf16 with ours", times[1] / times[2], at_least=1.6)


def share_of_discovery(backbone: str, rounds: int) -> None:
    runner = make_runner(backbone, "gbdgc")
    batch = make_batch(backbone, runner.network.backbone.cell)
    size = BATCH[backbone]
    small = torch.randn(size, 3, DESCRIPTOR_SIZE, DESCRIPTOR_SIZE).contiguous(memory_format=torch.channels_last)
    _, z_ND = describe(runner.network, [(batch.ids, small)])
    cloud = torch.randn(PICTURES, z_ND.shape[1]).numpy()
    levels = [level.detach() for level in runner.network(batch.images).levels]
    works = [
        partial(step, runner, batch),
        partial(describe, runner.network, [(batch.ids, small)]),
        partial(channel_statistics, levels),
        partial(GranularBallDomains(n_domains=4).fit, cloud),
    ]
    for work in works:
        work()
    one_step, one_pass, statistics, division = fastest(*works, rounds=rounds)
    steps = PICTURES / size
    epoch = steps * one_step
    by_pass, online = steps * one_pass + division, steps * statistics + division
    print(f"{backbone}, {PICTURES} pictures: epoch {epoch:.0f} s, descriptor pass {steps * one_pass:.1f} s, ", end="")
    print(f"statistics of the training pass {steps * statistics:.2f} s, discovery {division:.2f} s")
    verdict("discovery with its own pass / epoch with it", by_pass / (epoch + by_pass), at_most=0.20)
    verdict("discovery online / epoch with it", online / (epoch + online), at_most=0.02)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--backbones", nargs="+", default=list(BATCH))
    parser.add_argument("--threads", type=int, help="threads of torch; all cores unless given")
    arguments = parser.parse_args()
    keep_freed_memory()  # as every run does
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    for backbone in arguments.backbones:
        compare_steps(backbone, arguments.rounds)
    if "compact" in arguments.backbones:
        compare_gradients(arguments.rounds)
    if "vgg16" in arguments.backbones:
        share_of_discovery("vgg16", arguments.rounds)


if __name__ == "__main__":
    main()
