"""Data for tests of the hierarchical model, and its posterior by brute force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import log_expit

from verdiv.estimators.priors import Priors
from verdiv.estimators.summary import CountBlock, StageSummary, StageTally, count_block

__all__ = ["beta_binomial_block", "brute_force", "summary_of"]

Floats = npt.NDArray[np.float64]


def summary_of(
    counts: Mapping[str, tuple[Sequence[float], Sequence[float]]], deff: float | Sequence[float] = 1.0
) -> StageSummary:
    """Stage name to (K, N) per family."""
    events = np.array([pair[0] for pair in counts.values()], dtype=np.float64)
    total = np.array([pair[1] for pair in counts.values()], dtype=np.float64)
    families = tuple(f"f{i}" for i in range(total.shape[1]))
    return StageSummary(
        tuple(counts),
        families,
        total,
        events,
        np.broadcast_to(np.asarray(deff, dtype=np.float64), len(counts)).copy(),
        (total > 0).astype(np.int64),
    )


def brute_force(k: Sequence[float], n: Sequence[float], priors: Priors) -> tuple[Floats, Floats]:
    """Posterior mean (F,) and covariance (F, F) on dense grids of x, mu and tau, without any adaptation."""
    events, total = (np.asarray(v, dtype=np.float64)[:, None] for v in (k, n))
    location = priors.mu("q")
    x = np.linspace(-22.0, 22.0, 2001)
    mu = np.linspace(location.mean - 6.5 * location.sd, location.mean + 6.5 * location.sd, 221)
    tau = (np.arange(110) + 0.5) / 110 * 5.2 * priors.tau_sd
    rate = 1.0 / (1.0 + np.exp(-x))
    likelihood = np.exp(events * log_expit(x) + (total - events) * log_expit(-x))
    mass, first, second = 0.0, np.zeros(len(n)), np.zeros((len(n), len(n)))
    for t in tau:
        kernel = np.exp(-0.5 * ((x - mu[:, None]) / t) ** 2) / t
        inside = kernel @ likelihood.T
        mean = kernel @ (likelihood * rate).T / inside
        square = kernel @ (likelihood * rate**2).T / inside
        z = (mu - location.mean) / location.sd
        weight = np.exp(-0.5 * z**2 - 0.5 * (t / priors.tau_sd) ** 2) * inside.prod(axis=1)
        mass += weight.sum()
        first += weight @ mean
        second += np.einsum("c,cf,cg->fg", weight, mean, mean) + np.diag(weight @ (square - mean**2))
    first /= mass
    return first, second / mass - np.outer(first, first)


def beta_binomial_block(
    name: str, tasks: int, draws: int, m: float, icc: float, seed: int, families: int = 1
) -> CountBlock:
    """Simulate a within-task block; family of a task by turns."""
    rng = np.random.default_rng(seed)
    kappa = 1.0 / icc - 1.0 if icc > 0 else np.inf
    theta = rng.beta(m * kappa, (1 - m) * kappa, tasks) if icc > 0 else np.full(tasks, m)
    k = rng.binomial(draws, theta).astype(np.float64)
    tally = StageTally(name, np.arange(tasks, dtype=np.int64) % families, np.full(tasks, float(draws)), k)
    return count_block(tally, [f"f{i}" for i in range(families)])
