"""Rendering the report page of a run."""

import hashlib
from base64 import b64encode
from collections.abc import Collection, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from gbdgc import __version__
from gbdgc.checkpoint import model_file
from gbdgc.counting import Counter
from gbdgc.counting.conformal import range_text
from gbdgc.data.statistics import at_equal_steps
from gbdgc.domains.picture import PALETTE
from gbdgc.evaluation import Row, errors
from gbdgc.files import AnyPath, atomic_write, file_digest
from gbdgc.progress import track
from gbdgc.report import charts
from gbdgc.report.domains import domains_page
from gbdgc.report.gather import CountedDataset, Training, flat_settings, read_evaluations
from gbdgc.report.pictures import Album, Panel, draw_panel
from gbdgc.report.published import known_name, known_source, published_rows

THUMBNAIL_BYTES = 6_000_000
"""The limit for all pictures behind the dots together, so that the page can still be mailed."""

_WORST, _QUALITATIVE = 12, 6
_DOT_SIDE, _SHEET_SIDE, _PANEL_SIDE = 340, 176, 400

Key = tuple[str, str]
"""A picture: its data set and its id."""

_CHOSEN = {"validation": "chosen by the lowest error on the held-out part of the source", "last": "the last one"}


def write_report(
    run: AnyPath,
    evaluations: Sequence[AnyPath] = (),
    out: AnyPath | None = None,
    *,
    thumbnail_bytes: int = THUMBNAIL_BYTES,
) -> Path:
    """Write the report of a training run, by default into its folder, and return its path.

    Evaluations are folders written by `gbdgc eval`, by default those in the run's folder. ``thumbnail_bytes`` limits
    the pictures behind the dots of the scatter plot.
    """
    training = Training(Path(run))
    found = read_evaluations(training.folder, [Path(folder) for folder in evaluations])
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
    environment.filters |= {"people": _people, "signed": _signed, "setting": _setting}
    environment.globals |= {"colour": charts.colour}
    page = environment.from_string(_read("report.html")).render(_content(training, found, thumbnail_bytes))
    path = Path(out) if out is not None else training.folder / "report.html"
    with atomic_write(path, "w") as file:
        file.write(page)
    return path


def _content(training: Training, found: list[CountedDataset], thumbnail_bytes: int) -> dict[str, Any]:
    """Everything that the template shows."""
    rows = [row for evaluation in found for row in evaluation.rows]
    album = Album({each.data: (Path(each.errors["path"]), each.errors["format"]) for each in found})
    source = Album({name: (path, training.config["data"]["format"]) for name, path in training.sources.items()})
    by_error = sorted(rows, key=lambda row: -abs(row.error or 0.0))
    by_truth = sorted(rows, key=lambda row: (row.truth or 0, row.data, row.id))
    worst, spread = by_error[:_WORST], at_equal_steps(by_truth, _QUALITATIVE)
    thumbnails = _thumbnails(by_error, album, thumbnail_bytes)
    shown = _panels({row.key: row for row in worst + spread}.values(), album, training)
    script = _read("report.js")
    colours = " ".join(f"--d{index}: {colour};" for index, colour in enumerate(PALETTE))
    return {
        "training": training,
        "domains": domains_page(training, source, _SHEET_SIDE),
        "evaluations": found,
        "chosen": _CHOSEN.get(str(training.config["train"]["selection"]), training.config["train"]["selection"]),
        "matrix": _matrix(training, found),
        "agreement": charts.agreement(rows) if rows else None,
        "shown_domains": sorted({row.domain for row in rows if row.domain is not None}),
        "by_density": {evaluation.data: evaluation.errors["by_density"] for evaluation in found},
        "by_domain": {
            evaluation.data: {
                name: errors([row for row in evaluation.rows if row.domain == name])
                for name in sorted({row.domain for row in evaluation.rows if row.domain is not None})
            }
            for evaluation in found
        },
        "worst": [shown[row.key] for row in worst if row.key in shown],
        "qualitative": [shown[row.key] for row in spread if row.key in shown],
        "curves": _curves(training),
        "settings": dict(flat_settings(training.config)),
        "points": [_point(row, thumbnails.get(row.key)) for row in rows],
        "embedded": len(thumbnails),
        "strangers": _counted_by_another(training, found),
        "missing": sorted(album.missing),
        "source_missing": sorted(source.missing),
        "version": __version__,
        # Inserted as they are: they are ours.
        "style": Markup(f":root {{ {colours} }}\n{_read('report.css')}"),
        "script": Markup(script),
        "script_hash": b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii"),
    }


