"""Whether descriptors by region or by density separate a source better than those of whole pictures.

    python benchmarks/regions.py MODEL DATA [--domains 4]

Describes the training part of DATA by MODEL's encoder in three ways: mean and deviation of every channel over the
picture, the same in each of 2 x 2 regions, and weighted by the density that the model predicts. For each it finds the
latent domains and prints how far their median counts lie apart, and how well the partition agrees (ARI) with that of
the same pictures under mild changes of colour and sharpness.
"""

import argparse
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from rich.table import Table
from sklearn.metrics import adjusted_rand_score
from torch import Tensor
from torch.nn import functional

from gbdgc import checkpoint
from gbdgc.data import load_dataset, transforms
from gbdgc.data.augmentation import Augmentation
from gbdgc.data.images import read_image
from gbdgc.descriptors import channel_statistics
from gbdgc.domains import GranularBallDomains, count_separation
from gbdgc.models import Network
from gbdgc.progress import stdout, track
from gbdgc.shipped import find_model

MILD = Augmentation(brightness=0.15, contrast=0.15, saturation=0.15, blur=0.1, noise=0.1, jpeg=0.1)
SIDE = 224


def whole(network: Network, images: Tensor) -> Tensor:
    return channel_statistics(network.feature_maps(images))


def regions(network: Network, images: Tensor) -> Tensor:
    halves = [half for level in network.feature_maps(images) for half in level.chunk(2, dim=2)]
    return channel_statistics(quarter for half in halves for quarter in half.chunk(2, dim=3))


def by_density(network: Network, images: Tensor) -> Tensor:
    """Every position weighs as much as the people predicted there, and a hundredth of the picture's mean."""
    density = network(images).density
    statistics = []
    for level in network.feature_maps(images):
        weight = functional.adaptive_avg_pool2d(density, level.shape[2:])
        weight = weight + 0.01 * weight.mean(dim=(2, 3), keepdim=True) + 1e-6
        weight = weight / weight.sum(dim=(2, 3), keepdim=True)
        mean = (weight * level).sum(dim=(2, 3))
        variance = (weight * (level - mean[:, :, None, None]).square()).sum(dim=(2, 3))
        statistics += [mean, (variance + 1e-5).sqrt()]
    return torch.cat(statistics, dim=1)


KINDS: dict[str, Callable[[Network, Tensor], Tensor]] = {
    "whole picture": whole,
    "2 x 2 regions": regions,
    "weighted by density": by_density,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--domains", type=int, default=4)
    arguments = parser.parse_args()
    network = checkpoint.load_model(checkpoint.model_file(find_model(arguments.model)))[0].eval()
    samples = load_dataset(arguments.data).where("train").labelled
    counts = [sample.count for sample in samples]
    described: dict[str, dict[str, list[NDArray[np.float32]]]] = {name: {"plain": [], "changed": []} for name in KINDS}
    with torch.inference_mode():
        for number, sample in enumerate(track(samples, "describing", total=len(samples))):
            image = transforms.resized(read_image(sample.image), SIDE, SIDE)
            changed = MILD.recolour(image, np.random.default_rng(number))
            for look, seen in (("plain", image), ("changed", changed)):
                pixels = torch.from_numpy(transforms.normalise(seen))[None]
                for name, kind in KINDS.items():
                    described[name][look].append(kind(network, pixels)[0].numpy())
    table = Table("descriptors", "features", "mode", "spread of median counts", "ARI of the two looks")
    for name, looks in described.items():
        for mode in ("paper", "stable"):
            found = [
                GranularBallDomains(arguments.domains, mode=mode, random_state=0).fit(np.stack(rows)).labels_
                for rows in looks.values()
            ]
            spread = count_separation(found[0], counts).delta_median
            agreement = adjusted_rand_score(*found)
            table.add_row(name, str(len(looks["plain"][0])), mode, f"{spread:.0f}", f"{agreement:.2f}")
    stdout.print(table)


if __name__ == "__main__":
    main()
