"""H: how device time grows with the requests in flight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from verdiv.estimators.columns import Joiner, Sharer
from verdiv.estimators.observations import BoolArray, DrawColumns, FloatArray

__all__ = [
    "MOMENT_COLUMNS",
    "LoadFit",
    "LoadMoments",
    "NotEstimable",
    "fit_load",
    "fit_load_moments",
    "join_moments",
    "load_draws",
    "load_moments",
    "no_moments",
    "shared_moments",
]

MIN_DRAWS = 10
"""Draws below which the regression is not attempted."""
MIN_TASKS = 10
"""Tasks with varying load below which no cluster-robust error exists worth the name."""
MOMENT_COLUMNS = ("n", "tokens", "xx", "xz", "zz", "xy", "zy", "x_most", "z_most")
"""Arrays of the moments, one entry a task."""
STILL = 1e-9
"""Largest distance from its task's mean at which a logarithm counts as constant."""
ALIKE = 1e-12
"""Smallest share of the load's variation that output length must leave unexplained."""


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


@dataclass(frozen=True)
class LoadMoments:
    """All that the regression needs of each task; arrays of shape ``(tasks,)``.

    Logarithms are measured from their task's mean. ``x`` is the load, ``z`` the tokens out, ``y`` the time.
    """

    logged: bool
    """Whether any draw says how many requests were in flight."""
    n: FloatArray
    """Draws with load and time."""
    tokens: FloatArray
    """Those among them with tokens out."""
    xx: FloatArray
    xz: FloatArray
    zz: FloatArray
    xy: FloatArray
    zy: FloatArray
    x_most: FloatArray
    """Largest distance of a load from its task's mean."""
    z_most: FloatArray
    """The same of tokens out."""
    least: float
    """Fewest requests in flight, infinite without draws."""
    most: float
    """Most requests in flight, minus infinity without draws."""


def _moments(draws: DrawColumns, base: BoolArray, time: FloatArray) -> LoadMoments:
    tasks = len(draws.tasks)
    logged = base & np.isfinite(draws.in_flight)
    rows = np.flatnonzero(logged & np.isfinite(time) & (time > 0))
    task, tokens = draws.task[rows], draws.tokens_out[rows]
    n = np.bincount(task, minlength=tasks).astype(np.float64)
    counted = np.isfinite(tokens) & (tokens > 0)

    def total(values: FloatArray) -> FloatArray:
        return np.bincount(task, weights=values, minlength=tasks).astype(np.float64)

    def within(values: FloatArray) -> FloatArray:
        centred: FloatArray = values - (total(values) / np.maximum(n, 1.0))[task]
        return centred

    def furthest(values: FloatArray) -> FloatArray:
        out = np.zeros(tasks)
        np.maximum.at(out, task, np.abs(values))
        return out

    x, y = within(np.log(draws.in_flight[rows])), within(np.log(time[rows]))
    z = within(np.log(np.where(counted, tokens, 1.0)))
    return LoadMoments(
        logged=bool(logged.any()),
        n=n,
        tokens=total(counted.astype(np.float64)),
        xx=total(x * x),
        xz=total(x * z),
        zz=total(z * z),
        xy=total(x * y),
        zy=total(z * y),
        x_most=furthest(x),
        z_most=furthest(z),
        least=float(draws.in_flight[rows].min(initial=np.inf)),
        most=float(draws.in_flight[rows].max(initial=-np.inf)),
    )


def load_moments(draws: DrawColumns, condition: str = "primary") -> tuple[LoadMoments, LoadMoments]:
    """Sums per task of the small tier's measured draws, for device seconds and for latency.

    Returns
    -------
    tuple
        Moments with device seconds, and with wall-clock latency, as the left-hand side.
    """
    base = draws.measured & draws.condition.equals(condition) & ~draws.tier.equals("teacher")
    base &= draws.source == np.arange(len(draws))
    return _moments(draws, base, draws.device_seconds), _moments(draws, base, draws.seconds)


def join_moments(
    parts: Sequence[tuple[LoadMoments, LoadMoments]], joined: Joiner
) -> tuple[LoadMoments, LoadMoments]:
    """Lay the moments of other tasks side by side, in the order wanted."""

    def one(which: int) -> LoadMoments:
        found = [part[which] for part in parts]
        columns = {name: joined([getattr(m, name) for m in found]) for name in MOMENT_COLUMNS}
        return replace(
            found[0],
            logged=any(m.logged for m in found),
            least=min(m.least for m in found),
            most=max(m.most for m in found),
            **columns,
        )

    return one(0), one(1)


