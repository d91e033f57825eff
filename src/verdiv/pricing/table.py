"""The price table: every arm at every budget, and the figures that decide where the money goes.

One engine serves a point and posterior draws: rates are arrays, and every figure is an array of their shape.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from verdiv.errors import Fault, UsageRefused
from verdiv.pricing.breakeven import first_repair_dividend, log_branch
from verdiv.pricing.closed import (
    Price,
    ceiling_blind,
    ceiling_oracle,
    ceiling_static,
    crossover_blind,
    escalate,
    majority,
    one_shot,
    teacher,
)
from verdiv.pricing.correlated import blind_exchangeable, majority_correlated
from verdiv.pricing.forms import BreakEven, Form, Hazards, feedback_prices, solve
from verdiv.pricing.general import (
    blind_general,
    blind_greedy_general,
    feedback_general,
    teacher_gated_general,
)
from verdiv.pricing.measures import known_wrong, loaded_bill, unanimous_wrong
from verdiv.pricing.rates import Rates
from verdiv.pricing.series import Array, as_array, mass_times

__all__ = ["ARMS", "MAX_TABLE_BUDGET", "Crossover", "PriceRow", "PriceTable", "Summary", "price_table"]

ARMS = ("A0", "A1", "A2", "A2s", "A3", "A4", "A5", "blended")
"""Arms in the order of the table."""

MAX_TABLE_BUDGET = 1000
"""Largest budget that a table lists."""


@dataclass(frozen=True, slots=True)
class PriceRow:
    """One arm at one budget; arrays of the rates' shape."""

    arm: str
    budget: float
    """Draws at most; ``inf`` for the limit."""
    quality: Array
    bill: Array
    """Expected units of one small draw."""
    loaded: Array
    """Bill under load H; the bill itself where the arm does not burst."""
    residual: Array
    """P(flagged at the end); for ``blended`` the escalated share."""
    known_wrong: Array
    """Wrong answers emitted with a flag."""
    silent_wrong: Array
    """Wrong answers emitted without one; for A1 the wrong consensus if wrong draws agree."""
    per_unit: Array
    """(Q − q0)/bill."""


@dataclass(frozen=True, slots=True)
class Crossover:
    """From which detectable mass retries beat a vote of k."""

    k: int
    majority: Array
    """Q_k of A1."""
    feedback: Array
    """p_d from which A3 at budget k matches it; ``inf`` if none does."""
    blind: Array
    """p_d from which unlimited blind retry matches it."""
    unanimous_wrong: Array
    """(1 − q0)^k, independent draws."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Figures of the whole frontier; arrays of the rates' shape."""

    edge: Array
    """D = q_T − q0."""
    dividend: Array
    """D_c as printed, p_d(σ + (1 − σ)φ)."""
    dividend_s1: Array
    """D_c with s1 in place of 1."""
    structural_mass: Array
    """p_d σ."""
    ceiling_static: Array
    """1 − p_s."""
    ceiling_blind: Array
    """1 − p_s/(1 − p_d)."""
    ceiling_oracle: Array
    """1 − (1 − η)p_s."""
    ceiling_form: Array
    """Quality of A3 in the limit, in the form used."""
    log_branch: Array
    """Break-even by the logarithm, s1 = 1."""
    gate_budget: npt.NDArray[np.int64]
    """Smallest budget of A3 that passes the deployment gate; 0 none."""
    break_even: BreakEven
    crossovers: tuple[Crossover, ...]


@dataclass(frozen=True, slots=True)
class PriceTable:
    """Everything that `verdiv price` shows."""

    form: Form
    rows: tuple[PriceRow, ...]
    summary: Summary

    def row(self, arm: str, budget: float) -> PriceRow:
        """Find one row.

        Raises
        ------
        KeyError
            If the table has no such row.
        """
        for row in self.rows:
            if (row.arm, row.budget) == (arm, budget):
                return row
        raise KeyError((arm, budget))


