"""SVG elements, scales and marks.

Drawings carry classes instead of colours: the page's style sheet gives each class its colour in light and
in dark. All texts are escaped; coordinates have two decimals, so the same document gives the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup, escape

from verdiv.reports.blocks import clean

__all__ = [
    "MARKS",
    "Scale",
    "drawing",
    "element",
    "group",
    "join",
    "mark",
    "path",
    "shortened",
    "swatch",
    "text",
    "text_width",
    "ticks",
]

MARKS = 8
"""Number of unlike marks (and colours)."""


def _value(value: object) -> str:
    if isinstance(value, float):
        rounded = f"{value:.2f}".rstrip("0").rstrip(".")
        return "0" if rounded == "-0" else rounded
    return str(value)


def element(name: str, *children: str, **attributes: object) -> Markup:
    """Return one element; ``class_`` is ``class``, other underscores are hyphens, text children are escaped.

    Examples
    --------
    >>> print(element("text", "a<b", x=1.5, class_="tick", text_anchor="end"))
    <text x="1.5" class="tick" text-anchor="end">a&lt;b</text>
    """
    parts = [
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _value(value))
        for key, value in attributes.items()
        if value is not None
    ]
    inner = Markup("").join(escape(child) for child in children)
    head = Markup("<") + Markup(name) + Markup("").join(parts)
    return (
        head + Markup("/>")
        if not children
        else head + Markup(">") + inner + Markup("</") + Markup(name) + Markup(">")
    )


def join(parts: Iterable[Markup]) -> Markup:
    """Concatenate elements."""
    return Markup("").join(parts)


def group(*children: Markup, class_: str | None = None) -> Markup:
    """Return a group of elements."""
    return element("g", *children, class_=class_)


def text(x: float, y: float, words: str, *, class_: str = "tick", anchor: str | None = None) -> Markup:
    """Return a text; ``anchor`` is start (the default), middle or end."""
    return element("text", clean(words), x=x, y=y, class_=class_, text_anchor=anchor)


def path(points: Iterable[tuple[float, float]], class_: str, *, closed: bool = False) -> Markup:
    """Return a polyline or a polygon."""
    steps = " L".join(f"{_value(float(x))} {_value(float(y))}" for x, y in points)
    return element("path", d=f"M{steps}{'Z' if closed else ''}", class_=class_)


def drawing(
    identifier: str,
    width: float,
    height: float,
    title: str,
    description: str,
    *children: Markup,
    class_: str = "",
) -> Markup:
    """Return a whole drawing with its title and description for those who cannot see it."""
    return element(
        "svg",
        element("title", clean(title), id=f"{identifier}-title"),
        element("desc", clean(description), id=f"{identifier}-desc"),
        *children,
        class_=f"drawing {class_}".strip(),
        viewBox=f"0 0 {_value(float(width))} {_value(float(height))}",
        width=float(width),
        height=float(height),
        role="img",
        aria_labelledby=f"{identifier}-title {identifier}-desc",
    )


def text_width(words: str, size: float = 11.0) -> float:
    """Estimate a text's width in pixels; wide characters count double."""
    return sum(size * (0.58 if ord(ch) < 0x1100 else 1.05) for ch in words)


def shortened(words: str, limit: int) -> str:
    """Shorten a name that has no room, with an ellipsis."""
    tidy = " ".join(clean(words).split())
    return tidy if len(tidy) <= limit else tidy[: limit - 1] + "…"


@dataclass(frozen=True, slots=True)
class Scale:
    """A map from values to pixels, linear or logarithmic."""

    low: float
    high: float
    start: float
    """Pixel of ``low``."""
    end: float
    """Pixel of ``high``."""
    logarithmic: bool = False
    """Equal ratios instead of equal differences are equally wide; needs ``low > 0``."""

    def __call__(self, value: float) -> float:
        """Return the pixel of a value, held inside the scale."""
        low, high, at = self.low, self.high, value
        if self.logarithmic:
            low, high, at = math.log(low), math.log(high), math.log(max(value, low))
        share = (at - low) / (high - low) if high > low else 0.5
        return self.start + (self.end - self.start) * min(max(share, 0.0), 1.0)

    def ticks(self, wanted: int) -> tuple[float, ...]:
        """Return round values inside the scale, about as many as wanted."""
        if not self.logarithmic:
            return ticks(self.low, self.high, wanted)
        for steps in ((1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8), (1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            every = [float(f"{m * 10.0**e:.6g}") for e in range(first, last + 1) for m in steps]
            inside = tuple(value for value in every if self.low <= value <= self.high)
            if len(inside) <= wanted + 2:
                return inside or ticks(self.low, self.high, wanted)
        return ticks(self.low, self.high, wanted)


def ticks(low: float, high: float, wanted: int = 5) -> tuple[float, ...]:
    """Return round values inside [low, high], about as many as wanted.

    Examples
    --------
    >>> ticks(0.0, 1.0), ticks(0.78, 0.99, 4)
    ((0.0, 0.2, 0.4, 0.6, 0.8, 1.0), (0.8, 0.85, 0.9, 0.95))
    """
    span = high - low
    if not (math.isfinite(span) and span > 0):
        return (low,)
    raw = span / max(wanted, 1)
    magnitude = 10.0 ** math.floor(math.log10(raw))
    step = min((m * magnitude for m in (1, 2, 2.5, 5, 10)), key=lambda size: abs(span / size - wanted))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return tuple(float(f"{i * step:.12g}") + 0.0 for i in range(first, last + 1))


def _polygon(x: float, y: float, corners: Iterable[tuple[float, float]], size: float, class_: str) -> Markup:
    return path(((x + dx * size, y + dy * size) for dx, dy in corners), class_, closed=True)


_SHAPES: tuple[tuple[tuple[float, float], ...], ...] = (
    (),
    ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    ((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)),
    ((0, -1.2), (1.15, 0.85), (-1.15, 0.85)),
    ((0, 1.2), (1.15, -0.85), (-1.15, -0.85)),
    (
        (-0.38, -1.15), (0.38, -1.15), (0.38, -0.38), (1.15, -0.38), (1.15, 0.38), (0.38, 0.38),
        (0.38, 1.15), (-0.38, 1.15), (-0.38, 0.38), (-1.15, 0.38), (-1.15, -0.38), (-0.38, -0.38),
    ),
    ((-0.6, -1.1), (0.6, -1.1), (1.2, 0), (0.6, 1.1), (-0.6, 1.1), (-1.2, 0)),
    ((0, -1.3), (0.35, -0.35), (1.3, 0), (0.35, 0.35), (0, 1.3), (-0.35, 0.35), (-1.3, 0), (-0.35, -0.35)),
)  # fmt: skip


def mark(x: float, y: float, index: int, *, size: float = 4.2, hollow: bool = False) -> Markup:
    """Return the mark of series ``index``: its own shape, so that nobody needs colour to tell it."""
    style = f"mark {'hollow' if hollow else 'solid'} c{index % MARKS}"
    shape = _SHAPES[index % MARKS]
    if not shape:
        return element("circle", cx=x, cy=y, r=size, class_=style)
    return _polygon(x, y, shape, size, style)


def swatch(index: int, *, line: bool = True) -> Markup:
    """Return a legend's small picture of a series: its line and its mark."""
    stroke = (
        element("line", x1=1, y1=7, x2=23, y2=7, class_=f"curve c{index % MARKS}") if line else Markup("")
    )
    return element(
        "svg",
        stroke,
        mark(12, 7, index),
        viewBox="0 0 24 14",
        width=24,
        height=14,
        class_="swatch",
        aria_hidden="true",
    )
