"""Where the gated small tier breaks even with the teacher: B*, the first repair dividend, the regimes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from verdiv.pricing.closed import recovery
from verdiv.pricing.series import Array, as_array

__all__ = [
    "REGIMES",
    "Regime",
    "break_even",
    "decided",
    "explain",
    "explain_budget",
    "first_repair_dividend",
    "log_branch",
    "measured_dividend",
    "recovery_limit",
    "regime",
    "regime_codes",
]

TIE = 1e-12
"""Differences of quality or bill up to here are ties, so that decimal input meets its own boundary."""

DECIDED = 0.5
"""Least probability with which one budget, or none, is named as the break-even."""

IntArray = npt.NDArray[np.int64]


class Regime(StrEnum):
    """How the teacher's quality edge D compares with what feedback can recover."""

    ZERO = "0"
    """D ≤ 0: the small tier is no worse to begin with."""
    I = "i"  # noqa: E741 - the paper's own name
    """The first repair covers the edge, and what the message adds to a blind redraw covers it alone."""
    II = "ii"
    """Some finite budget covers the edge, but not by the first message alone."""
    III = "iii"
    """The edge exceeds everything that retries can recover: no budget of the gated small tier reaches it."""


REGIMES = (Regime.ZERO, Regime.I, Regime.II, Regime.III)
"""The regimes in the order of their integer codes."""

_SENTENCES = {
    Regime.ZERO: (
        "The small tier's one draw is already as good as the teacher's: break-even needs no retry (B_q = 1)."
    ),
    Regime.I: (
        "The teacher's edge is within the first repair dividend: one retry with the verifier's message "
        "reaches the teacher, and the message, not luck of resampling, pays for it."
    ),
    Regime.II: (
        "The teacher's edge exceeds the first repair dividend but stays below what repeated feedback "
        "recovers: a larger budget, or luck of resampling within the first, reaches the teacher."
    ),
    Regime.III: (
        "The teacher's edge is at least all that feedback can recover: the static ceiling binds, no gated "
        "small-tier budget reaches the teacher, and the money belongs to the teacher."
    ),
}


def break_even(
    quality_by_budget: npt.ArrayLike, bill_by_budget: npt.ArrayLike, q_T: npt.ArrayLike, c_T: npt.ArrayLike
) -> IntArray:
    """Search the smallest budget that reaches the teacher's quality for no more than the teacher's bill.

    B* = min{B : Q_B ≥ q_T and bill_B ≤ c_T} (*The Verifier's Dividend*, T2), by search over the budgets
    given, never by the log formula. Both conditions are met to within 1e-12: at D = p_d exactly, a frontier
    that only approaches its ceiling counts as having reached it at a large enough budget; `regime` tells that
    case apart.

    Parameters
    ----------
    quality_by_budget, bill_by_budget
        Budgets 1 … B_max on the last axis; they broadcast with each other.
    q_T, c_T
        Teacher's quality and bill, broadcasting with the leading axes.

    Returns
    -------
    ndarray of int64
        B*, or 0 for "none by B_max". NaN never reaches: a NaN price counts as out of reach.

    Examples
    --------
    >>> int(break_even([0.80, 0.9681], [1.0, 1.18], 0.90, 2.5))
    2
    """
    quality, bill = as_array(quality_by_budget), as_array(bill_by_budget)
    reached = (quality >= as_array(q_T)[..., None] - TIE) & (bill <= as_array(c_T)[..., None] + TIE)
    first = np.argmax(reached, axis=-1) + 1
    return np.asarray(np.where(reached.any(axis=-1), first, 0), dtype=np.int64)


def first_repair_dividend(
    p_d: npt.ArrayLike, sigma: npt.ArrayLike, phi: npt.ArrayLike, s1: npt.ArrayLike = 1.0
) -> Array:
    """Give the quality that the first message buys beyond a blind redraw: D_c = p_d(σ s1 + (1 − σ)φ).

    *The Verifier's Dividend*, T2, prints it with s1 = 1 (the default).

    Examples
    --------
    >>> round(float(first_repair_dividend(0.18, 0.6, 0.05)), 4)
    0.1116
    """
    w = as_array(sigma)
    return np.asarray(as_array(p_d) * (w * as_array(s1) + (1.0 - w) * as_array(phi)))


def measured_dividend(
    p_d: npt.ArrayLike,
    sigma: npt.ArrayLike,
    s1: npt.ArrayLike,
    s2: npt.ArrayLike,
    b1: npt.ArrayLike,
    b2: npt.ArrayLike,
) -> Array:
    """Give D_c against measured blind redraws: p_d[σ(s1 − b1) + (1 − σ)(s2 − b2)].

    b1, b2 are the successes of a blind redraw after a structural / semantic first error. With b1 = 0 and
    b2 = q0 it is `first_repair_dividend` at the same s1.
    """
    w = as_array(sigma)
    return np.asarray(
        as_array(p_d) * (w * (as_array(s1) - as_array(b1)) + (1.0 - w) * (as_array(s2) - as_array(b2)))
    )


def recovery_limit(sigma: npt.ArrayLike, s1: npt.ArrayLike, s2: npt.ArrayLike) -> Array:
    """Give sup R: the share of the flagged mass whose class has a repair that can succeed at all."""
    w, a, b = np.broadcast_arrays(as_array(sigma), as_array(s1), as_array(s2))
    limit = w * (a > 0) + (1.0 - w) * (b > 0)
    return np.asarray(np.where(np.isnan(a) | np.isnan(b), np.nan, limit))


