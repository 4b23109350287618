"""The paper's backbone: VGG16 without BatchNorm up to relu5_3, and a wide top-down decoder (as in DGCC).

Simonyan and Zisserman, "Very deep convolutional networks for large-scale image recognition", ICLR 2015.
Encoder 14,714,688 parameters, decoder 16,812,672. The encoder's keys are those of the public ImageNet weights.
"""

from torch import Tensor, nn

from gbdgc.models.backbone import Backbone, Decoder, initialise

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

    def forward(self, images_B3HW: Tensor) -> tuple[Tensor, ...]:
        """Return the three levels, fine to coarse."""
        # Each of the last three stages ends where the next begins with its pooling; these are the pools' places.
        relu3_3 = self.features[:16](images_B3HW)
        relu4_3 = self.features[16:23](relu3_3)
        relu5_3 = self.features[23:](relu4_3)
        return relu3_3, relu4_3, relu5_3


class VGG16Backbone(Backbone):
    """The paper's encoder and decoder: 31,527,360 parameters, F with 896 channels."""

    def __init__(self) -> None:
        super().__init__(VGG16Encoder(), Decoder((256, 512, 512), _DECODER_WIDTHS))
