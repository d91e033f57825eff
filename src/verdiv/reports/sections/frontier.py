"""The frontier figure with its table, and the break-even."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verdiv.reports.blocks import Block, Cell, Column, Facts, Figure, Paragraph, Row, Subsection, Table, clean
from verdiv.reports.figures.breakeven import break_even_panel, budgets, most_probable
from verdiv.reports.figures.frontier import BreakEvenMark, frontier_legend, frontier_panel
from verdiv.reports.sections.records import said
from verdiv.rounding import MISSING, count, estimate, exact, probability

__all__ = ["break_even_part", "ceiling", "frontier_figure", "frontier_part"]

REGIMES = {
    "0": "the teacher has no edge",
    "i": "the first message covers the teacher's edge",
    "ii": "repairs cover it, but not the first message alone",
    "iii": "no number of repairs covers it",
}
"""Regimes of "The Verifier's Dividend", T2, in words."""

REGIMES_NOTE = (
    "Regimes compare the teacher's edge in quality with what repairs recover at any budget, by the model and without "
    "the bill; B* asks for a budget up to the largest one and for a bill no higher than the teacher's."
)


CAPTION = (
    "Quality against bill. Marks and bars: direct estimates with their intervals; lines: the model. "
    "Shaded: at least the teacher's quality for at most its bill."
)


def ceiling(document: Mapping[str, Any]) -> float | None:
    """Return the static ceiling 1 - p_s ("The Verifier's Dividend", T1); None where p_s is not estimable."""
    silent = document["estimates"].get("p_s") or {}
    mean = silent.get("mean")
    return None if silent.get("status") != "estimated" or mean is None else 1.0 - float(mean)


def _mark(document: Mapping[str, Any]) -> BreakEvenMark | None:
    best = most_probable((document.get("break_even") or {}).get("B_star") or {})
    if best is None or best[0] == "none":
        return None
    return BreakEvenMark("A3", int(best[0]), f"B* = {best[0]}, p {probability(best[1])}")


def _band(side: Mapping[str, Any] | None, key: str) -> Cell | str:
    band = (side or {}).get(key)
    if band is None or band.get("mean") is None:
        return Cell(MISSING, "missing")
    return estimate(band["mean"], band.get("low"), band.get("high"))


def _table(document: Mapping[str, Any], identifier: str) -> Table:
    rows: list[Row] = []
    for point in document["frontier"]:
        direct, model = point.get("direct"), point.get("model")
        rows.append(
            (
                clean(point["arm"]),
                exact(point["budget"]),
                _band(direct, "quality"),
                _band(direct, "bill"),
                count((direct or {}).get("chains")),
                _band(model, "quality"),
                _band(model, "bill"),
                clean((model or {}).get("form") or MISSING),
            )
        )
    columns = (
        Column("Arm"),
        Column("Budget", numeric=True),
        Column("Quality, direct", numeric=True),
        Column("Bill, direct", numeric=True),
        Column("Chains", numeric=True),
        Column("Quality, model", numeric=True),
        Column("Bill, model", numeric=True),
        Column("Form of the model"),
    )
    return Table(
        f"{identifier}-numbers",
        "Quality (share of tasks) and bill (small draws a task) with their intervals",
        columns,
        tuple(rows),
        empty="no arm has a quality and a bill",
    )


def frontier_figure(document: Mapping[str, Any], identifier: str, *, folded: bool) -> Figure:
    """Build the figure: quality against bill, teacher, static ceiling and break-even marked."""
    frontier = document["frontier"]
    panel = frontier_panel(f"{identifier}-drawing", frontier, ceiling(document), _mark(document))
    return Figure(
        identifier,
        "Quality against bill" if panel.drawing is None else CAPTION,
        (panel,),
        _table(document, identifier),
        legend=frontier_legend(frontier),
        folded=folded,
    )


def frontier_part(document: Mapping[str, Any]) -> Subsection:
    """Build the frontier's part of the results."""
    return Subsection(
        "frontier", "Cost-quality frontier", (frontier_figure(document, "results-frontier", folded=False),)
    )


def _regime(result: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    shares = result.get("regime") or {}
    return tuple(
        (f"Regime ({name}): {REGIMES[name]}", f"probability {probability(shares[name])}, model")
        for name in REGIMES
        if shares.get(name) is not None
    )


def _model_shares(record: Mapping[str, Any]) -> dict[str, float]:
    """Read the model's distribution of B*, which stands in the record itself or under its own B_star."""
    nested = record.get("B_star")
    shares = nested if isinstance(nested, Mapping) else record
    return {
        budget: float(p)
        for budget, p in shares.items()
        if (budget == "none" or (budget.isascii() and budget.isdigit()))
        and isinstance(p, int | float)
        and 0 <= p <= 1
    }


def break_even_part(document: Mapping[str, Any]) -> Subsection:
    """Build the break-even's part of the results: B* as a distribution, direct and model, and its regime."""
    result = document.get("break_even") or {}
    direct = result.get("B_star") or {}
    model = _model_shares(result.get("model") or {})
    blocks: list[Block] = []
    if result.get("sentence"):
        blocks.append(Paragraph(clean(result["sentence"])))
    names = [name for name, _ in budgets({**direct, **model})]
    rows = tuple((name, probability(direct.get(name)), probability(model.get(name))) for name in names)
    table = Table(
        "break-even-numbers",
        f"Probability of each break-even budget up to {exact(result.get('B_max'))}",
        (Column("B*"), Column("Direct", numeric=True), Column("Model", numeric=True)),
        rows,
        empty="not estimable",
        notes=(
            "none: no budget up to the largest one reaches the teacher's quality at no more than its bill.",
        ),
    )
    panels = [break_even_panel("break-even-direct", "direct, paired bootstrap", direct)]
    if model:
        panels.append(break_even_panel("break-even-model", "model", model))
    blocks.append(
        Figure(
            "break-even-figure", "How probable each break-even budget is", tuple(panels), table, layout="grid"
        )
    )
    facts: list[tuple[str, Cell | str]] = list(_regime(result))
    if result.get("registered") is not None:
        facts.append(("Registered break-even budget", said(result["registered"])))
    dividend = result.get("D_c")
    if isinstance(dividend, Mapping):
        shown = estimate(dividend.get("mean"), dividend.get("low"), dividend.get("high"))
        facts.append(("First repair dividend D_c, model", shown))
    elif dividend is not None:
        facts.append(("First repair dividend D_c, model", exact(round(float(dividend), 4))))
    if facts:
        blocks.append(Facts(tuple(facts)))
    if _regime(result):
        blocks.append(Paragraph(REGIMES_NOTE, "quiet"))
    return Subsection("break-even", "Break-even B*", tuple(blocks))
