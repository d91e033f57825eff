"""Fit the hierarchical model: the grid always, NUTS beside it when asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from verdiv.analysis.gather import Gathered
from verdiv.estimators.agreement import EngineGap, compare_engines
from verdiv.estimators.archive import FitArchive, fit_archive
from verdiv.estimators.compose import MODEL_STAGES
from verdiv.estimators.diagnostics import Diagnostics, diagnose
from verdiv.estimators.events import Events
from verdiv.estimators.grid import fit_grid
from verdiv.estimators.observations import FloatArray
from verdiv.estimators.posterior import IccPosterior, StagePosterior
from verdiv.estimators.priors import Priors
from verdiv.estimators.settings import DEFAULTS, Settings
from verdiv.estimators.summary import CountBlock, StageSummary, StageTally, count_block, summarise
from verdiv.estimators.within import fit_icc_grid

__all__ = ["Fit", "Progress", "count_blocks", "fit_correlations", "fit_model", "prior_draws", "stage_summary"]

BLOCKS = {"s1": "s1", "s2": "s2"}
"""Within-task blocks of replicated first repairs, by the stage they come from."""


class Progress(Protocol):
    """What a caller may pass to be told how far a long job is."""

    def __call__(self, stage: str, done: int | None = None, total: int | None = None) -> None:
        """Report a stage and, where known, how much of it is done."""


@dataclass(frozen=True)
class Fit:
    """Posterior of the stage rates, by whichever engine, with the grid beside it."""

    engine: str
    summary: StageSummary
    blocks: Mapping[str, CountBlock]
    priors: Priors
    grid: StagePosterior
    posterior: StagePosterior
    """The one that the report uses: NUTS where it ran, else the grid."""
    icc: Mapping[str, IccPosterior]
    diagnostics: Diagnostics
    idata: FitArchive | None
    """Inference data, of the chains or of the grid's draws."""
    gap: EngineGap | None = None
    """How far the engines lie apart, where both ran."""
    beside: Diagnostics | None = None
    """What judged the sampler, where it ran beside the grid."""


def stage_summary(gathered: Gathered) -> StageSummary:
    """Sums and design effects of every stage that some draw reached."""
    tally = gathered.tally
    tallies = [
        StageTally(stage, tally.family, *_counts(tally.events[stage]))
        for stage in MODEL_STAGES
        if tally.has(stage)
    ]
    return summarise(tallies, tally.families)


def _counts(events: Events) -> tuple[FloatArray, FloatArray]:
    """Counts of a stage for the model.

    Pairs are counted as pairs, each first draw with the same number of them, its mean. They share draws, which the
    design effect sees; counted as first draws, they would have one below 1, since each is compared with several.
    """
    if events.pairs is None:
        return events.n, events.k
    partners = events.pairs[0].sum() / events.n.sum()
    return events.n * partners, events.k * partners


def count_blocks(gathered: Gathered) -> dict[str, CountBlock]:
    """Count vectors of the within-task blocks, whole counts only."""
    tally = gathered.tally
    drawn, correct, _ = tally.parallel.T
    found = {"q": (drawn, correct)}
    for name, stage in BLOCKS.items():
        if tally.has(stage):
            found[name] = (tally.events[stage].n, tally.events[stage].k)
    blocks: dict[str, CountBlock] = {}
    for name, (n, k) in found.items():
        whole = (n == np.rint(n)) & (k == np.rint(k))
        if not (whole & (n >= 2)).any():
            continue
        block = StageTally(name, tally.family[whole], n[whole], k[whole])
        blocks[name] = count_block(block, tally.families)
    return blocks


def _priors(gathered: Gathered) -> Priors:
    """Priors as registered."""
    plan = gathered.plan.priors
    return Priors(
        mu_mean=plan.mu_mean,
        mu_sd=plan.mu_sd,
        fpr_mu_mean=plan.fpr_mu_mean,
        fpr_mu_sd=plan.fpr_mu_sd,
        tau_sd=plan.tau_sd,
        icc_a=plan.icc_a,
        icc_b=plan.icc_b,
    )


