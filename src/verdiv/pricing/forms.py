"""Which form prices the feedback arm: class-stable, fresh, correlated within tasks, or measured hazards.

The class-stable form is the paper's; the others are its sensitivity analyses. A form says which parameters it
heeds, so that a parameter which would be ignored is an error and not a silent zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from verdiv.errors import Fault, UsageRefused
from verdiv.pricing.breakeven import TIE, first_repair_dividend, regime_codes
from verdiv.pricing.closed import Price
from verdiv.pricing.measures import loaded_bill
from verdiv.pricing.rates import Rates
from verdiv.pricing.series import Array, as_array
from verdiv.pricing.steps import Step, correlated_steps, fresh_steps, hazard_steps, repair_steps

__all__ = ["FORMS", "NEUTRAL", "BreakEven", "Form", "Hazards", "choose_form", "feedback_prices", "solve"]

LIMIT_STEPS = 4096
"""Draws after which a limit without a closed form is read."""

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Hazards:
    """Measured repair success by attempt, first repair first; the last one holds from there on."""

    structural: Array
    semantic: Array

    def __post_init__(self) -> None:
        """Refuse empty tables and what is no probability."""
        for name in ("structural", "semantic"):
            table = getattr(self, name)
            if table.ndim < 1 or table.shape[-1] == 0 or not np.all((table >= 0) & (table <= 1)):
                fault = Fault(
                    where=f"{name} hazards",
                    expected="one or more probabilities, first repair first",
                    got=str(table.tolist()),
                    remedy="give the measured share of flagged repairs that came out right, by attempt",
                )
                raise UsageRefused("cannot price with these hazards", [fault])


@dataclass(frozen=True, slots=True)
class Form:
    """One way to price A3."""

    name: str
    """Name on the command line."""
    title: str
    """What it assumes, for the reader."""
    heeds: frozenset[str]
    """Optional parameters that it uses; others must be at their neutral value."""
    steps: Callable[[Rates, Hazards | None], Iterator[Step]]
    """Prices at budget 1, 2, 3, …"""
    limit: Callable[[Rates, Hazards | None], Array]
    """Quality in the limit of the budget."""


@dataclass(frozen=True, slots=True)
class BreakEven:
    """Where A3 meets the teacher, per parameter point."""

    b_star: IntArray
    """Smallest budget with the teacher's quality at no more than its bill; 0 none, −1 impossible point."""
    b_quality: IntArray
    """Smallest budget with the teacher's quality, whatever it costs; coded likewise."""
    quality: Array
    """A3's quality at B*, NaN where there is none."""
    bill: Array
    """A3's bill under load at B*, NaN where there is none."""
    regime: npt.NDArray[np.int8]
    """Index into :data:`verdiv.pricing.breakeven.REGIMES`, −1 at impossible points."""


def _stable_limit(r: Rates, _: Hazards | None) -> Array:
    """Solve the absorbing chain of `repair_steps`: P(the chain ends on a correct draw)."""
    f, k = r.fpr, r.s_false
    reach = []
    for s, lam in ((r.s1, r.lambda1), (r.s2, r.lambda2)):
        # x = s(1−f) + s f y + (1−s)(1−λ) x and y = k(1−f) + k f y + (1−k)(1−λ) x, solved for x.
        stay = s + lam * (1.0 - s)
        det = np.asarray(stay * (1.0 - k * f) - s * f * (1.0 - k) * (1.0 - lam))
        reach.append(np.asarray(np.where(det > 0, s * (1.0 - f) / np.where(det > 0, det, 1.0), 0.0)))
    share = (r.sigma, 1.0 - r.sigma)
    wins = share[0] * reach[0] + share[1] * reach[1]
    back = share[0] * (1.0 - r.lambda1) * reach[0] + share[1] * (1.0 - r.lambda2) * reach[1]
    leave = np.asarray(1.0 - k * f)
    z = np.where(leave > 0, (k * (1.0 - f) + (1.0 - k) * back) / np.where(leave > 0, leave, 1.0), 1.0)
    return np.asarray(r.q0 * (1.0 - f) + r.p_d * wins + r.q0 * f * z)


def _fresh_limit(r: Rates, _: Hazards | None) -> Array:
    """Sum the geometric series of the fresh form."""
    w = r.sigma
    success = w * r.s1 + (1.0 - w) * r.s2
    stop = success + w * (1.0 - r.s1) * r.lambda1 + (1.0 - w) * (1.0 - r.s2) * r.lambda2
    won = np.where(stop > 0, success / np.where(stop > 0, stop, 1.0), 0.0)
    return np.asarray(r.q0 + r.p_d * won)


