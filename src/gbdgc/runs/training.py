"""Reading the folder of a training run: its settings, its records, its domains and its models."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gbdgc.errors import InputError, as_input_error
from gbdgc.files import atomic_write, csv_line, csv_rows
from gbdgc.runs.environment import ENVIRONMENT
from gbdgc.runs.folder import CONFIG
from gbdgc.runs.journal import Journal

CHECKPOINTS, BEST, METRICS = "checkpoints", "best.safetensors", "metrics.jsonl"
_FINISHED = "finished"

Domains = dict[str, int]
"""The latent domain of each training picture, by its id, in the order of the training set."""


@dataclass(frozen=True)
class TrainingRun:
    """The folder of a training run, and its results."""

    folder: Path

    @property
    def finished(self) -> bool:
        """True once the run is complete; one that a signal stopped can be resumed."""
        return (self.folder / _FINISHED).exists()

    @property
    def checkpoints(self) -> Path:
        """The folder of the run's state and models."""
        return self.folder / CHECKPOINTS

    @property
    def best(self) -> Path:
        """The model, as the selection rule chose it."""
        return self.checkpoints / BEST

    @property
    def epoch_models(self) -> list[Path]:
        """The models of the last epochs, if the run keeps them."""
        return sorted(self.checkpoints.glob("epoch_*.safetensors"))

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """One record per epoch: losses, validation."""
        return self.journal.rows()

    @property
    def journal(self) -> Journal:
        """The file of the records."""
        return Journal(self.folder / METRICS)

    @cached_property
    def config(self) -> dict[str, Any]:
        """The settings, section by section."""
        from omegaconf import OmegaConf
        from omegaconf.errors import OmegaConfBaseException
        from yaml import YAMLError

        damaged, foreign = (YAMLError, OmegaConfBaseException, UnicodeDecodeError), "not the folder of a training"
        advice = "give the one that `gbdgc train` printed"
        if not (self.folder / CONFIG).exists():
            raise InputError(self.folder, f"{foreign} (it has no {CONFIG})", advice)
        with as_input_error(damaged, self.folder, f"{foreign} (its {CONFIG} cannot be read: {{error}})", advice):
            config: Any = OmegaConf.to_container(OmegaConf.load(self.folder / CONFIG))
        if not (isinstance(config, dict) and {"data", "train", "discovery"} <= config.keys()):
            raise InputError(self.folder, f"{foreign} (its {CONFIG} has none of a training's settings)", advice)
        return config

    @cached_property
    def environment(self) -> dict[str, Any]:
        """The versions, machine and command of the run."""
        return read_json(self.folder / ENVIRONMENT)

    @cached_property
    def domains(self) -> list[Domains]:
        """The domains as each discovery found them, the one before the first epoch first."""
        texts = (path.read_bytes().decode("utf-8", "surrogateescape") for path in self._discoveries)
        return [{id: int(domain) for id, domain in csv_rows(text)[1:]} for text in texts]

    @cached_property
    def stability(self) -> list[dict[str, Any]]:
        """How each discovery compares with the one before."""
        return [read_json(path.with_suffix(".json")) for path in self._discoveries]

    @property
    def _discoveries(self) -> list[Path]:
        return sorted((self.folder / "domains").glob("epoch_*.csv"))

    def write_domains(self, epoch: int, domains: Mapping[str, int], stability: Mapping[str, Any]) -> None:
        """Write what one discovery found, and how it compares with the one before."""
        path = self.folder / "domains" / f"epoch_{epoch:03d}"
        with atomic_write(path.with_suffix(".csv"), "w") as file:
            file.writelines(csv_line(row) for row in [("id", "domain"), *domains.items()])
        with atomic_write(path.with_suffix(".json"), "w") as file:
            json.dump({key: None if value != value else value for key, value in stability.items()}, file)  # no NaN

    def mark_finished(self, finished: bool) -> None:
        """Record that the run is complete, or that it is running again."""
        if finished:
            (self.folder / _FINISHED).touch()
        else:
            (self.folder / _FINISHED).unlink(missing_ok=True)


def read_json(path: Path) -> dict[str, Any]:
    """Read a file of a run."""
    resume = "it is written when the run ends: resume it"
    with as_input_error((OSError, ValueError, RecursionError), path, "cannot be read ({error})", resume):
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise ValueError("not an object")
    return content
