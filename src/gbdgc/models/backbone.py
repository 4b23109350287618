"""The interface of every backbone: an encoder of three levels, a decoder over them, and the fused feature F.

Shapes: B batch, C channels, H x W the image.
All tuples of levels run from fine to coarse; the encoder's have strides 4, 8, 16.
"""

from typing import ClassVar, NamedTuple

from torch import Tensor, nn
from torch.nn import functional

POINTWISE_DILATION = 2
"""The dilation of all 1 x 1 convolutions. It changes nothing but the code that PyTorch chooses for them.

On one thread, small batches in 32 bits go a way of their own if undilated, and a whole picture or training step then
takes a quarter to a third longer: `benchmarks/pointwise.py`.
"""


class Features(NamedTuple):
    """A backbone's features of a batch of images."""

    encoder: tuple[Tensor, ...]
    decoder: tuple[Tensor, ...]
    fused: Tensor
    """F, from which the semantic and the style map are projected."""
    context: Tensor | None = None
    """The feature that tells whether anybody is in a patch, at stride 16; None if the backbone has none."""


class Backbone(nn.Module):
    """An encoder, what a subclass puts on top, and the promises that network, tiling and training rely on.

    A subclass has a ``forward`` that makes `Features` of images whose sides are multiples of 16. Given a `Mixing`, it
    passes its early feature maps through `mix_statistics`.

    Parameters
    ----------
    encoder : module that maps images (B, 3, H, W) to three levels with strides 4, 8 and 16.
    """

    feature_stride: ClassVar[int]
    """Pixels between two positions of F."""
    cell: ClassVar[int]
    """Side in pixels of a cell of the predicted density: the network is trained on people per cell."""
    head_scale: ClassVar[float]
    """The density head gives people per cell times this."""
    head_bias: ClassVar[bool]
    initial_density: ClassVar[float]
    """The output of the density head before training: a little everywhere, so that no position starts dead."""
    suitable_dim: ClassVar[int]
    suitable_codewords: ClassVar[int]

    fused_channels: int
    context_channels: int = 0
    """Channels of `Features.context`; 0 where there is none."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder


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
