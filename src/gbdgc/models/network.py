"""The counter: a semantic branch through the codebook to the density head, and a style branch for training only.

Shapes: B batch, D feature channels, H x W the image, h x w the positions of F (stride 4 or 8, by the backbone),
c the side of a density cell in pixels.
"""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from gbdgc.data.transforms import STRIDE
from gbdgc.errors import InputError
from gbdgc.models.backbone import POINTWISE_DILATION, Backbone, Features, enlarge, initialise
from gbdgc.models.codebook import Codebook
from gbdgc.models.compact import CompactBackbone
from gbdgc.models.mixing import Mixing
from gbdgc.models.vgg16 import VGG16Backbone
from gbdgc.models.weights import load_weights

BACKBONES: dict[str, Callable[..., Backbone]] = {
    "vgg16": VGG16Backbone,
    "compact": CompactBackbone,
}


class Output(NamedTuple):
    """The network's output for a batch: everything that the losses and the discovery of domains need."""

    density: Tensor
    """(B, 1, H/c, W/c): people per cell, never negative."""
    occupancy: Tensor | None
    """(B, 1, H/16, W/16): logits of anybody being in a patch; None where the backbone gives no context."""
    semantic: Tensor
    """(B, D, h, w): S, before re-encoding."""
    recoded: Tensor
    """(B, D, h, w): S after the codebook; S itself where there is none."""
    style: Tensor | None
    """(B, D, h, w): T; in training only."""
    levels: tuple[Tensor, ...]
    """The encoder's feature maps at strides 4, 8 and 16."""
    cell: int
    """c: the side of a density cell in pixels."""


