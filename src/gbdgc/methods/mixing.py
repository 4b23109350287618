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

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each term that is switched on."""
        given = {"equal_density": self.options.equal_density} if self.options.equal_density > 0 else {}
        return {"density": 1.0, "occupancy": OCCUPANCY_WEIGHT} | given

    @property
    def network_options(self) -> dict[str, bool]:
        """The network of plain regression, so that the two compare by what they saw alone."""
        return {"codebook": False, "style": False}

    @property
    def needs_domains(self) -> bool:
        """True: partners are of another domain."""
        return True

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
