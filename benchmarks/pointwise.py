"""What the dilation of 1 x 1 convolutions saves on one thread in 32 bits: time without it over time with it.

    python benchmarks/pointwise.py

Processor time, so that other programs on the machine lengthen neither.
"""

import time

import torch
from torch import Tensor, nn

from gbdgc.models import Network, build_network
from timing import Work, fastest


def main() -> None:
    """Print the ratios for a picture and for a training step."""
    torch.set_num_threads(1)
    options = {"pretrained": False, "codebook": False, "style": False, "dropout": 0.0}
    dilated, undilated = (build_network("compact", **options) for _ in range(2))
    undilated.load_state_dict(dilated.state_dict())
    for module in undilated.modules():
        if isinstance(module, nn.Conv2d) and module.kernel_size == (1, 1):
            module.dilation = (1, 1)
    for what, make, shape in (
        ("a picture of 1024 x 768", counting, (1, 3, 768, 1024)),
        ("a training step of 8 crops of 256", training, (8, 3, 256, 256)),
    ):
        images = torch.randn(shape).contiguous(memory_format=torch.channels_last)
        before, after = fastest(make(undilated, images), make(dilated, images), clock=time.process_time)
        print(f"{what}: {before / after:.2f} ({1000 * before:.0f} and {1000 * after:.0f} ms of a core)")


def counting(network: Network, images: Tensor) -> Work:
    """Return the work of counting."""

    def count() -> None:
        with torch.inference_mode():
            network.eval()(images)

    return count


def training(network: Network, images: Tensor) -> Work:
    """Return the work of a forward and backward pass; the encoder's first blocks are still, as in the presets."""
    for part in (network.backbone.encoder.stem, *network.backbone.encoder.blocks[:3]):
        part.requires_grad_(False)

    def step() -> None:
        output = network.train()(images)
        output.density.square().sum().backward()
        network.zero_grad()

    return step


if __name__ == "__main__":
    main()