class Network(nn.Module):
    """Two branches on any backbone, which gives the fused feature F.

    The semantic and the style map have ``dim`` channels, of which training drops a share (``dropout``). Without the
    codebook of ``codewords`` the semantic map goes to the head as it is. Only training computes the style branch.
    """

    def __init__(
        self,
        backbone: Backbone,
        *,
        dim: int = 256,
        codewords: int = 1024,
        codebook: bool = True,
        style: bool = True,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        if not 0 <= dropout <= 1:  # torch takes a NaN, and fails with it at the first picture
            raise InputError(f"dropout={dropout}", "a share of the channels is between 0 and 1")
        self.backbone = backbone
        self.semantic = _projection(backbone.fused_channels, dim, dropout)
        self.style = _projection(backbone.fused_channels, dim, dropout) if style else None
        self.codebook = Codebook(dim, codewords) if codebook else None
        self.head = nn.Conv2d(dim, 1, kernel_size=1, dilation=POINTWISE_DILATION, bias=backbone.head_bias)
        context = backbone.context_channels
        self.occupancy = nn.Conv2d(context, 1, kernel_size=1, dilation=POINTWISE_DILATION) if context else None
        self._start_positive()

    def forward(self, images_B3HW: Tensor, mixing: Mixing | None = None) -> Output:
        """Return density and feature maps for normalised images whose sides are multiples of 16."""
        features: Features = self.backbone(images_B3HW, mixing)
        semantic_BDhw, style_BDhw = self._project(features.fused)
        recoded_BDhw = semantic_BDhw if self.codebook is None else self.codebook(semantic_BDhw)
        raw_B1hw = self.head(recoded_BDhw)
        occupancy = None if self.occupancy is None else self.occupancy(features.context)
        relu = _StraightThroughReLU.apply if self.training else functional.relu
        positive_B1hw = relu(raw_B1hw)
        density = self.to_cells(positive_B1hw, occupancy)
        return Output(density, occupancy, semantic_BDhw, recoded_BDhw, style_BDhw, features.encoder, self.backbone.cell)

    def to_cells(self, positive_B1hw: Tensor, occupancy: Tensor | None) -> Tensor:
        """Return people per cell from the head's positive part, gated by whether anybody is in the patch."""
        density = positive_B1hw / self.backbone.head_scale
        if occupancy is not None:
            gate = torch.sigmoid(occupancy)
            density = density * functional.interpolate(gate, scale_factor=STRIDE // self.backbone.feature_stride)
        # Where cells are finer than positions, a position's density is that of its cells.
        return enlarge(density, self.backbone.feature_stride // self.backbone.cell)

    @torch.no_grad()
    def scale_density(self, factor: float) -> None:
        """Multiply every density that this network gives."""
        for parameter in self.head.parameters():
            parameter.mul_(factor)

    def to_pixels(self, density_B1hw: Tensor) -> Tensor:
        """Spread people per cell over its pixels; bilinear interpolation with clamped borders keeps their number."""
        cell = self.backbone.cell
        return enlarge(density_B1hw, cell) / cell**2

    def count_map(self, images_B3HW: Tensor) -> Tensor:
        """Return people per pixel (B, 1, H, W); for evaluation mode, and images as `forward` takes them."""
        height, width = images_B3HW.shape[-2:]
        if height % STRIDE or width % STRIDE:
            raise InputError(f"images of {width} x {height}", f"the sides must be multiples of {STRIDE}", "pad them")
        return self.to_pixels(self(images_B3HW).density)

    def feature_maps(
        self, images_B3HW: Tensor, levels: Literal["encoder", "decoder", "style"] = "encoder"
    ) -> tuple[Tensor, ...]:
        """Return the feature maps in which domains are looked for, computing no more than they need."""
        if levels == "encoder":
            encoder: tuple[Tensor, ...] = self.backbone.encoder(images_B3HW)
            return encoder
        features: Features = self.backbone(images_B3HW)
        if levels == "decoder":
            return features.decoder
        if self.style is None:
            raise InputError("levels 'style'", "this network has no style branch", "use 'encoder' or 'decoder'")
        return (self.style(features.fused),)

    def _project(self, fused_BCHW: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the semantic map and, in training, the style map."""
        if self.style is None or not self.training:
            return self.semantic(fused_BCHW), None
        # Both read the widest map of the network: one convolution goes over it once, forward and backward.
        weight = torch.cat([branch.get_parameter("0.weight") for branch in (self.semantic, self.style)])
        both = self.semantic[2](
            functional.relu(functional.conv2d(fused_BCHW, weight, dilation=POINTWISE_DILATION), inplace=True)
        )
        # Split where a position's channels lie side by side, so that the gradients are joined in that layout too.
        semantic_BhwD, style_BhwD = both.permute(0, 2, 3, 1).chunk(2, dim=3)
        return semantic_BhwD.permute(0, 3, 1, 2), style_BhwD.permute(0, 3, 1, 2)

    @torch.no_grad()
    def _start_positive(self) -> None:
        """Set the head such that a fresh network predicts a small positive density nearly everywhere.

        A head drawn at random often dies before it learns: where features are small the codebook gives every
        position about its mean codeword, so the sign of one random number decides whether the ReLU lets any gradient
        through. Hence weights that are positive and equal (semantic features come out of a ReLU, and re-encoding
        moves the mean codeword along them), then corrected along the mean codeword such that this gives
        the initial density.
        """
        density = self.backbone.initial_density
        weight_D = torch.full((self.head.in_channels,), density / self.head.in_channels)
        if self.codebook is not None:
            mean_D = self.codebook.codewords_MD.mean(dim=0)
            weight_D += mean_D * (density - weight_D @ mean_D) / (mean_D @ mean_D)
        self.head.weight.copy_(weight_D.reshape(self.head.weight.shape))
        if self.head.bias is not None:
            self.head.bias.zero_()


class _StraightThroughReLU(torch.autograd.Function):
    """ReLU whose zeros can come back: its gradient is left out only where it would push further below zero.

    Nearly all of a street is empty and pushes the density down. People who were pushed below zero with it send no
    gradient through a plain ReLU ever again, and on sparse data that is soon everybody. This is the gradient of a
    density that is held at zero or above.
    """

    @staticmethod
    def forward(context: Any, raw: Tensor) -> Tensor:
        context.save_for_backward(raw > 0)
        return raw.clamp_min(0)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        (positive,) = context.saved_tensors
        return torch.where(positive, gradient, gradient.clamp_max(0))


def build_network(
    backbone: str = "compact",
    *,
    pretrained: bool | str | Path | Mapping[str, Tensor] = True,
    dim: int | None = None,
    codewords: int | None = None,
    codebook: bool = True,
    style: bool = True,
    dropout: float = 0.5,
    **backbone_options: object,
) -> Network:
    """Build a network by the name of its backbone, in the ``channels_last`` layout, which is the faster one on CPUs.

    Parameters
    ----------
    backbone : a name in :data:`BACKBONES`.
    pretrained : start the encoder from ImageNet weights (looked for as :mod:`gbdgc.models.weights` says), from the
        weights in the file given, from those given themselves, or from random ones (False).
    dim, codewords : see :class:`Network`; by default as wide as suits the backbone: 256 and 1024 for ``vgg16``,
        128 and 256 for ``compact``.
    codebook, style, dropout : see :class:`Network`.
    **backbone_options : arguments of the backbone itself, such as ``frozen_statistics`` of ``compact``.
    """
    if backbone not in BACKBONES:
        raise InputError(f"backbone {backbone!r}", "there is no such network", f"choose one of {', '.join(BACKBONES)}")
    options = {option: value for option, value in backbone_options.items() if value is not None}
    known = inspect.signature(BACKBONES[backbone]).parameters
    if unknown := sorted(options.keys() - known.keys()):
        reason = f"{backbone} has no such option (there are: {', '.join(known) or 'none'})"
        advice = f"correct it, or take it out of a preset by model.options.{unknown[0]}=null"
        raise InputError(f"model.options.{unknown[0]}", reason, advice)
    body = BACKBONES[backbone](**options)
    if pretrained is False:
        body.requires_grad_(True)  # random weights are there to be learnt, whatever is to be kept of good ones
    elif isinstance(pretrained, Mapping):
        body.encoder.load_state_dict(pretrained)
    else:
        body.encoder.load_state_dict(load_weights(backbone, None if pretrained is True else Path(pretrained)))
    network = Network(
        body,
        dim=dim or body.suitable_dim,
        codewords=codewords or body.suitable_codewords,
        codebook=codebook,
        style=style,
        dropout=dropout,
    )
    nn.utils.convert_conv2d_weight_memory_format(network, torch.channels_last)
    return network


def _projection(inputs: int, dim: int, dropout: float) -> nn.Sequential:
    convolution = nn.Conv2d(inputs, dim, kernel_size=1, dilation=POINTWISE_DILATION, bias=False)
    return nn.Sequential(convolution, nn.ReLU(inplace=True), nn.Dropout2d(dropout)).apply(initialise)
