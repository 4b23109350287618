"""The declaration of a benchmark: what is trained, where it is counted, what is measured and how it is shown."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gbdgc.benchmark.layout import Table
from gbdgc.benchmark.protocol import LAST_EPOCHS, Pairs, file_name, source_settings
from gbdgc.errors import InputError
from gbdgc.files import AnyPath, natural_order
from gbdgc.runs import TrainingRun

if TYPE_CHECKING:
    from gbdgc.config import Config
    from gbdgc.data import Dataset

Cell = dict[str, Any]
"""One result: a source, a target, a variant and a seed, and what was measured of them."""

Variants = Mapping[str, Sequence[str]]
"""The rows of a table: their names, and the settings that make them."""


class Job(NamedTuple):
    """A variant trained on a source, and where it is counted."""

    source: str
    """A data set, or several joined by +."""
    variant: str
    overrides: tuple[str, ...]
    targets: tuple[str, ...]
    """Empty where the question is about the source itself."""


@dataclass(frozen=True)
class Settings:
    """How the cells of a benchmark are made."""

    data: Mapping[str, AnyPath]
    """The path of each data set, by its name in the tables."""
    config: AnyPath = "compact_sha"
    """A preset or a YAML file; source, seed and variant are set for each cell."""
    overrides: Sequence[str] = ()
    sources: Sequence[str] = ()
    """The sources to train on; empty: all that the data sets allow."""
    variants: Sequence[str] = ()
    """The rows to fill; empty: all that the table has."""
    seeds: Sequence[int] = (0,)
    epochs: int | None = None
    engine: str | None = None
    """The engine that counts the targets; None: torch."""
    out: AnyPath = "results"
    """The folder of the small files: ``<out>/<benchmark>/cells/*.json`` and the tables."""
    runs: AnyPath = "runs/benchmark"
    """The folder of the large ones: training runs with their checkpoints and predictions."""

    def config_of(self, job: Job, seed: int) -> "Config":
        """Return what to train for a job."""
        from gbdgc.config import load_config  # here, as the help names the tables and must not import so much

        # What a variant is about comes last, so that nothing can quietly undo it.
        own = ["data.source=[]", f"train.keep_epochs={LAST_EPOCHS}", *source_settings(job.source), *self.overrides]
        own += [*job.overrides, f"train.seed={seed}"] + [f"train.epochs={self.epochs}"] * (self.epochs is not None)
        config = load_config(self.config, own)
        config.name = file_name(job.source)
        config.data.source = [os.fspath(Path(self.data[part]).resolve()) for part in job.source.split("+")]
        return config

    def source(self, name: str) -> "Dataset":
        """Return the pictures of a single source to train on."""
        from gbdgc.config import load_config
        from gbdgc.training.state import load_training_part

        return load_training_part(self.data[name], load_config(self.config, ["data.source=[]", *self.overrides]).data)


@dataclass(frozen=True)
class Benchmark:
    """A benchmark and its table."""

    name: str
    """Names the command, the folder of its results, and the published table beside it."""
    caption: str
    """The title of the table, also shown in the help."""
    variants: Variants | Callable[[int], Variants]
    """The rows, under the names that the published ones have; or from the number of training pictures to the rows."""
    pairs: Callable[[Sequence[str]], Pairs]
    """From the data sets that are there to the targets of each source."""
    measure: Callable[[TrainingRun, str, str | None, Settings], Cell]
    """From a finished training, its source, a target and the settings to what a cell holds."""
    layout: Callable[["Benchmark", Sequence[Cell]], list[Table]]
    """From the cells to the tables."""
    least_epochs: int = 1
    """The number of epochs that a training needs for this measurement."""

    def jobs(self, names: Sequence[str], size: Callable[[str], int]) -> list[Job]:
        """Return the jobs for these data sets; ``size`` returns the number of training pictures of a source."""
        pairs = self.pairs(names)
        if not pairs:
            raise InputError(self.name, f"nothing to run on {', '.join(names) or 'no data'}", "it wants two data sets")
        jobs = []
        for source, targets in pairs.items():
            variants = self.variants(size(source)) if callable(self.variants) else self.variants
            jobs += [Job(source, variant, tuple(overrides), targets) for variant, overrides in variants.items()]
        return jobs

    def rows(self, cells: Iterable[Cell]) -> dict[str, list[Cell]]:
        """Return the cells of each variant: as declared, then those not declared in natural order."""
        found: dict[str, list[Cell]] = {}
        for cell in cells:
            found.setdefault(cell["variant"], []).append(cell)
        declared = [] if callable(self.variants) else [name for name in self.variants if name in found]
        return {name: found[name] for name in [*declared, *sorted(found.keys() - declared, key=natural_order)]}
