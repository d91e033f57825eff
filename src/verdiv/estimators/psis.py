r"""Leave-one-out predictive densities by Pareto-smoothed importance sampling, in NumPy alone.

Leaving observation p out weighs each posterior draw by :math:`1 / p(y_p \mid \theta)`. The largest weights are
replaced by the quantiles of the generalised Pareto distribution fitted to them (Vehtari, Simpson, Gelman, Yao and
Gabry, *Pareto smoothed importance sampling*, JMLR 2024), whose shape k says whether the estimate can be trusted; the
fit is the empirical-Bayes one of Zhang and Stephens (2009) with ten pseudo-observations at k = 1/2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["PsisLoo", "psis_loo"]

Floats = npt.NDArray[np.float64]

SMALLEST_TAIL = 5
"""Largest weights below which no tail is fitted."""

SHRUNK_TO, PSEUDO = 0.5, 10.0
"""Value that the shape is shrunk to, and with how many pseudo-observations."""


@dataclass(frozen=True, slots=True)
class PsisLoo:
    """PSIS-LOO of each observation."""

    elpd: Floats
    """Log predictive density of the observation without it, shape (P,)."""
    pareto_k: Floats
    """Shape of the importance weights' tail; above .7 the entry cannot be trusted. Shape (P,)."""


def _log_mean_exp(x: Floats) -> float:
    top = float(x.max())
    return top + float(np.log(np.mean(np.exp(x - top))))


def _pareto(exceedance: Floats) -> tuple[float, float]:
    """Fit shape and scale to sorted exceedances above 0."""
    count = exceedance.size
    steps = 30 + int(count**0.5)
    quartile = exceedance[int(count / 4.0 + 0.5) - 1]
    theta = 1.0 / exceedance[-1] + (1.0 - np.sqrt(steps / (np.arange(steps) + 0.5))) / (3.0 * quartile)
    shape = np.log1p(-theta[:, None] * exceedance).mean(axis=1)
    profile = count * (np.log(-theta / shape) - shape - 1.0)
    weight = np.exp(profile - profile.max())
    weight /= weight.sum()
    centre = float(weight @ theta)
    k = float(np.log1p(-centre * exceedance).mean())
    return (count * k + PSEUDO * SHRUNK_TO) / (count + PSEUDO), -k / centre


def _smooth(log_weight: Floats, tail: int) -> tuple[Floats, float]:
    """Smooth the largest of some log weights; returns them up to a constant, none above 0, and the shape."""
    x = log_weight - log_weight.max()
    order = np.argpartition(x, x.size - tail - 1)
    cutoff = max(float(x[order[x.size - tail - 1]]), float(np.log(np.finfo(np.float64).tiny)))
    above = np.flatnonzero(x > cutoff)
    if above.size < SMALLEST_TAIL:
        return x, np.inf
    above = above[np.argsort(x[above], kind="stable")]
    exceedance = np.exp(x[above]) - np.exp(cutoff)
    if not exceedance[0] > 0.0:
        return x, np.inf
    k, scale = _pareto(exceedance)
    if np.isfinite(k):
        rank = np.log1p(-(np.arange(above.size) + 0.5) / above.size)
        quantile = -scale * rank if abs(k) < 1e-12 else scale * np.expm1(-k * rank) / k
        x[above] = np.log(quantile + np.exp(cutoff))
        x = np.minimum(x, 0.0)
    return x, k


def psis_loo(log_likelihood: Floats, *, tail: int | None = None) -> PsisLoo:
    r"""Leave each observation out.

    Parameters
    ----------
    log_likelihood
        Log likelihood of each observation under each posterior draw, shape (draws, P). Draws are taken as
        independent: of chains that mix slowly the tail would be taken a little longer.
    tail
        Number of largest weights that are smoothed; :math:`\lceil\min(S/5, 3\sqrt S)\rceil` of S draws if absent.

    Returns
    -------
    PsisLoo
        Where the likelihood hardly varies no tail can be fitted: the shape is infinite then, unless all draws
        agree, which makes the plain mean exact and the shape minus infinity.

    Examples
    --------
    >>> float(psis_loo(np.full((100, 1), -2.0)).elpd[0])
    -2.0
    """
    draws, points = log_likelihood.shape
    length = int(np.ceil(min(0.2 * draws, 3.0 * np.sqrt(draws)))) if tail is None else tail
    elpd, shape = np.empty(points), np.empty(points)
    for p in range(points):
        y = log_likelihood[:, p]
        if np.ptp(y) == 0.0:
            elpd[p], shape[p] = y[0], -np.inf
            continue
        weight, shape[p] = _smooth(-y, length)
        elpd[p] = _log_mean_exp(weight + y) - _log_mean_exp(weight)
    return PsisLoo(elpd, shape)
