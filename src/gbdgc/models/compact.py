"""The network for CPUs: EfficientNet-Lite0 up to stride 16 under a light decoder, density in cells of 8 x 8 pixels.

Tan and Le, "EfficientNet: rethinking model scaling for convolutional neural networks", ICML 2019; the Lite variant
has ReLU6 in place of swish and no squeeze-and-excitation, so that it exports and quantises well.
The encoder computes what the public ImageNet weights were trained with: TensorFlow's "same" padding, BatchNorm with
epsilon 1e-3, pixels scaled by mean 127 and deviation 128.
"""

from typing import ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from gbdgc.data.transforms import IMAGENET_MEAN, IMAGENET_STD
from gbdgc.models.backbone import POINTWISE_DILATION, Backbone, Features, enlarge, initialise
from gbdgc.models.depthwise import depthwise
from gbdgc.models.mixing import Mixing, mix_statistics

Stages = tuple[tuple[int, int, int, int, int], ...]
"""Blocks, kernel, stride, expansion, channels of each: its first block has the stride and changes the channels."""
LITE0: Stages = ((1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80), (3, 5, 1, 6, 112))

_STEM_CHANNELS = 32
_LEVELS = (1, 2, 4)  # the stages after which strides 4, 8 and 16 are as deep as they get
_MIXED = (0, 2)  # the blocks after which styles are mixed: shallow, and frozen in the presets, so it costs little
_LEVEL_SCALE = 7.0  # the levels end in a linear layer; with ImageNet weights their deviation is about this
_WIDTH = 96

_LITE_MEAN = 127 / 255
_LITE_DEVIATION = 128 / 255


class LiteEncoder(nn.Module):
    """The first stages of an EfficientNet-Lite, by default Lite0; gives ``channels`` at strides 4, 8 and 16."""

    def __init__(self, stages: Stages = LITE0) -> None:
        super().__init__()
        self.stem = _Convolution(3, _STEM_CHANNELS, kernel=3, stride=2)
        blocks: list[nn.Module] = []
        channels = _STEM_CHANNELS
        ends = []
        for number, kernel, stride, expansion, width in stages:
            for position in range(number):
                blocks.append(_Block(channels, width, kernel, 1 if position else stride, expansion))
                channels = width
            ends.append(len(blocks) - 1)
        self.channels = tuple(stages[stage][-1] for stage in _LEVELS)
        self._level_blocks = tuple(ends[stage] for stage in _LEVELS)
        self.blocks = nn.ModuleList(blocks)
        # Every network here takes pixels normalised by ImageNet's mean and deviation; these weights were trained
        # with others. The difference is one multiplication and addition a channel.
        scale = torch.tensor(IMAGENET_STD) / _LITE_DEVIATION
        shift = (torch.tensor(IMAGENET_MEAN) - _LITE_MEAN) / _LITE_DEVIATION
        self.register_buffer("scale", scale[:, None, None], persistent=False)
        self.register_buffer("shift", shift[:, None, None], persistent=False)
        self.apply(initialise)

    scale: Tensor
    shift: Tensor

    def forward(self, images_B3HW: Tensor, mixing: Mixing | None = None) -> tuple[Tensor, ...]:
        """Return the three levels, fine to coarse."""
        signal = _relu6(self.stem(images_B3HW * self.scale + self.shift))
        levels: list[Tensor] = []
        for index, block in enumerate(self.blocks):
            signal = block(signal)
            if mixing is not None and index in _MIXED:
                signal = mix_statistics(signal, mixing)
            if index in self._level_blocks:
                levels.append(signal)
        return tuple(levels)


class LightDecoder(nn.Module):
    """Top-down decoder at stride 8, where a convolution costs a quarter of what it does at stride 4.

    The finest level is folded into stride 8 by pixel-unshuffle, so that no detail is lost. Dilated convolutions widen
    the view on both scales at no further cost.
    """

    def __init__(self, channels: tuple[int, ...]) -> None:
        super().__init__()
        fine, middle, coarse = channels
        self.lateral = nn.ModuleList(
            nn.Conv2d(inputs, _WIDTH, kernel_size=1, dilation=POINTWISE_DILATION)
            for inputs in (4 * fine, middle, coarse)
        )
        self.coarse = _convolution3x3()
        self.coarse_wide = _convolution3x3(dilation=2)
        self.fine = _convolution3x3()
        self.fine_wide = _convolution3x3(dilation=2)
        self.apply(initialise)
        with torch.no_grad():
            for convolution in self.lateral:
                convolution.get_parameter("weight").div_(_LEVEL_SCALE)

    def forward(self, encoder: tuple[Tensor, ...]) -> tuple[Tensor, Tensor, Tensor]:
        """Return two maps at stride 8, the second with the wider view, and one at stride 16."""
        folded = functional.pixel_unshuffle(encoder[0], 2)
        if encoder[1].is_contiguous(memory_format=torch.channels_last):
            folded = folded.contiguous(memory_format=torch.channels_last)
        at4, at8, at16 = (
            functional.relu(convolution(level), inplace=True)
            for convolution, level in zip(self.lateral, (folded, *encoder[1:]), strict=True)
        )
        near = functional.relu(self.coarse(at16), inplace=True)
        coarse = near + functional.relu(self.coarse_wide(near), inplace=True)
        fine = functional.relu(self.fine(at4 + at8 + enlarge(coarse, 2)), inplace=True)
        return fine, functional.relu(self.fine_wide(fine), inplace=True), coarse