def regime(
    q0: npt.ArrayLike,
    p_d: npt.ArrayLike,
    sigma: npt.ArrayLike,
    s1: npt.ArrayLike,
    s2: npt.ArrayLike,
    q_T: npt.ArrayLike,
    *,
    dividend: npt.ArrayLike | None = None,
) -> npt.NDArray[np.int8]:
    """Sort parameter points into the regimes of *The Verifier's Dividend*, T2.

    With D = q_T − q0: (0) D ≤ 0; (i) D ≤ min(D_c, p_d R_1); (ii) D reached by some finite budget;
    (iii) beyond. Since R_n only approaches its supremum when 0 < s < 1, D = p_d sup R itself is (iii) unless
    R_1 attains it.

    Parameters
    ----------
    q0, p_d, sigma, s1, s2, q_T
        Rates, broadcasting.
    dividend
        D_c to use; the printed form p_d(σ + (1 − σ)(s2 − q0)) if absent.

    Returns
    -------
    ndarray of int8
        Index into `REGIMES`, −1 where an argument is NaN.

    Examples
    --------
    >>> REGIMES[int(regime(0.8, 0.18, 0.6, 0.99, 0.85, 0.9))].value
    'i'
    """
    q, d, w = as_array(q0), as_array(p_d), as_array(sigma)
    if dividend is None:
        dividend = first_repair_dividend(d, w, as_array(s2) - q)
    first = d * recovery(1, w, s1, s2)
    return regime_codes(as_array(q_T) - q, first, d * recovery_limit(w, s1, s2), dividend)


def regime_codes(
    edge: npt.ArrayLike, first: npt.ArrayLike, top: npt.ArrayLike, dividend: npt.ArrayLike
) -> npt.NDArray[np.int8]:
    """Sort edges into regimes by what the first repair gains, what all repairs gain, and what the message adds.

    Parameters
    ----------
    edge
        D = q_T − q0.
    first, top
        Quality gained by the first repair, and the supremum over budgets.
    dividend
        D_c.

    Returns
    -------
    ndarray of int8
        As `regime`.
    """
    gap, once, most, paid = np.broadcast_arrays(
        as_array(edge), as_array(first), as_array(top), as_array(dividend)
    )
    at_once = gap <= once + TIE
    within = at_once | (gap < most - TIE)
    codes = np.where(gap <= TIE, 0, np.where(at_once & (gap <= paid + TIE), 1, np.where(within, 2, 3)))
    unknown = np.isnan(gap) | np.isnan(once) | np.isnan(most) | np.isnan(paid)
    return np.asarray(np.where(unknown, -1, codes), dtype=np.int8)


def explain(which: Regime) -> str:
    """Give the sentence that says what a regime means for the one who pays."""
    return _SENTENCES[which]


def decided(shares: Mapping[str, float | None]) -> str | None:
    """Return the budget (or ``none``) that holds at least half of the probability of B*; None if nothing does.

    Examples
    --------
    >>> decided({"1": 0.1, "2": 0.7, "none": 0.2}), decided({"1": 0.4, "none": 0.3})
    ('2', None)
    """
    known = {budget: p for budget, p in shares.items() if p is not None}
    best = max(known, key=lambda budget: known[budget], default=None)
    return best if best is not None and known[best] >= DECIDED else None


def explain_budget(shares: Mapping[str, float | None], b_max: int) -> str:
    """Give the sentence that says what a distribution of B* means for the one who pays.

    Parameters
    ----------
    shares
        Budget, or ``none``, to its probability.
    b_max
        Largest budget that was searched.
    """
    match decided(shares):
        case None:
            return "It is open which budget breaks even with the teacher, and whether one does."
        case "none":
            return (
                f"No budget up to {b_max} buys the teacher's quality for at most the teacher's bill: "
                "who needs that quality pays for the teacher."
            )
        case "1":
            return (
                "One draw of the small tier has the teacher's quality for at most the teacher's bill: "
                "no retry is needed to break even."
            )
        case budget:
            return (
                f"Gated feedback retries with {budget} draws at most buy the teacher's quality for at most the "
                "teacher's bill; a smaller budget does not."
            )


def log_branch(p_d: npt.ArrayLike, sigma: npt.ArrayLike, s2: npt.ArrayLike, edge: npt.ArrayLike) -> Array:
    r"""Give the break-even budget by the logarithm, as an alternative to print beside the search.

    .. math:: B = 1 + \left\lceil \ln\frac{1 - D/p_d}{1-\sigma} \Big/ \ln(1-s_2) \right\rceil

    Solves Q_B = q0 + p_d(1 − (1−σ)(1−s2)^{B−1}) = q_T, i.e. the class-stable frontier with s1 = 1. It ignores
    the bill, and it errs where s1 < 1 matters; decisions use `break_even`.

    Parameters
    ----------
    p_d, sigma, s2
        Rates, broadcasting.
    edge
        D = q_T − q0.

    Returns
    -------
    ndarray
        Budget: 1 where D ≤ 0, at least 2 otherwise, ``inf`` where the form is never reached.

    Examples
    --------
    >>> float(log_branch(0.18, 0.6, 0.85, 0.17))
    3.0
    """
    d, w, s, gap = np.broadcast_arrays(as_array(p_d), as_array(sigma), as_array(s2), as_array(edge))
    with np.errstate(divide="ignore", invalid="ignore"):
        left = 1.0 - gap / d
        steps = np.ceil(np.log(left / (1.0 - w)) / np.log(1.0 - s))
    # One repair suffices when structural errors alone, or a certain semantic repair, cover the edge.
    one = (gap <= d * w) | ((s == 1) & (gap <= d))
    found = np.where(one, 1.0, np.where((left > 0) & (s > 0), np.maximum(steps, 1.0), np.inf))
    found = np.where(np.isnan(d) | np.isnan(w) | np.isnan(s) | np.isnan(gap), np.nan, found)
    return np.asarray(np.where(gap <= 0, 1.0, 1.0 + found))
