"""The figures that *The Verifier's Dividend* prints, recomputed from parameters: one entry per claim id.

A figure is what the closed forms give, not what the paper prints, in the unit that the paper prints. Figures
for which the paper gives no form are absent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from verdiv.pricing.breakeven import break_even, first_repair_dividend
from verdiv.pricing.closed import (
    Price,
    blended,
    blind_greedy,
    ceiling_blind,
    ceiling_static,
    crossover_blind,
    crossover_feedback,
    feedback,
    feedback_fresh,
    majority,
    recovery,
    teacher_gated,
)
from verdiv.pricing.measures import accuracy_per_unit, known_wrong
from verdiv.pricing.parameters import Parameters
from verdiv.pricing.ratecard import ArmBudgets, RateCard, ledger

__all__ = ["SUITE", "TEACHER_ANCHOR", "Figure", "figures"]

SUITE = (14, 13, 13)
"""Tasks per family of the paper's suite: arithmetic, date, filtering."""

TEACHER_ANCHOR = (717, 800)
"""The count behind the teacher's printed 89.6 % on 800 cases."""

SEARCHED = 16
"""Budgets that break-even is searched over."""

VOTES = 25
"""Largest vote for which dominance over the majority arm is checked."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One recomputed figure."""

    value: float | bool
    """Value in `unit`; a truth value for a claim in words."""
    unit: str
    """Unit as printed: points, %, c_S, USD, or empty."""
    form: str
    """The equation it comes from."""
    direction: str = ""
    """Which side is larger, where the claim has a direction."""


def _arm3(p: Parameters, budget: float) -> Price:
    """Price A3 in the paper's form."""
    return feedback(budget, p.q0, p.p_d, p.sigma, p.s1, p.s2)


def _b_star(p: Parameters, edge: float | None = None) -> float:
    """Search break-even of A3 against a teacher draw that is better by `edge`; 0 if there is none."""
    price = feedback(np.arange(1, SEARCHED + 1), p.q0, p.p_d, p.sigma, p.s1, p.s2)
    target = p.q_T if edge is None else p.q0 + edge
    return float(break_even(price.quality, price.bill, target, p.rho))


def _dominates(p: Parameters) -> bool:
    """Tell whether A3 at budget k is at least A1 at k for every odd k searched."""
    k = np.arange(1, VOTES + 1, 2)
    ours = feedback(k, p.q0, p.p_d, p.sigma, p.s1, p.s2).quality
    return bool(np.all(ours >= majority(k, p.q0).quality))


def _budget_beyond_two_repairs(p: Parameters) -> float:
    """Give B* for an edge between what two and three repairs recover."""
    low, high = (p.p_d * float(recovery(n, p.sigma, p.s1, p.s2)) for n in (2, 3))
    return _b_star(p, (low + high) / 2.0)


