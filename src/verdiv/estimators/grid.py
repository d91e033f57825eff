r"""The stage model by quadrature: (mu, tau) on a grid, families integrated out, exact to a stated error.

For each stage the families are independent given (mu, tau), so

.. math::
    p(\mu, \tau \mid K, N) \propto p(\mu)\, p(\tau) \prod_f \int L_f(\mu + \tau u)\, \phi(u)\, du

and every integral is a trapezoid over a smooth peak, which converges exponentially: in u between the points
where the integrand has fallen by a fixed drop, in mu likewise (its marginal is log-concave given tau), and in v
with :math:`\tau = s \sinh v`, where s is the smallest sampling error of a family. The map resolves spreads near
s and near the prior's scale alike, and since the integrand is even in tau, the end at 0 is no end at all. Using
every second node in each direction gives the stated error, which is an upper bound by a wide margin.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from verdiv.estimators.conditional import DROP, Conditional, integrate, sample, softplus_and_rate
from verdiv.estimators.posterior import StagePosterior
from verdiv.estimators.priors import Priors
from verdiv.estimators.spline import interpolate, spline_matrix
from verdiv.estimators.summary import StageSummary

__all__ = ["TOLERANCE", "fit_grid"]

Floats = npt.NDArray[np.float64]

TOLERANCE = 0.01
"""Largest accepted error of a mean or standard deviation, in posterior standard deviations."""

SPAN = (2.0 * DROP) ** 0.5
"""Standard deviations within which a normal density falls by DROP."""

NODES = (13, 21, 21)
"""Nodes in v, mu and u of the first pass; all odd, doubled in the directions that miss the tolerance."""

PASSES = 5
"""Most passes; the last is kept as it is, and its error tells."""

MAX_CELLS = 1_500_000
"""Largest number of (stage, v, mu, family, u) cells held at once."""

FINE = 6
"""How many times finer than the nodes the mesh is from which (mu, tau) is drawn."""


@dataclass(frozen=True, slots=True)
class _Problem:
    """A batch of stages: counts and priors, first axis the stage."""

    k: Floats
    n: Floats
    reference: Floats
    location: Floats
    scale: Floats
    tau_sd: float
    uniform: bool
    unit: Floats
    """Smallest sampling error of a family's logit, shape (S,)."""

    def rows(self, keep: npt.NDArray[np.int64]) -> _Problem:
        """Restrict to some stages."""
        return _Problem(
            self.k[keep],
            self.n[keep],
            self.reference[keep],
            self.location[keep],
            self.scale[keep],
            self.tau_sd,
            self.uniform,
            self.unit[keep],
        )


@dataclass(frozen=True, slots=True)
class _Mesh:
    """Posterior of one batch on its nodes."""

    v: Floats
    """Shape (S, T)."""
    low: Floats
    """Lower end of mu at each v, shape (S, T)."""
    high: Floats
    """Upper end of mu at each v, shape (S, T)."""
    log_density: Floats
    """Log density in (v, position between the ends), up to a constant, shape (S, T, M)."""
    mean: Floats
    """Shape (S, F)."""
    cov: Floats
    """Shape (S, F, F)."""
    error: Floats
    """Errors due to v, mu and u, shape (S, 3)."""


def _problem(summary: StageSummary, priors: Priors) -> _Problem:
    k, n = summary.k_effective, summary.n_effective
    reference = (k + 0.5) / (n + 1.0)
    precision = np.max(n * reference * (1.0 - reference), axis=1)
    unit = np.minimum(1.0 / np.sqrt(np.maximum(precision, 1e-12)), priors.tau_sd)
    location, scale = priors.locations(summary.stages)
    return _Problem(k, n, reference, location, scale, priors.tau_sd, priors.uniform, unit)


