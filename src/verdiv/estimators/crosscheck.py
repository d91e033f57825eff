"""Frequentist cross-checks: Wilson and Clopper–Pearson intervals, and cluster-robust ones where draws repeat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, ndtri, stdtrit

from verdiv.estimators.observations import FloatArray
from verdiv.estimators.summary import all_equal, cluster_size

__all__ = ["ByTasks", "ClusterRobust", "CrossCheck", "cross_check"]


@dataclass(frozen=True)
class ClusterRobust:
    """Ratio of sums with its sandwich interval, clusters being tasks."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class ByTasks:
    """Exact interval of 0/n or n/n with tasks in place of draws, which holds however draws cluster in tasks.

    With equally many draws a task, a task shows an event with at least the chance that one draw of it does; so the
    bound for no event in any of the tasks also bounds the rate of draws.
    """

    tasks: int
    """Tasks with a draw."""
    effective: float
    """Tasks of equal weight that they come to, ``(Σn)²/Σn²``; what the interval is computed for."""
    low: float
    high: float


@dataclass(frozen=True)
class CrossCheck:
    """A frequentist interval for k of n."""

    method: str
    estimate: float
    low: float
    high: float
    cluster_robust: ClusterRobust | None
    """None where every task has one draw, or fewer than two tasks, or no spread at all."""
    by_tasks: ByTasks | None = None
    """Where all draws of tasks with several are equal, so that nothing tells how they cluster."""


def cross_check(
    n: FloatArray, k: FloatArray, *, independent: bool = True, level: float = 0.95
) -> CrossCheck | None:
    """Interval for ``Σk/Σn`` without a prior.

    Wilson's interval; at 0/n and n/n the exact one of Clopper and Pearson. Where tasks have several draws, the
    cluster-robust interval stands beside: weighted least squares of task rates on a constant with weights ``n`` and
    HC1 errors, which is the linearised ratio ``t/(t−1) Σ(k_i − p n_i)²/N²``. At 0/n and n/n, where that has no
    spread, Clopper and Pearson's interval with tasks in place of draws stands beside.

    Parameters
    ----------
    n, k
        Counts per task, shape ``(tasks,)``.
    independent
        False where the counts are not independent draws (pairs): only the cluster-robust interval is then given.
    level
        Confidence.

    Returns
    -------
    CrossCheck or None
        None where nothing was drawn.

    Examples
    --------
    >>> c = cross_check(np.ones(10), np.zeros(10))
    >>> c.method, round(c.high, 4)
    ('Clopper–Pearson', 0.3085)
    """
    total, events = float(n.sum()), float(k.sum())
    if total <= 0:
        return None
    robust = _cluster_robust(n, k, level)
    rate = events / total
    if not independent:
        if robust is None:
            return None
        return CrossCheck("cluster-robust", robust.estimate, robust.low, robust.high, robust)
    if events in (0.0, total):
        low, high = _clopper_pearson(events, total, level)
        return CrossCheck("Clopper–Pearson", rate, low, high, robust, _by_tasks(n, k, level))
    low, high = _wilson(rate, total, level)
    return CrossCheck("Wilson", rate, low, high, robust)


def _wilson(rate: float, total: float, level: float) -> tuple[float, float]:
    z = float(ndtri(0.5 + 0.5 * level))
    shrink = 1.0 + z * z / total
    centre = (rate + z * z / (2.0 * total)) / shrink
    half = z / shrink * np.sqrt(rate * (1.0 - rate) / total + z * z / (4.0 * total * total))
    return float(centre - half), float(centre + half)


def _clopper_pearson(events: float, total: float, level: float) -> tuple[float, float]:
    tail = 0.5 * (1.0 - level)
    low = float(betaincinv(events, total - events + 1.0, tail)) if events > 0 else 0.0
    high = float(betaincinv(events + 1.0, total - events, 1.0 - tail)) if events < total else 1.0
    return low, high


def _by_tasks(n: FloatArray, k: FloatArray, level: float) -> ByTasks | None:
    size = cluster_size(n)
    if size <= 1.0 or not all_equal(n, k):
        return None
    effective = float(n.sum()) / size
    low, high = _clopper_pearson(effective if k.any() else 0.0, effective, level)
    return ByTasks(int((n > 0).sum()), effective, low, high)


def _cluster_robust(n: FloatArray, k: FloatArray, level: float) -> ClusterRobust | None:
    reached = n > 0
    if int(reached.sum()) < 2 or float(n[reached].max()) <= 1.0:
        return None
    rate = k[reached] / n[reached]
    if np.ptp(rate) == 0:
        return None
    weight, total = n[reached], float(n.sum())
    mean, tasks = float(k.sum()) / total, len(rate)
    squares = float(np.sum((weight * (rate - mean)) ** 2))
    error = float(np.sqrt(tasks / (tasks - 1.0) * squares)) / total
    reach = float(stdtrit(tasks - 1.0, 0.5 + 0.5 * level)) * error
    return ClusterRobust(mean, mean - reach, mean + reach)
