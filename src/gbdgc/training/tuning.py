"""`tune`: a model fitted to one camera by a few labelled pictures of it, where that makes it better."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from gbdgc import checkpoint
from gbdgc.config import Config, DataConfig, load_config
from gbdgc.counting import Counter
from gbdgc.counting.conformal import MIN_PICTURES
from gbdgc.data import Dataset
from gbdgc.errors import InputError
from gbdgc.evaluation import Row, Unreadable, count_rows, doubt, errors, save_calibrated, summarise, unbiased_gain
from gbdgc.evaluation.counting import WHOLE
from gbdgc.files import AnyPath, write_json
from gbdgc.progress import stderr
from gbdgc.runs import RunFolder
from gbdgc.training.run import train
from gbdgc.training.state import load_training_part

MIN_TO_TUNE = 5
START = "as it is"
_FACTOR, _HEAD, _ALL = "one factor", "head and decoder", "all layers"
_ENOUGH_FOR_ALL = 20  # pictures from which on the encoder may learn too
_ENCODER_RATE = 1e-4
_FOLDS = 3
_STEPS = 120
_FACTORS = 0.2, 5.0
_LEAST_GAIN = 0.02  # as a share of the error: less is not worth another model


@dataclass(frozen=True)
class Tuning:
    """The result of tuning."""

    folder: Path
    chosen: str
    """How the model was fitted; `START` where nothing was better."""
    model: Path | None
    """The tuned model; None where nothing was better than the start."""
    summary: dict[str, Any]
    """The content of summary.json: the errors of each way to fit, on pictures that it had not seen."""
    doubt: str | None
    """Why the counts are no better than a constant; None if they are better."""


def tune(
    data: AnyPath,
    start: AnyPath = "default",
    *,
    format: str = "auto",
    split: str = "train",
    out: AnyPath | None = None,
    steps: int = _STEPS,
    seed: int = 0,
) -> Tuning:
    """Fit a model to a few labelled pictures, and hand it out only if it counts unseen ones of them better.

    Three ways are tried, each more than the one before: one factor on all counts; training the head and decoder;
    training all layers, where there are twenty pictures. Each is judged by cross-validation: it is fitted to two thirds
    of the pictures and counts the rest, three times over. A training fits the pictures it sees, and may count unseen
    ones of the same camera too low: a bias of the pictures left out that is more than chance is taken out by a factor.
    The way with the lowest mean error is taken, if its gain over the start is larger than the standard error of that
    gain and than 2 %, and then fitted to all pictures.

    Parameters
    ----------
    data : labelled pictures of one's own, 5 or more.
    start : the model to begin with: a run's folder, a model file, or a name that ``gbdgc models`` lists.
    format : a name in `gbdgc.data.READERS`.
    split : the split to fit to, "all" for everything; data without splits is taken whole.
    out : the run's folder; by default the next free ``runs/tune/<name>-<n>``.
    steps : of each training.
    seed : of the folds and of the trainings.
    """
    pictures = load_training_part(data, DataConfig(format=format, split=split))
    if len(pictures) < MIN_TO_TUNE:
        raise InputError(data, f"{len(pictures)} labelled pictures", f"label at least {MIN_TO_TUNE}, better twenty")
    model = checkpoint.model_file(start)
    settings = {"data": os.fspath(Path(data).resolve()), "start": os.fspath(model), "steps": steps, "seed": seed}
    with RunFolder.open("tune", Path(data).resolve().stem, settings, out, changed=lambda file: []) as run:
        with tempfile.TemporaryDirectory(dir=run.path, prefix="trainings-") as folder:
            fits = _Fits(model, pictures, Path(folder), steps, seed)
            ways = [_FACTOR, _HEAD, *([_ALL] if len(pictures) >= _ENOUGH_FOR_ALL else [])]
            counted = {way: fits.cross_validated(way) for way in ways}
            trained = {way: take_out_bias(counted[way], fits.fold) for way in ways if way != _FACTOR}
            rows = {START: fits.before} | counted | trained
            chosen = choose(rows)
            tuned = None if chosen == START else run.path / checkpoint.BEST
            if tuned is not None:
                gain = unbiased_gain(summarise(counted[chosen])) if chosen in trained else 1.0
                fits.on_all(chosen, gain, rows[chosen], tuned)
        summary = {
            "pictures": len(pictures),
            "folds": _FOLDS,
            "chosen": chosen,
            "errors": {way: errors(counted, seed=seed) for way, counted in rows.items()},
        }
        write_json(run.path / "summary.json", summary)
    return Tuning(run.path, chosen, tuned, summary, doubt(rows[chosen]))


def choose(rows: dict[str, list[Row]]) -> str:
    """Return the way with the lowest error of those whose gain over the start is more than chance, or the start.

    Of two that are equal but for 2 % the first is taken, which changes less.
    """
    before = _absolute_errors(rows[START])
    best, lowest = START, float(before.mean())
    for way, counted in rows.items():
        gains = before - _absolute_errors(counted)
        sure = gains.mean() > max(gains.std(ddof=1) / np.sqrt(len(gains)), _LEAST_GAIN * before.mean())
        if sure and before.mean() - gains.mean() < lowest - _LEAST_GAIN * before.mean():
            best, lowest = way, float(before.mean() - gains.mean())
    return best


def best_factor(rows: Sequence[Row]) -> float:
    """Return the factor on the counts that makes their mean absolute error smallest: a weighted median of ratios."""
    counts = np.array([max(row.count, 1e-3) for row in rows])
    ratios = np.array([row.truth or 0 for row in rows]) / counts
    order = np.argsort(ratios)
    middle = np.searchsorted(np.cumsum(counts[order]), counts.sum() / 2)
    return float(np.clip(ratios[order][middle], *_FACTORS))


def take_out_bias(rows: Sequence[Row], fold: Mapping[str, int]) -> list[Row]:
    """Return the counts without the bias that pictures of the other folds show, where it is more than chance."""
    factors = {
        own: unbiased_gain(summarise([row for row in rows if fold[row.id] != own])) for own in set(fold.values())
    }
    return [replace(row, count=row.count * factors[fold[row.id]]) for row in rows]


@dataclass
class _Fits:
    """The ways to fit a model to pictures, and what those that were left out are counted as."""

    start: Path
    pictures: Dataset
    folder: Path
    steps: int
    seed: int

    def __post_init__(self) -> None:
        self.before = _count(self.start, self.pictures)
        order = np.random.default_rng(self.seed).permutation(len(self.pictures))
        self.fold = dict(zip(self.pictures.ids, (order % _FOLDS).tolist(), strict=True))

    def cross_validated(self, way: str) -> list[Row]:
        """Return each picture as counted by a model that was fitted without its fold, in their order."""
        counted: dict[str, Row] = {}
        for number in range(_FOLDS):
            stderr.print(f"{way}: part {number + 1} of {_FOLDS} left out", markup=False)
            learnt, left_out = self.pictures.split_by(id for id, own in self.fold.items() if own != number)
            model = self._fit(way, learnt, self.folder / f"{way}-{number}".replace(" ", "-"))
            counted |= {row.id: row for row in _count(model, left_out)}
        return [counted[id] for id in self.pictures.ids]

    def on_all(self, way: str, gain: float, judged: Sequence[Row], out: Path) -> None:
        """Fit to all pictures, and write the model, its counts times ``gain``.

        With intervals from the cross-validation, where these suffice.
        """
        stderr.print(f"{way}: fitted to all pictures", markup=False)
        tensors, info = checkpoint.read(self._fit(way, self.pictures, self.folder / "all"))
        # The start's own intervals are not those of the tuned model.
        tensors = {name: each for name, each in _times(tensors, gain).items() if not name.startswith("conformal/")}
        info = {key: value for key, value in info.items() if key not in {"calibration", "errors"}}
        checkpoint.write(out, tensors, info | {"tuned": {"from": info.get("name"), "way": way}})
        if len(judged) >= MIN_PICTURES:
            save_calibrated(out, out, judged, info.get("max_side"))

    def _fit(self, way: str, pictures: Dataset, folder: Path) -> Path:
        """Return a model fitted to these pictures."""
        if way == _FACTOR:
            ids = set(pictures.ids)
            factor = best_factor([row for row in self.before if row.id in ids])
            tensors, info = checkpoint.read(self.start)
            checkpoint.write(path := folder.with_suffix(".safetensors"), _times(tensors, factor), info)
            return path
        config = self._config(way, len(pictures), pictures.save(folder.with_suffix(".jsonl")))
        run = train(config, folder=folder)
        if not run.finished:
            raise KeyboardInterrupt
        return run.best

    def _config(self, way: str, pictures: int, manifest: Path) -> Config:
        info = checkpoint.read(self.start)[1]
        build: dict[str, Any] = dict(info["build"])
        config = load_config("tune")
        config.name = str(info.get("name", "tuned"))
        config.data.source = [os.fspath(manifest)]
        config.data.max_side, config.data.test_scale = info.get("max_side"), info.get("test_scale", 1.0)
        config.data.repeats = max(1, round(self.steps * config.train.batch_size / pictures))
        codebook = config.method.codebook = build.pop("codebook", True)
        config.method.name = info.get("method", "gbdgc" if codebook else "erm")
        for name in build.keys() & {"backbone", "dim", "codewords", "dropout"}:
            setattr(config.model, name, build.pop(name))
        config.model.options = build
        config.train.start, config.train.seed = os.fspath(self.start), self.seed
        if way == _ALL:
            config.train.encoder_learning_rate = _ENCODER_RATE
        return config


def _times(tensors: Mapping[str, Tensor], factor: float) -> dict[str, Tensor]:
    """Return a model's tensors with its counts multiplied: the density is linear in the head."""
    return {name: factor * each if name.startswith("network/head.") else each for name, each in tensors.items()}


def _count(model: Path, pictures: Dataset) -> list[Row]:
    counted = list(count_rows(Counter.load(model, tile=WHOLE), pictures, "own"))
    for row in counted:
        if isinstance(row, Unreadable):
            raise InputError(row.id, row.reason, "take it out of the data")
    return [row for row in counted if isinstance(row, Row)]


def _absolute_errors(rows: Sequence[Row]) -> NDArray[np.float64]:
    return np.array([abs(row.count - (row.truth or 0)) for row in rows])
