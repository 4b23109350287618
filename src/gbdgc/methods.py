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
from gbdgc.models import DENSITY_SCALE, Output

Losses = dict[str, Tensor]


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

    def look(self, output: Output, density_BHW: Tensor, head_D: Tensor) -> Piece:
        """Return the losses of these images, and the rows for the losses of the batch."""

    def compare(self, descriptors: dict[str, Tensor], domain_B: Tensor) -> Losses:
        """Return the losses that look at all images of the batch together."""


def counting_terms(output: Output, density_BHW: Tensor, *, with_count: bool) -> Losses:
    """L_den, and L_cnt if wanted, for one pixel: over the crop's size, so that a λ means the same for every size."""
    pixels = density_BHW[0].numel()
    predicted, wanted = output.density[:, 0], density_BHW * DENSITY_SCALE
    made = {"density": losses.density_loss(predicted, wanted) / pixels}
    if with_count:
        made["count"] = losses.count_loss(predicted, wanted) / pixels
    return made


@dataclass(frozen=True)
class PlainRegression:
    """Density regression and nothing else (empirical risk minimisation): the baseline of every comparison."""

    count: float = 0.0

    @property
    def weights(self) -> dict[str, float]:
        """The density's, and the count's where it has one."""
        return {"density": 1.0} | ({"count": self.count} if self.count > 0 else {})

    @property
    def network_options(self) -> dict[str, bool]:
        """Neither codebook nor style branch."""
        return {"codebook": False, "style": False}

    @property
    def needs_domains(self) -> bool:
        """It knows no domains."""
        return False

    def look(self, output: Output, density_BHW: Tensor, head_D: Tensor) -> Piece:
        """Return the losses of density and count alone."""
        return Piece(counting_terms(output, density_BHW, with_count="count" in self.weights), {})

    def compare(self, descriptors: dict[str, Tensor], domain_B: Tensor) -> Losses:
        """Return nothing: no image is compared with another."""
        return {}


@dataclass(frozen=True)
class GranularBallGeneralisation:
    """The paper's objective: L_den + λ_sem L_sem + λ_sty L_sty + λ_orth L_orth; a weight of 0 takes a term out.

    ``alignment="count_free"`` aligns only what the density head does not read, so that L_sem cannot pull the counts of
    sparse and dense domains together. ``style_form="separated"`` keeps the style centres of different domains apart, so
    that the style branch cannot be zero. ``count`` is the weight of L_cnt, against faint density all over a picture.
    All three are ours; ``"paper"`` and 0 are as printed.
    """

    codebook: bool = True
    semantic: float = 0.02
    style: float = 0.1
    orthogonality: float = 0.1
    alignment: Literal["paper", "count_free"] = "paper"
    style_form: Literal["paper", "separated"] = "paper"
    count: float = 0.0

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each term that is switched on."""
        given = {name: getattr(self, name) for name in ("count", "semantic", "style", "orthogonality")}
        return {"density": 1.0} | {name: weight for name, weight in given.items() if weight > 0}

    @property
    def network_options(self) -> dict[str, bool]:
        """The codebook as asked; the style branch where a loss needs it."""
        return {"codebook": self.codebook, "style": bool({"style", "orthogonality"} & self.weights.keys())}

    @property
    def needs_domains(self) -> bool:
        """True where a loss speaks of pseudo-domains."""
        return bool({"semantic", "style"} & self.weights.keys())

    def look(self, output: Output, density_BHW: Tensor, head_D: Tensor) -> Piece:
        """Return L_den, L_cnt and L_orth, and the rows p_i and t_i for L_sem and L_sty."""
        made = counting_terms(output, density_BHW, with_count="count" in self.weights)
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
    """Return the method of that name; options it has no use for (erm takes only `count`) are left aside."""
    if name not in METHODS:
        raise InputError(f"no method {name!r}; there are: {', '.join(METHODS)}")
    known = inspect.signature(METHODS[name]).parameters
    return METHODS[name](**{key: value for key, value in options.items() if key in known})
