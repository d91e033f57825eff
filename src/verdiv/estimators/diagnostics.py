"""Whether a fit may speak: convergence, agreement of the engines, predictive checks, prior sensitivity, LOO.

A failed fit yields no verdict. What fails it: R-hat above 1.01, bulk or tail effective sample size under 400,
any divergence, a numerical error of the grid above its tolerance, or engines that disagree. Predictive checks and
prior sensitivity do not fail a fit; they are warnings to the reader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from verdiv.errors import FitFailed
from verdiv.estimators.grid import TOLERANCE
from verdiv.estimators.posterior import IccPosterior, StagePosterior
from verdiv.estimators.predictive import (
    BlockLoo,
    PredictiveCheck,
    PriorShift,
    compare_blocks,
    predictive_checks,
    prior_sensitivity,
)
from verdiv.estimators.priors import Priors
from verdiv.estimators.summary import CountBlock, StageSummary

__all__ = ["MAX_R_HAT", "MIN_ESS", "Chains", "Diagnostics", "StageDiagnostics", "diagnose"]

Floats = npt.NDArray[np.float64]

MAX_R_HAT = 1.01
"""Largest accepted R-hat."""

MIN_ESS = 400.0
"""Smallest accepted bulk and tail effective sample size."""

MAX_GAP = 0.1
"""Largest accepted distance of the engines' means, in posterior standard deviations."""

GAP_ERRORS = 5.0
"""A distance counts only where it also exceeds this many Monte-Carlo standard errors."""

EXTREME = 0.001
"""Mid-p below which, or above one minus which, a predictive check is a warning."""

SENSITIVE = 0.5
"""Shift of a posterior mean, in posterior standard deviations, from which a prior is a warning."""


@dataclass(frozen=True, slots=True)
class Chains:
    """Convergence of a sampler, per stage and over all parameters."""

    r_hat: Floats
    """Largest R-hat among a stage's parameters, shape (S,)."""
    ess_bulk: Floats
    """Smallest bulk effective sample size among them, shape (S,)."""
    ess_tail: Floats
    """Smallest tail effective sample size among them, shape (S,)."""
    r_hat_max: float
    """Largest of all, blocks included."""
    ess_bulk_min: float
    """Smallest of all, blocks included."""
    ess_tail_min: float
    """Smallest of all, blocks included."""
    divergences: int
    """Divergent transitions after tuning."""

    @property
    def faults(self) -> tuple[str, ...]:
        """Why the chains may not speak; empty where they may."""
        found = []
        if not self.r_hat_max <= MAX_R_HAT:
            found.append(f"R-hat {self.r_hat_max:.3f} is above {MAX_R_HAT}")
        if not self.ess_bulk_min >= MIN_ESS:
            found.append(f"bulk effective sample size {self.ess_bulk_min:.0f} is under {MIN_ESS:.0f}")
        if not self.ess_tail_min >= MIN_ESS:
            found.append(f"tail effective sample size {self.ess_tail_min:.0f} is under {MIN_ESS:.0f}")
        if self.divergences:
            found.append(f"{self.divergences} divergent transitions")
        return tuple(found)


@dataclass(frozen=True, slots=True)
class StageDiagnostics:
    """One stage's data and its posterior under both engines; families weighted by their draws."""

    stage: str
    """Stage."""
    family_count: int
    """Families that reached it."""
    N: float
    """Draws that reached it."""
    K: float
    """Events among them."""
    deff: float
    """Design effect of clustering by task."""
    mean: float
    """Posterior mean of the draw-weighted rate, by the engine in use."""
    sd: float
    """Its posterior standard deviation."""
    grid_mean: float
    """The mean by quadrature."""
    grid_sd: float
    """The standard deviation by quadrature."""
    r_hat: float | None
    """Largest R-hat of the stage's parameters; None where nothing was sampled by chains."""
    ess_bulk: float | None
    """Smallest bulk effective sample size; None likewise."""
    ess_tail: float | None
    """Smallest tail effective sample size; None likewise."""


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """Everything that judges a fit."""

    engine: Literal["grid", "nuts"]
    """Engine whose draws are in use."""
    status: Literal["passed", "failed"]
    """Whether verdicts may come from it."""
    reasons: tuple[str, ...]
    """Why it failed; empty where it passed."""
    warnings: tuple[str, ...]
    """What a reader should know of a fit that passed."""
    r_hat_max: float | None
    """Largest R-hat; None without chains."""
    ess_bulk_min: float | None
    """Smallest bulk effective sample size; None without chains."""
    ess_tail_min: float | None
    """Smallest tail effective sample size; None without chains."""
    divergences: int | None
    """Divergent transitions; None without chains."""
    stages: tuple[StageDiagnostics, ...]
    """One row a stage."""
    predictive: tuple[PredictiveCheck, ...]
    """One row for each stage and family that was reached."""
    prior_sensitivity: tuple[PriorShift, ...]
    """Four rows a stage, two with one family."""
    loo: tuple[BlockLoo, ...]
    """One row for each block with replicated tasks."""

    def require(self) -> None:
        """Raise unless the fit passed.

        Raises
        ------
        FitFailed
            With every reason in its message.
        """
        if self.status == "failed":
            raise FitFailed(f"The fit failed its diagnostics: {'; '.join(self.reasons)}.")


