"""Prices when the draws of one task are correlated: Beta moments in place of powers.

A task's own success is θ ~ Beta(mκ, (1 − m)κ) with mean m and intra-class correlation icc = 1/(1 + κ).
Multiplying numerator and denominator of each Beta moment by icc gives products whose factors stay finite, so
icc = 0 (independent draws) and icc = 1 (a task always or never succeeds) are exact, not limits taken by hand.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from verdiv.errors import Fault, UsageRefused
from verdiv.pricing.closed import Price
from verdiv.pricing.series import Array, as_array, budget_array, odd_array

__all__ = [
    "blind_exchangeable",
    "failure_moments",
    "feedback_correlated",
    "majority_correlated",
    "sticky_ratio_exchangeable",
]

MAX_MOMENT = 10_000
"""Largest number of draws whose moments are computed."""


def failure_moments(mean: npt.ArrayLike, icc: npt.ArrayLike, count: int) -> Array:
    r"""Give E[(1 − θ)^j] for j = 0 … count − 1 on a new last axis.

    .. math:: E[(1-\theta)^j] = \prod_{i<j} \frac{(1-m)(1-\rho) + i\rho}{(1-\rho) + i\rho},\qquad \rho = icc

    whose first factor is 1 − m for every ρ. For ρ = 0 they are powers, for ρ = 1 all but j = 0 are 1 − m.

    Parameters
    ----------
    mean
        E[θ], in [0, 1].
    icc
        Intra-class correlation, in [0, 1].
    count
        Number of moments, from 1.

    Examples
    --------
    >>> failure_moments(0.6, 0.5, 3).round(4).tolist()
    [1.0, 0.4, 0.28]
    """
    m, r = np.broadcast_arrays(as_array(mean), as_array(icc))
    moments = np.ones((*m.shape, count))
    for j in range(1, count):
        i = j - 1
        factor = 1.0 - m if i == 0 else ((1.0 - m) * (1.0 - r) + i * r) / ((1.0 - r) + i * r)
        moments[..., j] = moments[..., j - 1] * factor
    return moments


def _success_moments(mean: Array, icc: Array, count: int) -> Array:
    """Give E[θ(1 − θ)^j] for j = 0 … count − 1: m Π_{i<j} ((1−m)(1−ρ) + iρ)/(1 + iρ), no cancellation."""
    m, r = np.broadcast_arrays(mean, icc)
    moments = np.empty((*m.shape, count))
    moments[..., 0] = m
    for j in range(1, count):
        i = j - 1
        moments[..., j] = moments[..., j - 1] * ((1.0 - m) * (1.0 - r) + i * r) / (1.0 + i * r)
    return moments


def majority_correlated(k: npt.ArrayLike, q: npt.ArrayLike, icc: npt.ArrayLike) -> Price:
    r"""Price arm A1 when the draws of a task share its θ: the expectation of the binomial tail.

    With M_r = E[θ^r(1 − θ)^r] and ρ = icc, taking E of the form in :func:`verdiv.pricing.closed.majority`,

    .. math:: Q_k = m + \sum_{r=1}^{(k-1)/2} \binom{2r-1}{r} M_r \frac{(2m-1)(1-\rho)}{(1-\rho)+2r\rho}

    Every term is finite for all m and ρ in [0, 1]; ρ = 1 gives Q_k = m, voting buys nothing.

    Parameters
    ----------
    k
        Odd number of draws.
    q
        Mean success m of one draw.
    icc
        Correlation of the correctness of two draws of one task.

    Examples
    --------
    >>> round(float(majority_correlated(5, 0.8, 0.5).quality), 3)
    0.821
    """
    votes, m, r = np.broadcast_arrays(odd_array(k), as_array(q), as_array(icc))
    loose = 1.0 - r
    steps = (votes - 1) // 2
    moment = m * (1.0 - m) * loose
    choose = 1.0
    total = np.zeros(m.shape)
    for n in range(1, int(steps.max(initial=0)) + 1):
        term = choose * moment * (2.0 * m - 1.0) * loose / (loose + 2 * n * r)
        total = total + np.where(steps >= n, term, 0.0)
        # Carry binomial and moment together: one grows fourfold a step, the other shrinks as fast.
        grow = 2.0 * (2 * n + 1) / (n + 1)
        up = (m * loose + n * r) * ((1.0 - m) * loose + n * r)
        moment = moment * grow * up / ((loose + 2 * n * r) * (loose + (2 * n + 1) * r))
    return Price.of(m + total, votes)


def blind_exchangeable(
    budget: npt.ArrayLike,
    weights: npt.ArrayLike,
    q: npt.ArrayLike,
    icc_q: npt.ArrayLike,
    delta: npt.ArrayLike,
    icc_delta: npt.ArrayLike = 0.0,
) -> Price:
    r"""Price arm A2s for exchangeable, correlated draws in several families.

    .. math:: Q_B = \sum_f \pi_f \sum_{j<B} E[q(1-q)^j] E[\delta^j], \quad
              E_B = \sum_f \pi_f \sum_{j<B} E[(1-q)^j] E[\delta^j], \quad
              m_B = \sum_f \pi_f E[(1-q)^B] E[\delta^B]

    A task's correctness and the verifier's grip on its wrong draws vary independently. One family with both
    correlations zero gives :func:`verdiv.pricing.closed.blind` with p_d = (1 − q)δ.

    Parameters
    ----------
    budget
        Finite draws per task; broadcasts with the leading axes.
    weights
        Family weights on the last axis, summing to 1.
    q
        Mean success of a draw, families on the last axis.
    icc_q
        Correlation within a task of being correct.
    delta
        P(flagged | wrong), families on the last axis.
    icc_delta
        Correlation within a task of being flagged.

    Returns
    -------
    Price
        Leading axes, families summed out.

    Raises
    ------
    UsageRefused
        If a budget is not a finite count or the weights of some point do not sum to 1.

    Examples
    --------
    >>> round(float(blind_exchangeable(2, [1.0], [0.8], 0.0, [0.9]).quality), 4)
    0.944
    """
    b = budget_array(budget, limit=False)
    last = _bounded(b)
    share = as_array(weights)
    _check_weights(share)
    share, m, rq, dm, rd = np.broadcast_arrays(
        share, as_array(q), as_array(icc_q), as_array(delta), as_array(icc_delta)
    )
    caught = failure_moments(1.0 - dm, rd, last + 1)
    won = np.cumsum(_success_moments(m, rq, last) * caught[..., :-1], axis=-1)
    missed = failure_moments(m, rq, last + 1) * caught
    spent = np.cumsum(missed[..., :-1], axis=-1)
    by_budget = [(share[..., None] * x).sum(axis=-2) for x in (won, spent, missed[..., 1:])]
    return Price.of(*(_at(x, b) for x in by_budget))


def _at(table: Array, b: Array) -> Array:
    """Read the entries of budgets b (broadcasting with the leading axes) from a table over 1 … B_max."""
    index = b.astype(np.int64) - 1
    shape = np.broadcast_shapes(table.shape[:-1], index.shape)
    spread = np.broadcast_to(table, (*shape, table.shape[-1]))
    return np.take_along_axis(spread, np.broadcast_to(index, shape)[..., None], axis=-1)[..., 0]


def _bounded(b: Array) -> int:
    """Give the largest budget, refusing one whose moments would not fit."""
    last = float(b.max(initial=1.0))
    if last > MAX_MOMENT:
        fault = Fault(
            where="budget",
            expected=f"at most {MAX_MOMENT} draws for correlated forms",
            got=f"{last:g}",
            remedy="give a smaller budget",
        )
        raise UsageRefused("cannot price this budget with correlated draws", [fault])
    return int(last)


def _check_weights(weights: Array) -> None:
    """Refuse family weights that are no distribution."""
    if weights.ndim == 0 or np.any(weights < 0) or np.any(np.abs(weights.sum(axis=-1) - 1.0) > 1e-9):
        fault = Fault(
            where="weights",
            expected="non-negative family weights on the last axis that sum to 1",
            got=str(weights.tolist()),
            remedy="divide the weights by their sum",
        )
        raise UsageRefused("cannot average over these families", [fault])


def sticky_ratio_exchangeable(
    weights: npt.ArrayLike, q: npt.ArrayLike, icc_q: npt.ArrayLike, delta: npt.ArrayLike
) -> Array:
    r"""Give what exchangeability predicts for s_blind/q0, the sticky-failure ratio.

    .. math:: \frac{\sum_f \pi_f m_f(1-m_f)(1-\rho)\delta_f}
                   {\sum_f \pi_f (1-m_f)\delta_f \; \sum_f \pi_f m_f}

    In one family it is 1 − icc_q: a flagged first draw says that the task is hard. NaN where no draw is
    flagged or none is correct.

    Examples
    --------
    >>> round(float(sticky_ratio_exchangeable([1.0], [0.8], 0.3, [0.9])), 4)
    0.7
    """
    share, m, r, d = np.broadcast_arrays(as_array(weights), as_array(q), as_array(icc_q), as_array(delta))
    _check_weights(share)
    flagged = (share * (1.0 - m) * d).sum(axis=-1)
    both = (share * m * (1.0 - m) * (1.0 - r) * d).sum(axis=-1)
    base = flagged * (share * m).sum(axis=-1)
    return np.asarray(np.where(base > 0, both / np.where(base > 0, base, 1.0), np.nan))


def feedback_correlated(
    budget: npt.ArrayLike,
    q0: npt.ArrayLike,
    p_d: npt.ArrayLike,
    sigma: npt.ArrayLike,
    s1: npt.ArrayLike,
    s2: npt.ArrayLike,
    *,
    icc1: npt.ArrayLike = 0.0,
    icc2: npt.ArrayLike = 0.0,
    lambda1: npt.ArrayLike = 0.0,
    lambda2: npt.ArrayLike = 0.0,
) -> Price:
    r"""Price arm A3 when the repairs of one task share its own success: E(1 − s_c)^n for (1 − s_c)^n.

    .. math:: Q_B = q_0 + p_d \sum_c w_c \sum_{j<B-1} (1-\lambda_c)^j E[s_c(1-s_c)^j], \quad
              E_B = 1 + p_d \sum_c w_c \sum_{j<B-1} (1-\lambda_c)^j E[(1-s_c)^j]

    The icc of repairs is identified by replicated first repairs only; without them use the homogeneous form
    (icc = 0). At icc = 1 a task is repaired by its first repair or never.

    Examples
    --------
    >>> round(float(feedback_correlated(3, 0.8, 0.18, 0.6, 0.99, 0.85, icc1=1.0, icc2=1.0).quality), 4)
    0.9681
    """
    b = budget_array(budget, limit=False)
    last = _bounded(b)
    w = as_array(sigma)
    quality, bill, left = as_array(q0), as_array(1.0), as_array(0.0)
    classes = ((w, s1, icc1, lambda1), (1.0 - w, s2, icc2, lambda2))
    for part, s, icc, lam in classes:
        mean, r, heard = np.broadcast_arrays(as_array(s), as_array(icc), 1.0 - as_array(lam))
        decay = np.power(heard[..., None], np.arange(last))
        still = failure_moments(mean, r, last) * decay
        fixed = _success_moments(mean, r, last) * decay
        mass = as_array(p_d) * part
        quality = quality + mass * _before(fixed, b)
        bill = bill + mass * _before(still, b)
        left = left + mass * _at(still, b)
    return Price.of(quality, bill, left)


def _before(terms: Array, b: Array) -> Array:
    """Sum the first B − 1 terms of the last axis for each budget B."""
    padded = np.concatenate([np.zeros((*terms.shape[:-1], 1)), np.cumsum(terms, axis=-1)[..., :-1]], axis=-1)
    return _at(padded, b)
