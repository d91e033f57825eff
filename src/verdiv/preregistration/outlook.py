"""What a design is expected to cost and to draw, as far as its registered values tell, written into its lock."""

from __future__ import annotations

import math
from typing import Any

from verdiv.preregistration.cells import planned_arms
from verdiv.preregistration.plan import Preregistration
from verdiv.pricing.closed import blind, blind_greedy, feedback

__all__ = ["outlook"]


def _expected(plan: Preregistration, arm: str) -> float | None:
    """Give the expected draws of a chain at the registered values; None where those do not tell."""
    part, values = plan.arms[arm], plan.estimands
    if part.prompt in ("initial", "none"):
        return float(part.budget)
    teacher = plan.tiers[part.tier].cost_units != 1.0 or part.tier == "teacher"
    q = values.q_t if teacher else (values.q0_greedy if part.temperature == 0 else None) or values.q0
    flagged = values.p_d_t if teacher else values.p_d
    if q is None or flagged is None:
        return None
    if part.prompt == "blind":
        price = blind_greedy if part.temperature == 0 else blind
        return float(price(part.budget, q, flagged).bill)
    s2 = values.s2 if values.s2 is not None else None if values.phi is None else q + values.phi
    if values.sigma is None or values.s1 is None or s2 is None:
        return None
    return float(feedback(part.budget, q, flagged, values.sigma, values.s1, s2).bill)


def outlook(plan: Preregistration) -> dict[str, Any]:
    """Work out draws and bills of a design before it runs.

    Expected draws a chain are the bills of the closed forms (*The Verifier's Dividend*, T1 and its billing
    identity) at the registered values; least and most follow from the budgets alone. Shared first draws are
    counted once.

    Returns
    -------
    dict
        ``arms`` (one a condition and arm), ``draw_records`` and ``made_draws`` of the whole run with ``least``,
        ``most`` and, where every arm tells, ``expected``; ``units_per_task`` of one replicate of the primary
        condition against the declared bound. Records include copies, made draws do not. Nothing of it depends on
        the order in which the registration names arms or conditions.
    """
    tasks, copies = plan.suite.tasks, 0
    arms: list[dict[str, Any]] = []
    for planned in planned_arms(plan):
        chains = tasks * planned.replicates
        mean = _expected(plan, planned.arm)
        arms.append(
            {
                "condition": planned.condition,
                "arm": planned.arm,
                "chains": chains,
                "least": chains * planned.least,
                "most": chains * planned.most,
                "expected": None if mean is None else round(chains * mean, 6),
            }
        )
        copies += tasks * planned.copies
    arms.sort(key=lambda arm: (arm["condition"], arm["arm"]))
    means: list[float | None] = [arm["expected"] for arm in arms]
    expected = None if None in means else math.fsum(mean for mean in means if mean is not None)
    least, most = (sum(arm[name] for arm in arms) for name in ("least", "most"))
    prices = {name: plan.tiers[arm.tier].cost_units for name, arm in plan.arms.items()}
    bills = {name: _expected(plan, name) for name in plan.arms}
    known = [bill * prices[name] for name, bill in bills.items() if bill is not None]
    bound = plan.rate_card.declared_bound_units
    worst = plan.worst_case_units
    return {
        "arms": arms,
        "draw_records": {
            "least": least,
            "most": most,
            "expected": None if expected is None else round(expected, 6),
        },
        "made_draws": {
            "least": least - copies,
            "most": most - copies,
            "expected": None if expected is None else round(expected - copies, 6),
        },
        "units_per_task": {
            "expected": round(math.fsum(known), 6) if len(known) == len(bills) else None,
            "worst": worst,
            "declared_bound": bound,
            "bound_covers_worst": None if bound is None else worst <= bound,
        },
    }
