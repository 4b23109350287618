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

    @property
    def weights(self) -> dict[str, float]:
        """The density's, and the occupancy's for networks that have it."""
        return {"density": 1.0, "occupancy": OCCUPANCY_WEIGHT}

    @property
    def network_options(self) -> dict[str, bool]:
        """Neither codebook nor style branch."""
        return {"codebook": False, "style": False}

    @property
    def needs_domains(self) -> bool:
        """It knows no domains."""
        return False

    def draw_mixing(self, domain_B: Tensor) -> Mixing | None:
        """Return None: styles stay as they are."""
        return None

    def image_losses(self, output: Output, people_BHW: Tensor, head_D: Tensor) -> PartialLosses:
        """Return the losses of density and occupancy alone."""
        return PartialLosses(counting_losses(output, people_BHW, self.options.density), {})

    def batch_losses(self, descriptors: dict[str, Tensor], domain_B: Tensor) -> Losses:
        """Return nothing: no image is compared with another."""
        return {}
