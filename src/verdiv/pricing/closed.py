"""Closed-form prices of the arms of *The Verifier's Dividend*: quality and bill of each at any budget.

Every function broadcasts over its arguments (posterior draws, budgets, sweeps). Probabilities are per task,
bills are in units of one small-tier draw. A draw is correct (q0), wrong and flagged (p_d) or wrong and silent
(p_s = 1 − q0 − p_d). Parameters are not range-checked here, so that NaN passes through and a sweep costs
nothing; :class:`verdiv.pricing.parameters.Parameters` checks them. Budgets are checked.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from verdiv.pricing.series import (
    Array,
    as_array,
    budget_array,
    mass_times,
    odd_array,
    success_within,
    trials_within,
)

__all__ = [
    "Price",
    "blended",
    "blind",
    "blind_greedy",
    "ceiling_blind",
    "ceiling_oracle",
    "ceiling_static",
    "crossover_blind",
    "crossover_feedback",
    "escalate",
    "feedback",
    "feedback_fresh",
    "majority",
    "one_shot",
    "recovery",
    "recovery_fresh",
    "teacher",
    "teacher_gated",
]


@dataclass(frozen=True, slots=True)
class Price:
    """What an arm delivers and costs per task at its budget."""

    quality: Array
    """P(the emitted answer is correct), in [0, 1]."""
    bill: Array
    """Expected price in units of one small-tier draw."""
    residual: Array
    """P(the budget ended on a flagged draw); for the blended policy the share that was escalated."""
    residual_correct: Array = field(default_factory=lambda: np.zeros(()))
    """Part of `residual` whose last draw is correct: 0 unless the verifier flags correct draws."""

    @classmethod
    def of(
        cls,
        quality: npt.ArrayLike,
        bill: npt.ArrayLike,
        residual: npt.ArrayLike = 0.0,
        residual_correct: npt.ArrayLike = 0.0,
    ) -> Price:
        """Build a price whose fields share one broadcast shape."""
        return cls(
            *np.broadcast_arrays(
                as_array(quality), as_array(bill), as_array(residual), as_array(residual_correct)
            )
        )


def recovery(n: npt.ArrayLike, sigma: npt.ArrayLike, s1: npt.ArrayLike, s2: npt.ArrayLike) -> Array:
    r"""Give the probability that one of the first n repairs of a flagged task is correct (class-stable).

    .. math:: R_n = 1 - \sigma(1-s_1)^n - (1-\sigma)(1-s_2)^n, \qquad R_0 = 0

    *The Verifier's Dividend*, assumptions A2 and A3 and theorem T1: each task keeps its error class, repairs
    within a class are independent.

    Parameters
    ----------
    n
        Number of repairs, whole from 0, or ``inf``.
    sigma
        Structural share of the flagged draws.
    s1, s2
        Success of a repair that answers a structural / semantic error.

    Returns
    -------
    ndarray
        Probability, broadcast shape. A class with s = 0 is never recovered, also in the limit.

    Examples
    --------
    >>> round(float(recovery(1, 0.6, 0.99, 0.85)), 4)
    0.934
    """
    count, w = as_array(n), as_array(sigma)
    # Written as a sum of success masses, so that R_0 is exactly 0 and small rates keep their digits.
    return np.asarray(w * success_within(s1, count) + (1.0 - w) * success_within(s2, count))


def recovery_fresh(n: npt.ArrayLike, sigma: npt.ArrayLike, s1: npt.ArrayLike, s2: npt.ArrayLike) -> Array:
    r"""Give the recovery when each failed repair draws its error class anew.

    .. math:: R_n = 1 - (1 - \sigma s_1 - (1-\sigma) s_2)^n

    The fresh re-partitioning form of *The Verifier's Dividend*, Limits. By the power-mean inequality
    :math:`(E f)^n \le E f^n`, it lies **above** the class-stable form for every n ≥ 2 (equal where s1 = s2 or
    σ is 0 or 1), so it is no lower bound to fall back on.

    Examples
    --------
    >>> bool(recovery_fresh(2, 0.6, 0.99, 0.85) > recovery(2, 0.6, 0.99, 0.85))
    True
    """
    w = as_array(sigma)
    mean = w * as_array(s1) + (1.0 - w) * as_array(s2)
    return success_within(np.minimum(mean, 1.0), n)


def one_shot(q0: npt.ArrayLike) -> Price:
    """Price arm A0, one ungated draw of the small tier: quality q0, bill 1."""
    return Price.of(q0, 1.0)


def majority(k: npt.ArrayLike, q0: npt.ArrayLike) -> Price:
    r"""Price arm A1, the majority of k independent draws: the iid benchmark.

    .. math:: Q_k = P(\mathrm{Bin}(k, q_0) > k/2)
              = q_0 + (2q_0 - 1) \sum_{r=1}^{(k-1)/2} \binom{2r-1}{r} (q_0(1-q_0))^r

    The second form adds two draws at a time (they matter only where the vote stood at one vote's difference);
    it has no overflow for any k. All wrong answers count as one answer, so this is the least that a plurality
    can do when wrong answers differ.

    Parameters
    ----------
    k
        Odd number of draws.
    q0
        Success of one draw.

    Raises
    ------
    UsageRefused
        If some k is even or not a count.

    Examples
    --------
    >>> round(float(majority(5, 0.8).quality), 4)
    0.9421
    """
    votes, q = np.broadcast_arrays(odd_array(k), as_array(q0))
    steps = (votes - 1) // 2
    spread = q * (1.0 - q)
    term = spread
    total = np.zeros_like(q)
    for r in range(1, int(steps.max(initial=0)) + 1):
        total = total + np.where(steps >= r, term, 0.0)
        term = term * spread * (2.0 * (2 * r + 1) / (r + 1))
    return Price.of(q + (2.0 * q - 1.0) * total, votes)


def blind_greedy(budget: npt.ArrayLike, q0: npt.ArrayLike, p_d: npt.ArrayLike) -> Price:
    """Price arm A2, gated blind retry under deterministic decoding.

    Quality q0 at every budget, bill 1 + (B − 1) p_d, residual p_d: the same prompt gives the same string, so
    a flagged task stays flagged (*The Verifier's Dividend*, P1).

    Examples
    --------
    >>> float(blind_greedy(2, 0.8, 0.18).bill)
    1.18
    """
    b, d = budget_array(budget), as_array(p_d)
    return Price.of(q0, 1.0 + mass_times(d, b - 1.0), d)


def blind(budget: npt.ArrayLike, q0: npt.ArrayLike, p_d: npt.ArrayLike) -> Price:
    r"""Price arm A2s, gated blind retry with independent draws.

    .. math:: Q_B = q_0 \frac{1-p_d^B}{1-p_d}, \quad E_B = \frac{1-p_d^B}{1-p_d}, \quad m_B = p_d^B

    At p_d = 1 every draw is flagged: quality 0 (q0 is 0 there), bill B.

    Examples
    --------
    >>> round(float(blind(float("inf"), 0.8, 0.18).quality), 4)
    0.9756
    """
    b, d = budget_array(budget), as_array(p_d)
    draws = trials_within(1.0 - d, b)
    return Price.of(mass_times(q0, draws), draws, np.power(d, b))


def feedback(
    budget: npt.ArrayLike,
    q0: npt.ArrayLike,
    p_d: npt.ArrayLike,
    sigma: npt.ArrayLike,
    s1: npt.ArrayLike,
    s2: npt.ArrayLike,
) -> Price:
    r"""Price arm A3, gated feedback retry with stable error classes.

    .. math:: Q_B = q_0 + p_d R_{B-1}, \quad E_B = 1 + p_d \sum_{j=0}^{B-2} (1 - R_j), \quad
              m_B = p_d (1 - R_{B-1})

    *The Verifier's Dividend*, theorem T1 and its billing identity. Limits (``budget=inf``): quality 1 − p_s
    and bill 1 + p_d(σ/s1 + (1−σ)/s2) where both repairs can succeed; a class with s = 0 and some mass bills
    ``inf``.

    Parameters
    ----------
    budget
        Draws per task at most, whole from 1, or ``inf``.
    q0, p_d
        Masses of correct and of flagged wrong initial draws.
    sigma
        Structural share of the flagged draws.
    s1, s2
        Success of a repair that answers a structural / semantic error.

    Returns
    -------
    Price
        Broadcast over all arguments.

    Raises
    ------
    UsageRefused
        If a budget is not a count of draws.

    Examples
    --------
    >>> p = feedback(2, 0.8, 0.18, 0.6, 0.99, 0.85)
    >>> round(float(p.quality), 4), round(float(p.bill), 2), round(float(p.residual), 4)
    (0.9681, 1.18, 0.0119)
    """
    n = budget_array(budget) - 1.0
    q, d, w = as_array(q0), as_array(p_d), as_array(sigma)
    miss1, miss2 = 1.0 - as_array(s1), 1.0 - as_array(s2)
    left = w * np.power(miss1, n) + (1.0 - w) * np.power(miss2, n)
    repairs = mass_times(d * w, trials_within(s1, n)) + mass_times(d * (1.0 - w), trials_within(s2, n))
    return Price.of(q + d * recovery(n, w, s1, s2), 1.0 + repairs, d * left)


def feedback_fresh(
    budget: npt.ArrayLike,
    q0: npt.ArrayLike,
    p_d: npt.ArrayLike,
    sigma: npt.ArrayLike,
    s1: npt.ArrayLike,
    s2: npt.ArrayLike,
) -> Price:
    """Price arm A3 when every repair draws its error class anew: `feedback` with `recovery_fresh` for R.

    Lies above the class-stable form in quality and below it in bill from three draws on.

    Examples
    --------
    >>> round(100 * float(feedback_fresh(3, 0.8, 0.18, 0.6, 0.99, 0.85).quality), 2)
    97.92
    """
    n = budget_array(budget) - 1.0
    d, w = as_array(p_d), as_array(sigma)
    mean = np.minimum(w * as_array(s1) + (1.0 - w) * as_array(s2), 1.0)
    won = d * success_within(mean, n)
    return Price.of(
        as_array(q0) + won, 1.0 + mass_times(d, trials_within(mean, n)), d * np.power(1.0 - mean, n)
    )


def teacher(q_T: npt.ArrayLike, rho: npt.ArrayLike) -> Price:
    """Price arm A4, one ungated draw of the teacher tier: quality q_T, bill ρ."""
    return Price.of(q_T, rho)


def teacher_gated(
    budget: npt.ArrayLike, q_T: npt.ArrayLike, p_dT: npt.ArrayLike, rho: npt.ArrayLike
) -> Price:
    """Price arm A5, the teacher gated by the same verifier: `blind` at the teacher's rates, bill times ρ.

    Examples
    --------
    >>> p = teacher_gated(2, 0.9, 0.08, 2.5)
    >>> round(float(p.quality), 4), round(float(p.bill), 2)
    (0.972, 2.7)
    """
    small = blind(budget, q_T, p_dT)
    return Price.of(small.quality, as_array(rho) * small.bill, small.residual)


def escalate(price: Price, q_T: npt.ArrayLike, rho: npt.ArrayLike) -> Price:
    """Send what is still flagged at the end of a budget to one draw of the teacher.

    Q* = Q_B − (correct but flagged) + m_B q_T and bill* = E_B + m_B ρ (*The Verifier's Dividend*, Deployment
    Rule). The teacher is taken to do as well on the residual as elsewhere. `Price.residual` of the result is
    the escalated share m_B.
    """
    m = price.residual
    return Price.of(
        price.quality - price.residual_correct + m * as_array(q_T), price.bill + m * as_array(rho), m
    )


def blended(
    budget: npt.ArrayLike,
    q0: npt.ArrayLike,
    p_d: npt.ArrayLike,
    sigma: npt.ArrayLike,
    s1: npt.ArrayLike,
    s2: npt.ArrayLike,
    q_T: npt.ArrayLike,
    rho: npt.ArrayLike,
) -> Price:
    """Price the deployment rule: A3 up to the budget, then one teacher draw for the residual.

    Examples
    --------
    >>> p = blended(2, 0.8, 0.18, 0.6, 0.99, 0.85, 0.9, 2.5)
    >>> round(float(p.quality), 4), round(float(p.bill), 2)
    (0.9788, 1.21)
    """
    return escalate(feedback(budget, q0, p_d, sigma, s1, s2), q_T, rho)


def ceiling_static(q0: npt.ArrayLike, p_d: npt.ArrayLike) -> Array:
    """Give 1 − p_s = q0 + p_d: the most that a retry gated by the static verifier reaches."""
    return np.asarray(as_array(q0) + as_array(p_d))


def ceiling_blind(q0: npt.ArrayLike, p_d: npt.ArrayLike) -> Array:
    """Give the limit of A2s, 1 − p_s/(1 − p_d) = q0/(1 − p_d); 0 where every draw is flagged.

    Examples
    --------
    >>> round(100 * float(ceiling_static(0.8, 0.18) - ceiling_blind(0.8, 0.18)), 2)
    0.44
    """
    q, passed = np.broadcast_arrays(as_array(q0), 1.0 - as_array(p_d))
    return np.asarray(np.where(passed > 0, q / np.where(passed > 0, passed, 1.0), 0.0 * passed))


def ceiling_oracle(q0: npt.ArrayLike, p_d: npt.ArrayLike, eta_ox: npt.ArrayLike) -> Array:
    """Give 1 − (1 − η)p_s: the ceiling when an oracle verifier also flags a share η of the silent mass."""
    return np.asarray(1.0 - (1.0 - as_array(eta_ox)) * (1.0 - ceiling_static(q0, p_d)))


def crossover_feedback(
    k: npt.ArrayLike, q0: npt.ArrayLike, sigma: npt.ArrayLike, s1: npt.ArrayLike, s2: npt.ArrayLike
) -> Array:
    """Give the detectable mass from which A3 at budget k matches the majority of k: (Q_k − q0)/R_{k−1}.

    *The Verifier's Dividend*, P2. Negative where voting hurts (q0 < ½); ``inf`` where no repair succeeds
    but voting helps, 0 where neither does anything.

    Examples
    --------
    >>> round(float(crossover_feedback(3, 0.8, 0.6, 0.99, 0.85)), 4)
    0.0969
    """
    gain = majority(k, q0).quality - as_array(q0)
    gain, won = np.broadcast_arrays(gain, recovery(as_array(k) - 1.0, sigma, s1, s2))
    never = np.where(gain > 0, np.inf, np.where(gain == 0, 0.0, np.where(gain < 0, -np.inf, np.nan)))
    return np.asarray(np.where(won == 0, never, gain / np.where(won == 0, 1.0, won)))


def crossover_blind(k: npt.ArrayLike, q0: npt.ArrayLike) -> Array:
    """Give the detectable mass from which unlimited blind retry matches the majority of k: 1 − q0/Q_k.

    Solves q0/(1 − p_d) = Q_k for p_d. NaN where q0 = 0.

    Examples
    --------
    >>> round(float(crossover_blind(3, 0.8)), 4)
    0.1071
    """
    top, q = np.broadcast_arrays(majority(k, q0).quality, as_array(q0))
    return np.asarray(np.where(top > 0, 1.0 - q / np.where(top > 0, top, 1.0), np.nan))
