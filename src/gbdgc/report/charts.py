"""The charts of the report, as inline SVG. A domain has the same colour in all of them: the class ``d<index>``."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from gbdgc.domains import BallTree
from gbdgc.domains.picture import PALETTE, DomainMap
from gbdgc.evaluation.table import Row
from gbdgc.report.plot import Margins, Plot, Scale, number, short
from gbdgc.runs import Domains

_STRIP = Margins(8, 14, 8, 54)  # of the figures that stand above each other over one axis of epochs


def colour(domain: int | None) -> str:
    """Return the class that gives a domain its colour; more domains than colours begin again with the first."""
    return "none" if domain is None else f"d{domain % len(PALETTE)}"


def agreement(rows: Sequence[Row]) -> Markup:
    """Draw predicted against true counts, one dot per picture, to be clicked or reached by the keyboard."""
    truths = [row.truth or 0 for row in rows]
    top = 1.15 * max(10.0, *truths, *(row.count for row in rows))
    scale = Scale(0, top, log=True)
    plot = Plot(
        "Predicted against true counts, both axes logarithmic; arrow keys move from picture to picture",
        scale,
        scale,
        width=620,
        height=560,
        margins=Margins(14, 14, 50, 64),
        role="group",
    )
    plot.x_axis("people in the picture", grid=True)
    plot.y_axis("people counted")
    ends = np.geomspace(1, top, 40)
    plot.line([(0, 0), (top, top)], "identity")
    for factor, name in ((0.5, "half"), (2.0, "double")):
        plot.line([(x, factor * x) for x in ends if factor * x <= top], "guide")
        # At the end of each line, on the side away from the diagonal.
        at = plot.px(top / max(1, factor)), plot.py(top * min(1, factor))
        plot.text(name, at[0] - (14 if factor > 1 else 0), at[1] + (10 if factor > 1 else 34), anchor="end")
    for truth, row in zip(truths, rows, strict=True):
        if row.low is not None and row.high is not None:
            plot.line([(truth, row.low), (truth, min(row.high, top))], "interval")
    dots = plot.add("g", class_="dots")
    # In the order of the true count, which is the order in which the keyboard goes through them.
    for index in sorted(range(len(rows)), key=lambda index: (truths[index], rows[index].count)):
        row = rows[index]
        dot = plot.add(
            "circle",
            dots,
            cx=plot.px(truths[index]),
            cy=plot.py(max(row.count, 0)),
            r=4.5,
            class_=f"dot {colour(row.domain)}",
            data_row=index,
            data_set=row.data,
            role="button",
            tabindex="-1",
            aria_label=f"{row.id} of {row.data}: {row.truth} people, counted {row.count:.1f}",
        )
        plot.add("title", dot).text = f"{row.id}: {row.truth} people, counted {row.count:.0f}"
    return plot.markup()


def domain_map(map: DomainMap, ids: Sequence[str], tree: BallTree | None) -> Markup:
    """Draw the map of the training pictures, with the balls of each depth of the division in a group."""
    low, high = map.plane.min(axis=0), map.plane.max(axis=0)
    middle, half = (low + high) / 2, 0.54 * (high - low).clip(1e-6)
    # One unit is as long on both axes: balls are round.
    width, height = 720.0, 560.0
    unit = max(2 * half[0] / width, 2 * half[1] / height)
    reach = np.array([width, height]) * unit / 2
    plot = Plot(
        f"Map of {len(ids)} training pictures on the two main axes of their descriptors, coloured by latent domain",
        Scale(float(middle[0] - reach[0]), float(middle[0] + reach[0])),
        Scale(float(middle[1] - reach[1]), float(middle[1] + reach[1])),
        width=width,
        height=height,
        margins=Margins(0, 0, 0, 0),
    )
    for depth in range(0 if tree is None else int(tree.depth.max()) + 1):
        assert tree is not None
        balls = tree_level(tree, depth)
        level = plot.add("g", class_="balls", data_depth=depth, data_balls=len(balls))
        for (x, y), radius, domain in map.discs(tree.members(ball) for ball in balls):
            plot.add("circle", level, cx=plot.px(x), cy=plot.py(y), r=radius / unit, class_=f"ball {colour(domain)}")
    dots = plot.add("g", class_="dots")
    for id, (x, y), label in zip(ids, map.plane, map.labels, strict=True):
        dot = plot.add("circle", dots, cx=plot.px(x), cy=plot.py(y), r=3.6, class_=f"dot {colour(label)}")
        plot.add("title", dot).text = f"{id}, domain {label}"
    return plot.markup()


def tree_level(tree: BallTree, depth: int) -> list[int]:
    """Return the balls at one depth of the division: those made there, and those above that were not split."""
    final = tree.children[:, 0] < 0
    return [int(ball) for ball in np.flatnonzero((tree.depth == depth) | ((tree.depth < depth) & final))]


def histogram(counts: Sequence[int], edges: Sequence[float], tallest: int, domain: int) -> Markup:
    """Draw how many pictures of a domain hold how many people; all domains share bins and height."""
    heights = np.histogram(counts, edges)[0]
    title = f"How many people the {len(counts)} pictures of domain {domain} hold, median {np.median(counts):.0f}"
    plot = Plot(title, Scale(0, len(heights)), Scale(0, tallest), 300, 92, Margins(6, 2, 20, 2))
    plot.add("path", d=f"M2 {number(plot.py(0))}H298", class_="grid")
    for index, height in enumerate(heights):
        tip = f"{edges[index]:.0f} to {edges[index + 1]:.0f} people: {height} pictures"
        plot.bar((index, index + 1), (0, height), colour(domain), tip)
    for index in range(0, len(edges), max(1, len(edges) // 4)):
        anchor = "start" if index == 0 else "end" if index == len(edges) - 1 else "middle"
        plot.text(short(round(edges[index])), plot.px(index), 88, anchor=anchor)
    return plot.markup()


def composition(history: Sequence[Domains]) -> Markup:
    """Draw the share of each domain at each discovery, one column each."""
    names = sorted({name for domains in history for name in domains.values()})
    epochs = Scale(-0.5, len(history) - 0.5)
    plot = Plot("Share of each domain at each discovery", epochs, Scale(0, 1), 720, 112, _STRIP)
    plot.y_axis("", [0, 0.5, 1], percent=True)
    gap = 1.5 if len(history) < 100 else 0.3
    for epoch, domains in enumerate(history):
        below = 0.0
        for name in names:
            share = sum(label == name for label in domains.values()) / len(domains)
            tip = f"after {epoch} epochs: {share:.0%} in domain {name}"
            plot.bar((epoch - 0.5, epoch + 0.5), (below, below + share), colour(name), tip, gap)
            below += share
    return plot.markup()


def strip(rows: Sequence[Mapping[str, Any]], key: str, title: str, *, last: bool = False) -> Markup:
    """Draw one number of each discovery as a line under the composition."""
    margins = _STRIP._replace(bottom=42) if last else _STRIP
    plot = Plot(title, Scale(-0.5, len(rows) - 0.5), Scale(0, 1), 720, 108 if last else 74, margins)
    plot.y_axis("", [0, 0.5, 1])
    if last:
        whole = sorted({round(tick) for tick in plot.x.ticks(10) if tick >= 0})
        plot.x_axis("epochs trained when the domains were found", whole)
    points = [(float(place), float(row[key])) for place, row in enumerate(rows) if row.get(key) is not None]
    if points:
        plot.line(points, "curve")
    for x, y in points if len(points) < 80 else ():
        mark = plot.add("circle", cx=plot.px(x), cy=plot.py(y), r=2.8, class_="mark")
        plot.add("title", mark).text = f"{title}: {y:.3f}"
    return plot.markup()


def curve(name: str, values: Mapping[int, float], chosen: int | None = None) -> Markup:
    """Draw one number over the epochs; the chosen epoch is marked."""
    high = max(values.values())
    low = min(0.0, *values.values(), 0.0)
    x = Scale(min(values), max(*values, min(values) + 1))
    plot = Plot(f"{name} over the epochs", x, Scale(low, high * 1.08 or 1.0), 340, 190, Margins(10, 14, 40, 50))
    plot.y_axis("", plot.y.ticks(4))
    plot.x_axis("epoch", sorted({round(tick) for tick in x.ticks(5)}))
    plot.line(list(values.items()), "curve")
    if chosen is not None and chosen in values:
        mark = plot.add("circle", cx=plot.px(chosen), cy=plot.py(values[chosen]), r=4.5, class_="chosen")
        plot.add("title", mark).text = f"the chosen model, epoch {chosen}: {values[chosen]:.4g}"
    return plot.markup()
