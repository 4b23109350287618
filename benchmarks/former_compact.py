"""The compact network before it counted at stride 8, kept for comparisons of speed: a decoder at stride 4."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from gbdgc.models.backbone import enlarge
from gbdgc.models.compact import LiteEncoder
from gbdgc.models.vgg16 import VGG16Decoder


class FormerCompact(nn.Module):
    """EfficientNet-Lite0 under two 3x3 convolutions per level, density at stride 4; its plain regression form."""

    def __init__(self, frozen_blocks: int = 3) -> None:
        super().__init__()
        self.encoder = LiteEncoder()
        for part in (self.encoder.stem, *self.encoder.blocks[:frozen_blocks]):
            part.requires_grad_(False)
        self.decoder = VGG16Decoder((24, 40, 112), ((96, 64), (128, 96), (192, 128)))
        self.semantic = nn.Conv2d(64 + 96 + 128, 128, kernel_size=1, bias=False)
        self.head = nn.Conv2d(128, 1, kernel_size=1, bias=False)
        nn.utils.convert_conv2d_weight_memory_format(self, torch.channels_last)

    def forward(self, images_B3HW: Tensor) -> Tensor:
        """Return people per pixel for images whose sides are multiples of 16."""
        levels = self.decoder(self.encoder(images_B3HW))
        fused = torch.cat([enlarge(level, 2**depth) for depth, level in enumerate(levels)], dim=1)
        semantic = functional.relu(self.semantic(fused))
        return enlarge(functional.relu(self.head(semantic)), 4) / 1000

    def train(self, mode: bool = True) -> "FormerCompact":
        """Set training mode, in which the encoder's statistics stay frozen."""
        super().train(mode)
        self.encoder.eval()
        return self
