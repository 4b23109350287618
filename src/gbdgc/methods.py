"""What to train and how its loss is made: one small class a method, named in METHODS.

A method looks at one piece of a batch at a time, so that a batch may be spread over micro-batches and processes. Losses
that are means over images are made in the piece. Losses that compare images with each other (L_sem, L_sty) are made
from descriptors, one row an image, once those of the whole batch are together: see `training.step`.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from torch import Tensor

from gbdgc import losses
from gbdgc.errors import InputError
from gbdgc.models import Output

Losses = dict[str, Tensor]
DensityLoss = Literal["squared", "poisson", "absolute"]

_COUNT_CELL = 8  # pixels: the cells in which the count losses begin
_OCCUPANCY_PATCH = 16
_OCCUPANCY_WEIGHT = 2.0


class Piece(NamedTuple):
    """What a method makes of some images of a batch."""

    losses: Losses
    """Means over these images, by name."""
    descriptors: dict[str, Tensor]
    """Rows for the losses that look at the whole batch, by the loss's name."""


class Method(Protocol):
    """The whole contract between a method and training."""

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each loss in the objective, by name."""

    @property
    def network_options(self) -> dict[str, bool]:
        """The parts of the network that this method trains: `codebook`, `style`."""

    @property
    def needs_domains(self) -> bool:
        """Whether the latent domains of the source are to be found."""

    def look(self, output: Output, people_BHW: Tensor, head_D: Tensor) -> Piece:
        """Return the losses of these images, and the rows for the losses of the batch."""

    def compare(self, descriptors: dict[str, Tensor], domain_B: Tensor) -> Losses:
        """Return the losses that look at all images of the batch together."""


def counting_losses(output: Output, people_BHW: Tensor, density: DensityLoss) -> Losses:
    """Return the loss of the density, given people per cell, and that of the occupancy where the network has one."""
    predicted_BHW = output.density[:, 0]
    if density == "squared":  # of people per pixel, mean over them, so that a λ means the same for every crop size
        area = output.cell**2
        made = {"density": losses.density_loss(predicted_BHW / area, people_BHW / area) / people_BHW[0].numel()}
    else:
        of = {"poisson": losses.poisson_loss, "absolute": losses.absolute_loss}[density]
        side = _COUNT_CELL // output.cell
        made = {"density": of(losses.square_sums(predicted_BHW, side), losses.square_sums(people_BHW, side))}
    if output.occupancy is not None:
        in_patches_BHW = losses.square_sums(people_BHW, _OCCUPANCY_PATCH // output.cell)
        made["occupancy"] = losses.occupancy_loss(output.occupancy[:, 0], in_patches_BHW)
    return made


@dataclass(frozen=True)
class PlainRegression:
    """Density regression and nothing else (empirical risk minimisation): the baseline of every comparison."""

    density: DensityLoss = "squared"

    @property
    def weights(self) -> dict[str, float]:
        """The density's, and the occupancy's for networks that have it."""
        return {"density": 1.0, "occupancy": _OCCUPANCY_WEIGHT}

    @property
    def network_options(self) -> dict[str, bool]:
        """Neither codebook nor style branch."""
        return {"codebook": False, "style": False}

    @property
    def needs_domains(self) -> bool:
        """It knows no domains."""
        return False

    def look(self, output: Output, people_BHW: Tensor, head_D: Tensor) -> Piece:
        """Return the losses of density and occupancy alone."""
        return Piece(counting_losses(output, people_BHW, self.density), {})

    def compare(self, descriptors: dict[str, Tensor], domain_B: Tensor) -> Losses:
        """Return nothing: no image is compared with another."""
        return {}


@dataclass(frozen=True)
class GranularBallGeneralisation:
    """The paper's objective: L_den + λ_sem L_sem + λ_sty L_sty + λ_orth L_orth; a weight of 0 takes a term out.

    ``alignment="count_free"`` aligns only what the density head does not read, so that L_sem cannot pull the counts of
    sparse and dense domains together. ``style_form="separated"`` keeps the style centres of different domains apart, so
    that the style branch cannot be zero. ``density`` chooses the loss of the density. ``"squared"`` and ``"paper"`` are
    as printed; the others are ours.
    """

    codebook: bool = True
    semantic: float = 0.02
    style: float = 0.1
    orthogonality: float = 0.1
    alignment: Literal["paper", "count_free"] = "paper"
    style_form: Literal["paper", "separated"] = "paper"
    density: DensityLoss = "squared"

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each term that is switched on."""
        given = {name: getattr(self, name) for name in ("semantic", "style", "orthogonality")}
        return {"density": 1.0, "occupancy": _OCCUPANCY_WEIGHT} | {
            name: weight for name, weight in given.items() if weight > 0
        }

    @property
    def network_options(self) -> dict[str, bool]:
        """The codebook as asked; the style branch where a loss needs it."""
        return {"codebook": self.codebook, "style": bool({"style", "orthogonality"} & self.weights.keys())}

    @property
    def needs_domains(self) -> bool:
        """True where a loss speaks of pseudo-domains."""
        return bool({"semantic", "style"} & self.weights.keys())

    def look(self, output: Output, people_BHW: Tensor, head_D: Tensor) -> Piece:
        """Return the counting losses and L_orth, and the rows p_i and t_i for L_sem and L_sty."""
        made = counting_losses(output, people_BHW, self.density)
        rows = {}
        if "semantic" in self.weights:
            p_BD = losses.pooled(output.recoded)
            # The head is linear in p_i: without its direction, alignment cannot touch the count.
            rows["semantic"] = losses.remove_direction(p_BD, head_D) if self.alignment == "count_free" else p_BD
        if output.style is not None:
            if "style" in self.weights:
                rows["style"] = losses.pooled(output.style)
            if "orthogonality" in self.weights:
                made["orthogonality"] = losses.orthogonality_loss(output.semantic, output.style)
        return Piece(made, rows)

    def compare(self, descriptors: dict[str, Tensor], domain_B: Tensor) -> Losses:
        """Return L_sem and L_sty."""
        style_loss = losses.separated_style_loss if self.style_form == "separated" else losses.style_loss
        of = {"semantic": losses.semantic_loss, "style": style_loss}
        return {name: of[name](rows_BD, domain_B) for name, rows_BD in descriptors.items()}


METHODS: dict[str, Callable[..., Method]] = {"gbdgc": GranularBallGeneralisation, "erm": PlainRegression}


def build_method(name: str, **options: object) -> Method:
    """Return the method of that name; options it has no use for (erm takes only `density`) are left aside."""
    if name not in METHODS:
        raise InputError(f"no method {name!r}; there are: {', '.join(METHODS)}")
    known = inspect.signature(METHODS[name]).parameters
    return METHODS[name](**{key: value for key, value in options.items() if key in known})
