"""Dataset: samples with unique ids, and its form on disk, one JSON line per sample with paths relative to the file."""

import itertools
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np

from gbdgc.data.sample import Sample, decimals
from gbdgc.errors import InputError
from gbdgc.files import AnyPath, atomic_write

PathT = TypeVar("PathT", bound=AnyPath)


class Problem(NamedTuple):
    """Why a picture was left out while reading, and the split that it would have been in, where that is known."""

    text: str
    split: str | None = None


class Dataset(Sequence[Sample]):
    """An ordered collection of samples, each found by position or by id; ``format`` is the name of the reader."""

    def __init__(
        self, samples: Iterable[Sample], *, format: str = "manifest", problems: Iterable[Problem] = ()
    ) -> None:
        self.samples = tuple(samples)
        self.format = format
        self._problems = tuple(problems)
        self._by_id = {sample.id: sample for sample in self.samples}
        if len(self._by_id) < len(self.samples):
            twice = [id for id, times in Counter(self.ids).items() if times > 1]
            raise InputError("", f"ids must be unique, but these stand twice: {', '.join(twice[:10])}")

    def __len__(self) -> int:
        return len(self.samples)

    def __iter__(self) -> Iterator[Sample]:
        return iter(self.samples)

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> "Dataset": ...
    def __getitem__(self, index: int | slice) -> "Sample | Dataset":
        return self._subset(self.samples[index]) if isinstance(index, slice) else self.samples[index]

    def __repr__(self) -> str:
        parts = ", ".join(f"{name or 'no split'}: {size}" for name, size in self.split_sizes().items())
        counts = [sample.count for sample in self.samples if sample.count is not None]
        return (
            f"Dataset({len(self)} samples from {self.format}; {parts or 'empty'}; "
            f"{sum(counts):,} heads in {len(counts)} labelled)"
        )

    @property
    def problems(self) -> tuple[str, ...]:
        """The reasons why pictures were left out while reading with ``skip_bad``."""
        return tuple(problem.text for problem in self._problems)

    def by_id(self, id: str) -> Sample:
        """Return the sample of that id."""
        if id not in self._by_id:
            raise InputError("", f"no sample {id!r} among the {len(self)} of this data set")
        return self._by_id[id]

    @property
    def ids(self) -> list[str]:
        """The ids, in order."""
        return [sample.id for sample in self.samples]

    @property
    def labelled(self) -> "Dataset":
        """The samples that have points."""
        return self._subset(sample for sample in self.samples if sample.points is not None)

    def split_sizes(self) -> dict[str | None, int]:
        """How many samples each split has."""
        return dict(Counter(sample.split for sample in self.samples))

    def where(self, split: str) -> "Dataset":
        """Return the samples of one split, with the problems of that split and those of none in particular."""
        problems = (problem for problem in self._problems if problem.split in (None, split))
        samples = (sample for sample in self.samples if sample.split == split)
        found = Dataset(samples, format=self.format, problems=problems)
        if not found:
            names = ", ".join(str(name) for name in self.split_sizes())
            raise InputError("", f"no sample has the split {split!r}", f"there are: {names or 'no samples at all'}")
        return found

    def split(self, fraction: float = 0.9, *, seed: int = 0) -> tuple["Dataset", "Dataset"]:
        """Cut in two at random, ``fraction`` and the rest: the same for the same ids and seed, in any order."""
        if not 0 < fraction < 1:
            raise InputError("", f"the share of a split lies between 0 and 1, not {fraction}")
        ids = sorted(self.ids)
        chosen = np.random.default_rng(seed).permutation(len(ids))[: round(fraction * len(ids))]
        return self.split_by({ids[index] for index in chosen})

    def split_by(self, ids: Iterable[str]) -> tuple["Dataset", "Dataset"]:
        """Cut in two by a list of ids: those, and the rest."""
        wanted = set(ids)
        if missing := sorted(wanted - self._by_id.keys()):
            raise InputError("", f"{len(missing)} ids are not in this data set, such as {', '.join(missing[:5])}")
        first = self._subset(sample for sample in self.samples if sample.id in wanted)
        return first, self._subset(sample for sample in self.samples if sample.id not in wanted)

    def save(self, path: AnyPath) -> Path:
        """Write the manifest, atomically, and return its path."""
        path = Path(path)
        with atomic_write(path, "w") as file:
            for sample in self.samples:
                record: dict[str, Any] = {
                    "id": sample.id,
                    "image": Path(os.path.relpath(sample.image, path.parent)).as_posix(),
                    "width": sample.width,
                    "height": sample.height,
                    "points": decimals(sample.points),
                }
                record |= {} if sample.split is None else {"split": sample.split}
                record |= {"tags": dict(sample.tags)} if sample.tags else {}
                json.dump(record, file)
                file.write("\n")
        return path

    def _subset(self, samples: Iterable[Sample]) -> "Dataset":
        return Dataset(samples, format=self.format)


def concatenate(datasets: Mapping[str, Dataset]) -> Dataset:
    """Put several data sets together; each id gets its data set's name in front."""
    return Dataset(
        (replace(sample, id=f"{name}/{sample.id}") for name, dataset in datasets.items() for sample in dataset),
        format="+".join(dict.fromkeys(dataset.format for dataset in datasets.values())),
    )


def named(places: Iterable[PathT]) -> dict[str, PathT]:
    """Name data sets by the last part of their path, numbered where that is taken."""
    names: dict[str, PathT] = {}
    for place in places:
        name = Path(place).resolve().name
        numbered = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
        names[next(each for each in numbered if each not in names)] = place
    return names
