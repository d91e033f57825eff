"""What a whole protocol costs: the arms of a design, their budgets, and the rate card in USD."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from verdiv.errors import Fault, InputRefused
from verdiv.pricing.general import (
    blind_general,
    blind_greedy_general,
    feedback_general,
    teacher_gated_general,
)
from verdiv.pricing.parameters import Parameters
from verdiv.pricing.series import Array

__all__ = ["ArmBudgets", "Ledger", "LedgerRow", "RateCard", "ledger"]

MAX_ARM_BUDGET = 10_000
"""Largest number of draws that one arm of a protocol may spend on a task."""


def _refuse(name: str, expected: str, got: object, remedy: str) -> InputRefused:
    """Make the refusal of one field."""
    fault = Fault(where="rate card", field=name, expected=expected, got=repr(got), remedy=remedy)
    return InputRefused("cannot price this protocol", [fault])


@dataclass(frozen=True, slots=True, kw_only=True)
class RateCard:
    """Prices of a draw of either tier."""

    rho: float = 2.5
    """Price of a teacher draw in small-tier draws."""
    cost_small_usd: float = 0.001
    """USD per small-tier draw."""

    def __post_init__(self) -> None:
        """Refuse prices that are not finite and positive (a free small draw is allowed)."""
        if not (math.isfinite(self.rho) and self.rho > 0):
            raise _refuse("rho", "a finite price ratio above 0", self.rho, "give rho = teacher/small price")
        if not (math.isfinite(self.cost_small_usd) and self.cost_small_usd >= 0):
            raise _refuse("cost_small_usd", "a finite price from 0", self.cost_small_usd, "give USD per draw")

    @property
    def cost_teacher_usd(self) -> float:
        """USD per teacher draw."""
        return self.rho * self.cost_small_usd

    def usd(self, units: float) -> float:
        """Turn units of one small-tier draw into USD."""
        return units * self.cost_small_usd


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmBudgets:
    """Draws per task that each arm of the seven-arm protocol may spend; 0 leaves an arm out."""

    A0: int = 1
    """One-shot; 0 or 1."""
    A1: int = 5
    """Votes k of the majority arm."""
    A2: int = 5
    """Budget of the greedy blind arm."""
    A2s: int = 5
    """Budget of the stochastic blind arm."""
    A3: int = 5
    """Budget of the feedback arm."""
    A4: int = 1
    """Teacher one-shot; 0 or 1."""
    A5: int = 2
    """Budget of the gated teacher."""
    shared_first: bool = False
    """A0 reads A2's first greedy draw instead of spending its own."""

    def __post_init__(self) -> None:
        """Refuse budgets that are no counts, and a shared draw that nobody makes."""
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "shared_first":
                continue
            top = 1 if field.name in ("A0", "A4") else MAX_ARM_BUDGET
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= top:
                raise _refuse(field.name, f"a whole number of draws from 0 to {top}", value, "fix the budget")
        if self.shared_first and not (self.A0 and self.A2):
            raise _refuse("shared_first", "both A0 and A2 in the protocol", True, "drop shared_first")


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One arm's bill for one task, in units of one small-tier draw."""

    arm: str
    budget: int
    """Draws at most."""
    expected: float
    """Expected bill per task."""
    worst: float
    """Bill of a task that is flagged to the end."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """Bill of a protocol per task and per run."""

    rows: tuple[LedgerRow, ...]
    tasks: int
    """Tasks of the run."""
    small_draws: int
    """Small-tier draws of one task in the worst case."""
    teacher_draws: int
    """Teacher draws of one task in the worst case."""
    expected: float
    """Expected units per task."""
    worst: float
    """Units per task in the worst case."""
    expected_usd: float
    """Expected USD of the run."""
    worst_usd: float
    """USD of the run in the worst case."""


def ledger(p: Parameters, budgets: ArmBudgets, card: RateCard, *, tasks: int) -> Ledger:
    """Price a protocol: every arm's expected and worst-case bill, per task and for the run.

    Expected bills are those of the class-stable general forms, within-task correlation left out (*The
    Verifier's Dividend*, Preregistered Protocol); the worst case spends every budget in full. The rate card's ρ
    counts, not the parameters'.

    Raises
    ------
    InputRefused
        If `tasks` is no count.

    Examples
    --------
    >>> bill = ledger(Parameters.worked(), ArmBudgets(), RateCard(), tasks=40)
    >>> round(bill.expected, 2), bill.worst, bill.small_draws, bill.teacher_draws
    (15.33, 28.5, 21, 3)
    """
    if isinstance(tasks, bool) or not isinstance(tasks, int) or not 1 <= tasks <= 10**9:
        raise _refuse("tasks", "a whole number of tasks from 1", tasks, "give the size of the suite")
    first = 0 if budgets.shared_first else budgets.A0
    rows = [
        LedgerRow("A0", budgets.A0, float(first), float(first)),
        LedgerRow("A1", budgets.A1, float(budgets.A1), float(budgets.A1)),
    ]
    if budgets.A2:
        rows.append(_row("A2", budgets.A2, blind_greedy_general(budgets.A2, p.q0, p.p_d, fpr=p.fpr).bill))
    if budgets.A2s:
        rows.append(_row("A2s", budgets.A2s, blind_general(budgets.A2s, p.q0, p.p_d, fpr=p.fpr).bill))
    if budgets.A3:
        rates = (p.q0, p.p_d, p.sigma, p.s1, p.s2)
        leaks = {"lambda1": p.lambda1, "lambda2": p.lambda2, "fpr": p.fpr, "s_false": p.s_false}
        rows.append(_row("A3", budgets.A3, feedback_general(budgets.A3, *rates, **leaks).bill))
    rows.append(LedgerRow("A4", budgets.A4, card.rho * budgets.A4, card.rho * budgets.A4))
    if budgets.A5:
        gated = teacher_gated_general(budgets.A5, p.q_T, p.p_dT, card.rho, fpr=p.fpr)
        rows.append(_row("A5", budgets.A5, gated.bill, card.rho))
    kept = tuple(row for row in rows if row.budget)
    small = first + budgets.A1 + budgets.A2 + budgets.A2s + budgets.A3
    large = budgets.A4 + budgets.A5
    expected, worst = math.fsum(row.expected for row in kept), small + card.rho * large
    return Ledger(
        rows=kept,
        tasks=tasks,
        small_draws=small,
        teacher_draws=large,
        expected=expected,
        worst=worst,
        expected_usd=card.usd(expected) * tasks,
        worst_usd=card.usd(worst) * tasks,
    )


def _row(arm: str, budget: int, expected: Array, unit: float = 1.0) -> LedgerRow:
    """Make a row whose worst case spends the whole budget."""
    return LedgerRow(arm, budget, float(expected), unit * budget)