def _thumbnails(rows: Sequence[Row], album: Album, limit: int) -> dict[Key, str]:
    """Return the pictures of these rows, in order, as many as the limit allows."""
    made: dict[Key, str] = {}
    left = limit
    for row in track(rows, "drawing thumbnails") if rows else ():
        image = album.thumbnail(row.data, row.id, _DOT_SIDE) if left > 0 else None
        left -= len(image or "")
        if image is not None and left >= 0:
            made[row.key] = image
    return made


def _panels(rows: Collection[Row], album: Album, training: Training) -> dict[Key, Panel]:
    """Return the densities of these pictures, by data set and id; the model counts them once more for that."""
    if not rows or training.model is None:
        return {}
    counter = Counter.load(training.folder)
    drawn = (draw_panel(row, album, counter, _PANEL_SIDE) for row in track(rows, "counting some pictures again"))
    return {panel.row.key: panel for panel in drawn if panel is not None}


def _matrix(training: Training, found: list[CountedDataset]) -> dict[str, Any] | None:
    """Return this run's errors beside the published ones, where the papers know source and target."""
    source = known_source(training.config["data"]["source"])
    ours = {known_name(evaluation.data, evaluation.errors["path"]): evaluation.errors for evaluation in found}
    targets = [name for name in ours if name is not None and source is not None and name not in source.split("+")]
    if source is None or not targets:
        return None
    return {"source": source, "targets": targets, "ours": ours, "published": published_rows(source, targets)}


def _counted_by_another(training: Training, found: list[CountedDataset]) -> list[str]:
    """Return the data sets that were counted with another file than the run's model."""
    if training.model is None:
        return [evaluation.data for evaluation in found]
    digest = file_digest(model_file(training.folder))
    return [evaluation.data for evaluation in found if evaluation.rules["weights"]["sha256"] not in (None, digest)]


def _curves(training: Training) -> dict[str, Markup]:
    """Return each loss and the validation error over the epochs; on the latter the chosen epoch is marked."""
    chosen = None if training.model is None else int(training.model["epoch"])
    series: dict[str, dict[int, float]] = {}
    for record in training.metrics:
        validation = record["validation"] or {}
        numbers = {f"{name} loss": value for name, value in record["losses"].items()}
        numbers |= {f"validation {name.upper()}": validation[name] for name in ("mae", "rmse") if name in validation}
        for name, value in numbers.items():
            series.setdefault(name, {})[int(record["epoch"])] = float(value)
    return {
        name: charts.curve(name, values, chosen if name.startswith("validation") else None)
        for name, values in series.items()
    }


def _point(row: Row, image: str | None) -> dict[str, Any]:
    """Return what the page's script shows of a picture."""
    return {
        "id": row.id,
        "data": row.data,
        "truth": row.truth,
        "count": round(row.count, 2),
        "interval": None if row.low is None or row.high is None else range_text((row.low, row.high)),
        "size": f"{row.width} × {row.height}",
        "domain": row.domain,
        "novelty": None if row.novelty is None else round(row.novelty, 3),
        "image": image,
    }


def _people(value: float | None) -> str:
    """Write an error or a count with its significant digits."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}"


def _signed(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:+,.{0 if abs(value) >= 1000 else 1}f}".replace("-", "−")


def _setting(value: object) -> str:
    """Write a setting as the config file does."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)


def _read(name: str) -> str:
    return files("gbdgc.report").joinpath(name).read_text(encoding="utf-8")
