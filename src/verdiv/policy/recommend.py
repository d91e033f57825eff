"""Which policy to deploy, how likely that choice is right, and what it is worth to measure more first.

Every candidate (arm, budget, escalation rule) has a quality and a bill in every posterior draw. The choice is the
cheapest in expectation whose expected quality reaches a floor, or the best in expectation whose expected bill stays
within a budget. The value of information is the expected saving (or gain) of one who may choose after the draw is
known, at the same expected floor (or budget).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from verdiv.errors import Fault, UsageRefused
from verdiv.policy.gate import Certificate, certify_draws
from verdiv.pricing.closed import escalate
from verdiv.pricing.forms import Form, Hazards, feedback_prices
from verdiv.pricing.general import teacher_gated_general
from verdiv.pricing.measures import loaded_bill
from verdiv.pricing.rates import Rates
from verdiv.pricing.series import Array, mass_times
from verdiv.pricing.table import price_table

__all__ = ["Candidate", "Goal", "Information", "Recommendation", "candidates", "recommend"]

TIE = 1e-12
"""Differences up to here are ties."""

BINS = 16
"""Quantile bins of a parameter that is taken to be learnt."""

STEPS = 80
"""Halvings of the interval that holds the price of the constraint."""


class Goal(StrEnum):
    """What is to be reached."""

    COST = "cost"
    """Least expected bill at a quality floor."""
    QUALITY = "quality"
    """Greatest expected quality at a budget."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One policy that could be deployed."""

    arm: str
    """A0, A1, A2s, A3, A4, A5 or blended."""
    budget: int
    """Draws of the arm's own tier at most; votes for A1."""
    teacher_budget: int
    """Draws of the teacher for the residual at most; 0 where nothing is escalated."""
    quality: Array
    """Per posterior draw, shape ``(draws,)``."""
    bill: Array
    """Units of one small draw per task, under load; same shape."""

    @property
    def label(self) -> str:
        """Name in words."""
        if self.arm in ("A0", "A4"):
            return self.arm
        if self.arm == "A1":
            return f"A1 k={self.budget}"
        if self.arm == "blended":
            gated = "" if self.teacher_budget == 1 else f" (gated, B={self.teacher_budget})"
            return f"A3 B={self.budget}, then teacher{gated}"
        return f"{self.arm} B={self.budget}"


@dataclass(frozen=True, slots=True)
class Information:
    """What it is worth per task to learn something before choosing.

    In units of one small draw where the goal is cost, in quality where it is quality.
    """

    perfect: float
    """Expected value of perfect information: all rates known."""
    break_even: float
    """Expected value of knowing the break-even budget B* alone."""
    parameters: Mapping[str, float]
    """Expected value of knowing one rate alone, for each rate that is uncertain."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to deploy."""

    goal: Goal
    target: float
    """The floor in quality, or the budget in units."""
    assurance: float | None
    """Probability of meeting the target that was asked for beside the expectation; None for none."""
    choice: Candidate | None
    """The policy; None where no candidate meets the target."""
    best_effort: Candidate
    """The candidate that comes nearest to the target: greatest quality, or least bill."""
    right: float
    """P(the choice is the optimum), posterior draws in which nothing meets the target counted as wrong."""
    meets: float
    """P(the choice meets the target)."""
    optimum: Mapping[str, float]
    """P(a candidate is the optimum), by label, likeliest first; ``none``: nothing meets the target."""
    b_star: Mapping[str, float]
    """P(B*), by budget or ``none``."""
    certificate: Certificate | None
    """The choice at the deployment gate; None without a choice."""
    information: Information | None
    """None without a choice."""
    candidates: tuple[Candidate, ...]
    """All that were compared."""


