"""What every backbone is: an encoder of three levels, a top-down decoder over them, and the fused feature F.

Shapes: B batch, C channels, H x W the image, h x w = H/4 x W/4.
All tuples of levels run from fine to coarse: strides 4, 8, 16.
"""

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

STRIDE = 16
"""Images given to a backbone have sides that are multiples of this (the coarsest level's stride)."""


class Features(NamedTuple):
    """What a backbone makes of a batch of images."""

    encoder: tuple[Tensor, ...]
    decoder: tuple[Tensor, ...]
    fused: Tensor


class Decoder(nn.Module):
    """Top-down decoder: two 3x3 convolutions a level, upsampled and concatenated with the next finer encoder level.

    Parameters
    ----------
    encoder_channels : channels of the encoder's levels, fine to coarse.
    widths : for each level, fine to coarse, the output channels of its two convolutions.
    encoder_scale : root mean square of the encoder's features; the kernels that read them are drawn as many times
        smaller, so that the decoder's own features start near one, where the codebook's softmax is not saturated.
    """

    def __init__(
        self, encoder_channels: tuple[int, ...], widths: tuple[tuple[int, int], ...], encoder_scale: float = 1.0
    ) -> None:
        super().__init__()
        from_coarser = [outer for _, outer in widths[1:]] + [0]
        self.levels = nn.ModuleList(
            _double_convolution(below, skip, inner, outer, encoder_scale)
            for skip, below, (inner, outer) in zip(encoder_channels, from_coarser, widths, strict=True)
        )
        self.channels = tuple(outer for _, outer in widths)

    def forward(self, encoder: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Return the decoded levels, fine to coarse."""
        coarsest_first: list[Tensor] = []
        for skip, convolve in zip(reversed(encoder), reversed(self.levels), strict=True):
            joined = torch.cat([enlarge(coarsest_first[-1], 2), skip], dim=1) if coarsest_first else skip
            coarsest_first.append(convolve(joined))
        return tuple(reversed(coarsest_first))


class Backbone(nn.Module):
    """An encoder and a decoder; what a file in this package makes out of its own two.

    Parameters
    ----------
    encoder : module that maps images (B, 3, H, W) to three levels with strides 4, 8 and 16.
    decoder : the decoder over these levels.
    """

    suitable_dim: ClassVar[int] = 256
    suitable_codewords: ClassVar[int] = 1024

    def __init__(self, encoder: nn.Module, decoder: Decoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.fused_channels = sum(decoder.channels)

    def forward(self, images_B3HW: Tensor) -> Features:
        """Return encoder levels, decoder levels, and F: the decoder levels side by side at stride 4."""
        encoder: tuple[Tensor, ...] = self.encoder(images_B3HW)
        decoder: tuple[Tensor, ...] = self.decoder(encoder)
        fused = torch.cat([enlarge(level, 2**depth) for depth, level in enumerate(decoder)], dim=1)
        return Features(encoder, decoder, fused)


def enlarge(map_BCHW: Tensor, factor: int) -> Tensor:
    """Upsample bilinearly by a whole factor."""
    if factor == 1:
        return map_BCHW
    return functional.interpolate(map_BCHW, scale_factor=factor, mode="bilinear", align_corners=False)


def initialise(module: nn.Module) -> None:
    """Draw the weights of one convolution such that ReLU layers keep the variance of what passes through them."""
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, mode="fan_in", nonlinearity="relu")
        if module.bias is not None:
            nn.init.zeros_(module.bias)


def _double_convolution(below: int, skip: int, inner: int, outer: int, skip_scale: float) -> nn.Sequential:
    first = nn.Conv2d(below + skip, inner, kernel_size=3, padding=1)
    second = nn.Conv2d(inner, outer, kernel_size=3, padding=1)
    block = nn.Sequential(first, nn.ReLU(inplace=True), second, nn.ReLU(inplace=True)).apply(initialise)
    with torch.no_grad():
        first.weight[:, below:] /= skip_scale
    return block