def _correlated_limit(r: Rates, h: Hazards | None) -> Array:
    """Take every task whose repair can succeed; with silent repairs, follow the chain to its end."""
    if not (np.any(r.lambda1 != 0) or np.any(r.lambda2 != 0)):
        one = np.where(r.icc_s1 < 1, 1.0 * (r.s1 > 0), r.s1)
        two = np.where(r.icc_s2 < 1, 1.0 * (r.s2 > 0), r.s2)
        return np.asarray(r.q0 + r.p_d * (r.sigma * one + (1.0 - r.sigma) * two))
    quality = r.q0
    for step in islice(_correlated(r, h), 1, LIMIT_STEPS):
        moved = float(np.nanmax(step.quality - quality, initial=0.0))
        quality = step.quality
        if moved < TIE:
            break
    return np.asarray(quality)


def _hazard_limit(r: Rates, h: Hazards | None) -> Array:
    """Follow the table to its end, then sum the constant tail."""
    tables = _tables(h)
    longest = max(t.shape[-1] for t in tables)
    quality: Array = r.q0
    for c, (part, lam) in enumerate(((r.sigma, r.lambda1), (1.0 - r.sigma, r.lambda2))):
        wrong = r.p_d * part
        for j in range(longest):
            rate = tables[c][..., min(j, tables[c].shape[-1] - 1)]
            quality = quality + rate * wrong
            wrong = wrong * (1.0 - rate) * (1.0 - lam)
        stop = rate + lam * (1.0 - rate)
        quality = quality + wrong * np.where(stop > 0, rate / np.where(stop > 0, stop, 1.0), 0.0)
    return np.asarray(quality)


def _tables(h: Hazards | None) -> tuple[Array, Array]:
    """Give the hazard tables, refusing their absence."""
    if h is None:
        fault = Fault("hazards", "a table for each error class", "none", "give --hazard1 and --hazard2")
        raise UsageRefused("the hazards form needs measured hazards", [fault])
    return h.structural, h.semantic


def _stable(r: Rates, _: Hazards | None) -> Iterator[Step]:
    return repair_steps(r.q0, r.p_d, r.sigma, (r.s1, r.s2), (r.lambda1, r.lambda2), r.fpr, r.s_false)


def _fresh(r: Rates, _: Hazards | None) -> Iterator[Step]:
    return fresh_steps(r.q0, r.p_d, r.sigma, (r.s1, r.s2), (r.lambda1, r.lambda2))


def _correlated(r: Rates, _: Hazards | None) -> Iterator[Step]:
    icc = (r.icc_s1, r.icc_s2)
    return correlated_steps(r.q0, r.p_d, r.sigma, (r.s1, r.s2), (r.lambda1, r.lambda2), icc)


def _hazards(r: Rates, h: Hazards | None) -> Iterator[Step]:
    return hazard_steps(r.q0, r.p_d, r.sigma, _tables(h), (r.lambda1, r.lambda2))


_SILENT = frozenset({"lambda1", "lambda2"})

FORMS: Mapping[str, Form] = {
    form.name: form
    for form in (
        Form(
            "class-stable",
            "each task keeps its error class, repairs are independent (theorem T1)",
            _SILENT | {"fpr", "s_false"},
            _stable,
            _stable_limit,
        ),
        Form(
            "fresh",
            "each failed repair draws its error class anew (lies above class-stable from B = 3)",
            _SILENT,
            _fresh,
            _fresh_limit,
        ),
        Form(
            "correlated",
            "draws and repairs of one task share the task's own success (Beta moments)",
            _SILENT | {"icc_q", "icc_s1", "icc_s2"},
            _correlated,
            _correlated_limit,
        ),
        Form(
            "hazards",
            "repair success as measured, attempt by attempt",
            _SILENT | {"hazards"},
            _hazards,
            _hazard_limit,
        ),
    )
}
"""The forms by name."""

NEUTRAL = {
    "lambda1": 0.0,
    "lambda2": 0.0,
    "fpr": 0.0,
    "s_false": 1.0,
    "icc_q": 0.0,
    "icc_s1": 0.0,
    "icc_s2": 0.0,
}
"""Optional parameters and the values at which they change nothing."""