def _stage_rows(
    summary: StageSummary, posterior: StagePosterior, grid: StagePosterior, chains: Chains | None
) -> tuple[StageDiagnostics, ...]:
    weights = summary.N / summary.N.sum(axis=1, keepdims=True)
    mean, sd = posterior.pooled(weights)
    grid_mean, grid_sd = grid.pooled(weights)
    return tuple(
        StageDiagnostics(
            stage,
            int((summary.N[row] > 0).sum()),
            float(summary.N[row].sum()),
            float(summary.K[row].sum()),
            float(summary.deff[row]),
            float(mean[row]),
            float(sd[row]),
            float(grid_mean[row]),
            float(grid_sd[row]),
            None if chains is None else float(chains.r_hat[row]),
            None if chains is None else float(chains.ess_bulk[row]),
            None if chains is None else float(chains.ess_tail[row]),
        )
        for row, stage in enumerate(summary.stages)
    )


def _reasons(posterior: StagePosterior, grid: StagePosterior, chains: Chains | None) -> tuple[str, ...]:
    found = list(chains.faults) if chains is not None else []
    names = grid.stages
    found += [
        f"quadrature of stage {names[row]} is off by up to {grid.error[row]:.3f} posterior sd"
        for row in np.flatnonzero(~(grid.error < TOLERANCE))
    ]
    if posterior.engine != "grid":
        gap = np.max(np.abs(posterior.mean - grid.mean) / grid.sd, axis=1)
        limit = np.maximum(MAX_GAP, GAP_ERRORS * posterior.error)
        found += [
            f"the engines differ by {gap[row]:.2f} posterior sd at stage {names[row]}"
            for row in np.flatnonzero(~(gap <= limit))
        ]
    return tuple(found)


def _warnings(
    checks: Sequence[PredictiveCheck], shifts: Sequence[PriorShift], blocks: Sequence[BlockLoo]
) -> tuple[str, ...]:
    found = [
        f"the model hardly reproduces {c.k:g} of {c.n:g} at stage {c.stage}, family {c.family} "
        f"(posterior predictive p {c.posterior_p:.3f})"
        for c in checks
        if not EXTREME <= c.posterior_p <= 1.0 - EXTREME
    ]
    found += [
        f"the priors hardly foresee {c.k:g} of {c.n:g} at stage {c.stage}, family {c.family} "
        f"(prior predictive p {c.prior_p:.3f})"
        for c in checks
        if not EXTREME <= c.prior_p <= 1.0 - EXTREME
    ]
    found += [
        f"stage {s.stage} moves by {s.shift:.1f} posterior sd under {s.change}"
        for s in shifts
        if s.shift > SENSITIVE
    ]
    found += [
        f"PSIS-LOO of block {b.block} has {b.bad_k} tasks with Pareto k > .7" for b in blocks if b.bad_k
    ]
    return tuple(found)


def diagnose(
    summary: StageSummary,
    blocks: Sequence[CountBlock],
    posterior: StagePosterior,
    icc: Mapping[str, IccPosterior],
    priors: Priors,
    *,
    grid: StagePosterior,
    chains: Chains | None = None,
    loo: bool = True,
    seed: int = 0,
) -> Diagnostics:
    """Judge a fit.

    Parameters
    ----------
    summary, blocks
        The data.
    posterior, icc
        The fit in use.
    priors
        Its priors.
    grid
        The same model by quadrature; the fit itself where that is the engine.
    chains
        Convergence of the sampler; None for the grid.
    loo
        Whether to compare the blocks by PSIS-LOO, which imports ArviZ.
    seed
        Seed of the replicates.
    """
    checks = predictive_checks(summary, posterior, priors, seed=seed)
    shifts = prior_sensitivity(summary, grid, priors)
    compared = compare_blocks(blocks, icc, summary.families, priors, seed=seed) if loo else ()
    reasons = _reasons(posterior, grid, chains)
    return Diagnostics(
        posterior.engine,
        "failed" if reasons else "passed",
        reasons,
        _warnings(checks, shifts, compared),
        None if chains is None else chains.r_hat_max,
        None if chains is None else chains.ess_bulk_min,
        None if chains is None else chains.ess_tail_min,
        None if chains is None else chains.divergences,
        _stage_rows(summary, posterior, grid, chains),
        checks,
        shifts,
        compared,
    )
