"""Drawn descriptors with known latent domains: what benchmarks and tests discover in.

A sample is drawn from one of several unequal, anisotropic Gaussians in a latent space and seen through a random map, as
a network's feature statistics see a picture. Over epochs the map turns a little, as in training, and every look at a
sample is noisy.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from gbdgc.domains.clustering import one_thread
from gbdgc.domains.tree import Floats, Integers

LATENT_AXES = 8
FEATURES = 64
JITTER = 0.25  # noise of one look, in standard deviations of a domain
TURN = 0.03  # how far the map moves in an epoch; five times as far in the condition "drift"


@dataclass(frozen=True)
class Condition:
    """What makes a drawn set hard."""

    separation: float = 3.0  # distance of the domains' centers, in their standard deviations
    degrees_of_freedom: float = np.inf  # of Student's t: few means heavy tails
    outliers: float = 0.0  # share of samples thrown far from every domain
    drift: float = TURN


CONDITIONS = {
    "clean": Condition(),
    "overlap": Condition(separation=2.0),
    "heavy tails": Condition(degrees_of_freedom=2.5),
    "5 % outliers": Condition(outliers=0.05),
    "10 % outliers": Condition(outliers=0.10),
    "20 % outliers": Condition(outliers=0.20),
    "drift": Condition(drift=5 * TURN),
}


@dataclass(frozen=True, eq=False)
class DrawnDescriptors:
    """Descriptors of the same samples in each epoch, and the domain each sample was drawn from."""

    epochs: list[Floats]
    truth: Integers


def draw_descriptors(
    n_samples: int = 300,
    n_domains: int = 4,
    n_epochs: int = 1,
    condition: str = "clean",
    n_features: int = FEATURES,
    seed: int = 0,
) -> DrawnDescriptors:
    """Draw latent-domain descriptors; the ``condition`` is one of `CONDITIONS`."""
    hard = CONDITIONS[condition]
    rng = np.random.default_rng(seed)
    truth = _unequal_domains(n_samples, n_domains, rng)
    latent = _latent(truth, n_domains, hard, rng)
    view = rng.normal(size=(LATENT_AXES, n_features)) / np.sqrt(LATENT_AXES)
    epochs = []
    with one_thread():
        for _ in range(n_epochs):
            look = latent + JITTER * rng.normal(size=latent.shape)
            epochs.append(look @ view + 0.1 * rng.normal(size=(n_samples, n_features)))
            view = view + hard.drift * rng.normal(size=view.shape)
    return DrawnDescriptors(epochs, truth)


def _unequal_domains(n_samples: int, n_domains: int, rng: Generator) -> Integers:
    """Domain of each sample; the largest is about four times the smallest, and none is empty."""
    share = np.linspace(4, 1, n_domains)
    sizes = np.maximum(1, np.floor(share / share.sum() * n_samples)).astype(int)
    sizes[0] += n_samples - sizes.sum()
    return rng.permutation(np.repeat(np.arange(n_domains), sizes))


def _latent(truth: Integers, n_domains: int, hard: Condition, rng: Generator) -> Floats:
    """Latent coordinates: anisotropic, turned at random, apart as the condition says, some thrown far out."""
    n = len(truth)
    centers = rng.normal(size=(n_domains, LATENT_AXES))
    centers *= hard.separation / np.sqrt(2 * LATENT_AXES) * np.sqrt(LATENT_AXES / 2)
    noise = rng.normal(size=(n, LATENT_AXES))
    if np.isfinite(hard.degrees_of_freedom):
        noise *= np.sqrt(hard.degrees_of_freedom / rng.chisquare(hard.degrees_of_freedom, size=(n, 1)))
    latent = np.empty((n, LATENT_AXES))
    for k in range(n_domains):
        turn = np.linalg.qr(rng.normal(size=(LATENT_AXES, LATENT_AXES)))[0]
        shape = turn * np.exp(rng.uniform(-1, 0.5, size=LATENT_AXES))
        latent[truth == k] = centers[k] + noise[truth == k] @ shape.T
    thrown = rng.permutation(n)[: round(hard.outliers * n)]
    direction = rng.normal(size=(len(thrown), LATENT_AXES))
    latent[thrown] += direction * rng.uniform(4, 8, size=(len(thrown), 1))
    return latent
