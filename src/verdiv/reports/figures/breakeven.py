"""The break-even budget: how probable each value of B* is."""

from __future__ import annotations

from collections.abc import Mapping

from verdiv.reports.blocks import Panel
from verdiv.reports.figures.svg import Scale, drawing, element, text
from verdiv.rounding import probability

__all__ = ["break_even_panel", "budgets", "most_probable"]

WIDTH, HEIGHT = 320.0, 150.0
LEFT, RIGHT, TOP, BASE = 8.0, 312.0, 24.0, 118.0
MOST_BARS = 12
"""Bars that have room; the least probable budgets beyond them stand in the table only."""


def _order(budget: str) -> tuple[int, int]:
    return (1, 0) if budget == "none" else (0, int(budget))


def budgets(shares: Mapping[str, float | None]) -> tuple[tuple[str, float], ...]:
    """Return budgets with their probabilities in ascending order, ``none`` last.

    Examples
    --------
    >>> budgets({"none": 0.1, "10": 0.2, "2": 0.7})
    (('2', 0.7), ('10', 0.2), ('none', 0.1))
    """
    known = ((budget, float(p)) for budget, p in shares.items() if p is not None)
    return tuple(sorted(known, key=lambda pair: _order(pair[0])))


def most_probable(shares: Mapping[str, float | None]) -> tuple[str, float] | None:
    """Return the most probable budget, the smaller one at a tie; None where nothing is known."""
    return max(budgets(shares), key=lambda pair: pair[1], default=None)


def break_even_panel(identifier: str, label: str, shares: Mapping[str, float | None]) -> Panel:
    """Draw one bar a budget.

    Parameters
    ----------
    identifier
        Identifier of the drawing on its page.
    label
        What the probabilities come from.
    shares
        Budget (or ``none``: no budget up to B_max breaks even) to its probability.
    """
    pairs = budgets(shares)
    if not pairs:
        return Panel(label, None, note="not estimable", tone="missing")
    if len(pairs) > MOST_BARS:
        kept = sorted(pairs, key=lambda pair: -pair[1])[:MOST_BARS]
        pairs = tuple(sorted(kept, key=lambda pair: _order(pair[0])))
    step = (RIGHT - LEFT) / max(len(pairs), 4)
    y = Scale(0.0, 1.0, BASE, TOP)
    best = max(pairs, key=lambda pair: pair[1])
    parts = [element("line", x1=LEFT, x2=RIGHT, y1=BASE, y2=BASE, class_="axis")]
    for place, (budget, p) in enumerate(pairs):
        centre = LEFT + step * (place + 0.5)
        wide = step * 0.66
        style = "column best" if budget == best[0] else "column"
        parts.append(
            element(
                "rect", x=centre - wide / 2, y=y(p), width=wide, height=max(BASE - y(p), 0.8), class_=style
            )
        )
        parts.append(text(centre, y(p) - 5, probability(p), anchor="middle", class_="tick"))
        parts.append(text(centre, BASE + 15, budget, anchor="middle", class_="name"))
    parts.append(text(LEFT, BASE + 29, "B*", class_="label"))
    said = "; ".join(f"{budget}: {probability(p)}" for budget, p in pairs)
    return Panel(label, drawing(identifier, WIDTH, HEIGHT, f"Probability of each B*, {label}", said, *parts))
