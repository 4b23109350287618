"""Ours: plain regression that sees every picture in the styles of other latent domains."""

import torch
from torch import Tensor

from gbdgc.methods import losses
from gbdgc.methods.contract import OCCUPANCY_WEIGHT, Losses, PartialLosses, counting_losses
from gbdgc.methods.options import MethodOptions
from gbdgc.models import Output
from gbdgc.models.mixing import Mixing, draw_mixing


class DomainMixing:
    """L_den with styles mixed across pseudo-domains, and λ_equal L_equal where it is switched on.

    Neither can be satisfied by rescaling or by giving up the density: mixing changes what is seen and leaves the target
    as it is, and L_equal compares domains at equal density, relative to the spread of their features.
    """

    def __init__(self, options: MethodOptions) -> None:
        self.options = options
        equal = {"equal_density": options.equal_density} if options.equal_density > 0 else {}
        self.weights = {"density": 1.0, "occupancy": OCCUPANCY_WEIGHT} | equal
        # The network of plain regression, so that the two compare by what they saw alone.
        self.network_options = {"codebook": False, "style": False}
        self.needs_domains = True  # partners are of another domain

    def draw_mixing(self, domain_B: Tensor) -> Mixing | None:
        """Mix in as many steps as the option says."""
        return draw_mixing(domain_B) if float(torch.rand(())) < self.options.mix else None

    def image_losses(self, output: Output, people_BHW: Tensor, head_D: Tensor) -> PartialLosses:
        """Return the counting losses, and the rows for L_equal."""
        made = counting_losses(output, people_BHW, self.options.density)
        if "equal_density" not in self.weights:
            return PartialLosses(made, {})
        cells = people_BHW.shape[-1] // output.recoded.shape[-1]  # along the side of a position
        people_Bhw = losses.square_sums(people_BHW, cells) * (8 / (cells * output.cell)) ** 2
        return PartialLosses(made, {"equal_density": losses.sums_by_density(output.recoded, people_Bhw)})

    def batch_losses(self, descriptors: dict[str, Tensor], domain_B: Tensor) -> Losses:
        """Return L_equal."""
        return {name: losses.equal_density_loss(rows, domain_B) for name, rows in descriptors.items()}