def figures(
    p: Parameters, *, budgets: ArmBudgets | None = None, cost_small_usd: float = 0.001, tasks: int = 40
) -> dict[str, Figure]:
    """Recompute the printed figures from parameters.

    Parameters
    ----------
    p
        The parameters; :meth:`Parameters.worked` gives the paper's.
    budgets
        Arm budgets of the protocol; k = 5, budget 5 and B_T = 2 if absent.
    cost_small_usd
        Declared USD per small-tier draw.
    tasks
        Tasks of the protocol.

    Returns
    -------
    dict
        Claim id → figure.

    Examples
    --------
    >>> round(figures(Parameters.worked())["Q2-A3"].value, 4)
    0.9681
    """
    two, three, five, limit = (_arm3(p, b) for b in (2, 3, 5, float("inf")))
    mixed = blended(2, p.q0, p.p_d, p.sigma, p.s1, p.s2, p.q_T, p.rho)
    gated = teacher_gated(2, p.q_T, p.p_dT, p.rho)
    bill = ledger(p, budgets or ArmBudgets(), RateCard(rho=p.rho, cost_small_usd=cost_small_usd), tasks=tasks)
    found: dict[str, Figure] = {}

    def add(name: str, value: object, form: str, unit: str = "", direction: str = "") -> None:
        plain = value if isinstance(value, bool) else float(np.asarray(value, dtype=np.float64))
        found[name] = Figure(plain, unit, form, direction)

    # Prices of A3 and its neighbours.
    add("bill-A3-B2", two.bill, "E_2 = 1 + p_d", "c_S")
    add("gain-A3-B2", 100 * (two.quality - p.q0), "100 p_d R_1", "points")
    add("bill-share-of-teacher", 100 * two.bill / p.rho, "100 E_2 / rho", "%")
    add("Q2-A3", two.quality, "q0 + p_d R_1")
    add("E-infinity", limit.bill, "1 + p_d (sigma/s1 + (1 - sigma)/s2)", "c_S")
    add("known-wrong-A3-B3", 100 * known_wrong(three), "100 p_d (1 - R_2)", "points")
    add("residual-B2", 100 * two.residual, "100 p_d (1 - R_1)", "%")
    above = ceiling_static(p.q0, p.p_d) - ceiling_blind(p.q0, p.p_d)
    add("ceiling-above-blind-floor", 100 * above, "100 p_s p_d / (1 - p_d)", "points")
    add("crossover-feedback-k3", crossover_feedback(3, p.q0, p.sigma, p.s1, p.s2), "(Q_3 - q0) / R_2")
    add("crossover-blind-k3", crossover_blind(3, p.q0), "1 - q0 / Q_3")
    add("gain-A2", 100 * (blind_greedy(5, p.q0, p.p_d).quality - p.q0), "q0 at every budget", "points")
    # Accuracy per unit.
    per_unit = {
        "accuracy-per-unit-A3-low": accuracy_per_unit(two, p.q0),
        "accuracy-per-unit-A3-high": accuracy_per_unit(limit, p.q0),
        "accuracy-per-unit-A1-k5": accuracy_per_unit(majority(5, p.q0), p.q0),
        "accuracy-per-unit-A1-k3": accuracy_per_unit(majority(3, p.q0), p.q0),
        "accuracy-per-unit-A4": (p.q_T - p.q0) / p.rho,
    }
    for name, value in per_unit.items():
        add(name, value, "(Q - q0) / bill")
    # Break-even.
    shifted = p.with_(sigma=0.40)
    add("structural-mass", p.p_d * p.sigma, "p_d sigma")
    add("D_c", first_repair_dividend(p.p_d, p.sigma, p.phi), "p_d (sigma + (1 - sigma) phi)")
    add(
        "D_c-sigma-0.40",
        first_repair_dividend(p.p_d, shifted.sigma, p.phi),
        "p_d (sigma + (1 - sigma) phi) at sigma 0.40",
    )
    add("B-star", _b_star(p), "min B: Q_B >= q_T, E_B <= rho")
    add("B-star-sigma-0.40", _b_star(shifted), "min B: Q_B >= q_T, E_B <= rho, at sigma 0.40")
    add("B-star-rho-1.5", _b_star(p.with_(rho=1.5)), "min B: Q_B >= q_T, E_B <= rho, at rho 1.5")
    add("B-star-D-0.17", _b_star(p, 0.17), "min B: Q_B >= q0 + 0.17, E_B <= rho")
    beyond = _budget_beyond_two_repairs(p)
    add("B-star-reaches-4", beyond, "min B: Q_B >= q0 + D with p_d R_2 < D <= p_d R_3")
    # The blended policy and the gated teacher.
    add("bill-blended", mixed.bill, "E_2 + m_2 rho", "c_S")
    add("Q-blended", mixed.quality, "Q_2 + m_2 q_T")
    add("blended-below-half-of-teacher", bool(mixed.bill < p.rho / 2), "E_2 + m_2 rho < rho / 2")
    add("Q-A5-B2", gated.quality, "q_T (1 + p_dT)")
    add("bill-A5-B2", gated.bill, "rho (1 + p_dT)", "c_S")
    best = teacher_gated(float("inf"), p.q_T, p.p_dT, p.rho).quality
    add(
        "A5-dominated-at-B5",
        bool(five.quality >= best and five.bill <= p.rho),
        "Q_5 of A3 >= q_T / (1 - p_dT) and E_5 <= rho",
    )
    add(
        "A5-B2-dominated-in-cost-only",
        bool(two.bill < gated.bill and two.quality < gated.quality),
        "E_2 of A3 < rho (1 + p_dT) and Q_2 of A3 < q_T (1 + p_dT)",
    )
    add("dominates-A1-every-budget", _dominates(p), "Q_k of A3 >= Q_k of A1 for every odd k")
    # The fresh form.
    rates = (p.q0, p.p_d, p.sigma, p.s1, p.s2)
    gap = feedback_fresh(3, *rates).quality - three.quality
    side = "above" if gap > 0 else "below" if gap < 0 else "equal to"
    add(
        "fresh-gap-B3",
        100 * abs(gap),
        "100 p_d |R_2 fresh - R_2|",
        "points",
        f"fresh {side} class-stable",
    )
    ends = [
        np.isclose(feedback_fresh(b, *rates).quality, _arm3(p, b).quality, rtol=0, atol=1e-15)
        for b in (1, float("inf"))
    ]
    add("forms-agree-B1-and-infinity", bool(all(ends)), "R_0 = 0 and R_inf = 1 in both forms")
    # The protocol's bill.
    add("expected-bill-per-task", bill.expected, "sum of the arms' expected bills", "c_S")
    add("worst-case-per-task", bill.worst, "small draws + rho * teacher draws", "c_S")
    add("worst-case-small-draws", bill.small_draws, "A0 + A1 + A2 + A2s + A3")
    add("worst-case-teacher-draws", bill.teacher_draws, "A4 + A5")
    add("worst-case-run-usd", bill.worst_usd, "worst case per task * tasks * cost_small_usd", "USD")
    add("expected-run-usd", bill.expected_usd, "expected bill per task * tasks * cost_small_usd", "USD")
    # What the paper takes from elsewhere.
    add("suite-size", sum(SUITE), "14 + 13 + 13")
    anchor = TEACHER_ANCHOR[0] / TEACHER_ANCHOR[1]
    add("teacher-anchor", anchor, "717 / 800")
    add("teacher-anchor-count", 100 * anchor, "100 * 717 / 800", "%")
    return found
