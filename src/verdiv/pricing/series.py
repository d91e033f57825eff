"""The few array tools that every price is built from: budgets, trials until success, masses."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from verdiv.errors import Fault, UsageRefused

__all__ = [
    "MAX_BUDGET",
    "Array",
    "as_array",
    "budget_array",
    "mass_times",
    "odd_array",
    "success_within",
    "trials_within",
]

Array = npt.NDArray[np.float64]
"""A float array of any shape; zero-dimensional for scalar input."""

MAX_BUDGET = 100_000
"""Largest finite budget that is priced; beyond it only the limit (``inf``) is."""

SMALLEST = 1e-300
"""Rates up to here count as zero where they divide."""


def as_array(value: npt.ArrayLike) -> Array:
    """Read numbers as a float array without copying one that already is."""
    return np.asarray(value, dtype=np.float64)


def budget_array(budget: npt.ArrayLike, *, name: str = "budget", limit: bool = True) -> Array:
    """Check draw budgets: whole numbers from 1, or ``inf`` for the limit.

    Parameters
    ----------
    budget
        Budgets in draws, any shape.
    name
        What the error message calls them.
    limit
        Whether ``inf`` is a budget here.

    Returns
    -------
    ndarray
        The budgets as floats.

    Raises
    ------
    UsageRefused
        A budget below 1, above `MAX_BUDGET`, not whole, or NaN.
    """
    values = as_array(budget)
    whole = (values >= 1) & (values <= MAX_BUDGET) & (values == np.floor(values))
    if limit:
        whole |= np.isposinf(values)
    if not np.all(whole):
        wrong = values[~whole].flat[0]
        raise UsageRefused(
            f"cannot price this {name}",
            [
                Fault(
                    where=name,
                    expected=f"whole draws from 1 to {MAX_BUDGET}" + (" or inf" if limit else ""),
                    got=f"{wrong:g}",
                    remedy=f"give a {name} that counts draws",
                )
            ],
        )
    return values


def odd_array(k: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Check the sample counts of a majority vote: odd whole numbers, so that two answers cannot tie.

    Raises
    ------
    UsageRefused
        A count that is even, not whole, or outside 1 … `MAX_BUDGET`.
    """
    counts = budget_array(k, name="number of votes", limit=False).astype(np.int64)
    if np.any(counts % 2 == 0):
        raise UsageRefused(
            "cannot price a majority that can tie",
            [
                Fault(
                    where="number of votes",
                    expected="an odd count",
                    got=str(int(counts[counts % 2 == 0].flat[0])),
                    remedy="use k = 1, 3, 5, …",
                )
            ],
        )
    return counts


def success_within(rate: npt.ArrayLike, count: npt.ArrayLike) -> Array:
    """Give the probability of a success within `count` independent trials: 1 − (1 − s)^n.

    Computed as −expm1(n log1p(−s)), exact for the smallest rates. A rate of 0 never succeeds, also for
    ``inf`` trials; NaN stays NaN.

    Examples
    --------
    >>> float(success_within(0.5, 2))
    0.75
    """
    s, n = np.broadcast_arrays(as_array(rate), as_array(count))
    inner = (s > 0) & (s < 1)
    safe = np.where(inner, s, 0.5)
    edge = np.where(s == 0, 0.0, np.where(s == 1, np.minimum(n, 1.0), np.nan))
    return np.asarray(np.where(inner, -np.expm1(n * np.log1p(-safe)), edge))


def trials_within(rate: npt.ArrayLike, count: npt.ArrayLike) -> Array:
    """Give the expected trials until a success or `count` of them: Σ_{j<n} (1 − s)^j = (1 − (1 − s)^n)/s.

    Parameters
    ----------
    rate
        Success of a trial, in [0, 1]; NaN stays NaN.
    count
        Number of trials at most, from 0; ``inf`` gives 1/s, which is ``inf`` at s = 0.

    Returns
    -------
    ndarray
        Broadcast of both.

    Examples
    --------
    >>> float(trials_within(0.5, 3))
    1.75
    >>> float(trials_within(0.0, 3))
    3.0
    """
    s, n = np.broadcast_arrays(as_array(rate), as_array(count))
    some = s > SMALLEST
    return np.asarray(np.where(some, success_within(s, n) / np.where(some, s, 1.0), np.where(s >= 0, n, s)))


def mass_times(mass: npt.ArrayLike, value: npt.ArrayLike) -> Array:
    """Multiply a probability mass by a value, with 0 · inf = 0: what nobody reaches costs nothing."""
    m, v = np.broadcast_arrays(as_array(mass), as_array(value))
    return np.asarray(m * np.where(m == 0, 0.0, v))
