"""Which design does a bill belong to: the arm budgets that reproduce a published pair of bills.

A paper that prints an expected and a worst-case bill per task fixes, at its printed precision, which budgets
its arms can have had. All of them are enumerated; nothing is assumed but the arms.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import product

import numpy as np

from verdiv.errors import Fault, UsageRefused
from verdiv.pricing.closed import blind, feedback
from verdiv.pricing.parameters import Parameters
from verdiv.pricing.ratecard import ArmBudgets, RateCard, ledger

__all__ = ["Design", "DesignSearch", "describe", "find_designs", "printed_figure", "prints_as"]

MAX_BUDGET = 12
"""Largest budget that is enumerated."""

SLACK = Decimal("1e-9")
"""Rounding of floating-point sums, against which ties are still ties."""


@dataclass(frozen=True, slots=True)
class Design:
    """One assignment of budgets and its bill."""

    budgets: ArmBudgets
    expected: float
    """Units of one small draw per task."""
    worst: float
    """Units per task when every budget is spent."""

    @property
    def spread(self) -> int:
        """Difference of the largest and smallest budget of the three gated small arms; 0 is one budget for all."""
        three = (self.budgets.A2, self.budgets.A2s, self.budgets.A3)
        return max(three) - min(three)


@dataclass(frozen=True, slots=True)
class DesignSearch:
    """What the enumeration found."""

    expected: Decimal
    """Published expected bill, at its printed precision; units of one small draw."""
    worst: Decimal
    """Published worst case."""
    both: tuple[Design, ...]
    """Designs that print both figures, the most even budgets first."""
    expected_only: tuple[Design, ...]
    """Designs with one budget for all gated small arms that print the expected bill but not the worst case."""
    worst_only: tuple[Design, ...]
    """Likewise, the worst case but not the expected bill."""
    searched: int
    """Designs priced."""
    reading: tuple[str, ...]
    """What follows, in sentences."""


def printed_figure(text: str) -> Decimal:
    """Read a printed figure; its digits are its precision.

    Raises
    ------
    UsageRefused
        If it is no plain decimal number.
    """
    try:
        value = Decimal(text) if len(text) <= 30 else Decimal("NaN")
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite() or value <= 0 or "e" in text.lower():
        fault = Fault("published bill", "a positive decimal as printed, e.g. 15.33", text, "copy the figure")
        raise UsageRefused("cannot read this published figure", [fault])
    return value


def prints_as(value: float, printed: Decimal) -> bool:
    """Tell whether a value rounds to a printed figure; a tie may have gone either way.

    Examples
    --------
    >>> prints_as(15.333, Decimal("15.33")), prints_as(15.34, Decimal("15.33"))
    (True, False)
    """
    exponent = printed.as_tuple().exponent
    half = Decimal(1).scaleb(exponent if isinstance(exponent, int) else 0) / 2
    return abs(Decimal(repr(value)) - printed) <= half + SLACK


def find_designs(
    p: Parameters,
    expected: str,
    worst: str,
    *,
    votes: tuple[int, ...] = (5,),
    teacher_budgets: tuple[int, ...] = (2,),
    largest: int = 8,
) -> DesignSearch:
    """Enumerate the budgets of the seven arms that reproduce a published pair of bills.

    Parameters
    ----------
    p
        Parameters behind the expected bill; ρ is the rate card's.
    expected, worst
        The figures as printed, in units of one small draw per task.
    votes
        Vote sizes k of A1 to try; odd.
    teacher_budgets
        Budgets of A5 to try.
    largest
        Largest budget of A2, A2s and A3 to try.

    Returns
    -------
    DesignSearch
        Designs for both figures, even designs for one of them, and the reading.

    Raises
    ------
    UsageRefused
        If a figure or a range cannot be read.

    Examples
    --------
    >>> found = find_designs(Parameters.worked(), "15.33", "27.5")
    >>> [(d.budgets.A2, d.budgets.A2s, d.budgets.A3) for d in found.both][:2]
    [(5, 4, 5), (5, 5, 4)]
    """
    targets = printed_figure(expected), printed_figure(worst)
    _check_ranges(votes, teacher_budgets, largest)
    card = RateCard(rho=p.rho)
    budgets = range(1, largest + 1)
    redrawn = [float(x) for x in blind(np.asarray(budgets), p.q0, p.p_d).bill]
    repaired = [float(x) for x in feedback(np.asarray(budgets), p.q0, p.p_d, p.sigma, p.s1, p.s2).bill]
    both: list[Design] = []
    one: list[Design] = []
    other: list[Design] = []
    searched = 0
    for k, b_t, shared in product(votes, teacher_budgets, (False, True)):
        base = ledger(p, ArmBudgets(A1=k, A2=1, A2s=0, A3=0, A5=b_t, shared_first=shared), card, tasks=1)
        for a2, a2s, a3 in product(budgets, budgets, budgets):
            searched += 1
            mean = base.expected + p.p_d * (a2 - 1) + redrawn[a2s - 1] + repaired[a3 - 1]
            most = base.worst + (a2 - 1) + a2s + a3
            hits = prints_as(mean, targets[0]), prints_as(most, targets[1])
            even = a2 == a2s == a3
            if not (all(hits) or (even and any(hits))):
                continue
            arms = ArmBudgets(A1=k, A2=a2, A2s=a2s, A3=a3, A5=b_t, shared_first=shared)
            (both if all(hits) else one if hits[0] else other).append(Design(arms, mean, most))
    both.sort(key=lambda d: (d.budgets.shared_first, d.spread, -d.budgets.A2, d.budgets.A2s))
    return DesignSearch(
        *targets, tuple(both), tuple(one), tuple(other), searched, _reading(targets, both, one, other)
    )


def _check_ranges(votes: tuple[int, ...], teacher_budgets: tuple[int, ...], largest: int) -> None:
    """Refuse ranges that count nothing or would take for ever."""
    faults = []
    if not votes or len(votes) > 20 or any(k < 1 or k % 2 == 0 or k > 1001 for k in votes):
        faults.append(Fault("votes", "odd vote sizes", str(votes), "give odd k, e.g. 3,5,7"))
    if not teacher_budgets or len(teacher_budgets) > 20 or any(not 1 <= b <= 100 for b in teacher_budgets):
        faults.append(Fault("teacher budgets", "budgets from 1 to 100", str(teacher_budgets), "e.g. 1,2,3"))
    if not 1 <= largest <= MAX_BUDGET:
        faults.append(Fault("largest budget", f"1 to {MAX_BUDGET}", str(largest), "search fewer budgets"))
    if faults:
        raise UsageRefused("cannot search these designs", faults)


def describe(budgets: ArmBudgets) -> str:
    """Write budgets in one line.

    Examples
    --------
    >>> describe(ArmBudgets())
    'A0 1, A1 5, A2 5, A2s 5, A3 5, A4 1, A5 2'
    """
    arms = ", ".join(f"{arm} {getattr(budgets, arm)}" for arm in ("A0", "A1", "A2", "A2s", "A3", "A4", "A5"))
    return arms + (", A0 reads A2's first draw" if budgets.shared_first else "")


def _reading(
    targets: tuple[Decimal, Decimal], both: list[Design], one: list[Design], other: list[Design]
) -> tuple[str, ...]:
    """Say what the enumeration means."""
    mean, most = targets
    even = [d for d in both if d.spread == 0]
    said = []
    if not both:
        said.append(f"No design searched prints both {mean} and {most}: the two figures conflict.")
    elif even:
        said.append(f"One budget for all gated small arms prints both figures: {describe(even[0].budgets)}.")
    else:
        said.append(
            f"{len(both)} designs print both figures, but none of them gives A2, A2s and A3 one budget: read as "
            "one budget for all, the two figures conflict."
        )
        large = [d for d in both if d.budgets.A3 >= d.budgets.A1]
        if len(large) < len(both):
            said.append(
                f"A comparison of A3 with A1 at budget k needs A3 ≥ k; that leaves {len(large)} of them"
                + (": " + "; ".join(_gated(d.budgets) for d in large[:4]) if large else "")
                + ("; …" if len(large) > 4 else "")
                + "."
            )
    if not even:
        said += [
            f"With one budget, {describe(d.budgets)} prints the expected bill {mean} but its worst case is "
            f"{d.worst:g}, not {most}."
            for d in one[:3]
        ]
        said += [
            f"With one budget, {describe(d.budgets)} prints the worst case {most} but its expected bill is "
            f"{d.expected:.2f}, not {mean}."
            for d in other[:3]
        ]
    return tuple(said)


def _gated(budgets: ArmBudgets) -> str:
    """Write the three gated small budgets."""
    return f"A2/A2s/A3 = {budgets.A2}/{budgets.A2s}/{budgets.A3}"
