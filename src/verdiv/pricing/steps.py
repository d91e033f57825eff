"""Chains of the feedback arm followed draw by draw: the masses of their states, one budget after the other.

Each generator yields A3's price at budget 1, 2, 3, … without end. Arrays broadcast but are not broadcast up
front, so that a sweep over a million points holds a handful of arrays and no axis for the budget.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from verdiv.pricing.series import Array, as_array

__all__ = ["Step", "correlated_steps", "fresh_steps", "hazard_steps", "repair_steps"]

Pair = tuple[Array, Array]
"""One array for structural, one for semantic errors."""


@dataclass(frozen=True, slots=True)
class Step:
    """A3's price at one budget; fields as in :class:`verdiv.pricing.closed.Price`, not yet broadcast."""

    quality: Array
    bill: Array
    residual: Array
    residual_correct: Array


_NOBODY = np.zeros(())


def repair_steps(
    q: Array, d: Array, w: Array, s: Pair, silent: Pair, fpr: Array, keeps: Array
) -> Iterator[Step]:
    """Follow class-stable repairs with silent failures and false positives.

    The states are those of :func:`verdiv.pricing.general.feedback_general`.

    Parameters
    ----------
    q, d, w
        q0, p_d and σ.
    s, silent
        Repair success and silence by class.
    fpr, keeps
        P(flagged | correct) and P(repair of a flagged correct draw stays correct).
    """
    share = (w, 1.0 - w)
    wrong = [d * share[0], d * share[1]]
    again = [(1.0 - s[c]) * (1.0 - silent[c]) for c in (0, 1)]
    if not np.any(fpr != 0):
        quality, bill = q, as_array(1.0)
        while True:
            residual = wrong[0] + wrong[1]
            yield Step(quality, bill, residual, _NOBODY)
            bill = bill + residual
            quality = quality + s[0] * wrong[0] + s[1] * wrong[1]
            wrong = [wrong[0] * again[0], wrong[1] * again[1]]
    classless = q * fpr
    right = [_NOBODY, _NOBODY]
    passed, bill = q * (1.0 - fpr), as_array(1.0)
    while True:
        correct = classless + right[0] + right[1]
        flagged = correct + wrong[0] + wrong[1]
        yield Step(passed + correct, bill, flagged, correct)
        bill = bill + flagged
        for c in (0, 1):
            fixed = s[c] * wrong[c] + keeps * right[c]
            spoilt = (1.0 - s[c]) * wrong[c] + (1.0 - keeps) * (right[c] + share[c] * classless)
            passed = passed + (1.0 - fpr) * fixed
            right[c], wrong[c] = fpr * fixed, (1.0 - silent[c]) * spoilt
        passed = passed + (1.0 - fpr) * keeps * classless
        classless = fpr * keeps * classless


def fresh_steps(q: Array, d: Array, w: Array, s: Pair, silent: Pair) -> Iterator[Step]:
    """Follow repairs whose failures draw their class anew, with silent failures."""
    success = w * s[0] + (1.0 - w) * s[1]
    again = w * (1.0 - s[0]) * (1.0 - silent[0]) + (1.0 - w) * (1.0 - s[1]) * (1.0 - silent[1])
    quality, bill, wrong = q, as_array(1.0), d
    while True:
        yield Step(quality, bill, wrong, _NOBODY)
        quality, bill, wrong = quality + success * wrong, bill + wrong, again * wrong


def hazard_steps(q: Array, d: Array, w: Array, tables: Pair, silent: Pair) -> Iterator[Step]:
    """Follow repairs whose success depends on the attempt (last axis of the tables; the last one stays)."""
    wrong = [d * w, d * (1.0 - w)]
    quality, bill, attempt = q, as_array(1.0), 0
    while True:
        residual = wrong[0] + wrong[1]
        yield Step(quality, bill, residual, _NOBODY)
        bill = bill + residual
        for c in (0, 1):
            h = tables[c][..., min(attempt, tables[c].shape[-1] - 1)]
            quality = quality + h * wrong[c]
            wrong[c] = wrong[c] * (1.0 - h) * (1.0 - silent[c])
        attempt += 1


def correlated_steps(q: Array, d: Array, w: Array, s: Pair, silent: Pair, icc: Pair) -> Iterator[Step]:
    """Follow repairs that share a task's own success, Beta with the given correlation.

    The hazard of repair j is E[s(1−s)^{j−1}]/E[(1−s)^{j−1}] = m(1−ρ)/(1 + (j−2)ρ) for j ≥ 2 and m for j = 1:
    the tasks that are left are the harder ones.
    """
    wrong = [d * w, d * (1.0 - w)]
    quality, bill, failed = q, as_array(1.0), 0
    while True:
        residual = wrong[0] + wrong[1]
        yield Step(quality, bill, residual, _NOBODY)
        bill = bill + residual
        for c in (0, 1):
            loose = 1.0 - icc[c]
            h = s[c] if failed == 0 else s[c] * loose / (loose + failed * icc[c])
            quality = quality + h * wrong[c]
            wrong[c] = wrong[c] * (1.0 - h) * (1.0 - silent[c])
        failed += 1
