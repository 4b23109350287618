"""Plain regression: the baseline of every comparison."""

from torch import Tensor

from gbdgc.methods.contract import OCCUPANCY_WEIGHT, Losses, PartialLosses, counting_losses
from gbdgc.methods.options import MethodOptions
from gbdgc.models import Output
from gbdgc.models.mixing import Mixing


class PlainRegression:
    """Density regression and nothing else (empirical risk minimisation)."""

    def __init__(self, options: MethodOptions) -> None:
        self.options = options
        self.weights = {"density": 1.0, "occupancy": OCCUPANCY_WEIGHT}
        self.network_options = {"codebook": False, "style": False}
        self.needs_domains = False

    def draw_mixing(self, domain_B: Tensor) -> Mixing | None:
        """Return None: styles stay as they are."""
        return None

    def image_losses(self, output: Output, people_BHW: Tensor, head_D: Tensor) -> PartialLosses:
        """Return the losses of density and occupancy alone."""
        return PartialLosses(counting_losses(output, people_BHW, self.options.density), {})

    def batch_losses(self, descriptors: dict[str, Tensor], domain_B: Tensor) -> Losses:
        """Return nothing: no image is compared with another."""
        return {}
