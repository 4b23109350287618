"""Granular-ball guided domain generalisation: the paper's objective."""

from torch import Tensor

from gbdgc.methods import losses
from gbdgc.methods.contract import OCCUPANCY_WEIGHT, Losses, PartialLosses, counting_losses
from gbdgc.methods.options import MethodOptions
from gbdgc.models import Output
from gbdgc.models.mixing import Mixing


class GranularBallGeneralisation:
    """L_den + λ_sem L_sem + λ_sty L_sty + λ_orth L_orth, and whatever of ours the options switch on."""

    def __init__(self, options: MethodOptions) -> None:
        self.options = options
        terms = {name: getattr(options, name) for name in ("semantic", "style", "orthogonality")}
        on = {name: weight for name, weight in terms.items() if weight > 0}
        self.weights = {"density": 1.0, "occupancy": OCCUPANCY_WEIGHT} | on
        self.network_options = {"codebook": options.codebook, "style": bool({"style", "orthogonality"} & on.keys())}
        self.needs_domains = bool({"semantic", "style"} & on.keys())  # the losses that speak of pseudo-domains

    def draw_mixing(self, domain_B: Tensor) -> Mixing | None:
        """Return None: styles stay as they are."""
        return None

    def image_losses(self, output: Output, people_BHW: Tensor, head_D: Tensor) -> PartialLosses:
        """Return the counting losses and L_orth, and the rows p_i and t_i for L_sem and L_sty."""
        made = counting_losses(output, people_BHW, self.options.density)
        rows = {}
        if "semantic" in self.weights:
            p_BD = losses.pooled(output.recoded)
            # The head is linear in p_i: without its direction, alignment cannot touch the count.
            rows["semantic"] = losses.remove_direction(p_BD, head_D) if self.options.alignment == "count_free" else p_BD
        if output.style is not None:
            if "style" in self.weights:
                rows["style"] = losses.pooled(output.style)
            if "orthogonality" in self.weights:
                made["orthogonality"] = losses.orthogonality_loss(output.semantic, output.style)
        return PartialLosses(made, rows)

    def batch_losses(self, descriptors: dict[str, Tensor], domain_B: Tensor) -> Losses:
        """Return L_sem and L_sty."""
        style_loss = losses.separated_style_loss if self.options.style_form == "separated" else losses.style_loss
        of = {"semantic": losses.semantic_loss, "style": style_loss}
        return {name: of[name](rows_BD, domain_B) for name, rows_BD in descriptors.items()}
