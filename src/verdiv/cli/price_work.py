"""What the price subcommands compute: inputs to documents, nothing printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from verdiv.cli.price_inputs import PriceInput
from verdiv.pricing.document import (
    PRICE_SCHEMA,
    figures_document,
    ledger_document,
    sweep_document,
    table_document,
)
from verdiv.pricing.figures import figures
from verdiv.pricing.forms import Hazards, choose_form
from verdiv.pricing.ratecard import ArmBudgets, RateCard, ledger
from verdiv.pricing.sweep import Axis, sweep
from verdiv.pricing.table import price_table

__all__ = ["priced", "recomputed", "swept"]

COST_SMALL_USD = 0.001
"""Declared USD of a small draw, where nobody gives another."""

TASKS = 40
"""Tasks of the paper's protocol."""


def priced(
    source: PriceInput,
    *,
    form: str | None,
    hazards: Hazards | None,
    b_max: int,
    votes: int,
    budgets: ArmBudgets,
    cost_small_usd: float | None,
    tasks: int | None,
) -> dict[str, Any]:
    """Make the price document: table, protocol's bill and, for a point, the paper's figures."""
    r = source.rates()
    table = price_table(
        r,
        form=choose_form(form, r, hazards),
        b_max=b_max,
        votes=votes,
        gate=source.point.gate,
        hazards=hazards,
        sampled=source.rates(sampled=True) if source.sampled else None,
    )
    cost = cost_small_usd if cost_small_usd is not None else source.cost_small_usd
    cost = COST_SMALL_USD if cost is None else cost
    size = tasks if tasks is not None else source.tasks or TASKS
    card = RateCard(rho=source.point.rho, cost_small_usd=cost)
    document = table_document(table, r, b_max=b_max, cost_small_usd=cost, notes=source.notes)
    document["protocol"] = ledger_document(ledger(source.point, budgets, card, tasks=size))
    if source.stored:
        document["fit_frontier"] = list(source.stored)
    if not source.draws:
        document["figures"] = figures_document(
            figures(source.point, budgets=budgets, cost_small_usd=cost, tasks=size)
        )
    return document


def swept(
    source: PriceInput,
    axes: Sequence[str],
    *,
    form: str | None,
    hazards: Hazards | None,
    b_max: int,
    votes: Sequence[int],
) -> dict[str, Any]:
    """Make the sweep document."""
    parsed = [Axis.parse(text) for text in axes]
    probe = source.rates()
    chosen = choose_form(form or _form_of(parsed, hazards), probe, hazards)
    found = sweep(
        source.point,
        parsed,
        form=chosen,
        b_max=b_max,
        draws=source.draws or None,
        hazards=hazards,
        votes=votes,
    )
    return sweep_document(found, chosen, source.notes)


def _form_of(axes: Sequence[Axis], hazards: Hazards | None) -> str | None:
    """Pick the correlated form where a correlation is swept."""
    if hazards is None and any(axis.name.startswith("icc") for axis in axes):
        return "correlated"
    return None


def recomputed(source: PriceInput) -> dict[str, Any]:
    """Make the document of the paper's figures."""
    cost = COST_SMALL_USD if source.cost_small_usd is None else source.cost_small_usd
    found = figures(source.point, cost_small_usd=cost, tasks=source.tasks or TASKS)
    return {"schema": PRICE_SCHEMA, "kind": "figures", "figures": figures_document(found)}
