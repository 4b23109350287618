"""The domains of a run, made ready to be looked at."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from gbdgc.data.statistics import at_equal_steps
from gbdgc.domains import BallTree, GranularBallDomains, count_separation
from gbdgc.domains.quality import CountSeparation
from gbdgc.report import figures
from gbdgc.report.gather import Training
from gbdgc.report.pictures import Album
from gbdgc.runs import Domains

SHEET = 12
"""Pictures on a domain's contact sheet."""

_BINS = 12
_SHOWN_BALLS = 24
"""The map opens at the depth where so many balls hold several pictures: fewer say little, more hide each other."""


@dataclass(frozen=True)
class Thumbnail:
    """A training picture on a contact sheet."""

    id: str
    count: int
    image: str


@dataclass(frozen=True)
class DomainCard:
    """One domain: how many pictures, how many people in them, and some of them to look at."""

    name: int
    size: int
    share: float
    median: float | None
    histogram: Markup | None
    sheet: list[Thumbnail]


@dataclass(frozen=True)
class DomainsPage:
    """All that the report says about the domains."""

    cards: list[DomainCard]
    map: Markup | None
    variance: float
    """The share of the descriptors' variance that the map shows."""
    balls: list[int]
    """How many balls there are at each depth of the division."""
    depth: int
    separation: CountSeparation | None
    strips: dict[str, Markup]


def domains_page(training: Training, album: Album, side: int) -> DomainsPage | None:
    """Return the page, or None for a method that looks for no domains."""
    if not training.domains:
        return None
    labels = _of_the_model(training)
    names = np.array(list(labels.values()))
    cloud = training.trust.cloud if training.trust is not None and len(training.trust.cloud) == len(names) else None
    tree = None if cloud is None else _division(training, cloud)
    balls = [] if tree is None else [len(figures.tree_level(tree, depth)) for depth in range(int(tree.depth.max()) + 1)]
    samples = {id: album.find(*training.source_key(id)) for id in labels}
    counts = {id: sample.count or 0 for id, sample in samples.items() if sample is not None}
    return DomainsPage(
        cards=[_card(name, labels, cloud, counts, training, album, side) for name in sorted(set(labels.values()))],
        map=None if cloud is None else figures.domain_map(_plane(cloud), list(labels), names.tolist(), tree),
        variance=0.0 if cloud is None else float(cloud[:, :2].var(axis=0).sum() / cloud.var(axis=0).sum()),
        balls=balls,
        depth=0 if tree is None else _telling_depth(tree),
        separation=count_separation([labels[id] for id in counts], list(counts.values())) if counts else None,
        strips=_strips(training),
    )


def _of_the_model(training: Training) -> Domains:
    """Return the model's own domains, which predictions speak of, or the last epoch's where it has none."""
    last = training.domains[-1]
    if training.trust is None or len(training.trust.labels) != len(last):
        return last
    return dict(zip(last, training.trust.labels.tolist(), strict=True))


def _division(training: Training, cloud: NDArray[np.float32]) -> BallTree | None:
    """Divide the cloud by the run's own rules; None where the run did not use balls."""
    rules = training.config["discovery"]
    if rules["partition"] != "balls":
        return None
    names = ("split_margin", "max_depth", "min_ball_size", "mode")
    given = {name: rules[name] for name in names if rules[name] is not None}
    estimator = GranularBallDomains(
        rules["n_domains"] or "auto", n_components=None, random_state=training.config["train"]["seed"], **given
    )
    return estimator.fit(cloud).tree_


def _telling_depth(tree: BallTree) -> int:
    """Return the first depth with enough balls to see the structure, or else the one with the most."""
    depths = range(int(tree.depth.max()) + 1)
    drawn = [sum(tree.size[ball] > 1 for ball in figures.tree_level(tree, depth)) for depth in depths]
    return next((depth for depth in depths if drawn[depth] >= _SHOWN_BALLS), int(np.argmax(drawn)))


def _plane(cloud: NDArray[np.float32]) -> NDArray[np.float32]:
    return cloud[:, :2] if cloud.shape[1] > 1 else np.column_stack([cloud, np.zeros(len(cloud), dtype=np.float32)])


def _card(
    name: int,
    labels: Domains,
    cloud: NDArray[np.float32] | None,
    counts: dict[str, int],
    training: Training,
    album: Album,
    side: int,
) -> DomainCard:
    members = [id for id, label in labels.items() if label == name]
    people = [counts[id] for id in members if id in counts]
    edges = _edges(list(counts.values()))
    by_domain = ([counts[id] for id in counts if labels[id] == other] for other in set(labels.values()))
    tallest = max((int(np.histogram(others, edges)[0].max()) for others in by_domain), default=1)
    sheet = []
    for id in _from_typical_to_far(members, labels, cloud):
        image = album.thumbnail(*training.source_key(id), side)
        if image is not None:
            sheet.append(Thumbnail(id, counts[id], image))
    return DomainCard(
        name=name,
        size=len(members),
        share=len(members) / len(labels),
        median=float(np.median(people)) if people else None,
        histogram=figures.histogram(people, edges, tallest, name) if people else None,
        sheet=sheet,
    )


def _from_typical_to_far(members: list[str], labels: Domains, cloud: NDArray[np.float32] | None) -> list[str]:
    """Choose pictures evenly over the distance to the middle of their domain."""
    if cloud is not None:
        place = {id: number for number, id in enumerate(labels)}
        rows = cloud[[place[id] for id in members]]
        distances = ((rows - rows.mean(axis=0)) ** 2).sum(axis=1)
        members = [members[index] for index in np.argsort(distances, kind="stable")]
    return at_equal_steps(members, SHEET)


def _edges(counts: Sequence[int]) -> list[float]:
    """Bins that grow with the count, as crowds differ by factors."""
    if not counts:
        return [0.0, 1.0]
    low, high = min(counts), max(counts) + 1
    grown = np.unique(np.geomspace(max(low, 1), max(high, low + 2), _BINS + 1).round())
    return [0.0, *grown.tolist()] if low == 0 else grown.tolist()


def _strips(training: Training) -> dict[str, Markup]:
    rows = training.stability
    return {
        "share of each domain": figures.composition(training.domains),
        "churn: pictures that changed domain": figures.strip(rows, "churn", "churn"),
        "ARI to the discovery before": figures.strip(rows, "ari", "adjusted Rand index to the discovery before"),
        "share of the smallest domain": figures.strip(rows, "smallest_share", "smallest share", last=True),
    }