def fit_correlations(gathered: Gathered, *, draws: int, seed: int) -> dict[str, IccPosterior]:
    """Fit the correlations within tasks alone, which is all of the model that rules read."""
    priors, families = _priors(gathered), gathered.tally.families
    blocks = (block for block in count_blocks(gathered).values() if block.tasks)
    return {b.name: fit_icc_grid(b, families, priors, draws=draws, seed=seed) for b in blocks}


def fit_model(
    gathered: Gathered,
    settings: Settings = DEFAULTS,
    *,
    progress: Progress | None = None,
) -> Fit:
    """Fit every stage that a draw reached.

    Parameters
    ----------
    gathered
        The counted run.
    settings
        Engine, draws, cores and seed.
    progress
        Told about long steps.

    Returns
    -------
    Fit
        Posteriors, blocks and diagnostics.
    """
    priors = _priors(gathered)
    summary = stage_summary(gathered)
    blocks = count_blocks(gathered)
    families = gathered.tally.families
    total, seed = settings.total, settings.seed
    engine, check_engine = settings.engine, settings.check_engine
    if progress is not None:
        progress("fitting by quadrature")
    used = [block for block in blocks.values() if block.tasks]
    gap = beside = None
    if not summary.stages:
        engine, check_engine = "grid", False  # nothing to sample
    if engine == "nuts" or check_engine:
        from verdiv.estimators.nuts_sampling import fit_nuts

        nuts = fit_nuts(
            summary,
            used,
            priors,
            draws=settings.draws,
            chains=settings.chains,
            cores=settings.cores,
            seed=seed,
            progress=progress,
        )
        gap = compare_engines(nuts.grid, nuts.posterior, summary.N > 0)
        beside = nuts.diagnostics
    own = _family_blocks(blocks, families, priors, total, seed)
    if engine == "nuts":
        icc = dict(nuts.icc) | own
        return Fit(
            engine, summary, blocks, priors, nuts.grid, nuts.posterior, icc, nuts.diagnostics, nuts.idata, gap
        )
    grid = fit_grid(summary, priors, draws=total, seed=seed)
    icc = {block.name: fit_icc_grid(block, families, priors, draws=total, seed=seed) for block in used}
    diagnostics = diagnose(summary, used, grid, icc, priors, grid=grid, loo=settings.archive, seed=seed)
    held = settings.archive and bool(summary.stages)  # a log without one scored draw has nothing to hold
    idata = fit_archive(summary, used, grid, icc, priors, seed=seed) if held else None
    return Fit(engine, summary, blocks, priors, grid, grid, icc | own, diagnostics, idata, gap, beside)


def _family_blocks(
    blocks: Mapping[str, CountBlock], families: tuple[str, ...], priors: Priors, draws: int, seed: int
) -> dict[str, IccPosterior]:
    """Correlation of initial draws family by family, named ``q/0``, ``q/1`` …; empty with one family."""
    block = blocks.get("q")
    if block is None or len(families) < 2:
        return {}
    out = {}
    for f in range(len(families)):
        mine = block.family == f
        if not (block.n[mine] >= 2).any():
            continue
        part = CountBlock(
            f"q/{f}",
            np.zeros(int(mine.sum()), dtype=np.int64),
            block.n[mine],
            block.k[mine],
            block.multiplicity[mine],
        )
        out[part.name] = fit_icc_grid(part, (families[f],), priors, draws=draws, seed=seed + f + 1)
    return out


def prior_draws(
    fit: Fit, draws: int, seed: int
) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    """Draw stage rates from the prior, stage to shape ``(draws, families)``, for prior densities beside posteriors."""
    rng = np.random.default_rng(np.random.SeedSequence([seed, 0x9210]))
    families = len(fit.summary.families)
    out = {}
    for stage in fit.summary.stages:
        location = fit.priors.mu(stage)
        mu = rng.normal(location.mean, location.sd, (draws, 1))
        tau = np.abs(rng.normal(0.0, fit.priors.tau_sd, (draws, 1))) if families > 1 else np.zeros((draws, 1))
        out[stage] = 1.0 / (1.0 + np.exp(-(mu + tau * rng.standard_normal((draws, families)))))
    return out
