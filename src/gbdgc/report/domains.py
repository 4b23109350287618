"""The section of the report about latent domains."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gbdgc.data.statistics import at_equal_steps
from gbdgc.domains import BallTree, GranularBallDomains, count_separation
from gbdgc.domains.picture import DomainMap
from gbdgc.report import charts
from gbdgc.report.gather import Training
from gbdgc.report.pictures import Album
from gbdgc.runs import Domains

SHEET = 12
"""Pictures on a domain's contact sheet."""

_BINS = 12
_SHOWN_BALLS = 24
"""The map opens at the first depth with this many balls of several pictures: fewer say little, more overlap."""


def domains_page(training: Training, album: Album, side: int) -> dict[str, Any] | None:
    """Return all that the report says about the domains, or None for a method that looks for none.

    ``variance`` is the share of the descriptors' variance that the map shows, ``balls`` how many there are at each
    depth of the division, and ``depth`` the one at which the map opens.
    """
    if not training.domains:
        return None
    # The model's own domains, which predictions speak of, or the last epoch's where it has none.
    labels, trust = training.domains[-1], training.trust
    cloud = trust.cloud if trust is not None and len(trust.cloud) == len(labels) else None
    if trust is not None and len(trust.labels) == len(labels):
        labels = dict(zip(labels, trust.labels.tolist(), strict=True))
    tree = None if cloud is None else _division(training, cloud)
    depths = [] if tree is None else [charts.tree_level(tree, depth) for depth in range(int(tree.depth.max()) + 1)]
    # The first depth with enough balls to see the structure, or else the one with the most.
    drawn = [0 if tree is None else int((tree.size[balls] > 1).sum()) for balls in depths]
    enough = (depth for depth, number in enumerate(drawn) if number >= _SHOWN_BALLS)
    samples = {id: album.find(*training.source_key(id)) for id in labels}
    counts = {id: sample.count or 0 for id, sample in samples.items() if sample is not None}
    map = None if cloud is None else DomainMap(cloud.astype(np.float64), list(labels.values()))
    rows = training.stability
    return {
        "cards": [_card(name, labels, cloud, counts, training, album, side) for name in sorted(set(labels.values()))],
        "map": None if map is None else charts.domain_map(map, list(labels), tree),
        "variance": 0.0 if map is None else float(map.shares.sum()),
        "balls": [len(balls) for balls in depths],
        "depth": next(enough, int(np.argmax(drawn))) if drawn else 0,
        "separation": count_separation([labels[id] for id in counts], list(counts.values())) if counts else None,
        "strips": {
            "share of each domain": charts.composition(training.domains),
            "churn: pictures that changed domain": charts.strip(rows, "churn", "churn"),
            "ARI to the discovery before": charts.strip(rows, "ari", "adjusted Rand index to the discovery before"),
            "share of the smallest domain": charts.strip(rows, "smallest_share", "smallest share", last=True),
        },
    }


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


def _card(
    name: int,
    labels: Domains,
    cloud: NDArray[np.float32] | None,
    counts: dict[str, int],
    training: Training,
    album: Album,
    side: int,
) -> dict[str, Any]:
    """Return how many pictures a domain has, how many people are in them, and some of them to look at."""
    members = [id for id, label in labels.items() if label == name]
    people = [counts[id] for id in members if id in counts]
    # Bins that grow with the count, as crowds differ by factors; all domains share them and the height of the bars.
    edges = [0.0, 1.0]
    if counts:
        low, high = min(counts.values()), max(counts.values()) + 1
        grown = np.unique(np.geomspace(max(low, 1), max(high, low + 2), _BINS + 1).round())
        edges = [0.0, *grown.tolist()] if low == 0 else grown.tolist()
    by_domain = ([counts[id] for id in counts if labels[id] == other] for other in set(labels.values()))
    tallest = max((int(np.histogram(others, edges)[0].max()) for others in by_domain), default=1)
    if cloud is not None:  # pictures evenly over the distance to the middle of their domain
        row_of = {id: number for number, id in enumerate(labels)}
        rows = cloud[[row_of[id] for id in members]]
        distances = ((rows - rows.mean(axis=0)) ** 2).sum(axis=1)
        members = [members[index] for index in np.argsort(distances, kind="stable")]
    shown = at_equal_steps(members, SHEET)
    images = {id: album.thumbnail(*training.source_key(id), side) for id in shown}
    return {
        "name": name,
        "size": len(members),
        "share": len(members) / len(labels),
        "median": float(np.median(people)) if people else None,
        "histogram": charts.histogram(people, edges, tallest, name) if people else None,
        "sheet": [{"id": id, "count": counts[id], "image": image} for id, image in images.items() if image is not None],
    }