def price_table(
    r: Rates,
    *,
    form: Form,
    b_max: int = 5,
    votes: int = 5,
    gate: float = 0.85,
    hazards: Hazards | None = None,
    sampled: Rates | None = None,
) -> PriceTable:
    """Price every arm at every budget up to `b_max`, A1 up to `votes`, and solve for break-even.

    Parameters
    ----------
    r
        One point or posterior draws.
    form
        How A3 is priced; see :data:`verdiv.pricing.forms.FORMS`. The correlated form also prices A1 and A2s
        with the within-task correlation of initial draws.
    b_max, votes
        Largest budget and largest odd vote listed.
    gate
        Quality that a deployed policy must reach.
    hazards
        Measured hazards, for the hazards form.
    sampled
        Rates at a temperature, for A1 and A2s, where `r` holds those of greedy decoding; `r` if absent.

    Raises
    ------
    UsageRefused
        If a budget is out of range.

    Examples
    --------
    >>> from verdiv.pricing.forms import FORMS
    >>> from verdiv.pricing.parameters import Parameters
    >>> table = price_table(Rates.of(Parameters.worked()), form=FORMS["class-stable"])
    >>> round(float(table.row("blended", 2).quality), 4), int(table.summary.break_even.b_star)
    (0.9788, 2)
    """
    for name, value in (("budget", b_max), ("vote", votes)):
        if not 1 <= value <= MAX_TABLE_BUDGET:
            fault = Fault(name, f"1 to {MAX_TABLE_BUDGET} draws", str(value), f"give a smaller {name}")
            raise UsageRefused("cannot tabulate this many draws", [fault])
    budgets = [float(b) for b in range(1, b_max + 1)]
    repaired = feedback_prices(form, r, b_max, hazards)
    rows: list[PriceRow] = []
    correlated = "icc_q" in form.heeds
    warm = r if sampled is None else sampled

    def add(arm: str, budget: float, price: Price, loaded: Array | None = None) -> None:
        rows.append(_row(r, arm, budget, price, loaded))

    add("A0", 1, one_shot(r.q0))
    for k in range(1, votes + 1, 2):
        add("A1", k, _vote(warm, k, correlated))
    for b in budgets:
        price = blind_greedy_general(b, r.q0, r.p_d, fpr=r.fpr)
        add("A2", b, price, loaded_bill(price.bill, r.H))
    for b in (*budgets, math.inf):
        if not (correlated and math.isinf(b)):
            price = _redrawn(warm, b, correlated)
            add("A2s", b, price, loaded_bill(price.bill, r.H))
    small = [(b, _at(repaired, i)) for i, b in enumerate(budgets)]
    if form.name == "class-stable" and not np.any(r.fpr != 0):
        rates = (r.q0, r.p_d, r.sigma, r.s1, r.s2)
        limit = feedback_general(math.inf, *rates, lambda1=r.lambda1, lambda2=r.lambda2)
        small.append((math.inf, limit))
    for b, price in small:
        add("A3", b, price, loaded_bill(price.bill, r.H))
    add("A4", 1, teacher(r.q_T, r.rho))
    for b in (*budgets, math.inf):
        add("A5", b, teacher_gated_general(b, r.q_T, r.p_dT, r.rho, fpr=r.fpr))
    for b, price in small:
        mixed = escalate(price, r.q_T, r.rho)
        add("blended", b, mixed, loaded_bill(price.bill, r.H) + mass_times(price.residual, r.rho))
    crossovers = tuple(_crossovers(r, warm, form, votes, hazards, correlated))
    return PriceTable(form, tuple(rows), _summary(r, form, repaired, b_max, gate, hazards, crossovers))


def _vote(r: Rates, k: int, correlated: bool) -> Price:
    """Price A1, with within-task correlation where the form has it."""
    return majority_correlated(k, r.q0, r.icc_q) if correlated else majority(k, r.q0)


def _redrawn(r: Rates, budget: float, correlated: bool) -> Price:
    """Price A2s, with within-task correlation where the form has it."""
    if not correlated:
        return blind_general(budget, r.q0, r.p_d, fpr=r.fpr)
    one = np.ones(1)
    return blind_exchangeable(budget, one, r.q0[..., None], r.icc_q[..., None], r.delta[..., None])


