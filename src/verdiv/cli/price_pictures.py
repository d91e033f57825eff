"""Pictures of prices: the frontier with teacher line and break-even, and maps of sweeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from verdiv.errors import Fault, UsageRefused
from verdiv.reports.figures.frontier import BreakEvenMark, frontier_panel
from verdiv.reports.figures.heatmap import HeatAxis, heatmap
from verdiv.reports.figures.standalone import standalone

__all__ = ["frontier_picture", "sweep_picture"]

Document = Mapping[str, Any]


def _side(row: Document, name: str) -> dict[str, float | None] | None:
    """Give a row's figure as the band that the frontier draws."""
    value = row[name]
    if isinstance(value, Mapping):
        return {"mean": value["mean"], "low": value["low"], "high": value["high"]}
    return {"mean": value, "low": None, "high": None} if isinstance(value, int | float) else None


def _mean(value: Any) -> float | None:
    """Give a figure or its mean."""
    found = value.get("mean") if isinstance(value, Mapping) else value
    return float(found) if isinstance(found, int | float) else None


def _likely(value: Any) -> int | None:
    """Give B* or the most probable one, None for none."""
    if isinstance(value, Mapping):
        value = max(value, key=lambda name: value[name], default="none")
    return None if value in (None, "none") else int(value)


def frontier_picture(document: Document, stored: Sequence[Document] = ()) -> str:
    """Draw a price document as an SVG file: quality against bill, the teacher's level, break-even ringed.

    Parameters
    ----------
    document
        What :func:`verdiv.pricing.document.table_document` wrote.
    stored
        Frontier of the fit behind it, whose direct estimates are drawn as marks.
    """
    direct = {(row["arm"], row["budget"]): row.get("direct") for row in stored}
    points = [
        {
            "arm": row["arm"],
            "budget": row["budget"],
            "direct": direct.get((row["arm"], row["budget"])),
            "model": {"quality": _side(row, "quality"), "bill": _side(row, "loaded_bill")},
        }
        for row in document["rows"]
        if row["budget"] != "inf"
    ]
    budget = _likely(document["break_even"]["B_star"])
    ring = None if budget is None else BreakEvenMark("A3", budget, f"B* = {budget}")
    panel = frontier_panel("frontier", points, _mean(document["summary"]["ceiling_static"]), ring)
    if panel.drawing is None:
        raise UsageRefused("There is nothing to draw: no arm has both a quality and a bill.")
    return standalone(panel.drawing)


def sweep_picture(document: Document, what: str) -> str:
    """Draw a sweep over two parameters as an SVG map of B* or of regimes.

    Raises
    ------
    UsageRefused
        If the sweep has one axis only.
    """
    axes = [HeatAxis(axis["name"], axis["values"]) for axis in document["axes"]]
    if len(axes) != 2:
        fault = Fault("--svg", "a sweep over two parameters", "one", "sweep a second parameter")
        raise UsageRefused("A map needs two axes.", [fault])
    if what == "regime":
        names = {i: f"regime {name}" for i, name in enumerate(document["codes"]["regime"])} | {
            -1: "no protocol"
        }
        return standalone(heatmap(axes[0], axes[1], document["regime"], names, "Regime"))
    names = {b: f"B* = {b}" for b in range(1, document["B_max"] + 1)} | {0: "none", -1: "no protocol"}
    title = "Break-even budget B*" + (", most probable" if document["draws"] else "")
    return standalone(heatmap(axes[0], axes[1], document["B_star"], names, title))
