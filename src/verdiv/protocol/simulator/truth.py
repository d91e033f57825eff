"""True values of every estimand of a simulated world, without simulating it.

All expectations run over the task traits (exact where tasks of a family are alike, else by 16,384 Sobol
points a family), and inside a task over chains as masses. Every rate is draw-weighted: a ratio of population means,
families weighted by their share of the suite.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from verdiv.protocol.simulator.design import Design
from verdiv.protocol.simulator.expectations import Sums, add_family
from verdiv.protocol.simulator.traits import NODES, family_nodes
from verdiv.protocol.simulator.world import World

__all__ = ["TrueCell", "TrueValues", "true_values"]

TOLERANCE = 1e-9
"""Slack of the break-even comparison, against rounding of equal qualities."""


@dataclass(frozen=True, slots=True)
class TrueCell:
    """An arm at a budget."""

    quality: float
    """P(the answer is correct)."""
    bill: float
    """Mean bill of a task, units of one small draw."""
    p_flip: float
    """P(two replicates differ in whether the answer is correct); NaN for greedy chains of several draws."""


@dataclass(frozen=True, slots=True)
class TrueValues:
    """What a perfect, endless run of a design in a world would measure."""

    estimates: Mapping[str, float]
    """Estimand id to its value; NaN where nothing can be measured (``break_even``: none within the budget).
    Beside the estimands: ``b1``, ``b2`` (blind redraw success by class of the first error), ``late1``, ``late2``
    (repairs at attempts from 3), ``drift_blind``, ``drift_feedback`` (detection of wrong redraws minus that of
    first draws of the same tasks), ``delta_first_half``, ``delta_second_half``, ``s_false``, ``p_d_t``,
    ``D_c_registered`` (``p_d [sigma s1 + (1 - sigma) phi]``)."""
    frontier: Mapping[tuple[str, int], TrueCell]
    """Arm and budget to what it gives."""

    def quality(self, arm: str, budget: int) -> float:
        """Return an arm's quality at a budget."""
        return self.frontier[arm, budget].quality

    def bill(self, arm: str, budget: int) -> float:
        """Return an arm's mean bill at a budget."""
        return self.frontier[arm, budget].bill


def true_values(
    world: World, design: Design, *, condition: str = "primary", nodes: int = NODES
) -> TrueValues:
    """Compute the true values of a world under a design.

    Parameters
    ----------
    world
        What draws come out as.
    design
        Arms, budgets, decoding and seeds.
    condition
        Experimental condition; the drift of the second half of the run acts on the primary one only.
    nodes
        Integration nodes a family, a power of two; fewer are quicker and less exact.

    Returns
    -------
    TrueValues
        Draw-weighted estimands and the frontier.

    Examples
    --------
    >>> truth = true_values(World.worked(), Design())
    >>> [round(truth.quality("A3", b), 4) for b in (1, 2, 3)], round(truth.bill("A3", 2), 4)
    ([0.8, 0.9681, 0.9784], 1.18)
    >>> round(truth.estimates["sigma"], 4), truth.estimates["break_even"], round(truth.quality("A5", 2), 4)
    (0.6, 2.0, 0.972)
    """
    sums = Sums()
    for family in world.families:
        share = world.weights[family.name]
        traits = family_nodes(world, family.rates, nodes)
        add_family(sums, share, world, design, traits, condition)
    return _finish(sums, world, design)


def _finish(sums: Sums, world: World, design: Design) -> TrueValues:
    ratio, rate = sums.ratio, sums.rate
    frontier = {}
    for (arm, budget), quality in sums.quality.items():
        price = world.rho if arm in ("A4", "A5") else 1.0
        if budget <= design.budgets.get(arm, 0):
            flip = sums.flip[arm, budget]
            frontier[arm, budget] = TrueCell(quality, price * sums.draws[arm, budget], flip)
    wrong, wrong_t = rate["p_d"] + rate["p_s"], 1.0 - rate["q_t"]
    p_d, sigma = rate["p_d"], ratio("structural", "p_d")
    s1, s2, b1, b2 = (ratio(f"{name}_right", name) for name in ("s1", "s2", "b1", "b2"))
    own_q = 1.0 - wrong
    s_blind = ratio("blind_right", "blind")
    values = {
        "q0": rate["q"],
        "q0_greedy": rate["q_greedy"],
        "p_d": p_d,
        "p_s": rate["p_s"],
        "delta": p_d / wrong if wrong > 0.0 else math.nan,
        "eta_ox": ratio("seen", "p_s"),
        "sigma": sigma,
        "s1": s1,
        "s2": s2,
        "lambda1": ratio("lambda1_right", "lambda1"),
        "lambda2": ratio("lambda2_right", "lambda2"),
        "phi": s2 - own_q,
        "phi_matched": ratio("matched_right", "matched"),
        "s_blind": s_blind,
        "sticky_ratio": s_blind / rate["q"] if rate["q"] > 0.0 else math.nan,
        "s_blind_pairs": ratio("pairs_right", "pairs"),
        "s_blind_exchangeable": ratio("exchangeable_right", "exchangeable"),
        "fpr": ratio("fpr_right", "fpr"),
        "fpr_initial": ratio("fpr_initial_right", "fpr_initial"),
        "q_t": rate["q_t"],
        "delta_t": rate["p_d_t"] / wrong_t if wrong_t > 0.0 else math.nan,
        "p_d_t": rate["p_d_t"],
        "h": world.load.h if world.load.in_flight_max > world.load.in_flight_min else math.nan,
        "b1": b1,
        "b2": b2,
        "late1": ratio("late1_right", "late1"),
        "late2": ratio("late2_right", "late2"),
        "drift_blind": ratio("drift_blind_right", "drift_blind"),
        "drift_feedback": ratio("drift_feedback_right", "drift_feedback"),
        "delta_first_half": ratio("first_half_right", "first_half"),
        "delta_second_half": ratio("second_half_right", "second_half"),
        "s_false": ratio("s_false_right", "s_false"),
    }
    values["D_c"] = p_d * _mix(sigma, s1 - b1, s2 - b2)
    values["D_c_registered"] = p_d * _mix(sigma, s1, values["phi"])
    values["break_even"] = _break_even(frontier, design.budgets.get("A3", 0), rate["q_t"], world.rho)
    return TrueValues(values, frontier)


def _mix(sigma: float, structural: float, semantic: float) -> float:
    """Return ``sigma a + (1 - sigma) b``, a class without mass left out."""
    if sigma == 1.0:
        return structural
    if sigma == 0.0:
        return semantic
    return sigma * structural + (1.0 - sigma) * semantic


def _break_even(frontier: Mapping[tuple[str, int], TrueCell], most: int, q_t: float, rho: float) -> float:
    for budget in range(1, most + 1):
        cell = frontier["A3", budget]
        if cell.quality >= q_t - TOLERANCE and cell.bill <= rho + TOLERANCE:
            return float(budget)
    return math.nan
