"""Style mixing: shallow features take on the channel statistics of another picture, and keep what they show.

Zhou et al., "Domain generalization with MixStyle", ICLR 2021. Mean and deviation of a shallow channel over a picture
say how it was lit, exposed and coloured, not who stands in it; so the density that belongs to the mixed features is the
picture's own. Here the other picture comes from another latent domain, so that the styles mixed do differ.

Shapes: B batch, C channels, H x W positions.
"""

from typing import NamedTuple

import torch
from torch import Tensor

_CONCENTRATION = 0.3  # of the Beta distribution: mostly one style or the other, seldom the middle
_EPSILON = 1e-6


class Mixing(NamedTuple):
    """The partner whose style each picture of a batch takes on, and how much of its own style it keeps."""

    partner_B: Tensor
    own_B: Tensor
    """Between 0 and 1."""


def draw_mixing(domain_B: Tensor) -> Mixing:
    """Draw for each picture one of another domain, from torch's generator; itself where all are of one domain."""
    other_BB = (domain_B[:, None] != domain_B[None]).float()
    alone_B = other_BB.sum(dim=1) == 0
    other_BB[alone_B, alone_B] = 1.0
    partner_B = torch.multinomial(other_BB, 1)[:, 0]
    beta = torch.distributions.Beta(_CONCENTRATION, _CONCENTRATION)
    return Mixing(partner_B, beta.sample(domain_B.shape).to(domain_B.device))


def mix_statistics(signal_BCHW: Tensor, mixing: Mixing) -> Tensor:
    r"""Give each picture's channels a mean and deviation between its own and its partner's.

    .. math:: \gamma \frac{x - \mu(x)}{\sigma(x)} + \beta, \quad
              \gamma = w \sigma(x) + (1 - w) \sigma(x'), \quad \beta = w \mu(x) + (1 - w) \mu(x')

    No gradient reaches the statistics.
    """
    with torch.no_grad():
        variance, mean = torch.var_mean(signal_BCHW, dim=(2, 3), keepdim=True)
        deviation = (variance + _EPSILON).sqrt()
        own = mixing.own_B.to(signal_BCHW.dtype)[:, None, None, None]
        to_mean, to_deviation = (own * value + (1 - own) * value[mixing.partner_B] for value in (mean, deviation))
        scale = to_deviation / deviation
        shift = to_mean - mean * scale
    return signal_BCHW * scale + shift
