"""The 2-D map of samples, coloured by domain, with the balls drawn as circles."""

from collections.abc import Sequence

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from gbdgc.domains.clustering import one_thread
from gbdgc.domains.tree import Ball, Floats, Integers, disc_around

# Told apart by people with any colour vision (after Okabe and Ito), and dark enough on white.
PALETTE = ("#0072b2", "#dc8f00", "#009e73", "#c45f97", "#4ea6de", "#d55e00", "#8265ad", "#7a7a7a", "#a39000", "#3f4a5a")


def draw_domains(embedding: Floats, labels: Integers, balls: Sequence[Ball] = (), title: str = "") -> Figure:
    """Draw the plane of largest variance: a dot per sample and a circle per ball of at least two samples.

    A circle encloses its members as projected onto the plane; the ball itself has more axes.
    """
    plane, shares = _plane(embedding)
    figure = Figure(figsize=(8.4, 6.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    names = np.unique(labels)
    colour = {int(name): PALETTE[index % len(PALETTE)] for index, name in enumerate(names)}
    # Faint discs under the dots, large ones first.
    discs = [(*disc_around(plane[ball.members]), colour[ball.domain]) for ball in balls if ball.size > 1]
    discs.sort(key=lambda disc: -disc[1])
    circles = [Circle((center[0], center[1]), radius) for center, radius, _ in discs]
    edges = [edge for *_, edge in discs]
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


def _plane(embedding: Floats) -> tuple[Floats, Floats]:
    """The first two principal axes of the embedding, and their shares of the variance."""
    centred = embedding - embedding.mean(axis=0)
    with one_thread():
        values, vectors = np.linalg.eigh(centred.T @ centred)
        order = values.argsort()[::-1][:2]
        axes = vectors[:, order]
        # An axis may point either way: choose, so that the maps of two epochs are not mirror images.
        axes = axes * np.where(axes[abs(axes).argmax(axis=0), range(axes.shape[1])] < 0, -1, 1)
        plane = centred @ axes
    shares = values[order] / max(values.sum(), np.finfo(float).tiny)
    if plane.shape[1] == 1:
        plane, shares = np.column_stack([plane, np.zeros(len(plane))]), np.append(shares, 0.0)
    return plane, shares