def _at(price: Price, index: int) -> Price:
    """Take one budget of a price over budgets."""
    return Price(
        price.quality[..., index],
        price.bill[..., index],
        price.residual[..., index],
        price.residual_correct[..., index],
    )


def _row(r: Rates, arm: str, budget: float, price: Price, loaded: Array | None) -> PriceRow:
    """Make a row, every field in the rates' shape."""
    flagged = np.zeros(()) if arm == "blended" else known_wrong(price)
    fields = (
        price.quality,
        price.bill,
        price.bill if loaded is None else loaded,
        price.residual,
        flagged,
        np.maximum(1.0 - price.quality - flagged, 0.0),
        (price.quality - r.q0) / price.bill,
    )
    return PriceRow(arm, budget, *(np.broadcast_to(as_array(f), r.shape) for f in fields))


def _crossovers(
    r: Rates, warm: Rates, form: Form, votes: int, hazards: Hazards | None, correlated: bool
) -> Iterator[Crossover]:
    """Work out from which detectable mass retries beat each vote."""
    for k in range(3, votes + 1, 2):
        vote = _vote(warm, k, correlated).quality
        figures = (
            vote,
            _crossover(form, r, vote, k, hazards),
            _blind_crossover(warm, vote, k, correlated),
            unanimous_wrong(k, warm.q0),
        )
        yield Crossover(k, *(np.broadcast_to(x, r.shape) for x in figures))


def _summary(
    r: Rates,
    form: Form,
    repaired: Price,
    b_max: int,
    gate: float,
    hazards: Hazards | None,
    crossovers: tuple[Crossover, ...],
) -> Summary:
    """Work out the figures of the whole frontier."""
    passes = repaired.quality >= gate
    gate_budget = np.where(passes.any(axis=-1), passes.argmax(axis=-1) + 1, 0)
    return Summary(
        edge=r.edge,
        dividend=first_repair_dividend(r.p_d, r.sigma, r.phi),
        dividend_s1=first_repair_dividend(r.p_d, r.sigma, r.phi, r.s1),
        structural_mass=np.asarray(r.p_d * r.sigma),
        ceiling_static=ceiling_static(r.q0, r.p_d),
        ceiling_blind=ceiling_blind(r.q0, r.p_d),
        ceiling_oracle=ceiling_oracle(r.q0, r.p_d, r.eta_ox),
        ceiling_form=form.limit(r, hazards),
        log_branch=log_branch(r.p_d, r.sigma, r.s2, r.edge),
        gate_budget=np.asarray(gate_budget, dtype=np.int64),
        break_even=solve(form, r, max(b_max, 2), hazards),
        crossovers=crossovers,
    )


def _crossover(form: Form, r: Rates, vote: Array, k: int, hazards: Hazards | None) -> Array:
    """Solve Q_k of A3 = Q_k of A1 for p_d: in every form A3 gains in proportion to p_d."""
    all_flagged, none = (replace(r, p_d=as_array(x)) for x in (1.0, 0.0))
    base = feedback_prices(form, none, k, hazards).quality[..., -1]
    price = feedback_prices(form, all_flagged, k, hazards).quality[..., -1]
    won, gain = np.broadcast_arrays(price - base, vote - base)
    never = np.where(gain > 0, np.inf, np.where(gain < 0, -np.inf, 0.0))
    return np.asarray(np.where(won == 0, never, gain / np.where(won == 0, 1.0, won)))


def _blind_crossover(r: Rates, vote: Array, k: int, correlated: bool) -> Array:
    """Solve the blind limit q0(1 − f)/(1 − p_d − q0 f) = Q_k for p_d; f = 0 is the printed crossover.

    With correlated draws the limit is another one, so there is no figure.
    """
    if correlated:
        return np.full(r.shape, np.nan)
    if not np.any(r.fpr != 0):
        return crossover_blind(k, r.q0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(1.0 - r.q0 * (1.0 - r.fpr) / vote - r.q0 * r.fpr)