def candidates(
    r: Rates,
    form: Form,
    *,
    b_max: int = 5,
    votes: int = 5,
    teacher_max: int = 2,
    hazards: Hazards | None = None,
    sampled: Rates | None = None,
) -> tuple[Candidate, ...]:
    """Price all policies worth deploying.

    A0, A1 with odd votes from 3, A2s and A3 and A5 from two draws, A4, and A3 followed by up to `teacher_max`
    teacher draws for the residual. A2 is left out: it is A0 at a higher bill.

    Parameters
    ----------
    r
        One point, or posterior draws on one axis.
    form, hazards
        How A3 is priced; see :func:`verdiv.pricing.forms.choose_form`.
    b_max, votes, teacher_max
        Largest budgets; 0 for `teacher_max` rules the teacher out altogether.
    sampled
        Rates of sampled decoding, for A1 and A2s.

    Returns
    -------
    tuple of Candidate
        In the order of the price table.
    """
    shape = r.shape or (1,)

    def made(arm: str, budget: float, teacher: int, quality: Array, bill: Array) -> Candidate:
        both = (np.broadcast_to(x, shape).astype(np.float64).ravel() for x in (quality, bill))
        return Candidate(arm, int(budget), teacher, *both)

    table = price_table(r, form=form, b_max=b_max, votes=votes, hazards=hazards, sampled=sampled)
    least = {"A0": 1, "A1": 3, "A2s": 2, "A3": 2, "A4": 1, "A5": 2}
    most = {"A4": min(teacher_max, 1), "A5": teacher_max}
    found = [
        made(row.arm, row.budget, 0, row.quality, row.loaded)
        for row in table.rows
        if row.budget < np.inf and least.get(row.arm, np.inf) <= row.budget <= most.get(row.arm, np.inf)
    ]
    price = feedback_prices(form, r, b_max, hazards)
    for teacher in range(1, teacher_max + 1):
        gated = teacher_gated_general(teacher, r.q_T, r.p_dT, r.rho, fpr=r.fpr)
        for at in range(b_max):
            small = type(price)(
                *(
                    getattr(price, name)[..., at]
                    for name in ("quality", "bill", "residual", "residual_correct")
                )
            )
            mixed = escalate(small, gated.quality, gated.bill)
            bill = loaded_bill(small.bill, r.H) + mass_times(small.residual, gated.bill)
            found.append(made("blended", at + 1, teacher, mixed.quality, bill))
    return tuple(found)


def recommend(
    found: Sequence[Candidate],
    goal: Goal,
    target: float,
    *,
    b_star: npt.ArrayLike,
    assurance: float | None = None,
    gate: float = 0.85,
    parameters: Mapping[str, Array] | None = None,
    seed: int = 1,
) -> Recommendation:
    r"""Choose a policy.

    With quality Q_a and bill C_a of candidate a over the posterior, the choice for the goal *cost* is

    .. math:: a^* = \arg\min_a E[C_a] \quad\text{subject to}\quad E[Q_a] \ge q_{floor}

    and for *quality* the greatest E[Q_a] with E[C_a] at most the budget; equals go to the better in the other. The
    value of knowing X first is V(nothing) − V(X), where V is the optimum over choices that may depend on X, mixed
    where the constraint binds:

    .. math:: V(X) = \max_{\lambda \ge 0}\ \lambda q_{floor} + E_X \min_a E[C_a - \lambda Q_a \mid X]

    (linear-programming dual; both sides may mix, so information that says nothing is worth exactly 0). Perfect
    information is X = all rates.

    Parameters
    ----------
    found
        Candidates, of one number of draws.
    goal, target
        What is to be reached.
    b_star
        B* of each draw, 0 for none (:func:`verdiv.pricing.forms.solve`).
    assurance
        Also require P(target met) of at least this much.
    gate
        Deployment gate that the choice is judged by.
    parameters
        Draws of the rates, to tell which one is worth measuring.
    seed
        Of the permutations that what binning alone seems to gain is measured by, and then taken off.

    Raises
    ------
    UsageRefused
        No candidates, or a target that is none.

    Examples
    --------
    >>> from verdiv.pricing.forms import FORMS, solve
    >>> from verdiv.pricing.parameters import Parameters
    >>> form, r = FORMS["class-stable"], Rates.of(Parameters.worked())
    >>> advice = recommend(candidates(r, form), Goal.COST, 0.97, b_star=solve(form, r, 5).b_star)
    >>> advice.choice.label, round(float(advice.choice.bill[0]), 4)
    ('A3 B=3', 1.1919)
    """
    if not found or not np.isfinite(target):
        fault = Fault(
            "recommendation", "candidates and a finite target", f"{len(found)}, {target}", "give both"
        )
        raise UsageRefused("there is nothing to choose from", [fault])
    quality, bill = (np.stack([getattr(c, name) for c in found]) for name in ("quality", "bill"))
    if goal is Goal.COST:
        aim, held, bound = bill, quality, target
    else:
        aim, held, bound = -quality, -bill, -target
    mean_aim, mean_held = aim.mean(axis=1), held.mean(axis=1)
    meets = (held >= bound - TIE).mean(axis=1)
    allowed = mean_held >= bound - TIE
    if assurance is not None:
        allowed &= meets >= assurance
    at = _best(mean_aim, mean_held, allowed)
    shares, right = _optima(found, aim, held, bound, at)
    stars = np.broadcast_to(np.ravel(np.asarray(b_star, dtype=np.int64)), aim.shape[1:])
    choice = None if at is None else found[at]
    return Recommendation(
        goal=goal,
        target=target,
        assurance=assurance,
        choice=choice,
        best_effort=found[int(np.argmax(mean_held))],
        right=right,
        meets=0.0 if at is None else float(meets[at]),
        optimum=shares,
        b_star={
            ("none" if b <= 0 else str(b)): float((stars == b).mean()) for b in np.unique(stars).tolist()
        },
        certificate=None if choice is None else certify_draws(choice.quality, gate=gate),
        information=None
        if not mean_held.max() >= bound - TIE
        else _information(aim, held, bound, stars, parameters or {}, seed),
        candidates=tuple(found),
    )


