"""The interface between a method and training, and the counting losses that all methods share.

A method sees one part of a batch at a time, so that a batch may be spread over micro-batches and processes. Losses that
are means over images are computed from that part. Losses that compare images with each other (L_sem, L_sty) are
computed from descriptors, one row per image, once those of the whole batch are together: see `training.step`.
"""

from typing import NamedTuple, Protocol

from torch import Tensor

from gbdgc.methods import losses
from gbdgc.methods.options import DensityLoss
from gbdgc.models import Output
from gbdgc.models.mixing import Mixing

Losses = dict[str, Tensor]

OCCUPANCY_WEIGHT = 2.0
_PAPER_SCALE = 1000.0  # the paper regresses people per pixel times this
_COUNT_CELL = 8  # pixels: the cells in which the count losses begin
_OCCUPANCY_PATCH = 16  # pixels


class PartialLosses(NamedTuple):
    """The losses and descriptors that a method computes from some images of a batch."""

    losses: Losses
    """Means over these images, by name."""
    descriptors: dict[str, Tensor]
    """Rows for the losses over the whole batch, by the loss's name."""


class Method(Protocol):
    """The whole contract between a method and training."""

    weights: dict[str, float]
    """The weight of each loss in the objective, by name."""
    network_options: dict[str, bool]
    """The parts of the network that this method trains: `codebook`, `style`."""
    needs_domains: bool
    """True if the latent domains of the source have to be discovered."""

    def draw_mixing(self, domain_B: Tensor) -> Mixing | None:
        """Draw whose style each image of a step takes on; None leaves them as they are."""

    def image_losses(self, output: Output, people_BHW: Tensor, head_D: Tensor) -> PartialLosses:
        """Return the losses of these images, and the descriptors for the losses over the batch."""

    def batch_losses(self, descriptors: dict[str, Tensor], domain_B: Tensor) -> Losses:
        """Return the losses that compare all images of the batch."""


def counting_losses(output: Output, people_BHW: Tensor, density: DensityLoss) -> Losses:
    """Return the loss of the density, given people per cell, and that of the occupancy where the network has one."""
    predicted_BHW = output.density[:, 0]
    if density == "squared":
        # The paper's scale, and a mean over cells, so that a λ means the same for every crop size.
        scale = _PAPER_SCALE / output.cell**2
        made = {"density": losses.density_loss(scale * predicted_BHW, scale * people_BHW) / people_BHW[0].numel()}
    else:
        of = {"poisson": losses.poisson_loss, "absolute": losses.absolute_loss}[density]
        side = _COUNT_CELL // output.cell
        made = {"density": of(losses.square_sums(predicted_BHW, side), losses.square_sums(people_BHW, side))}
    if output.occupancy is not None:
        in_patches_BHW = losses.square_sums(people_BHW, _OCCUPANCY_PATCH // output.cell)
        made["occupancy"] = losses.occupancy_loss(output.occupancy[:, 0], in_patches_BHW)
    return made
