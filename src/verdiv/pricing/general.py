"""General forms: repairs that fail silently, verifiers that flag correct draws, hazards that change.

With silent repairs and false positives at zero every form here equals its sibling in
:mod:`verdiv.pricing.closed`. Derived from the chain itself: a chain stops at its first unflagged draw; if the
budget ends on a flagged draw, that draw is emitted.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from verdiv.errors import Fault, UsageRefused
from verdiv.pricing.closed import Price
from verdiv.pricing.series import Array, as_array, budget_array, mass_times, trials_within
from verdiv.pricing.steps import Step, hazard_steps, repair_steps

__all__ = [
    "MAX_STEPS",
    "blind_general",
    "blind_greedy_general",
    "feedback_general",
    "feedback_hazards",
    "teacher_gated_general",
]

MAX_STEPS = 10_000
"""Largest budget of the forms that are followed draw by draw."""


def blind_general(
    budget: npt.ArrayLike, q0: npt.ArrayLike, p_d: npt.ArrayLike, *, fpr: npt.ArrayLike = 0.0
) -> Price:
    r"""Price arm A2s when the verifier also flags a share fpr of the correct draws.

    With g = p_d + q0·fpr, the flagged share of a draw,

    .. math:: Q_B = q_0(1-f)\frac{1-g^{B-1}}{1-g} + g^{B-1} q_0, \quad E_B = \frac{1-g^B}{1-g}, \quad
              m_B = g^B

    The last draw counts whatever its flag, so it is correct with probability q0; the correct but flagged part
    of the residual is g^{B−1} q0 f.

    Parameters
    ----------
    budget
        Draws per task at most, whole from 1, or ``inf``.
    q0
        Mass of correct draws, flagged or not.
    p_d
        Mass of wrong, flagged draws.
    fpr
        P(flagged | correct).

    Examples
    --------
    >>> round(float(blind_general(2, 0.8, 0.18, fpr=0.1).quality), 4)
    0.928
    """
    b, q, d, f = budget_array(budget), as_array(q0), as_array(p_d), as_array(fpr)
    gate = d + q * f
    before = np.power(gate, b - 1.0)
    quality = mass_times(q * (1.0 - f), trials_within(np.maximum(1.0 - gate, 0.0), b - 1.0)) + before * q
    return Price.of(quality, trials_within(np.maximum(1.0 - gate, 0.0), b), before * gate, before * q * f)


def blind_greedy_general(
    budget: npt.ArrayLike, q0: npt.ArrayLike, p_d: npt.ArrayLike, *, fpr: npt.ArrayLike = 0.0
) -> Price:
    """Price arm A2 with false positives: quality stays q0, every flagged draw is repeated to the end.

    Bill 1 + (B − 1)g with g = p_d + q0·fpr; residual g, of which q0·fpr is correct.
    """
    b, q, d, f = budget_array(budget), as_array(q0), as_array(p_d), as_array(fpr)
    gate = d + q * f
    return Price.of(q, 1.0 + mass_times(gate, b - 1.0), gate, q * f)


def teacher_gated_general(
    budget: npt.ArrayLike,
    q_T: npt.ArrayLike,
    p_dT: npt.ArrayLike,
    rho: npt.ArrayLike,
    *,
    fpr: npt.ArrayLike = 0.0,
) -> Price:
    """Price arm A5 with false positives: `blind_general` at the teacher's rates, bill times ρ."""
    price = blind_general(budget, q_T, p_dT, fpr=fpr)
    return Price.of(price.quality, as_array(rho) * price.bill, price.residual, price.residual_correct)


