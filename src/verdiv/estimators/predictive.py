r"""Does the model look like the data? Prior and posterior predictive checks, prior sensitivity, and PSIS-LOO.

A replicate of a stage's count has the design effect that the data have: :math:`\theta \sim Beta(m\kappa,
(1-m)\kappa)`, :math:`K^{rep} \sim Bin(N, \theta)` with :math:`1/(1+\kappa) = (d - 1)/(N - 1)`, whose variance is d
times the binomial's.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from verdiv.estimators.grid import fit_grid
from verdiv.estimators.posterior import IccPosterior, StagePosterior
from verdiv.estimators.priors import Priors
from verdiv.estimators.psis import psis_loo
from verdiv.estimators.rising import count_vector_log_likelihood
from verdiv.estimators.summary import CountBlock, StageSummary
from verdiv.estimators.within import fit_independent_grid

__all__ = [
    "BlockLoo",
    "PredictiveCheck",
    "PriorShift",
    "compare_blocks",
    "predictive_checks",
    "prior_rates",
    "prior_sensitivity",
]

Floats = npt.NDArray[np.float64]

LARGEST_LOO = 20_000_000
"""Cells of a log-likelihood matrix above which draws are thinned."""


@dataclass(frozen=True, slots=True)
class PredictiveCheck:
    """Where one observed count lies in its predictive distributions."""

    stage: str
    """Stage."""
    family: str
    """Family."""
    k: float
    """Observed events."""
    n: float
    """Observed draws."""
    prior_p: float
    """Mid-p: P(replicate < k) + P(replicate = k)/2 under the prior."""
    posterior_p: float
    """The same under the posterior; near 0 or 1 where the hierarchy cannot reproduce this family."""


@dataclass(frozen=True, slots=True)
class PriorShift:
    """How far one change of the priors moves a stage."""

    stage: str
    """Stage."""
    change: Literal["mu_sd x 2", "mu_sd / 2", "tau_sd x 2", "tau_sd / 2"]
    """What was changed."""
    shift: float
    """Largest move of a reached family's posterior mean, in its posterior standard deviations."""


@dataclass(frozen=True, slots=True)
class BlockLoo:
    """A within-task block with correlation against the same block without."""

    block: str
    """Block."""
    tasks: int
    """Tasks left out one at a time."""
    elpd_correlated: float
    """Expected log predictive density with correlation, summed over tasks."""
    elpd_independent: float
    """The same without."""
    difference: float
    """The first minus the second; positive where correlation predicts better."""
    se: float
    """Standard error of the difference."""
    bad_k: int
    """Tasks whose Pareto k exceeds .7 in either model."""
    preferred: Literal["correlated", "independent", "undecided"]
    """Which is at least two standard errors ahead."""