def shared_moments(moments: tuple[LoadMoments, LoadMoments], once: Sharer) -> tuple[LoadMoments, LoadMoments]:
    """Hold equal columns once."""

    def one(m: LoadMoments) -> LoadMoments:
        columns: dict[str, Any] = {name: once(getattr(m, name)) for name in MOMENT_COLUMNS}
        return replace(m, **columns)

    return one(moments[0]), one(moments[1])


def no_moments(none: FloatArray) -> tuple[LoadMoments, LoadMoments]:
    """Moments of tasks without a draw under a condition; every column is that of zeros given."""
    empty = LoadMoments(False, none, none, none, none, none, none, none, none, none, np.inf, -np.inf)
    return empty, empty


def fit_load(draws: DrawColumns, condition: str = "primary") -> LoadFit | NotEstimable:
    """Fit the load exponent to draws; see :func:`fit_load_moments`."""
    return fit_load_moments(load_moments(draws, condition))


def fit_load_moments(moments: tuple[LoadMoments, LoadMoments]) -> LoadFit | NotEstimable:
    r"""Fit ``log(device seconds) = α_task + H log(in flight) + β log(tokens out)`` on the small tier.

    Ordinary least squares after demeaning within tasks (the task effects α), with errors clustered by task
    (*The Verifier's Dividend*, load price H of P6):

    .. math::
        V = \frac{G}{G - 1} \frac{n - 1}{n - p} A^{-1} \Bigl(\sum_g s_g s_g^T\Bigr) A^{-1}, \quad
        A = \sum_g X_g^T X_g, \quad s_g = X_g^T y_g - X_g^T X_g \hat\beta

    so that sums per task suffice. Device seconds are used where the server tells them; otherwise wall-clock latency,
    labelled so: batching raises latency while it lowers device seconds.

    Parameters
    ----------
    moments
        Of device seconds and of latency, as :func:`load_moments` makes them.

    Returns
    -------
    LoadFit or NotEstimable
        Not estimable where the load column is absent or constant within every task.
    """
    kind: Literal["device seconds", "latency"] = "device seconds"
    m = moments[0]
    if not m.logged:
        return NotEstimable("no in_flight column: the load of the draws is not logged")
    if not m.n.any():
        kind, m = "latency", moments[1]
    if not m.n.any():
        return NotEstimable("neither device seconds nor start and end times are logged")
    if m.least == m.most:
        return NotEstimable("constant load: every draw started with the same number of requests in flight")
    draws, clusters = int(m.n.sum()), int((m.n > 0).sum())
    if float(m.x_most.max()) < STILL:
        return NotEstimable("constant load within every task: only task effects could explain the times")
    varied = int((m.x_most > STILL).sum())
    if draws < MIN_DRAWS or varied < MIN_TASKS:
        tasks = "1 task" if varied == 1 else f"{varied} tasks"
        return NotEstimable(f"the load varies within {tasks}; errors clustered by task need {MIN_TASKS}")
    both = bool((m.tokens == m.n).all()) and float(m.z_most.max()) > STILL
    if both and _alike(m):
        return NotEstimable("load and output length move together: their effects cannot be told apart")
    found, error = _least_squares(m, draws, clusters, both=both)
    return LoadFit(
        kind=kind,
        H=float(found[0]),
        se=float(error),
        beta=float(found[1]) if both else None,
        draws=draws,
        tasks=clusters,
        df=clusters - 1,
    )


def _alike(m: LoadMoments) -> bool:
    xx, xz, zz = float(m.xx.sum()), float(m.xz.sum()), float(m.zz.sum())
    return xx * zz - xz * xz <= ALIKE * xx * zz


def _least_squares(m: LoadMoments, draws: int, clusters: int, *, both: bool) -> tuple[FloatArray, float]:
    """Coefficients, and the cluster-robust error of the first."""
    gram = np.stack([np.stack([m.xx, m.xz], axis=-1), np.stack([m.xz, m.zz], axis=-1)], axis=-1)
    right = np.stack([m.xy, m.zy], axis=-1)
    if not both:
        gram, right = gram[:, :1, :1], right[:, :1]
    whole = gram.sum(axis=0)
    found: FloatArray = np.linalg.solve(whole, right.sum(axis=0))
    scores = right - gram @ found
    parameters = found.size
    scale = clusters / (clusters - 1.0) * (draws - 1.0) / (draws - parameters)
    bread = np.linalg.inv(whole)
    return found, float(np.sqrt(scale * (bread @ (scores.T @ scores) @ bread)[0, 0]))


def load_draws(fit: LoadFit, draws: int, seed: int) -> FloatArray:
    """Draws from the t distribution that the cluster-robust fit refers H to, shape ``(draws,)``."""
    rng = np.random.default_rng(np.random.SeedSequence([seed, 0x10AD]))
    return fit.H + fit.se * rng.standard_t(fit.df, size=draws)