def feedback_general(
    budget: npt.ArrayLike,
    q0: npt.ArrayLike,
    p_d: npt.ArrayLike,
    sigma: npt.ArrayLike,
    s1: npt.ArrayLike,
    s2: npt.ArrayLike,
    *,
    lambda1: npt.ArrayLike = 0.0,
    lambda2: npt.ArrayLike = 0.0,
    fpr: npt.ArrayLike = 0.0,
    s_false: npt.ArrayLike = 1.0,
) -> Price:
    r"""Price arm A3 with silent repairs and false positives.

    Without false positives, with f_c = (1 − s_c)(1 − λ_c), w = (σ, 1 − σ) and n = B − 1,

    .. math:: Q_B = q_0 + p_d \sum_c w_c s_c \frac{1-f_c^n}{1-f_c}, \quad
              E_B = 1 + p_d \sum_c w_c \frac{1-f_c^n}{1-f_c}, \quad m_B = p_d \sum_c w_c f_c^n

    With them a flagged correct draw is retried too, and the chain has, per class c, the states "flagged
    wrong" and "flagged correct", plus "flagged correct, no class yet":

    * wrong: the repair is correct with s_c (flagged again with fpr), else silent with λ_c, else wrong again;
    * correct: the repair stays correct with s_false (flagged again with fpr), else it is a wrong repair of
      its class, drawn by σ where there is none, and silent with λ_c.

    At B = 2 this is q0 + p_d Σ w_c s_c + q0·fpr(s_false − 1) with bill 1 + p_d + q0·fpr. From B = 3 on, the
    masses of flagged correct chains no longer share the hazard of the wrong ones, so no formula with
    g = p_d + q0·fpr in place of p_d is exact; the states are followed draw by draw.

    Parameters
    ----------
    budget
        Draws per task at most, whole from 1; ``inf`` only where fpr is 0 everywhere.
    q0, p_d, sigma, s1, s2
        As in :func:`verdiv.pricing.closed.feedback`; q0 counts flagged correct draws too.
    lambda1, lambda2
        P(silent | the repair is wrong), by the class answered.
    fpr
        P(flagged | correct), of every draw.
    s_false
        P(the repair of a flagged correct draw is still correct).

    Returns
    -------
    Price
        Broadcast over all arguments; quality may fall with the budget where s_false < 1.

    Raises
    ------
    UsageRefused
        If a budget is not a count, or is unbounded (or above `MAX_STEPS`) with false positives.

    Examples
    --------
    >>> p = feedback_general(3, 0.8, 0.18, 0.6, 0.99, 0.85, lambda1=0.1, lambda2=0.2)
    >>> round(float(p.quality), 4), round(float(p.bill), 4)
    (0.9764, 1.1896)
    """
    b, q, d, w = budget_array(budget), as_array(q0), as_array(p_d), as_array(sigma)
    rates = (as_array(s1), as_array(s2))
    silent = (as_array(lambda1), as_array(lambda2))
    share = (w, 1.0 - w)
    f = as_array(fpr)
    if np.any(f != 0):
        keeps = as_array(s_false)
        shape = np.broadcast_shapes(*(x.shape for x in (b, q, d, w, *rates, *silent, f, keeps)))
        return _read_off(b, shape, repair_steps(q, d, w, rates, silent, f, keeps))
    quality, bill, left = q, as_array(1.0), as_array(0.0)
    for part, s, lam in zip(share, rates, silent, strict=True):
        # 1 − f = s + λ − sλ, written so that small rates keep their digits.
        again = (1.0 - s) * (1.0 - lam)
        reached = trials_within(np.minimum(s + lam * (1.0 - s), 1.0), b - 1.0)
        quality = quality + d * part * mass_times(s, reached)
        bill = bill + mass_times(d * part, reached)
        left = left + d * part * np.power(again, b - 1.0)
    return Price.of(quality, bill, left)


def _read_off(b: Array, shape: tuple[int, ...], states: Iterator[Step]) -> Price:
    """Read the price at each budget while the states pass from draw to draw."""
    last = _steps(b)
    out = [np.zeros(shape) for _ in range(4)]
    for step, state in zip(range(1, last + 1), states, strict=False):
        now = np.broadcast_to(b == step, shape)
        values = (state.quality, state.bill, state.residual, state.residual_correct)
        for kept, value in zip(out, values, strict=True):
            np.copyto(kept, value, where=now)
    return Price.of(*out)


def _steps(b: Array) -> int:
    """Give the largest budget to follow, refusing one that would not end."""
    last = float(b.max(initial=1.0))
    if last > MAX_STEPS:
        raise UsageRefused(
            "cannot follow this budget draw by draw",
            [
                Fault(
                    where="budget",
                    expected=f"at most {MAX_STEPS} draws where attempts differ or correct draws are flagged",
                    got=f"{last:g}",
                    remedy="give a finite budget",
                )
            ],
        )
    return int(last)


def feedback_hazards(
    budget: npt.ArrayLike,
    q0: npt.ArrayLike,
    p_d: npt.ArrayLike,
    sigma: npt.ArrayLike,
    hazards1: npt.ArrayLike,
    hazards2: npt.ArrayLike,
    *,
    lambda1: npt.ArrayLike = 0.0,
    lambda2: npt.ArrayLike = 0.0,
) -> Price:
    r"""Price arm A3 with measured repair hazards instead of constant ones.

    With h_{c,j} = P(repair j correct | repairs 1 … j−1 of class c all flagged),

    .. math:: Q_B = q_0 + p_d \sum_c w_c \sum_{j=1}^{B-1} h_{c,j} \prod_{i<j} (1-h_{c,i})(1-\lambda_c)

    and the bill adds the same products without h_{c,j}. Constant hazards give `feedback_general`; falling
    ones are the feedback accumulation collapse of *The Verifier's Dividend*, P5.

    Parameters
    ----------
    budget
        Draws per task at most; finite.
    q0, p_d, sigma
        As in `feedback_general`, broadcasting with the leading axes of the hazards.
    hazards1, hazards2
        Repair success by attempt on the last axis (attempt 2 first); the last one given holds from there.
    lambda1, lambda2
        P(silent | the repair is wrong), by class.

    Examples
    --------
    >>> round(float(feedback_hazards(3, 0.8, 0.18, 0.6, [0.99], [0.85, 0.4]).quality), 4)
    0.9735
    """
    b, q, d, w = budget_array(budget), as_array(q0), as_array(p_d), as_array(sigma)
    tables = (np.atleast_1d(as_array(hazards1)), np.atleast_1d(as_array(hazards2)))
    silent = (as_array(lambda1), as_array(lambda2))
    leading = (x.shape[:-1] for x in tables)
    shape = np.broadcast_shapes(b.shape, q.shape, d.shape, w.shape, *(x.shape for x in silent), *leading)
    return _read_off(b, shape, hazard_steps(q, d, w, tables, silent))
