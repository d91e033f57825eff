"""Frontier, break-even, ledger and flow of the results document."""

from __future__ import annotations

from typing import Any

import numpy as np

from verdiv.analysis.estimates import band, whole
from verdiv.analysis.gather import PRIMARY, Gathered
from verdiv.estimators.bootstrap import summarise_draws
from verdiv.estimators.compose import Composition
from verdiv.estimators.direct import Direct
from verdiv.estimators.observations import FloatArray
from verdiv.pricing.breakeven import REGIMES, explain_budget

__all__ = ["break_even_block", "flow_block", "frontier_block", "ledger_block", "per_seed_block"]

ORDER = ("A0", "A1", "A2", "A2s", "A3", "blended", "A4", "A5")


def _rank(arm: str) -> tuple[int, str]:
    return (ORDER.index(arm) if arm in ORDER else len(ORDER), arm)


def frontier_block(gathered: Gathered, direct: Direct, composition: Composition) -> list[dict[str, Any]]:
    """Quality and bill of every arm at every budget, direct and model side by side."""
    tally = gathered.tally
    keys = set(tally.at_budget) | set(composition.frontier)
    registered = gathered.plan.arms
    rows = []
    for arm, budget in sorted(keys, key=lambda key: (_rank(key[0]), key[1])):
        made: dict[str, Any] | None = None
        if (arm, budget) in tally.at_budget:
            cell = tally.at_budget[arm, budget]
            if cell.n.sum() > 0:
                made = {
                    "quality": band(summarise_draws(direct.quality(arm, budget))),
                    "bill": band(summarise_draws(direct.bill(arm, budget))),
                    "chains": int(cell.n.sum()),
                }
        elif arm == "blended":
            pair = direct.blended(budget)
            if pair is not None:
                cell = tally.at_budget["A3", budget]
                made = {
                    "quality": band(summarise_draws(pair[0])),
                    "bill": band(summarise_draws(pair[1])),
                    "chains": int(cell.n.sum()),
                }
        point = composition.frontier.get((arm, budget))
        priced: dict[str, Any] | None = None
        if point is not None and np.isfinite(point.quality).all():
            priced = {
                "quality": band(summarise_draws(point.quality)),
                "bill": band(summarise_draws(point.bill)),
                "form": point.form,
            }
        if made is None and (priced is None or (arm in registered and budget > registered[arm].budget)):
            continue
        head: dict[str, Any] = made or priced or {}
        rows.append(
            {
                "arm": arm,
                "budget": budget,
                "quality": head["quality"]["mean"],
                "bill": head["bill"]["mean"],
                "direct": made,
                "model": priced,
            }
        )
    return rows


def _shares(values: FloatArray, b_max: int) -> dict[str, float]:
    shares = {str(b): float((values == b).mean()) for b in range(1, b_max + 1)}
    shares["none"] = float((values == 0).mean())
    return shares


def break_even_block(
    gathered: Gathered, found: FloatArray | None, composition: Composition
) -> dict[str, Any]:
    """Probabilities of B* and of the regimes, and what B* means for the one who pays."""
    b_max = gathered.plan.max_budget
    regimes = None
    if composition.regime is not None:
        codes = composition.regime[composition.regime >= 0]
        if len(codes):
            regimes = {r.value: float((codes == i).mean()) for i, r in enumerate(REGIMES)}
    shares = _shares(found, b_max) if found is not None else None
    dividend = composition.estimates.get("D_c")
    finite = dividend[np.isfinite(dividend)] if dividend is not None else np.empty(0)
    return {
        "B_star": shares,
        "model": {"B_star": _shares(composition.break_even, b_max)}
        if composition.break_even is not None
        else None,
        "B_max": b_max,
        "registered": gathered.plan.break_even_budget,
        "regime": regimes,
        "D_c": band(summarise_draws(finite)) if len(finite) else None,
        "sentence": explain_budget(shares, b_max) if shares is not None else None,
    }


def flow_block(gathered: Gathered) -> list[dict[str, Any]]:
    """Per arm and condition: planned initial draws, draws attempted, errored, unscored, copied and analysed."""
    plan = gathered.plan
    order = {condition: i for i, condition in enumerate(gathered.account.conditions)}
    rows = []
    for flow in sorted(gathered.account.flow, key=lambda f: (order[f.condition], _rank(f.arm))):
        planned = None
        if gathered.mode == "registered" and flow.condition == PRIMARY and flow.arm in plan.arms:
            per_chain = plan.arms[flow.arm].k or 1
            runs = 1 + plan.greedy_reruns if flow.arm == "A0" else max(1, len(plan.seeds))
            planned = plan.suite.tasks * per_chain * runs
        rows.append(
            {
                "arm": flow.arm,
                "condition": flow.condition,
                "planned": planned,
                "initial": flow.initial,
                "attempted": flow.attempted,
                "errored": flow.errored,
                "unscored": flow.unscored,
                "copies": flow.copies,
                "analysed": flow.analysed,
            }
        )
    return rows


def ledger_block(gathered: Gathered) -> dict[str, Any]:
    """The bill as run (each draw once) and as registered (shared draws in every arm that lists them)."""
    account, card = gathered.account, gathered.plan.rate_card
    cells = max(account.cells, 1)
    books = [account.ledger[arm] for arm in sorted(account.ledger, key=_rank)]
    total = sum(book.units for book in books)
    bound, worst, price = card.declared_bound_units, account.worst_cell, card.cost_small_usd
    return {
        "rows": [
            {
                "arm": book.arm,
                "draws": book.draws,
                "units": book.units,
                "units_per_task": book.primary_units / cells,
                "as_registered": book.as_registered / cells,
            }
            for book in books
        ],
        "cells": account.cells,
        "total_units": total,
        "units_per_task": sum(book.primary_units for book in books) / cells,
        "registered_units_per_task": sum(book.as_registered for book in books) / cells,
        "worst_cell_units": worst,
        "declared_bound": bound,
        "within_bound": None if bound is None or worst is None else bool(worst <= bound + 1e-9),
        "usd": None if price is None else total * price,
    }


def per_seed_block(gathered: Gathered) -> list[dict[str, Any]]:
    """Quality of every arm at its budgets under each seed, over the tasks that were run."""
    rows = []
    tally, b = gathered.tally, gathered.plan.break_even_budget
    for arm in sorted(tally.arms, key=_rank):
        budgets = (
            [1] if arm in ("A0", "A1", "A4") else sorted({1, b} & {x for a, x in tally.at_budget if a == arm})
        )
        rows += [
            {
                "arm": arm,
                "budget": budget if arm != "A1" else gathered.plan.rules.P2.k,
                "replicate": seed.replicate,
                "quality": seed.k / seed.n,
                "tasks": whole(seed.n),
            }
            for budget in budgets
            for seed in tally.answers(arm, budget)
            if seed.n
        ]
    return rows
