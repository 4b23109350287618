"""`gbdgc domains`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number
from rich.markup import escape
from rich.table import Table

from gbdgc.errors import GbdgcWarning, InputError, UsageError, about
from gbdgc.files import atomic_write, csv_line
from gbdgc.progress import stderr, stdout, track
from gbdgc.runs import new_run_folder, write_environment
from gbdgc.shipped import DEFAULT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gbdgc.domains import Partition

LABELS = "labels.csv"


def domains(
    source: Path,
    *,
    weights: Path | None = None,
    k: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    method: Literal["balls", "kmeans", "random"] = "balls",
    mode: Literal["paper", "stable"] | None = None,
    seed: Annotated[int, Parameter(validator=Number(gte=0, lt=2**32))] = 0,
    out: Path | None = None,
) -> None:
    """Find the latent domains in pictures or in a table of features.

    Parameters
    ----------
    source
        A folder of pictures, or that of a data set in a known format; or a table, one row per sample: npy, npz, csv
        (with a header, an id may come first) or parquet.
    weights
        The model that describes pictures: a run's folder or a model file; by default the bundled one.
    k
        Number of domains; by default the fourth root of the number of samples, at least 2.
    method
        Granular balls, K-means on the samples, or random.
    mode
        For balls and kmeans: as in the paper (the default), or the variant that is robust to outliers.
    seed
        Seed of K-means, or of the random domains.
    out
        Folder for labels.csv and domains.png; by default a new one under runs/domains.
    """
    import warnings

    from gbdgc.cli.feature_table import read_feature_table

    if method == "random" and mode is not None:
        raise UsageError(f"--mode {mode}", "random has no modes", "leave it out")
    if weights is not None and source.is_file():
        raise UsageError(f"--weights {weights}", "a table of features needs no model", "leave it out")
    if out is not None and (out / LABELS).exists():
        raise InputError(f"--out {out}", f"holds {LABELS} already", "choose another folder")
    if source.is_dir():
        ids, features = _describe_pictures(source, weights)
    else:
        with stderr.status(f"reading {escape(source.name)}"):
            ids, features = read_feature_table(source)
    with stderr.status(f"{features.shape[0]:,} samples of {features.shape[1]:,} features: loading") as status:
        from gbdgc.domains import build_partition
        from gbdgc.domains.picture import draw_domains

        status.update(f"dividing {features.shape[0]:,} samples of {features.shape[1]:,} features")
        estimator = build_partition(method, n_domains=k, mode=mode, random_state=seed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", GbdgcWarning)
            with about(source):
                estimator.fit(features)
        folder = out or new_run_folder("domains", source.resolve().stem)
        status.update("drawing the map")
        balls = getattr(estimator, "balls_", [])
        title = f"{source.name}: {estimator.n_domains_} latent domains" + (f" from {len(balls)} balls" if balls else "")
        _write_labels(folder / LABELS, ids, estimator)
        with atomic_write(folder / "domains.png") as file:
            figure = draw_domains(estimator.embedding_, estimator.labels_, balls, title)
            figure.savefig(file, format="png", dpi=150)
        write_environment(folder)
    for warning in caught:
        stderr.print(f"[yellow]warning:[/] {warning.message}", soft_wrap=True)
    stdout.print(_summary(estimator))
    stdout.print("spread: mean distance of a domain's samples from its center")
    stdout.print(f"labels and map: {folder}", markup=False, soft_wrap=True)


def _describe_pictures(source: Path, weights: Path | None) -> "tuple[list[str], NDArray[np.float32]]":
    """Return the ids of the pictures and the statistics of their features in the encoder of a model."""
    from gbdgc.checkpoint import load_model
    from gbdgc.data import load_dataset
    from gbdgc.data.images import raise_pillow_limit
    from gbdgc.data.loading import descriptor_images
    from gbdgc.data.transforms import DESCRIBED_SIDE
    from gbdgc.descriptors import describe

    raise_pillow_limit()
    network, info, _ = load_model(weights or DEFAULT)
    dataset = load_dataset(source)
    images = descriptor_images(dataset, size=info.get("descriptor_size", DESCRIBED_SIDE), batch_size=8)
    return describe(network, track(images, "describing", total=-(-len(dataset) // 8), unit="batches"))


def _distances(estimator: "Partition") -> "NDArray[np.float64]":
    """Return the distance of each sample to its domain's center."""
    import numpy as np

    centers = estimator.domain_centers_[np.searchsorted(estimator.domains_, estimator.labels_)]
    return np.asarray(np.sqrt(((estimator.embedding_ - centers) ** 2).sum(axis=1)))


def _summary(estimator: "Partition") -> Table:
    """Return a table with one row per domain."""
    import numpy as np

    balls = getattr(estimator, "balls_", [])
    table = Table(*("domain", "samples", "share", *(["balls"] if balls else []), "spread"))
    for column in table.columns:
        column.justify = "right"
    distance = _distances(estimator)
    for name in estimator.domains_:
        members = estimator.labels_ == name
        count = [f"{sum(ball.domain == name for ball in balls):,}"] if balls else []
        spread = f"{np.mean(distance[members]):.3g}" if members.any() else "-"
        table.add_row(str(name), f"{members.sum():,}", f"{members.mean():.1%}", *count, spread)
    return table


def _write_labels(path: Path, ids: list[str], estimator: "Partition") -> None:
    """Write one line per sample: id, domain, ball (empty where there are none), distance to the domain's center."""

    balls = getattr(estimator, "ball_labels_", [""] * len(ids))
    distances = (f"{distance:.6g}" for distance in _distances(estimator))
    with atomic_write(path, "w") as file:
        for row in (("id", "domain", "ball", "distance"), *zip(ids, estimator.labels_, balls, distances, strict=True)):
            file.write(csv_line(row))
