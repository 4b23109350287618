"""Reading the files of a run and its evaluations; nothing is computed here."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from gbdgc import checkpoint
from gbdgc.counting.trust import Trust
from gbdgc.data import named
from gbdgc.errors import about
from gbdgc.evaluation.table import PREDICTIONS, Row, read_table
from gbdgc.runs import TrainingRun, read_json


@dataclass(frozen=True)
class Training(TrainingRun):
    """A training run as its folder tells it."""

    @cached_property
    def model(self) -> dict[str, Any] | None:
        """The chosen model's description; None before there is one."""
        return self._best[1] if self._best else None

    @cached_property
    def trust(self) -> Trust | None:
        """The cloud of training pictures; None before the run is finished."""
        arrays = checkpoint.nested("trust", self._best[0]) if self._best else {}
        with about(self.best, "trust"):
            return Trust.from_arrays(checkpoint.to_arrays(arrays)) if arrays else None

    @cached_property
    def _best(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        return checkpoint.read(self.best) if self.best.exists() else None

    @property
    def name(self) -> str:
        """The run's name and number, or the folder's name where that is not telling."""
        name = str(self.config["name"])
        return self.folder.name if self.folder.name.startswith(name) else f"{name} ({self.folder.name})"

    @property
    def sources(self) -> dict[str, Path]:
        """The paths of the source's data sets, by the names with which ids begin where there are several."""
        return named(map(Path, self.config["data"]["source"]))

    def source_key(self, id: str) -> tuple[str, str]:
        """Return the data set of a training picture and its id there."""
        names = list(self.sources)
        return (names[0], id) if len(names) == 1 else (id.split("/", 1)[0], id.split("/", 1)[1])


@dataclass(frozen=True)
class CountedDataset:
    """One data set as `gbdgc eval` counted it."""

    data: str
    rows: list[Row]
    """The labelled pictures; the others have no errors to report."""
    errors: dict[str, Any]
    """The summary of this data set: path, split, and each metric with its interval."""
    rules: dict[str, Any]
    """The rest of the summary: how the model was chosen, how intervals were computed."""


def read_evaluations(run: Path, folders: Sequence[Path] = ()) -> list[CountedDataset]:
    """Read the evaluations given or, without any, those in the run's own folder; of two of one data set the later."""
    tables = [*run.glob(PREDICTIONS), *sorted(run.glob(f"eval*/{PREDICTIONS}"))]
    found: dict[str, CountedDataset] = {}
    for folder in folders or [path.parent for path in tables]:
        rows, summary = read_table(folder), read_json(folder / "summary.json")
        for data, errors in summary.pop("data").items():
            labelled = [row for row in rows if row.data == data and row.truth is not None]
            if labelled:
                found[data] = CountedDataset(data, labelled, errors, summary)
    return list(found.values())


def flat_settings(settings: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    """Yield nested settings under their full names, as overrides spell them."""
    for key, value in settings.items():
        if isinstance(value, dict) and value:
            yield from flat_settings(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
