"""A drawing as a file of its own: with its name space, its colours and its background."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from markupsafe import Markup

__all__ = ["standalone"]

EXTRA = """
svg { background: var(--paper); font: 12px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; }
svg .cell { stroke: none; }
svg .cell.h0 { fill: var(--hair); } svg .cell.h1 { fill: var(--c2); } svg .cell.h2 { fill: var(--c0); }
svg .cell.h3 { fill: var(--c4); } svg .cell.h4 { fill: var(--c7); } svg .cell.h5 { fill: var(--c3); }
svg .cell.h6 { fill: var(--c1); } svg .cell.h7 { fill: var(--c5); } svg .cell.h8 { fill: var(--c6); }
svg .cell.void { fill: var(--paper); stroke: var(--line); stroke-width: .4; }
"""
"""Rules that only drawings outside a page need; cells of a map are coloured by class."""


@cache
def _style() -> str:
    """Collect the page's colours and its rules for drawings."""
    text = (files("verdiv.reports") / "templates" / "report.css").read_text(encoding="utf-8")
    colours, _, _ = text.partition("*, *::before")
    rules = [line for line in text.splitlines() if line.startswith("svg ")]
    return colours + "\n".join(rules) + EXTRA


def standalone(drawing: Markup) -> str:
    """Turn a drawing into an SVG file that needs nothing else.

    Raises
    ------
    ValueError
        If the markup is no drawing.
    """
    text = str(drawing)
    if not text.startswith("<svg "):
        raise ValueError("a drawing starts with its svg element")
    head, rest = text.split(">", 1)
    # The style sheet is our own file and holds no markup.
    return f'{head} xmlns="http://www.w3.org/2000/svg"><style>{_style()}</style>{rest}\n'
