"""Reading what a run and its evaluations left on disk. Nothing is computed here."""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from gbdgc import checkpoint
from gbdgc.counting.trust import Trust
from gbdgc.data import unique_name
from gbdgc.errors import InputError
from gbdgc.evaluation.table import PREDICTIONS, Row, read_table

Domains = dict[str, int]
"""The latent domain of each training picture, by its id, in the order of the training set."""


@dataclass(frozen=True)
class Training:
    """A training run as its folder tells it."""

    folder: Path
    config: dict[str, Any]
    environment: dict[str, Any]
    metrics: list[dict[str, Any]]
    """One record an epoch: losses, validation."""
    history: list[Domains]
    """The domains as each discovery found them."""
    stability: list[dict[str, Any]]
    """How each discovery compares with the one before."""
    model: dict[str, Any] | None
    """What the chosen model says of itself; None before there is one."""
    trust: Trust | None
    """Where the training pictures lie; None before the run is finished."""

    @property
    def name(self) -> str:
        """The run's name and number, or the folder's name where that is not telling."""
        name = str(self.config["name"])
        return self.folder.name if self.folder.name.startswith(name) else f"{name} ({self.folder.name})"

    @property
    def sources(self) -> dict[str, Path]:
        """Where the source's data sets lie, by the names that their pictures' ids begin with if there are several."""
        named: dict[str, Path] = {}
        for place in self.config["data"]["source"]:
            named[unique_name(place, named)] = Path(place)
        return named

    def source_key(self, id: str) -> tuple[str, str]:
        """Return the data set of a training picture and its id there."""
        names = list(self.sources)
        return (names[0], id) if len(names) == 1 else (id.split("/", 1)[0], id.split("/", 1)[1])


@dataclass(frozen=True)
class Evaluation:
    """One data set as `gbdgc eval` counted it."""

    data: str
    rows: list[Row]
    """The labelled pictures; of others there is nothing to say."""
    errors: dict[str, Any]
    """What its summary says of this data set: path, split, and each metric with its interval."""
    rules: dict[str, Any]
    """What its summary says of all: how the model was chosen, how intervals were made."""


def read_training(folder: Path) -> Training:
    """Read a run's folder."""
    config = _read_config(folder)
    model, trust = _read_model(folder / "checkpoints" / checkpoint.BEST)
    discoveries = sorted((folder / "domains").glob("epoch_*.csv"))
    return Training(
        folder=folder,
        config=config,
        environment=_read_json(folder / "environment.json"),
        metrics=_read_lines(folder / "metrics.jsonl"),
        history=[_read_domains(path) for path in discoveries],
        stability=[_read_json(path.with_suffix(".json")) for path in discoveries],
        model=model,
        trust=trust,
    )


def read_evaluations(run: Path, folders: Sequence[Path] = ()) -> list[Evaluation]:
    """Read the evaluations given or, without any, those in the run's own folder; of two of one data set the later."""
    tables = [*run.glob(PREDICTIONS), *sorted(run.glob(f"eval*/{PREDICTIONS}"))]
    found: dict[str, Evaluation] = {}
    for folder in folders or [path.parent for path in tables]:
        rows, summary = read_table(folder), _read_json(folder / "summary.json")
        for data, errors in summary.pop("data").items():
            labelled = [row for row in rows if row.data == data and row.truth is not None]
            if labelled:
                found[data] = Evaluation(data, labelled, errors, summary)
    return list(found.values())


def flat(settings: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    """Yield nested settings under their full names, as overrides spell them."""
    for key, value in settings.items():
        if isinstance(value, dict) and value:
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _read_config(folder: Path) -> dict[str, Any]:
    reason = "it has no config.yaml"
    if (folder / "config.yaml").exists():
        try:
            config: Any = OmegaConf.to_container(OmegaConf.load(folder / "config.yaml"))
            if isinstance(config, dict) and {"data", "train", "discovery"} <= config.keys():
                return config
            reason = "its config.yaml has none of a training's settings"
        except (YAMLError, OmegaConfBaseException, UnicodeDecodeError) as error:
            reason = f"its config.yaml cannot be read: {error}"
    raise InputError(f"{folder}: not the folder of a training ({reason}); give the one that `gbdgc train` printed")


def _read_model(path: Path) -> tuple[dict[str, Any] | None, Trust | None]:
    if not path.exists():
        return None, None
    tensors, info = checkpoint.read(path)
    arrays: dict[str, NDArray[np.generic]] = {
        name: tensor.numpy() for name, tensor in checkpoint.nested("trust", tensors).items()
    }
    return info, Trust.from_arrays(arrays) if arrays else None


def _read_domains(path: Path) -> Domains:
    with path.open(newline="", encoding="utf-8", errors="surrogateescape") as file:
        return {row["id"]: int(row["domain"]) for row in csv.DictReader(file)}


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error}); it is written when the run ends: resume it") from error
    return content


def _read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