def _replicates(n: float, deff: float, m: Floats, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw replicated counts, one for each draw of the rate."""
    draws = round(n)
    share = min((deff - 1.0) / (draws - 1.0), 1.0) if draws > 1 else 0.0
    theta = np.clip(m, 0.0, 1.0)
    if share >= 1.0:
        theta = (rng.random(m.size) < theta).astype(np.float64)
    elif share > 1e-9:
        kappa = 1.0 / share - 1.0
        floor = 1e-12
        theta = rng.beta(np.maximum(theta * kappa, floor), np.maximum((1.0 - theta) * kappa, floor))
    return rng.binomial(draws, theta)


def _mid_p(replicate: npt.NDArray[np.int64], k: float) -> float:
    seen = round(k)
    return float(np.mean(replicate < seen) + 0.5 * np.mean(replicate == seen))


def prior_rates(priors: Priors, stage: str, families: int, draws: int, rng: np.random.Generator) -> Floats:
    """Draw a stage's rates from the prior, shape (draws, families)."""
    location = priors.mu(stage)
    mu = rng.logistic(size=draws) if priors.uniform else rng.normal(location.mean, location.sd, draws)
    tau = np.abs(rng.normal(0.0, priors.tau_sd, draws)) if families > 1 else np.zeros(draws)
    x = mu[:, None] + tau[:, None] * rng.normal(size=(draws, families))
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


def predictive_checks(
    summary: StageSummary, posterior: StagePosterior, priors: Priors, *, seed: int
) -> tuple[PredictiveCheck, ...]:
    """Check every stage and family that was reached, by one replicate for each joint draw.

    Parameters
    ----------
    summary
        The data.
    posterior
        A fit of them.
    priors
        Its priors.
    seed
        Seed of the replicates.
    """
    found = []
    for row, stage in enumerate(summary.stages):
        rng = np.random.default_rng([seed, zlib.crc32(f"predictive {stage}".encode())])
        rates = posterior.m[stage]
        before = prior_rates(priors, stage, len(summary.families), rates.shape[0], rng)
        deff = float(summary.deff[row])
        for f, family in enumerate(summary.families):
            n, k = float(summary.N[row, f]), float(summary.K[row, f])
            if round(n) < 1:
                continue
            checks = [_mid_p(_replicates(n, deff, m[:, f], rng), k) for m in (before, rates)]
            found.append(PredictiveCheck(stage, family, k, n, checks[0], checks[1]))
    return tuple(found)


def prior_sensitivity(
    summary: StageSummary, posterior: StagePosterior, priors: Priors
) -> tuple[PriorShift, ...]:
    """Refit by quadrature with each prior scale doubled and halved.

    Parameters
    ----------
    summary
        The data.
    posterior
        The fit under the registered priors, by quadrature.
    priors
        The registered priors.

    Returns
    -------
    tuple of PriorShift
        Four a stage; two with one family, which has no tau.
    """
    changes: dict[Literal["mu_sd x 2", "mu_sd / 2", "tau_sd x 2", "tau_sd / 2"], Priors] = {
        "mu_sd x 2": priors.scaled(mu=2.0),
        "mu_sd / 2": priors.scaled(mu=0.5),
    }
    if len(summary.families) > 1:
        changes |= {"tau_sd x 2": priors.scaled(tau=2.0), "tau_sd / 2": priors.scaled(tau=0.5)}
    reached = summary.N > 0
    found = []
    for change, other in changes.items():
        moved = np.abs(fit_grid(summary, other, draws=0).mean - posterior.mean) / posterior.sd
        largest = np.where(reached, moved, 0.0).max(axis=1)
        found += [
            PriorShift(stage, change, float(shift))
            for stage, shift in zip(summary.stages, largest, strict=True)
        ]
    return tuple(found)


def _thinned(log_likelihood: Floats) -> Floats:
    """Keep so many of the draws that (draws, P) stays within its bound."""
    draws, points = log_likelihood.shape
    return log_likelihood[:: max(1, -(-draws * points // LARGEST_LOO))]


def compare_blocks(
    blocks: Sequence[CountBlock],
    fits: Mapping[str, IccPosterior],
    families: Sequence[str],
    priors: Priors,
    *,
    seed: int,
) -> tuple[BlockLoo, ...]:
    r"""PSIS-LOO of each block with its correlation against none.

    One task is left out at a time. Tasks with equal counts have equal terms, so each distinct count vector is
    one point and enters the sums with its multiplicity w:

    .. math::
        \Delta = \sum_p w_p (e_p - e'_p), \quad se^2 = T \sum_p \frac{w_p}{T - 1} (e_p - e'_p - \Delta / T)^2

    Parameters
    ----------
    blocks
        Distinct count vectors.
    fits
        Posterior of each block by name; a block without one is left out.
    families
        Family names.
    priors
        Priors of the blocks.
    seed
        Seed of the draws without correlation.
    """
    found = []
    for block in blocks:
        fit = fits.get(block.name)
        if fit is None or block.replicated_tasks < 2:
            continue
        rates = fit_independent_grid(block, families, priors, draws=fit.icc.size, seed=seed)
        with_icc = psis_loo(_thinned(count_vector_log_likelihood(block, fit.m, fit.icc)))
        without = psis_loo(_thinned(count_vector_log_likelihood(block, rates, np.zeros(fit.icc.size))))
        weight, tasks = block.multiplicity, block.tasks
        gap = with_icc.elpd - without.elpd
        difference = float(weight @ gap)
        se = float(np.sqrt(tasks / (tasks - 1.0) * (weight @ (gap - difference / tasks) ** 2)))
        bad = int(weight[(with_icc.pareto_k > 0.7) | (without.pareto_k > 0.7)].sum())
        preferred: Literal["correlated", "independent", "undecided"] = "undecided"
        if abs(difference) >= 2.0 * se and difference != 0:
            preferred = "correlated" if difference > 0 else "independent"
        found.append(
            BlockLoo(
                block.name,
                tasks,
                float(weight @ with_icc.elpd),
                float(weight @ without.elpd),
                difference,
                se,
                bad,
                preferred,
            )
        )
    return tuple(found)
