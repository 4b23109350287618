"""The settings of a method; a section of the config, so nothing here imports torch."""

from dataclasses import dataclass
from typing import Literal

DensityLoss = Literal["squared", "poisson", "absolute"]


@dataclass
class MethodOptions:
    """The settings of a method; plain regression takes `density` alone. A weight of 0 switches a term off."""

    name: str = "gbdgc"
    """A name in `METHODS`: gbdgc is the paper's, mixing ours, erm plain regression."""
    density: DensityLoss = "squared"
    """The loss of the density: the paper's squared error per pixel, or ours of the counts in squares."""
    mix: float = 0.5
    """For `mixing`: the share of steps in which styles are mixed across domains."""
    equal_density: float = 0.0
    """For `mixing`: the weight of L_equal, which aligns domains where they are equally dense."""
    codebook: bool = True
    semantic: float = 0.02
    style: float = 0.1
    orthogonality: float = 0.1
    alignment: Literal["paper", "count_free"] = "paper"
    """count_free aligns only what the density head does not read, so that L_sem cannot pull the counts of sparse and
    dense domains together."""
    style_form: Literal["paper", "separated"] = "paper"
    """separated keeps the style centres of different domains apart, so that the style branch cannot be zero."""
