"""A small canvas for inline SVG: scales, axes and marks. Colours and fonts come from the page's style sheet."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from xml.etree import ElementTree as ET

from markupsafe import Markup

_SYMLOG_STEP = 1.0
"""Counts from 0 to 1 share the first stretch of a logarithmic axis: pictures without people have a place on it."""


@dataclass(frozen=True)
class Scale:
    """From values to positions: a straight axis, or a logarithmic one that begins at zero."""

    low: float
    high: float
    log: bool = False

    def share(self, value: float) -> float:
        """Return where a value lies between the two ends, 0 to 1."""
        low, high, at = self.low, self.high, value
        if self.log:
            low, high, at = (math.asinh(each / (2 * _SYMLOG_STEP)) for each in (low, high, at))
        return (at - low) / (high - low) if high > low else 0.5

    def ticks(self, about: int = 5) -> list[float]:
        """Return round values inside the axis."""
        if not self.log:
            raw = (self.high - self.low) / about or 1.0
            unit = 10 ** math.floor(math.log10(raw))
            step = next(factor * unit for factor in (1, 2, 2.5, 5, 10) if factor * unit >= raw * 0.999)
            first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
            return [number * step for number in range(first, last + 1)]
        # Decades alone where there are many of them.
        steps = (1, 2, 5) if self.high < 1000 else (1,)
        grown = [0.0, *(step * 10.0**power for power in range(9) for step in steps)]
        return [tick for tick in grown if self.low <= tick <= self.high]


class Margins(NamedTuple):
    """Space around the plotting area, for labels."""

    top: float = 12
    right: float = 14
    bottom: float = 44
    left: float = 54


@dataclass
class Plot:
    """One figure. Marks are placed by value; what they look like is the style sheet's."""

    title: str
    x: Scale
    y: Scale
    width: float = 560
    height: float = 340
    margins: Margins = field(default_factory=Margins)
    role: str = "img"

    def __post_init__(self) -> None:
        view = f"0 0 {number(self.width)} {number(self.height)}"
        self.root = ET.Element("svg", {"viewBox": view, "role": self.role, "aria-label": self.title})

    def px(self, value: float) -> float:
        """Return the horizontal position of a value."""
        return self.margins.left + self.x.share(value) * (self.width - self.margins.left - self.margins.right)

    def py(self, value: float) -> float:
        """Return the vertical position of a value."""
        return (
            self.height
            - self.margins.bottom
            - self.y.share(value) * (self.height - self.margins.top - self.margins.bottom)
        )

    def add(self, kind: str, parent: ET.Element | None = None, **attributes: object) -> ET.Element:
        """Add an element; underscores stand for hyphens, a trailing one for nothing."""
        plain = {
            name.rstrip("_").replace("_", "-"): number(value) if isinstance(value, float) else str(value)
            for name, value in attributes.items()
        }
        return ET.SubElement(self.root if parent is None else parent, kind, plain)

    def text(self, content: str, x: float, y: float, class_: str = "tick", anchor: str = "middle") -> ET.Element:
        """Write at a position."""
        element = self.add("text", x=x, y=y, class_=class_, text_anchor=anchor)
        element.text = content
        return element

    def line(self, points: Sequence[tuple[float, float]], class_: str) -> ET.Element:
        """Join values by straight lines."""
        path = "M" + "L".join(f"{number(self.px(x))} {number(self.py(y))}" for x, y in points)
        return self.add("path", d=path, class_=class_)

    def bar(self, x: tuple[float, float], y: tuple[float, float], class_: str, tip: str, gap: float = 1.4) -> None:
        """Fill from one value to another on both axes, with a little air to the neighbours and a tip to hover."""
        left, right, top = self.px(x[0]) + gap / 2, self.px(x[1]) - gap / 2, self.py(y[1])
        height = self.py(y[0]) - top
        element = self.add("rect", x=left, y=top, width=right - left, height=height, class_=f"bar {class_}")
        self.add("title", element).text = tip

    def x_axis(self, label: str, ticks: Sequence[float] | None = None, grid: bool = False) -> None:
        """Write the horizontal axis."""
        bottom = self.height - self.margins.bottom
        for tick in self.x.ticks() if ticks is None else ticks:
            if grid:
                self.add(
                    "path", d=f"M{number(self.px(tick))} {number(self.margins.top)}V{number(bottom)}", class_="grid"
                )
            self.text(short(tick), self.px(tick), bottom + 17)
        middle = (self.margins.left + self.width - self.margins.right) / 2
        self.text(label, middle, self.height - 6, "label")

    def y_axis(self, label: str, ticks: Sequence[float] | None = None, percent: bool = False) -> None:
        """Write the vertical axis with its grid, the label along it."""
        right = self.width - self.margins.right
        for tick in self.y.ticks() if ticks is None else ticks:
            y = self.py(tick)
            self.add("path", d=f"M{number(self.margins.left)} {number(y)}H{number(right)}", class_="grid")
            self.text(f"{tick:.0%}" if percent else short(tick), self.margins.left - 8, y + 4, anchor="end")
        if label:
            middle = (self.margins.top + self.height - self.margins.bottom) / 2
            element = self.text(label, 13.0, middle, "label")
            element.set("transform", f"rotate(-90 13 {number(middle)})")

    def markup(self) -> Markup:
        """Return the figure for the page."""
        # Everything went through the XML writer, which escapes it.
        return Markup(ET.tostring(self.root, encoding="unicode"))


def number(value: float) -> str:
    """Write a position with no more digits than can be seen."""
    return f"{value:.1f}".rstrip("0").rstrip(".")


def short(value: float) -> str:
    """Write a tick's value: 0.05, 12, 1,500."""
    return f"{value:,.0f}" if abs(value) >= 10 or value == round(value) else f"{value:.3g}"