def choose_form(name: str | None, r: Rates, hazards: Hazards | None = None) -> Form:
    """Pick the form asked for, or the one that the parameters call for, and refuse to ignore a parameter.

    Parameters
    ----------
    name
        A key of `FORMS`; None picks hazards where there are any, correlated where a correlation is not 0, and
        class-stable otherwise.
    r
        The rates.
    hazards
        Measured hazards.

    Raises
    ------
    UsageRefused
        If the form is unknown, or a parameter away from its neutral value has no place in it.
    """
    used = {key for key, neutral in NEUTRAL.items() if np.any(getattr(r, key) != neutral)}
    if hazards is not None:
        used.add("hazards")
    if name is None:
        correlated = any(key.startswith("icc") for key in used)
        name = "hazards" if hazards is not None else "correlated" if correlated else "class-stable"
    if name not in FORMS:
        fault = Fault("form", f"one of {', '.join(FORMS)}", name, "check the spelling")
        raise UsageRefused("there is no such form", [fault])
    form = FORMS[name]
    if name == "hazards":
        _tables(hazards)
    if ignored := sorted(used - form.heeds - ({"s_false"} if "fpr" not in used else set())):
        faults = [
            Fault(
                "parameters", f"its neutral value in the {name} form", "another", "use another form", field=n
            )
            for n in ignored
        ]
        raise UsageRefused(f"the {name} form would ignore a parameter", faults)
    return form


def feedback_prices(form: Form, r: Rates, b_max: int, hazards: Hazards | None = None) -> Price:
    """Price A3 at budgets 1 … b_max, on a new last axis."""
    steps = list(islice(form.steps(r, hazards), b_max))
    fields = ("quality", "bill", "residual", "residual_correct")
    stacked = [
        np.stack(np.broadcast_arrays(*(getattr(s, f) for s in steps), np.empty(r.shape))[:-1], axis=-1)
        for f in fields
    ]
    return Price.of(*stacked)


def solve(form: Form, r: Rates, b_max: int, hazards: Hazards | None = None) -> BreakEven:
    """Find B*, B_q and the regime at every point, budget by budget.

    B* = min{B ≤ b_max : Q_B ≥ q_T and E_B(1 + H(E_B − 1)) ≤ ρ}; ties within 1e-12 count. In regime (iii) both are
    "none" also where rounding would let a saturated frontier touch its ceiling.

    Parameters
    ----------
    form, r, hazards
        The form, the rates of all points, measured hazards if any.
    b_max
        Largest budget that is searched.

    Examples
    --------
    >>> from verdiv.pricing.parameters import Parameters
    >>> found = solve(FORMS["class-stable"], Rates.of(Parameters.worked(), D=[0.1, 0.17, 0.18]), 8)
    >>> found.b_star.tolist(), found.regime.tolist()
    ([2, 3, 0], [1, 2, 3])
    """
    shape = r.shape
    target, loaded = r.q_T - TIE, bool(np.any(r.H != 0))
    b_star, b_quality = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    quality, bill = np.full(shape, np.nan), np.full(shape, np.nan)
    first, best = as_array(0.0), r.q0
    for budget, step in enumerate(islice(form.steps(r, hazards), b_max), start=1):
        best = np.maximum(best, step.quality)
        if budget == 2:
            first = step.quality - r.q0
        meets = np.broadcast_to(step.quality >= target, shape)
        b_quality[meets & (b_quality == 0)] = budget
        price = loaded_bill(step.bill, r.H) if loaded else step.bill
        now = meets & (price <= r.rho + TIE) & (b_star == 0)
        b_star[now] = budget
        np.copyto(quality, step.quality, where=now)
        np.copyto(bill, price, where=now)
    if b_max < 2:
        first = next(islice(form.steps(r, hazards), 1, None)).quality - r.q0
    top = np.maximum(form.limit(r, hazards), best) - r.q0
    paid = first_repair_dividend(r.p_d, r.sigma, r.phi)
    codes = np.broadcast_to(regime_codes(r.edge, first, top, paid), shape).copy()
    beyond, known = codes == 3, r.possible()
    for found in (b_star, b_quality):
        found[beyond] = 0
        found[~known] = -1
    codes[~known] = -1
    none = b_star <= 0
    quality[none] = bill[none] = np.nan
    return BreakEven(b_star, b_quality, quality, bill, codes)
