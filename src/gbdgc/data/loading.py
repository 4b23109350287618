"""The training set with its pseudo-domains, and the batches of an epoch.

Every crop is a function of (seed, epoch, id) and every order one of (seed, epoch): the number of workers, processes and
interruptions does not matter. So the only state of an epoch is the number of steps done.

Workers are threads: decoding, resizing and density maps release the GIL, and all share one cache of pictures.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import KW_ONLY, InitVar, dataclass, field
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gbdgc.data import transforms
from gbdgc.data.augmentation import Augmentation
from gbdgc.data.cache import ImageCache
from gbdgc.data.density import Density, density_map
from gbdgc.data.images import RGB
from gbdgc.data.manifest import Dataset
from gbdgc.data.prefetch import prefetch
from gbdgc.data.sample import KERNEL, SIGMA, Points, Sample
from gbdgc.data.sampling import Draw, epoch_order, generator
from gbdgc.errors import InputError


class Crop(NamedTuple):
    """A training crop: the normalised image (3, H, W) and people per cell (H / cell, W / cell)."""

    image: NDArray[np.float32]
    people: Density


class Batch(NamedTuple):
    """Crops with their truth; B pictures of H x W."""

    images: Tensor
    """(B, 3, H, W), normalised, in `channels_last` order."""
    people: Tensor
    """(B, H / cell, W / cell), people per cell."""
    domain: Tensor
    """(B,), the pseudo-domain of each."""
    ids: list[str]

    def to(self, device: torch.device | str) -> "Batch":
        """Return the batch on a device."""
        return Batch(self.images.to(device), self.people.to(device), self.domain.to(device), self.ids)


@dataclass(eq=False)
class TrainingSet:
    """Labelled samples, their pseudo-domains by id, and how their crops are made.

    Parameters
    ----------
    dataset : samples with points. Until `relabel` is called all of them are of domain 0.
    kernel, sigma : the density map's: see `density_map`.
    cell : side in pixels of the cells in which people are given.
    seed : of all chance in the crops.
    cache_bytes : memory for decoded pictures.
    max_side : pictures with a longer side are shrunk first.

    Attributes
    ----------
    labels : the pseudo-domain of each sample by id, in the order of the data set; empty until `relabel` is called.
    """

    dataset: Dataset
    augmentation: Augmentation = field(default_factory=Augmentation)
    _: KW_ONLY
    kernel: int = KERNEL
    sigma: float = SIGMA
    cell: int = 1
    seed: int = 0
    cache_bytes: InitVar[int] = 0
    max_side: InitVar[int | None] = None

    def __post_init__(self, cache_bytes: int, max_side: int | None) -> None:
        if not self.dataset:
            raise InputError("", "there are no samples to train on")
        if unlabelled := [sample.id for sample in self.dataset if sample.points is None]:
            reason = f"{len(unlabelled)} of {len(self)} samples have no labels, such as {unlabelled[0]}"
            raise InputError("", reason, "train on `dataset.labelled`")
        self.cache = ImageCache(cache_bytes, max_side=max_side)
        self.labels: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.dataset)

    def steps_per_epoch(self, batch_size: int, repeats: int = 1) -> int:
        """Return how many batches an epoch has."""
        return max(1, repeats * len(self) // batch_size)

    def domains(self) -> dict[str, int]:
        """Return the pseudo-domain of each id, in the order of the data set."""
        return dict(self.labels) or dict.fromkeys(self.dataset.ids, 0)

    def relabel(self, domains: Mapping[str, int]) -> None:
        """Replace the pseudo-domains of all samples; the next epoch's batches will have them."""
        ids = dict.fromkeys(self.dataset.ids)
        missing = [id for id in ids if id not in domains]
        strange = [id for id in domains if id not in ids]
        if missing or strange:
            raise InputError(
                "pseudo-domains for other samples than these",
                f"{len(missing)} are missing{_such_as(missing)}, "
                f"{len(strange)} are not in the training set{_such_as(strange)}",
            )
        self.labels = {id: int(domains[id]) for id in ids}

    def item(self, id: str, epoch: int, turn: int = 0) -> Crop:
        """Return the crop of a picture in an epoch; ``turn`` counts the times that the epoch has shown it before."""
        random = generator("crop", self.seed, epoch, turn, id)
        augmentation, size = self.augmentation, self.augmentation.crop
        if augmentation.mosaic and random.random() < augmentation.mosaic:
            image, points = self._mosaic(id, random)
        else:
            image, points = self._cut(id, size, augmentation.scale_range, random)
        if random.random() < augmentation.flip:
            image, points = transforms.flip(image, points)
        image = augmentation.recolour(image, random)
        people = density_map(points, size, size, kernel=self.kernel, sigma=self.sigma, stride=self.cell)
        return Crop(transforms.normalise(image), people)

    def _cut(self, id: str, size: int, scale: tuple[float, float], random: np.random.Generator) -> tuple[RGB, Points]:
        """Return a square of the picture at a random scale, and the heads in it."""
        sample = self.dataset.by_id(id)
        image = self.cache.read(sample)
        height, width = image.shape[:2]
        assert sample.points is not None
        # Where the heads are on the picture as it was read.
        factors = np.array([width / sample.width, height / sample.height], dtype=np.float32)
        points = transforms.clamp(sample.points * factors, width, height)
        focus = self.augmentation.focus
        around = points[random.integers(len(points))] if focus and len(points) and random.random() < focus else None
        box = transforms.random_box(image, size, random, scale, around)
        return transforms.resized_crop(image, points, box, size, size)

    def _mosaic(self, id: str, random: np.random.Generator) -> tuple[RGB, Points]:
        """Return four squares of the picture side by side, at half the scale.

        So heads are smaller and closer than a crop can show them where the picture is not large enough. All are of
        one picture, so that the crop is of one latent domain.
        """
        size = self.augmentation.crop
        low, high = self.augmentation.scale_range
        pieces = [self._cut(id, size // 2, (low / 2, high / 2), random) for _ in range(4)]
        squares = [piece[0] for piece in pieces]
        image = np.concatenate([np.concatenate(row, axis=1) for row in (squares[:2], squares[2:])])
        corners = np.array([[0, 0], [1, 0], [0, 1], [1, 1]], dtype=np.float32) * np.float32(size // 2)
        points = np.concatenate([piece[1] + corner for piece, corner in zip(pieces, corners, strict=True)])
        return image, points


@dataclass(eq=False)
class Batches:
    """The batches of one epoch, prefetched by ``workers`` threads; each iteration begins at ``start``.

    Parameters
    ----------
    batch_size : pictures per step over all processes together; each process gets the rows of its ``rank``.
    epoch, seed : determine the order.
    start : steps of this epoch that are already done: their pictures are not read.
    workers : threads; with 0 each batch is made on demand.
    repeats : crops per picture and epoch.
    balanced : fill each batch with the pseudo-domains in equal parts.
    shares : the share of each source in the epoch, by its name, with which the ids of its pictures begin.

    Every batch is full: the remainder at the end of an epoch is dropped, and a set with fewer pictures than a batch
    fills it with further crops of the same pictures.
    """

    training_set: TrainingSet
    batch_size: int
    epoch: int
    _: KW_ONLY
    seed: int = 0
    start: int = 0
    workers: int = 2
    repeats: int = 1
    balanced: bool = False
    shares: Mapping[str, float] | None = None
    rank: int = 0
    world_size: int = 1

    def __post_init__(self) -> None:
        if self.batch_size < 1 or self.batch_size % self.world_size:
            reason = f"cannot be shared equally by {self.world_size} processes"
            raise InputError(f"a batch of {self.batch_size}", reason)

    @property
    def steps(self) -> int:
        """How many batches the whole epoch has."""
        return self.training_set.steps_per_epoch(self.batch_size, self.repeats)

    def __len__(self) -> int:
        return max(0, self.steps - self.start)

    def __iter__(self) -> Iterator[Batch]:
        # The labels of this moment: relabelling while batches are made ahead must not reach into them.
        domains = self.training_set.domains()
        parts = self._draws(domains)
        draws = [draw for part in parts for draw in part]
        ahead = 2 * self.batch_size // self.world_size
        make = self.training_set.item
        with closing(
            prefetch(lambda draw: make(draw.id, self.epoch, draw.turn), draws, workers=self.workers, ahead=ahead)
        ) as items:
            for part in parts:
                made = list(islice(items, len(part)))
                yield Batch(
                    _stack_images([item.image for item in made]),
                    torch.from_numpy(np.stack([item.people for item in made])),
                    torch.tensor([domains[draw.id] for draw in part]),
                    [draw.id for draw in part],
                )

    def _draws(self, domains: Mapping[str, int]) -> list[list[Draw]]:
        """Return this process's rows of each batch that is still to come."""
        length = self.steps * self.batch_size
        groups: dict[str, Hashable] = dict(domains)
        shares: dict[Hashable, float] | None = None
        if self.shares is not None:
            groups, shares = {id: id.split("/", 1)[0] for id in domains}, dict(self.shares.items())
        elif self.balanced:
            shares = dict.fromkeys(sorted(set(domains.values())), 1.0)
        order = epoch_order(groups, length, seed=self.seed, epoch=self.epoch, shares=shares)
        rows = self.batch_size // self.world_size
        firsts = range(self.start * self.batch_size + self.rank * rows, length, self.batch_size)
        return [order[first : first + rows] for first in firsts]


def descriptor_images(
    dataset: Dataset, *, size: int, batch_size: int = 32, workers: int = 2, cache: ImageCache | None = None
) -> Iterator[tuple[list[str], Tensor]]:
    """Yield (ids, images) over a data set in its order: whole pictures brought to ``size`` x ``size``, normalised.

    With the ``cache`` of a training set its pictures are seen as training sees them, and decoded once.
    """
    pictures = ImageCache() if cache is None else cache

    def image(sample: Sample) -> NDArray[np.float32]:
        return transforms.normalise(pictures.read_resized(sample, size, size))

    with closing(prefetch(image, dataset.samples, workers=workers, ahead=2 * batch_size)) as images:
        names = iter(dataset.ids)
        while ids := list(islice(names, batch_size)):
            yield ids, _stack_images(list(islice(images, len(ids))))


def _stack_images(images: Sequence[NDArray[np.float32]]) -> Tensor:
    """Stack (3, H, W) images into (B, 3, H, W), keeping their order in memory, which is `channels_last`."""
    return torch.from_numpy(np.stack([image.transpose(1, 2, 0) for image in images])).permute(0, 3, 1, 2)


def _such_as(ids: Sequence[str]) -> str:
    return f" (such as {ids[0]})" if ids else ""
