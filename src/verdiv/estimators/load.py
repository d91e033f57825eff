"""H: how device time grows with the requests in flight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from verdiv.estimators.observations import DrawColumns, FloatArray

__all__ = ["LoadFit", "NotEstimable", "fit_load", "load_draws"]

MIN_DRAWS = 10
"""Draws below which the regression is not attempted."""
MIN_TASKS = 10
"""Tasks with varying load below which no cluster-robust error exists worth the name."""


@dataclass(frozen=True)
class LoadFit:
    """Fitted load exponent with its cluster-robust error."""

    kind: Literal["device seconds", "latency"]
    """What the left-hand side was; latency cannot price the device."""
    H: float
    """Elasticity: log device seconds per log request in flight."""
    se: float
    """Standard error, clustered by task."""
    beta: float | None
    """Elasticity in tokens out, None where they do not vary."""
    draws: int
    tasks: int
    df: int
    """Degrees of freedom of the t reference: clusters minus one."""


@dataclass(frozen=True)
class NotEstimable:
    """Why a quantity cannot be estimated."""

    reason: str


def _within(values: FloatArray, task: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> FloatArray:
    size = np.bincount(task)
    return values - (np.bincount(task, weights=values) / np.maximum(size, 1))[task]


def fit_load(draws: DrawColumns, condition: str = "primary") -> LoadFit | NotEstimable:
    """Fit ``log(device seconds) = α_task + H log(in flight) + β log(tokens out)`` on the small tier.

    Ordinary least squares after demeaning within tasks (the task effects α), with errors clustered by task
    (*The Verifier's Dividend*, load price H of P6). Device seconds are used where the server tells them; otherwise
    wall-clock latency, labelled so: batching raises latency while it lowers device seconds.

    Returns
    -------
    LoadFit or NotEstimable
        Not estimable where the load column is absent or constant within every task.
    """
    import statsmodels.api as sm

    base = draws.measured & (draws.condition == condition) & (draws.tier != "teacher")
    base &= draws.source == np.arange(len(draws))
    if not (base & np.isfinite(draws.in_flight)).any():
        return NotEstimable("no in_flight column: the load of the draws is not logged")
    kind: Literal["device seconds", "latency"] = "device seconds"
    time = draws.device_seconds
    if not (base & np.isfinite(time) & (time > 0)).any():
        kind, time = "latency", draws.seconds
    use = base & np.isfinite(draws.in_flight) & np.isfinite(time) & (time > 0)
    if not use.any():
        return NotEstimable("neither device seconds nor start and end times are logged")
    if np.ptp(draws.in_flight[use]) == 0:
        return NotEstimable("constant load: every draw started with the same number of requests in flight")
    rows = np.flatnonzero(use)
    _, task = np.unique(draws.task[rows], return_inverse=True)
    load = _within(np.log(draws.in_flight[rows]), task)
    if float(np.abs(load).max()) < 1e-9:
        return NotEstimable("constant load within every task: only task effects could explain the times")
    varied = len(np.unique(task[np.abs(load) > 1e-9]))
    if len(rows) < MIN_DRAWS or varied < MIN_TASKS:
        return NotEstimable(
            f"the load varies within {varied} tasks only; errors clustered by task need {MIN_TASKS} of them"
        )
    columns = [load]
    tokens = draws.tokens_out[rows]
    if np.isfinite(tokens).all() and (tokens > 0).all():
        size = _within(np.log(tokens), task)
        if float(np.abs(size).max()) > 1e-9:
            columns.append(size)
    design = np.stack(columns, axis=1)
    if np.linalg.matrix_rank(design) < design.shape[1]:
        return NotEstimable("load and output length move together: their effects cannot be told apart")
    fit = sm.OLS(_within(np.log(time[rows]), task), design).fit(
        cov_type="cluster", cov_kwds={"groups": task}, use_t=True
    )
    clusters = int(task.max()) + 1
    return LoadFit(
        kind=kind,
        H=float(fit.params[0]),
        se=float(fit.bse[0]),
        beta=float(fit.params[1]) if design.shape[1] > 1 else None,
        draws=len(rows),
        tasks=clusters,
        df=clusters - 1,
    )


def load_draws(fit: LoadFit, draws: int, seed: int) -> FloatArray:
    """Draws from the t distribution that the cluster-robust fit refers H to, shape ``(draws,)``."""
    rng = np.random.default_rng(np.random.SeedSequence([seed, 0x10AD]))
    return fit.H + fit.se * rng.standard_t(fit.df, size=draws)
