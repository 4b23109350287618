"""Steps and discovery, side by side in one run on the CPU.

    python benchmarks/training.py [--rounds 3] [--backbones vgg16 compact]

The ratios count, not the seconds: both sides of each are measured in turns. VGG16 takes seconds a picture on two cores,
so its batches are small; every part of a step grows with the batch alike.
"""

import argparse
from functools import partial

import torch
from lightning_fabric import Fabric

from gbdgc.data.loading import Batch
from gbdgc.descriptors import channel_statistics, describe
from gbdgc.domains import GranularBallDomains
from gbdgc.memory import keep_freed_memory
from gbdgc.methods import build_method
from gbdgc.models import DENSITY_SCALE, build_network
from gbdgc.training.step import Runner, backward
from timing import fastest, verdict

CROP, PICTURES, DESCRIPTOR_SIZE = 320, 300, 224
BATCH = {"vgg16": 2, "compact": 8}
STEP_LIMIT = {"vgg16": 1.10, "compact": 1.25}


def make_runner(backbone: str, method: str) -> Runner:
    torch.manual_seed(0)
    chosen = build_method(method)
    network = build_network(backbone, pretrained=False, **chosen.network_options).train()
    fabric = Fabric(accelerator="cpu", devices=1)
    return Runner(fabric, network, fabric.setup_module(network), chosen)


def make_batch(size: int) -> Batch:
    images = torch.randn(size, 3, CROP, CROP).contiguous(memory_format=torch.channels_last)
    density = torch.rand(size, CROP, CROP) / 1000
    return Batch(images, density, torch.arange(size) % 2, [str(number) for number in range(size)])


def step(runner: Runner, batch: Batch, with_statistics: bool = False) -> None:
    runner.network.zero_grad()
    backward(runner, batch, micro_batch=None, seed=0, with_statistics=with_statistics)


def bare_step(runner: Runner, batch: Batch) -> None:
    """The same layers and the squared error, with nothing of ours around them."""
    runner.network.zero_grad()
    density = runner.network(batch.images).density[:, 0]
    (density - batch.density * DENSITY_SCALE).square().mean().backward()


def compare_steps(backbone: str, rounds: int) -> None:
    gbdgc, erm = make_runner(backbone, "gbdgc"), make_runner(backbone, "erm")
    batch = make_batch(BATCH[backbone])
    works = [partial(step, gbdgc, batch), partial(step, erm, batch), partial(bare_step, erm, batch)]
    for work in works:
        work()  # the first time allocates and chooses kernels
    ours, plain, bare = fastest(*works, rounds=rounds)
    print(f"{backbone}, batches of {BATCH[backbone]} crops of {CROP}: erm step {plain:.2f} s")
    verdict("gbdgc step / erm step", ours / plain, at_most=STEP_LIMIT[backbone])
    verdict("erm step / bare forward and backward of its layers", plain / bare, at_most=1.05)


def share_of_discovery(backbone: str, rounds: int) -> None:
    runner = make_runner(backbone, "gbdgc")
    size = BATCH[backbone]
    batch = make_batch(size)
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
    arguments = parser.parse_args()
    keep_freed_memory()  # as every run does
    for backbone in arguments.backbones:
        compare_steps(backbone, arguments.rounds)
    if "vgg16" in arguments.backbones:
        share_of_discovery("vgg16", arguments.rounds)


if __name__ == "__main__":
    main()
