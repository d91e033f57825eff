"""Rates of one task family, and how single tasks scatter around them.

A *rate* is a mean over the tasks of a family. Around it task ``i`` has its own trait

    theta_i ~ Beta(m kappa, (1 - m) kappa),    icc = 1 / (1 + kappa),

so that two draws of one task correlate by ``icc``. Traits of several stages of one task may depend on each
other through a Gaussian copula: stage ``s`` has the normal score ``r_s z + sqrt(1 - r_s^2) e_s``, where ``z``
is the normal score of the task's chance of success on the first draw (its *ease*).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Self

from verdiv.errors import Fault

__all__ = ["DEPENDENT_STAGES", "TRAITS", "Ease", "Icc", "Rates", "between", "shift_logit", "whole"]

TRAITS = ("q", "delta", "sigma", "s1", "s2", "q_t", "delta_t")
"""Stages whose rate may differ from task to task inside a family."""

DEPENDENT_STAGES = TRAITS[1:]
"""Stages whose traits may depend on a task's ease."""

MAX_ICC = 0.98
"""Largest within-task correlation; the Beta quantiles lose their digits beyond it."""


def shift_logit(rate: float, offset: float) -> float:
    """Return ``rate`` moved by ``offset`` on the logit scale; 0 and 1 stay.

    Examples
    --------
    >>> round(shift_logit(0.8, -1.0), 4)
    0.5954
    """
    if rate <= 0.0 or rate >= 1.0:
        return rate
    return 1.0 / (1.0 + math.exp(-(math.log(rate / (1.0 - rate)) + offset)))


def between(where: str, name: str, value: object, low: float, high: float) -> Iterator[Fault]:
    """Yield a fault when ``value`` is not a finite number in ``[low, high]``."""
    fine = isinstance(value, int | float) and not isinstance(value, bool)
    if not fine or not math.isfinite(value) or not low <= value <= high:  # type: ignore[arg-type, operator]
        yield Fault(
            where,
            f"a number from {low:g} to {high:g}",
            repr(value),
            "correct the value",
            field=name,
        )


def _outside(
    record: Rates | Icc | Ease, where: str, low: float, high: float, *, optional: tuple[str, ...] = ()
) -> list[Fault]:
    """List the fields of a record that lie outside ``[low, high]``; optional ones may be None."""
    return [
        fault
        for field in fields(record)
        if (value := getattr(record, field.name)) is not None or field.name not in optional
        for fault in between(where, field.name, value, low, high)
    ]


def whole(where: str, name: str, value: object, low: int, high: int) -> Iterator[Fault]:
    """Yield a fault when ``value`` is not a whole number from ``low`` to ``high``."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        yield Fault(
            where, f"a whole number from {low} to {high}", repr(value), "correct the value", field=name
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Mean rates of one family; all are probabilities.

    The defaults are the worked parameters of "The Verifier's Dividend": q0 = .80, p_d = .18, p_s = .02,
    sigma = .60, s1 = .99, s2 = q0 + phi = .85, eta_ox = .90, no false positives, q_T = .90, p_dT = .08.
    Repairs that fail are always seen (lambda = 0), as its feedback frontier (Theorem 1) assumes.
    """

    q: float = 0.80
    """Small tier: first draw correct."""
    delta: float = 0.90
    """Flagged given wrong."""
    sigma: float = 0.60
    """Structural given flagged and wrong."""
    s1: float = 0.99
    """Repair correct given a structural error."""
    s2: float = 0.85
    """Repair correct given a semantic error."""
    lambda1: float | None = 0.0
    """Repair silent given wrong, after a structural error. None: ``1 - delta`` of the task, as on first draws."""
    lambda2: float | None = 0.0
    """The same after a semantic error."""
    fpr: float = 0.0
    """Flagged given correct, every draw of every tier."""
    s_false: float = 1.0
    """Repair correct given that the flagged draw was correct already."""
    eta_ox: float = 0.90
    """Oracle flags given silent."""
    q_t: float = 0.90
    """Teacher: first draw correct."""
    delta_t: float = 0.80
    """Teacher: flagged given wrong."""

    def faults(self, where: str) -> list[Fault]:
        """List what is wrong with the values."""
        return _outside(self, where, 0.0, 1.0, optional=("lambda1", "lambda2"))

    def shifted(self, **offsets: float) -> Self:
        """Return the rates with some of them moved on the logit scale.

        Parameters
        ----------
        **offsets
            Rate name to logit offset.

        Examples
        --------
        >>> round(Rates().shifted(q=-1.0).q, 4)
        0.5954
        """
        moved = {name: shift_logit(getattr(self, name), offset) for name, offset in offsets.items()}
        return replace(self, **moved)


@dataclass(frozen=True, slots=True, kw_only=True)
class Icc:
    """Within-task correlation of each stage, 0 (all tasks of a family alike) to .98."""

    q: float = 0.0
    delta: float = 0.0
    sigma: float = 0.0
    s1: float = 0.0
    s2: float = 0.0
    q_t: float = 0.0
    delta_t: float = 0.0

    def faults(self, where: str) -> list[Fault]:
        """List what is wrong with the values."""
        return _outside(self, where, 0.0, MAX_ICC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ease:
    """Copula correlation of each stage with the task's ease, -.99 to .99.

    ``delta = .6`` makes errors on hard tasks less likely to be detected. It acts only where both stages vary
    between tasks (their icc is positive).
    """

    delta: float = 0.0
    sigma: float = 0.0
    s1: float = 0.0
    s2: float = 0.0
    q_t: float = 0.0
    delta_t: float = 0.0

    def faults(self, where: str) -> list[Fault]:
        """List what is wrong with the values."""
        return _outside(self, where, -0.99, 0.99)
