"""Posterior densities: each estimand's posterior over its prior, with the direct interval under it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from verdiv.reports.blocks import LegendEntry, Panel
from verdiv.reports.figures.svg import Scale, drawing, element, path, text, ticks
from verdiv.reports.words import estimand
from verdiv.rounding import estimate, exact

__all__ = ["density_legend", "density_panel"]

WIDTH, HEIGHT = 300.0, 150.0
LEFT, RIGHT, TOP, BASE = 10.0, 290.0, 10.0, 104.0
BAR = 114.0


def density_panel(identifier: str, name: str, density: Mapping[str, Any], values: Mapping[str, Any]) -> Panel:
    """Draw one estimand's posterior density.

    Parameters
    ----------
    identifier
        Identifier of the drawing on its page.
    name
        Estimate id.
    density
        ``x`` (at most 200 positions), ``y`` and, where known, ``prior``, heights at the same positions.
    values
        The estimate's record, for the direct interval and the model's mean.

    Returns
    -------
    Panel
        Without a drawing where the density has fewer than two positions or no width.
    """
    words = estimand(name)
    label = f"{words.symbol}, {words.name}" if words.name != words.symbol else words.symbol
    xs = [float(value) for value in density["x"]]
    ys = [float(value) for value in density["y"]]
    if len(xs) < 2 or max(xs) <= min(xs) or max(ys, default=0.0) <= 0:
        return Panel(label, None, note="no density: all draws are equal", tone="missing")
    prior = [float(value) for value in density.get("prior") or ()]
    direct = values.get("direct") or {}
    ends = [direct[key] for key in ("low", "high") if direct.get(key) is not None]
    x = Scale(min([*xs, *ends]), max([*xs, *ends]), LEFT, RIGHT)
    y = Scale(0.0, max(ys), BASE, TOP)
    outline = [(x(a), y(b)) for a, b in zip(xs, ys, strict=True)]
    parts = [
        path([(outline[0][0], BASE), *outline, (outline[-1][0], BASE)], "posterior-fill", closed=True),
        path(outline, "posterior"),
    ]
    if prior:
        parts.append(path(((x(a), y(b)) for a, b in zip(xs, prior, strict=True)), "prior"))
    said = ""
    if len(ends) == 2:
        parts.append(element("line", x1=x(ends[0]), x2=x(ends[1]), y1=BAR, y2=BAR, class_="direct"))
        middle = direct.get("mean")
        if middle is not None:
            parts.append(element("circle", cx=x(middle), cy=BAR, r=3.5, class_="direct-dot"))
        said = f" Direct estimate {estimate(middle, *ends)}."
    parts.append(element("line", x1=LEFT, x2=RIGHT, y1=BASE, y2=BASE, class_="axis"))
    for value in ticks(x.low, x.high, 3):
        at = x(value)
        anchor = "start" if at < LEFT + 12 else "end" if at > RIGHT - 12 else "middle"
        parts.append(element("line", x1=at, x2=at, y1=BAR + 9, y2=BAR + 13, class_="axis"))
        parts.append(text(at, BAR + 25, exact(value), anchor=anchor))
    model = values.get("model") or values
    description = f"Posterior {estimate(model.get('mean'), model.get('low'), model.get('high'))}.{said}"
    return Panel(label, drawing(identifier, WIDTH, HEIGHT, label, description, *parts))


def density_legend() -> tuple[LegendEntry, ...]:
    """Return the marks of posterior, prior and direct interval."""

    def swatch(*parts: Markup) -> Markup:
        return element(
            "svg", *parts, viewBox="0 0 24 14", width=24, height=14, class_="swatch", aria_hidden="true"
        )

    return (
        LegendEntry(
            "posterior of the model",
            swatch(
                path([(1, 13), (8, 3), (16, 3), (23, 13)], "posterior-fill", closed=True),
                path([(1, 13), (8, 3), (16, 3), (23, 13)], "posterior"),
            ),
        ),
        LegendEntry("prior", swatch(path([(1, 7), (23, 7)], "prior"))),
        LegendEntry(
            "direct estimate with interval",
            swatch(
                element("line", x1=1, x2=23, y1=7, y2=7, class_="direct"),
                element("circle", cx=12, cy=7, r=3.5, class_="direct-dot"),
            ),
        ),
    )