def _best(aim: Array, held: Array, allowed: npt.NDArray[np.bool_]) -> int | None:
    """Find the least aim among the allowed, equals by the greater held."""
    if not allowed.any():
        return None
    least = aim[allowed].min()
    level = allowed & (aim <= least + TIE)
    return int(np.argmax(np.where(level, held, -np.inf)))


def _optima(
    found: Sequence[Candidate], aim: Array, held: Array, bound: float, at: int | None
) -> tuple[dict[str, float], float]:
    """Share of draws in which each candidate is the optimum, and in which the choice is (ties count)."""
    open_aim = np.where(held >= bound - TIE, aim, np.inf)
    least = open_aim.min(axis=0)
    level = (open_aim <= least + TIE) & np.isfinite(least)
    winner = np.where(level, held, -np.inf).argmax(axis=0)
    possible = np.isfinite(least)
    counts = np.bincount(winner[possible], minlength=len(found)) / len(least)
    shares = {found[i].label: float(counts[i]) for i in np.argsort(-counts, kind="stable") if counts[i] > 0}
    if not possible.all():
        shares["none"] = float(1.0 - possible.mean())
    return shares, 0.0 if at is None else float(level[at].mean())


def _information(
    aim: Array,
    held: Array,
    bound: float,
    stars: npt.NDArray[np.int64],
    parameters: Mapping[str, Array],
    seed: int,
) -> Information:
    """Work out what it is worth to learn everything, B* alone, or one rate alone."""
    size = aim.shape[1]
    nothing = _value(aim, held, bound, np.zeros(size, dtype=np.int64))
    rng = np.random.default_rng(seed)
    order = rng.permutation(size)
    learnt = {}
    for name, draws in parameters.items():
        values = np.broadcast_to(np.ravel(draws), (size,))
        if np.ptp(values) > TIE:
            ranks = np.argsort(np.argsort(values, kind="stable"), kind="stable")
            bins = ranks * min(BINS, size) // size
            gain = nothing - _value(aim, held, bound, bins)
            chance = nothing - _value(aim, held, bound, bins[order])
            learnt[name] = max(gain - chance, 0.0)
    return Information(
        perfect=max(nothing - _value(aim, held, bound, np.arange(size)), 0.0),
        break_even=max(nothing - _value(aim, held, bound, stars), 0.0),
        parameters=dict(sorted(learnt.items(), key=lambda item: -item[1])),
    )


def _value(aim: Array, held: Array, bound: float, groups: npt.NDArray[np.int64]) -> float:
    """Least expected aim, held ≥ bound in expectation, of choices that may depend on the group of the draw."""
    _, index, counts = np.unique(groups, return_inverse=True, return_counts=True)
    share = counts / counts.sum()

    def by_group(values: Array) -> Array:
        sums = np.stack([np.bincount(index, weights=row, minlength=len(counts)) for row in values])
        return np.asarray(sums / counts)

    x, y = by_group(aim), by_group(held)
    columns = np.arange(len(counts))

    def at(price: float) -> tuple[float, float]:
        """Value of the dual, and its slope."""
        score = x - price * y
        pick = score.argmin(axis=0)
        slope = bound - float(share @ y[pick, columns])
        return price * bound + float(share @ score[pick, columns]), slope

    low, high = 0.0, 1.0
    best, slope = at(low)
    if slope <= 0:
        return best
    while at(high)[1] > 0 and high < 1e12:
        low, high = high, high * 4.0
    for _ in range(STEPS):
        middle = (low + high) / 2.0
        value, slope = at(middle)
        best = max(best, value)
        low, high = (middle, high) if slope > 0 else (low, middle)
    return best
