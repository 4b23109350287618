"""The 2-D map of samples, coloured by domain, with the balls as discs; `gbdgc domains` and the report draw it."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from numpy.typing import ArrayLike

from gbdgc.domains.clustering import one_thread
from gbdgc.domains.tree import Ball, Floats, Integers

# Told apart by people with any colour vision (after Okabe and Ito), and dark enough on white.
PALETTE = ("#0072b2", "#dc8f00", "#009e73", "#c45f97", "#4ea6de", "#d55e00", "#8265ad", "#7a7a7a", "#a39000", "#3f4a5a")


class Disc(NamedTuple):
    """A ball on the map."""

    center: Floats
    radius: float
    domain: int


class DomainMap:
    """The places of samples and balls in every drawing: on the plane of largest variance.

    ``plane`` has a row for each sample, ``shares`` the share of the variance of each of its two axes.
    """

    def __init__(self, embedding: Floats, labels: ArrayLike) -> None:
        self.labels = np.asarray(labels)
        centred = embedding - embedding.mean(axis=0)
        with one_thread():
            values, vectors = np.linalg.eigh(centred.T @ centred)
            order = values.argsort()[::-1][:2]
            axes = vectors[:, order]
            # An axis may point either way: choose, so that the maps of two epochs are not mirror images.
            axes = axes * np.where(axes[abs(axes).argmax(axis=0), range(axes.shape[1])] < 0, -1, 1)
            self.plane = centred @ axes
        self.shares = values[order] / max(values.sum(), np.finfo(float).tiny)
        if self.plane.shape[1] == 1:
            self.plane = np.column_stack([self.plane, np.zeros(len(self.plane))])
            self.shares = np.append(self.shares, 0.0)

    def discs(self, balls: Iterable[Integers]) -> list[Disc]:
        """Return the discs of balls, given by their members, large ones first; balls of a single sample have none.

        A disc encloses its members as projected onto the plane (the ball itself has more axes), and is of the domain
        that most of them are of.
        """
        discs = []
        for members in balls:
            if len(members) > 1:
                center = self.plane[members].mean(axis=0)
                radius = np.sqrt(((self.plane[members] - center) ** 2).sum(axis=1)).max()
                discs.append(Disc(center, float(radius), int(np.bincount(self.labels[members]).argmax())))
        return sorted(discs, key=lambda disc: -disc.radius)


def draw_domains(embedding: Floats, labels: Integers, balls: Sequence[Ball] = (), title: str = "") -> Figure:
    """Draw the map with a dot for each sample and a circle for each ball."""
    map = DomainMap(embedding, labels)
    plane, shares = map.plane, map.shares
    figure = Figure(figsize=(8.4, 6.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    names = np.unique(labels)
    colour = {int(name): PALETTE[index % len(PALETTE)] for index, name in enumerate(names)}
    # Faint discs under the dots.
    discs = map.discs(ball.members for ball in balls)
    circles = [Circle((disc.center[0], disc.center[1]), disc.radius) for disc in discs]
    edges = [colour[disc.domain] for disc in discs]
    axes.add_collection(PatchCollection(circles, facecolors=edges, edgecolors="none", alpha=0.05, zorder=0))
    axes.add_collection(PatchCollection(circles, facecolors="none", edgecolors=edges, alpha=0.45, linewidths=0.7))
    dot = float(np.clip(9000 / len(plane), 1.5, 22))
    for name in names:
        members = plane[labels == name]
        text = f"domain {name}   {len(members):,} ({len(members) / len(plane):.0%})"
        x, y = members.T
        axes.scatter(x, y, s=dot, color=colour[int(name)], linewidths=0, alpha=0.85, label=text)
    # Equal scales, quiet axes, and a view that a few far outliers do not shrink.
    low, high = np.quantile(plane, [0.002, 0.998], axis=0)
    middle, half = (low + high) / 2, 0.6 * float((high - low).max()) or 1.0
    axes.set_xlim(middle[0] - half, middle[0] + half)
    axes.set_ylim(middle[1] - half, middle[1] + half)
    axes.set_aspect("equal")
    axes.set_xlabel(f"first axis, {shares[0]:.0%} of the variance", color="#555555")
    axes.set_ylabel(f"second axis, {shares[1]:.0%}", color="#555555")
    axes.tick_params(colors="#999999", length=0, labelsize=8)
    axes.grid(color="#EEEEEE", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)
    axes.set_title(title, loc="left", fontsize=12, color="#222222", pad=12, parse_math=False)
    # Dots are small where there are many samples, those of the legend never.
    axes.legend(
        loc="upper left",
        bbox_to_anchor=(1.01, 1),
        frameon=False,
        fontsize=9,
        handletextpad=0.3,
        markerscale=float(np.sqrt(40 / dot)),
    )
    return figure