def _log_prior_mu(problem: _Problem, mu: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the log prior density of mu with its first two derivatives; mu has the stage as first axis."""
    if problem.uniform:
        softplus, rate = softplus_and_rate(mu)
        return mu - 2.0 * softplus, 1.0 - 2.0 * rate, -2.0 * rate * (1.0 - rate)
    tail = (1,) * (mu.ndim - 1)
    centre, sd = problem.location.reshape(-1, *tail), problem.scale.reshape(-1, *tail)
    z = (mu - centre) / sd
    return -0.5 * z * z - np.log(sd), -z / sd, np.broadcast_to(-1.0 / (sd * sd), mu.shape)


def _expand(counts: Floats, dims: int) -> Floats:
    """Insert axes between the stage and the family so that counts broadcast against (S, ..., F)."""
    return counts.reshape(counts.shape[0], *(1,) * (dims - 1), counts.shape[1])


def _families(problem: _Problem, mu: Floats, tau: Floats, points: int) -> tuple[Conditional, Conditional]:
    k, n, reference = (_expand(a, mu.ndim) for a in (problem.k, problem.n, problem.reference))
    return integrate(mu, np.broadcast_to(tau, mu.shape), k, n, reference, points=points)


def _marginal(problem: _Problem, mu: Floats, tau: Floats) -> tuple[Floats, Floats, Floats]:
    """Log density of mu given tau with its first two derivatives, families integrated out; shape of mu."""
    found = _families(problem, mu, tau, 11)[0]
    prior, slope, curve = _log_prior_mu(problem, mu)
    return (
        prior + found.log_mass.sum(axis=-1),
        slope + found.score.sum(axis=-1),
        np.minimum(curve + found.curvature.sum(axis=-1), -1e-9),
    )


def _peak(problem: _Problem, tau: Floats) -> tuple[Floats, Floats, Floats]:
    """Mode, height and curvature of mu given each tau; shapes (S, T)."""
    p = problem
    seen = p.n > 0
    rate = np.where(seen, (p.k + 0.01) / (p.n + 0.02), np.nan)
    logit = np.log(rate) - np.log1p(-rate)
    centre = np.zeros_like(p.location) if p.uniform else p.location
    scale = np.full_like(p.scale, 2.0) if p.uniform else p.scale
    low = np.fmin(np.nanmin(logit, axis=1, initial=np.inf), centre)[:, None] - 4.0 - 3.0 * tau
    high = np.fmax(np.nanmax(logit, axis=1, initial=-np.inf), centre)[:, None] + 4.0 + 3.0 * tau
    precision = p.n * p.reference * (1.0 - p.reference)
    weight = precision[:, None, :] / (1.0 + tau[..., None] ** 2 * precision[:, None, :])
    x = np.log(p.reference) - np.log1p(-p.reference)
    sharp = weight.sum(axis=-1) + (1.0 / scale**2)[:, None]
    mu = (np.sum(weight * x[:, None, :], axis=-1) + (centre / scale**2)[:, None]) / sharp
    last, done = high - low, np.zeros(low.shape, dtype=np.bool_)
    for _ in range(16):
        _, slope, curve = _marginal(problem, mu, tau)
        low, high = np.where(slope > 0, mu, low), np.where(slope > 0, high, mu)
        newton = -slope / curve
        arrived = np.abs(newton) * np.sqrt(-curve) < 0.05
        safe = (np.abs(newton) <= 0.5 * last) & (mu + newton > low) & (mu + newton < high)
        step = np.where(done, 0.0, np.where(arrived | safe, newton, 0.5 * (low + high) - mu))
        last, mu, done = np.abs(step), mu + step, done | arrived
        if done.all():
            break
    height, _, curve = _marginal(problem, mu, tau)
    return mu, height, curve


def _mu_ends(problem: _Problem, tau: Floats) -> tuple[Floats, Floats]:
    """Points left and right of the mode of mu where its density has fallen by DROP or a little more.

    No farther than the prior alone lets them be: sqrt(2 DROP) of its standard deviations, or twice DROP logits
    where the prior has exponential tails of slope 1.
    """
    mu, height, curve = _peak(problem, tau)
    farthest = np.full_like(problem.scale, 2.0 * DROP) if problem.uniform else problem.scale * SPAN
    reach = np.minimum(SPAN / np.sqrt(-curve), farthest[:, None])
    side = np.array([-1.0, 1.0])
    away = np.stack([reach, reach], axis=-1)
    done = np.zeros(away.shape, dtype=np.bool_)
    for _ in range(8):
        level, slope, _ = _marginal(problem, mu[..., None] + side * away, tau[..., None])
        downhill = slope * side < 0
        step = (level - height[..., None] + DROP) / np.where(downhill, slope * side, 1.0)
        new = np.where(downhill, np.clip(away - step, 0.2 * away, 3.0 * away), 2.0 * away)
        new = np.where(done, away, np.minimum(new, farthest[:, None, None]))
        done, away = np.abs(new - away) < 0.03 * new, new
        if done.all():
            break
    return mu - away[..., 0], mu + away[..., 1]


def _log_prior_v(problem: _Problem, v: Floats) -> tuple[Floats, Floats]:
    """Return tau and its log prior density in v; shapes (S, T)."""
    unit = problem.unit[:, None]
    tau = unit * np.sinh(v)
    return tau, -0.5 * (tau / problem.tau_sd) ** 2 + np.log(unit * np.cosh(v))


def _v_ends(problem: _Problem) -> tuple[Floats, Floats]:
    """Range of v that holds all but about exp(-DROP) of the posterior, by Laplace's method."""
    top = np.arcsinh(6.5 * problem.tau_sd / problem.unit)
    low = np.zeros_like(top)
    if problem.k.shape[1] == 1:
        return low, low
    for count in (13, 13):
        v = low[:, None] + (top - low)[:, None] * np.linspace(0.0, 1.0, count)
        tau, prior = _log_prior_v(problem, v)
        _, height, curve = _peak(problem, tau)
        density = prior + height - 0.5 * np.log(-curve)
        held = density > density.max(axis=1, keepdims=True) - DROP
        first = np.maximum(held.argmax(axis=1) - 1, 0)
        last = np.minimum(count - held[:, ::-1].argmax(axis=1), count - 1)
        rows = np.arange(len(low))
        low, top = v[rows, first], v[rows, last]
    return low, top


def _nodes(count: int) -> Floats:
    """Trapezoid weights up to the spacing."""
    weights = np.ones(count)
    weights[[0, -1]] = 0.5
    return weights


def _summaries(log_density: Floats, found: Conditional, reference: Floats) -> tuple[Floats, Floats]:
    """Posterior mean (S, F) and covariance (S, F, F) from densities on nodes (S, T, M)."""
    stages, outer, inner = log_density.shape
    weight = np.exp(log_density - log_density.max(axis=(1, 2), keepdims=True))
    weight = weight * _nodes(outer)[:, None] if outer > 1 else weight
    weight = weight * _nodes(inner)
    weight = (weight / weight.sum(axis=(1, 2), keepdims=True)).reshape(stages, -1)
    first = found.mean.reshape(stages, outer * inner, -1)
    second = found.square.reshape(stages, outer * inner, -1)
    away = np.einsum("sc,scf->sf", weight, first)
    centred = first - away[:, None, :]
    cov = np.einsum("sc,scf,scg->sfg", weight, centred, centred)
    inside = np.einsum("sc,scf->sf", weight, np.maximum(second - first * first, 0.0))
    diagonal = np.arange(first.shape[2])
    cov[:, diagonal, diagonal] += inside
    return reference + away, cov


def _thin(found: Conditional, outer: slice, inner: slice) -> Conditional:
    return Conditional(
        *(
            part[:, outer, inner]
            for part in (found.log_mass, found.mean, found.square, found.score, found.curvature)
        )
    )


def _solve(problem: _Problem, nodes: tuple[int, int, int], v_low: Floats, v_high: Floats) -> _Mesh:
    """Evaluate one batch on its mesh and compare it with every second node in each direction."""
    outer, inner, points = nodes
    single = problem.k.shape[1] == 1
    steps = np.linspace(0.0, 1.0, 1 if single else outer)
    v = v_low[:, None] + (v_high - v_low)[:, None] * steps
    tau, prior_v = (np.zeros_like(v),) * 2 if single else _log_prior_v(problem, v)
    low, high = _mu_ends(problem, tau)
    mu = low[..., None] + (high - low)[..., None] * np.linspace(0.0, 1.0, inner)
    full, half = _families(problem, mu, tau[..., None], points)
    base = _log_prior_mu(problem, mu)[0] + (prior_v + np.log(high - low))[..., None]
    density = base + full.log_mass.sum(axis=-1)
    mean, cov = _summaries(density, full, problem.reference)
    every, second = slice(None), slice(None, None, 2)
    rivals = (
        _summaries(density[:, second], _thin(full, second, every), problem.reference),
        _summaries(density[:, :, second], _thin(full, every, second), problem.reference),
        _summaries(base + half.log_mass.sum(axis=-1), half, problem.reference),
    )
    sd = _sd(cov)
    gaps = [np.maximum(np.abs(m - mean), np.abs(_sd(c) - sd)) / sd for m, c in rivals]
    return _Mesh(v, low, high, density, mean, cov, np.max(gaps, axis=2).T)


def _sd(cov: Floats) -> Floats:
    return np.sqrt(np.maximum(np.diagonal(cov, axis1=1, axis2=2), 1e-300))


def _upsampling(count: int) -> Floats:
    """Matrix of the cubic spline that carries values on nodes to the middles of FINE times as many cells."""
    return np.ones((1, 1)) if count == 1 else spline_matrix(count, FINE)


def _draw(
    mesh: _Mesh, row: int, problem: _Problem, draws: int, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Draw (rates, mu, tau) of one stage jointly: shapes (draws, F), (draws,), (draws,)."""
    if draws == 0:
        return np.empty((0, problem.k.shape[1])), np.empty(0), np.empty(0)
    up_v, up_mu = _upsampling(mesh.log_density.shape[1]), _upsampling(mesh.log_density.shape[2])
    density = up_v @ (mesh.log_density[row] - mesh.log_density[row].max()) @ up_mu.T
    edges = np.cumsum(np.exp(density - density.max()).ravel())
    cell = np.searchsorted(edges, rng.random(draws) * edges[-1], side="right")
    row_v, row_mu = np.divmod(np.minimum(cell, edges.size - 1), density.shape[1])
    nodes = np.arange(mesh.v.shape[1])
    if nodes.size > 1:
        at = (row_v + rng.random(draws)) / density.shape[0] * (nodes.size - 1)
        v = np.interp(at, nodes, mesh.v[row])
        low, high = (interpolate(ends[row], at) for ends in (mesh.low, mesh.high))
    else:
        v, low, high = np.zeros(draws), mesh.low[row, 0], mesh.high[row, 0]
    mu = low + (high - low) * (row_mu + rng.random(draws)) / density.shape[1]
    tau = problem.unit[row] * np.sinh(v)
    logits = sample(mu, tau, problem.k[row], problem.n[row], rng)
    return softplus_and_rate(logits)[1], mu, tau


def fit_grid(summary: StageSummary, priors: Priors, *, draws: int = 4000, seed: int = 0) -> StagePosterior:
    r"""Posterior of all stage rates by quadrature.

    .. math::
        L_{s,f} = m^{K/d} (1 - m)^{(N - K)/d}, \quad \mathrm{logit}\, m_{s,f} = \mu_s + \tau_s u_{s,f},
        \quad u \sim N(0, 1)

    with tau dropped where the suite has one family. Stages share no parameter, so each is solved apart.

    Parameters
    ----------
    summary
        Counts and design effects.
    priors
        Priors of mu and tau.
    draws
        Joint posterior draws per stage; moments do not depend on them, and 0 asks for moments alone.
    seed
        Seed of the draws. Each stage has its own stream, named by the stage, so that adding a stage leaves
        the draws of the others as they were.

    Returns
    -------
    StagePosterior
        Moments with their numerical error (in posterior standard deviations) and joint draws. A family with
        N = 0 is predicted by the hierarchy; K = 0 and K = N need no correction.

    Examples
    --------
    One family and a uniform prior on the rate give the Beta(K + 1, N - K + 1) posterior, here of mean 8/12.

    >>> one = np.ones((1, 1))
    >>> tasks = np.ones((1, 1), dtype=np.int64)
    >>> summary = StageSummary(("q",), ("all",), 10 * one, 7 * one, np.ones(1), tasks)
    >>> found = fit_grid(summary, Priors(uniform=True), draws=10)
    >>> round(float(found.mean[0, 0]), 6)
    0.666667
    """
    count, families = summary.N.shape
    problem = _problem(summary, priors)
    mean, cov = np.zeros((count, families)), np.zeros((count, families, families))
    error = np.full(count, np.inf)
    rates: dict[str, Floats] = {}
    mus: dict[str, Floats] = {}
    taus: dict[str, Floats] = {}
    queue = [(rows, NODES, 1) for rows in _batches(count, families)]
    while queue:
        rows, nodes, level = queue.pop()
        batch = problem.rows(rows)
        mesh = _solve(batch, nodes, *_v_ends(batch))
        later: dict[tuple[int, int, int], list[int]] = {}
        for place, row in enumerate(rows):
            if mesh.error[place].sum() >= TOLERANCE and level < PASSES:
                later.setdefault(_finer(nodes, mesh.error[place]), []).append(int(row))
                continue
            name = summary.stages[row]
            rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
            mean[row], cov[row], error[row] = mesh.mean[place], mesh.cov[place], mesh.error[place].sum()
            rates[name], mus[name], taus[name] = _draw(mesh, place, batch, draws, rng)
        queue += [(np.array(members), finer, level + 1) for finer, members in later.items()]
    order = summary.stages
    return StagePosterior(
        "grid",
        order,
        summary.families,
        {name: rates[name] for name in order},
        {name: mus[name] for name in order},
        {name: taus[name] for name in order},
        mean,
        cov,
        error,
    )


def _finer(nodes: tuple[int, int, int], error: Floats) -> tuple[int, int, int]:
    """Double the directions that hold more than a quarter of the tolerance."""
    outer, inner, points = (
        2 * size - 1 if more else size for size, more in zip(nodes, error > TOLERANCE / 4, strict=True)
    )
    return outer, inner, points


def _batches(count: int, families: int) -> list[npt.NDArray[np.int64]]:
    """Split the stages so that no batch holds more than MAX_CELLS cells."""
    per_stage = int(np.prod(NODES)) * families
    size = max(1, MAX_CELLS // per_stage)
    return [np.arange(start, min(start + size, count)) for start in range(0, count, size)]
