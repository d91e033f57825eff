"""A map of codes over two parameters: break-even budgets or regimes, each code its own colour and a legend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from verdiv.reports.figures.svg import Scale, drawing, element, group, text, ticks
from verdiv.rounding import exact

__all__ = ["HeatAxis", "heatmap"]

MAX_CELLS = 160
"""Cells drawn along one axis; a finer grid is thinned."""

COLOURS = 9
"""Colours of codes; the code 0 is pale, −1 is empty."""


@dataclass(frozen=True, slots=True)
class HeatAxis:
    """One axis of a map."""

    name: str
    values: Sequence[float]


def _thinned(count: int) -> list[int]:
    """Choose which indices of an axis are drawn."""
    if count <= MAX_CELLS:
        return list(range(count))
    return [round(i * (count - 1) / (MAX_CELLS - 1)) for i in range(MAX_CELLS)]


def _runs(column: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Join neighbours of one code: first index, index after the last, code."""
    start = 0
    for stop in range(1, len(column) + 1):
        if stop == len(column) or column[stop] != column[start]:
            yield start, stop, column[start]
            start = stop


def _class(code: int) -> str:
    return "cell void" if code < 0 else f"cell h{code if code < COLOURS else 1 + (code - 1) % (COLOURS - 1)}"


def heatmap(
    x: HeatAxis, y: HeatAxis, codes: Sequence[Sequence[int]], names: Mapping[int, str], title: str
) -> Markup:
    """Draw a map.

    Parameters
    ----------
    x, y
        Axes; `codes[i][j]` belongs to x's value i and y's value j.
    codes
        Whole numbers; −1 is an impossible point.
    names
        Code to its words in the legend; only codes that occur are listed.
    title
        Title of the drawing.

    Returns
    -------
    Markup
        The drawing, with the share of every code in its description.
    """
    left, top, side, tall = 58.0, 34.0, 420.0, 340.0
    across, along = _thinned(len(x.values)), _thinned(len(y.values))
    wide, high = side / len(across), tall / len(along)
    cells = [
        element(
            "rect",
            x=left + i * wide,
            y=top + tall - stop * high,
            width=wide,
            height=(stop - start) * high,
            class_=_class(code),
            shape_rendering="crispEdges",
        )
        for i, a in enumerate(across)
        for start, stop, code in _runs([codes[a][b] for b in along])
    ]
    flat = [code for column in codes for code in column]
    present = [code for code in names if code in set(flat)]
    shares = "; ".join(f"{names[code]}: {flat.count(code) / len(flat):.1%}" for code in present)
    legend = [
        part
        for row, code in enumerate(present)
        for part in (
            element("rect", x=left + side + 18, y=top + 18.0 * row, width=12, height=12, class_=_class(code)),
            text(left + side + 36, top + 18.0 * row + 10, names[code]),
        )
    ]
    return drawing(
        "map",
        left + side + 150,
        top + tall + 52,
        title,
        f"{title}, over {x.name} and {y.name}. {shares}.",
        text(left, 18, title, class_="strong"),
        group(*cells),
        group(*_ticks(x, left, left + side, top + tall, across=True)),
        group(*_ticks(y, top + tall, top, left, across=False)),
        text(left + side, top + tall + 36, x.name, class_="label", anchor="end"),
        text(left - 46, top - 8, y.name, class_="label"),
        group(*legend),
    )


def _ticks(axis: HeatAxis, start: float, end: float, base: float, *, across: bool) -> list[Markup]:
    """Label an axis; values that are not evenly spaced are labelled where they lie in the list."""
    first, last = axis.values[0], axis.values[-1]
    count = len(axis.values)
    even = count < 3 or all(
        abs(value - (first + (last - first) * i / (count - 1))) <= 1e-9 * max(abs(first), abs(last), 1.0)
        for i, value in enumerate(axis.values)
    )
    half = (end - start) / count / 2
    if even and count > 1 and last > first:
        scale = Scale(first, last, start + half, end - half)
        marks = [(scale(value), exact(value)) for value in ticks(first, last)]
    else:
        chosen = sorted({round(i * (count - 1) / min(5, max(count - 1, 1))) for i in range(min(count, 6))})
        marks = [(start + half * (2 * i + 1), exact(axis.values[i])) for i in chosen]
    if across:
        return [text(at, base + 18, words, anchor="middle") for at, words in marks]
    return [text(base - 8, at + 4, words, anchor="end") for at, words in marks]