class CompactBackbone(Backbone):
    """EfficientNet-Lite0 features under a light decoder.

    Parameters
    ----------
    frozen_statistics : in training too, BatchNorm normalises by the means and variances it came with, and learns its
        scale and offset only. Batches of a few crops are too small for statistics of their own, counts then depend
        on one image alone, and many processes compute what one would. False restores batch statistics, which is
        worth trying when training from scratch.
    frozen_blocks : leave the stem and that many blocks as they came, which spares their backward pass, the most
        expensive of all; edges and colours look alike everywhere. With 3 the finest level is as it came.
    """

    feature_stride = 8
    cell = 8
    head_scale = 1.0
    head_bias = True
    initial_density = 0.25
    suitable_dim = 128
    suitable_codewords = 256
    stages: ClassVar[Stages] = LITE0

    def __init__(self, *, frozen_statistics: bool = True, frozen_blocks: int = 0) -> None:
        encoder = LiteEncoder(self.stages)
        super().__init__(encoder)
        self.decoder = LightDecoder(encoder.channels)
        self.fused_channels = 3 * _WIDTH
        self.context_channels = 2 * _WIDTH
        frozen = [encoder.stem, *encoder.blocks[:frozen_blocks]] if frozen_blocks > 0 else []
        for part in frozen:
            part.requires_grad_(False)
        still = [encoder] if frozen_statistics else frozen
        self._still = tuple(norm for part in still for norm in part.modules() if isinstance(norm, nn.BatchNorm2d))

    def forward(self, images_B3HW: Tensor, mixing: Mixing | None = None) -> Features:
        """Return encoder levels, decoder levels, F at stride 8 and the context at stride 16."""
        encoder: tuple[Tensor, ...] = self.encoder(images_B3HW, mixing)
        fine, wide, coarse = self.decoder(encoder)
        fused = torch.cat([fine, wide, enlarge(coarse, 2)], dim=1)
        context = torch.cat([coarse, functional.avg_pool2d(wide, 2)], dim=1)
        return Features(encoder, (fine, wide, coarse), fused, context)

    def train(self, mode: bool = True) -> Self:
        """Set training mode, in which frozen BatchNorm stays as in evaluation."""
        super().train(mode)
        for norm in self._still:
            norm.eval()
        return self


class _Block(nn.Module):
    """Inverted residual: widen, filter each channel, narrow; added to its input where the shapes agree."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = inputs * expansion
        self.is_residual = stride == 1 and inputs == outputs
        self.expand = _Convolution(inputs, inner, kernel=1) if expansion > 1 else None
        self.depthwise = _Convolution(inner, inner, kernel=kernel, stride=stride, groups=inner)
        self.project = _Convolution(inner, outputs, kernel=1)

    def forward(self, signal: Tensor) -> Tensor:
        wide = signal if self.expand is None else _relu6(self.expand(signal))
        narrow: Tensor = self.project(_relu6(self.depthwise(wide)))
        return signal + narrow if self.is_residual else narrow


class _Convolution(nn.Conv2d):
    """Convolution and the BatchNorm after it, with TensorFlow's "same" padding where the stride divides the sides."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
        dilation = POINTWISE_DILATION if kernel == 1 else 1
        super().__init__(inputs, outputs, kernel, stride, kernel // 2, dilation, groups, bias=False)
        self.norm = nn.BatchNorm2d(outputs, eps=1e-3, momentum=0.01)

    def forward(self, signal: Tensor) -> Tensor:
        if self.norm.training:
            normalised: Tensor = self.norm(self._convolve(signal, self.weight, None))
            return normalised
        # With fixed statistics the norm is a scale and an offset a channel: put into the kernel, a few thousand
        # numbers, it spares a pass over every feature map, forward and backward.
        scale = self.norm.weight * (self.norm.get_buffer("running_var") + self.norm.eps).rsqrt()
        offset = self.norm.bias - self.norm.get_buffer("running_mean") * scale
        return self._convolve(signal, self.weight * scale[:, None, None, None], offset)

    def _convolve(self, signal: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.stride != (1, 1):
            # At stride 2 "same" pads one pixel more behind than before. A zero before the kernel does as much as
            # padding the signal by hand, without a copy of the largest feature map there is.
            weight = functional.pad(weight, (1, 0, 1, 0))
        stride, padding = self.stride[0], int(self.padding[0])
        if self.groups > 1:
            return depthwise(signal, weight, bias, stride, padding)
        return functional.conv2d(signal, weight, bias, stride, padding, self.dilation)


def _convolution3x3(dilation: int = 1) -> nn.Conv2d:
    return nn.Conv2d(_WIDTH, _WIDTH, kernel_size=3, padding=dilation, dilation=dilation)


def _relu6(signal: Tensor) -> Tensor:
    return functional.relu6(signal, inplace=True)
