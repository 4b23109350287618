"""Per-image descriptors z_i: the channel statistics in which latent domains are found.

Shapes: B batch, C channels, H x W positions, N images.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gbdgc.errors import InputError

Levels = Literal["encoder", "decoder", "style"]

_VARIANCE_FLOOR = 1e-5


class Describable(Protocol):
    """A network that can be described, since it returns its feature maps."""

    training: bool

    def train(self, mode: bool = True) -> object:
        """Set training or evaluation mode."""

    def feature_maps(self, images_B3HW: Tensor, levels: Levels) -> tuple[Tensor, ...]:
        """Return the feature maps of the levels named."""


def channel_statistics(levels: Iterable[Tensor]) -> Tensor:
    r"""Mean and standard deviation over positions of every channel of every level (B, C_l, H_l, W_l).

    .. math:: z_i = [\mu_i^{(1)}, \sigma_i^{(1)}, \ldots, \mu_i^{(L)}, \sigma_i^{(L)}]

    Returns (B, 2 * sum of C_l); sigma is the root of the unbiased variance + 1e-5.
    """
    statistics: list[Tensor] = []
    for level_BCHW in levels:
        variance_BC, mean_BC = torch.var_mean(level_BCHW, dim=(2, 3), correction=1)
        statistics += [mean_BC, (variance_BC + _VARIANCE_FLOOR).sqrt()]
    return torch.cat(statistics, dim=1)


def describe(
    network: Describable, batches: Iterable[tuple[Sequence[str], Tensor]], levels: Levels = "encoder"
) -> tuple[list[str], NDArray[np.float32]]:
    """Describe images by channel statistics; return their ids in the order they came, and one row of float32 for each.

    Batches are sample ids and normalised images (B, 3, H, W) on the network's device, which is in evaluation mode
    meanwhile. The level ``encoder`` computes nothing beyond the encoder.
    """
    ids: list[str] = []
    rows: list[NDArray[np.float32]] = []
    was_training = network.training
    network.train(False)
    try:
        with torch.inference_mode():
            for batch_ids, images_B3HW in batches:
                ids += batch_ids
                statistics = channel_statistics(network.feature_maps(images_B3HW, levels))
                rows.append(statistics.float().cpu().numpy())
    finally:
        network.train(was_training)
    if not rows:
        raise InputError("", "there are no images to describe: the data set is empty")
    return ids, np.concatenate(rows)
