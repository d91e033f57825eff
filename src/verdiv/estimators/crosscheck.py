"""Frequentist cross-checks: Wilson and Clopper–Pearson intervals, and cluster-robust ones where draws repeat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from verdiv.estimators.observations import FloatArray

__all__ = ["ClusterRobust", "CrossCheck", "cross_check"]


@dataclass(frozen=True)
class ClusterRobust:
    """Ratio of sums with its sandwich interval, clusters being tasks."""

    estimate: float
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


def cross_check(
    n: FloatArray, k: FloatArray, *, independent: bool = True, level: float = 0.95
) -> CrossCheck | None:
    """Interval for ``Σk/Σn`` without a prior.

    Wilson's interval; at 0/n and n/n the exact one of Clopper and Pearson. Where tasks have several draws, the
    cluster-robust interval stands beside: weighted least squares of task rates on a constant with weights ``n`` and
    HC1 errors, which is the linearised ratio ``t/(t−1) Σ(k_i − p n_i)²/N²``.

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
    from statsmodels.stats.proportion import proportion_confint

    total, events = float(n.sum()), float(k.sum())
    if total <= 0:
        return None
    robust = _cluster_robust(n, k, level)
    rate = events / total
    if not independent:
        if robust is None:
            return None
        return CrossCheck("cluster-robust", robust.estimate, robust.low, robust.high, robust)
    extreme = events in (0.0, total)
    method = "beta" if extreme else "wilson"
    low, high = proportion_confint(events, total, alpha=1.0 - level, method=method)
    name = "Clopper–Pearson" if extreme else "Wilson"
    low = 0.0 if np.isnan(low) else float(low)
    high = 1.0 if np.isnan(high) else float(high)
    return CrossCheck(name, rate, low, high, robust)


def _cluster_robust(n: FloatArray, k: FloatArray, level: float) -> ClusterRobust | None:
    reached = n > 0
    if int(reached.sum()) < 2 or float(n[reached].max()) <= 1.0:
        return None
    rate = k[reached] / n[reached]
    if np.ptp(rate) == 0:
        return None
    import statsmodels.api as sm

    fit = sm.WLS(rate, np.ones((len(rate), 1)), weights=n[reached]).fit(cov_type="HC1", use_t=True)
    low, high = np.asarray(fit.conf_int(alpha=1.0 - level))[0]
    return ClusterRobust(float(fit.params[0]), float(low), float(high))
