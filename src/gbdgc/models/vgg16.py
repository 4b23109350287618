"""The paper's backbone: VGG16 without BatchNorm up to relu5_3, and a wide top-down decoder (as in DGCC).

Simonyan and Zisserman, "Very deep convolutional networks for large-scale image recognition", ICLR 2015.
Encoder 14,714,688 parameters, decoder 16,812,672. The encoder's keys are those of the public ImageNet weights.
"""

import torch
from torch import Tensor, nn

from gbdgc.models.backbone import Backbone, Features, enlarge, initialise
from gbdgc.models.mixing import Mixing, mix_statistics

_STAGES = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
_DECODER_WIDTHS = ((256, 128), (512, 256), (1024, 512))


class VGG16Encoder(nn.Module):
    """VGG16's convolutions; gives relu3_3, relu4_3, relu5_3 (256, 512, 512 channels at strides 4, 8, 16)."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = 3
        for stage, widths in enumerate(_STAGES):
            if stage > 0:
                layers.append(nn.MaxPool2d(kernel_size=2))
            for width in widths:
                layers += [nn.Conv2d(channels, width, kernel_size=3, padding=1), nn.ReLU(inplace=True)]
                channels = width
        self.features = nn.Sequential(*layers).apply(initialise)

    def forward(self, images_B3HW: Tensor, mixing: Mixing | None = None) -> tuple[Tensor, ...]:
        """Return the three levels, fine to coarse."""
        # Each stage ends where the next begins with its pooling; these are the pools' places.
        signal = images_B3HW
        for first, last in ((0, 4), (4, 9)):
            signal = self.features[first:last](signal)
            if mixing is not None:
                signal = mix_statistics(signal, mixing)
        relu3_3 = self.features[9:16](signal)
        relu4_3 = self.features[16:23](relu3_3)
        relu5_3 = self.features[23:](relu4_3)
        return relu3_3, relu4_3, relu5_3


class VGG16Decoder(nn.Module):
    """Top-down decoder: two 3x3 convolutions per level, upsampled and concatenated with the next finer level."""

    def __init__(self, encoder_channels: tuple[int, ...], widths: tuple[tuple[int, int], ...]) -> None:
        super().__init__()
        from_coarser = [outer for _, outer in widths[1:]] + [0]
        self.levels = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(below + skip, inner, kernel_size=3, padding=1),
                nn.ReLU(inplace=True),
                nn.Conv2d(inner, outer, kernel_size=3, padding=1),
                nn.ReLU(inplace=True),
            )
            for skip, below, (inner, outer) in zip(encoder_channels, from_coarser, widths, strict=True)
        ).apply(initialise)

    def forward(self, encoder: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Return the decoded levels, fine to coarse."""
        coarsest_first: list[Tensor] = []
        for skip, convolve in zip(reversed(encoder), reversed(self.levels), strict=True):
            joined = torch.cat([enlarge(coarsest_first[-1], 2), skip], dim=1) if coarsest_first else skip
            coarsest_first.append(convolve(joined))
        return tuple(reversed(coarsest_first))


class VGG16Backbone(Backbone):
    """The paper's encoder and decoder: 31,527,360 parameters, F with 896 channels at stride 4."""

    feature_stride = 4
    cell = 1
    head_scale = 1000.0  # the paper regresses people per pixel times this
    head_bias = False
    initial_density = 0.1
    suitable_dim = 256
    suitable_codewords = 1024

    def __init__(self) -> None:
        super().__init__(VGG16Encoder())
        self.decoder = VGG16Decoder((256, 512, 512), _DECODER_WIDTHS)
        self.fused_channels = sum(outer for _, outer in _DECODER_WIDTHS)

    def forward(self, images_B3HW: Tensor, mixing: Mixing | None = None) -> Features:
        """Return encoder levels, decoder levels, and F: the decoder levels side by side at stride 4."""
        encoder: tuple[Tensor, ...] = self.encoder(images_B3HW, mixing)
        decoder: tuple[Tensor, ...] = self.decoder(encoder)
        fused = torch.cat([enlarge(level, 2**depth) for depth, level in enumerate(decoder)], dim=1)
        return Features(encoder, decoder, fused)
