"""Sampling the hierarchical model by NUTS: compile once per shape, sample, judge, and try harder if needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from verdiv.errors import Fault, FitFailed, UsageRefused
from verdiv.estimators import stack
from verdiv.estimators.archive import FitArchive, fit_archive
from verdiv.estimators.diagnostics import Chains, Diagnostics, diagnose
from verdiv.estimators.grid import fit_grid
from verdiv.estimators.nuts_model import (
    ModelShape,
    block_logits,
    build_model,
    model_data,
    model_shape,
    stage_logits,
)
from verdiv.estimators.posterior import IccPosterior, StagePosterior
from verdiv.estimators.priors import Priors
from verdiv.estimators.summary import CountBlock, StageSummary
from verdiv.estimators.within import estimability

__all__ = ["ModelCache", "NutsFit", "compile_model", "fit_nuts"]

Floats = npt.NDArray[np.float64]

ATTEMPTS = ((1, 0.9), (2, 0.97), (4, 0.995))
"""Multiple of the draws and target acceptance of each attempt; the next is made where one fails its checks."""

KEPT_STATISTICS = frozenset({"diverging", "depth", "n_steps", "energy", "logp"})
"""Statistics of the sampler that go into the archive."""

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class NutsFit:
    """A fit by NUTS with everything that judges it."""

    posterior: StagePosterior
    """Joint draws of the stage rates, chains one after another."""
    grid: StagePosterior
    """The same model by quadrature."""
    icc: dict[str, IccPosterior]
    """Posterior of each block's within-task correlation."""
    idata: FitArchive
    """The draws as inference data, ready to be written."""
    diagnostics: Diagnostics
    """Whether the fit may speak."""


def compile_model(shape: ModelShape, data: Mapping[str, Floats]) -> Any:
    """Define the model for this shape and compile it with nutpie.

    Parameters
    ----------
    shape
        Sizes of all axes.
    data
        Values of the data variables; ``compiled.with_data`` replaces them.
    """
    stack.load("arviz")
    nutpie = stack.load("nutpie")
    model = build_model(shape, data)
    with stack.quiet():
        return nutpie.compile_pymc_model(model)


class ModelCache:
    """Compiled models by shape, so that any number of fits of one design compile once."""

    def __init__(self) -> None:
        self._models: dict[ModelShape, Any] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        """Count the compiled shapes."""
        return len(self._models)

    def get(self, shape: ModelShape, data: Mapping[str, Floats], progress: Progress | None = None) -> Any:
        """Return a compiled model that holds these data."""
        with self._lock:
            if shape not in self._models:
                if progress is not None:
                    progress("compiling the model")
                self._models[shape] = compile_model(shape, data)
            return self._models[shape].with_data(**data)


_CACHE = ModelCache()


def fit_nuts(
    summary: StageSummary,
    blocks: Sequence[CountBlock],
    priors: Priors,
    *,
    draws: int = 1000,
    tune: int = 500,
    chains: int = 4,
    cores: int = 2,
    seed: int = 0,
    loo: bool = True,
    attempts: Sequence[tuple[int, float]] = ATTEMPTS,
    cache: ModelCache | None = None,
    progress: Progress | None = None,
) -> NutsFit:
    """Fit all stages and blocks by NUTS and judge the fit.

    Parameters
    ----------
    summary
        Counts and design effects.
    blocks
        Within-task blocks; empty ones are left out.
    priors
        Priors of all parameters.
    draws, tune
        Draws and tuning steps of each chain in the first attempt.
    chains, cores
        Chains, at least 2, and how many of them run at once.
    seed
        Seed of everything random.
    loo
        Whether to compare blocks by PSIS-LOO.
    attempts
        Multiple of the draws and target acceptance of each attempt. Where R-hat, effective sample size or
        divergences fail one, the next is made, by default with 2 and 4 times the draws and smaller steps;
        the last one is returned whatever it shows.
    cache
        Compiled models; by default those of this process.
    progress
        Called with a few words as each step begins.

    Returns
    -------
    NutsFit
        Never raises for bad convergence: ``diagnostics.require()`` does.

    Raises
    ------
    FitFailed
        If the sampler itself gives up.
    """
    if chains < 2 or draws < 50 or tune < 50:
        got = f"{chains} chains of {tune} + {draws} steps"
        fault = Fault("sampler", "at least 2 chains of 50 + 50 steps", got, "ask for more")
        raise UsageRefused("The sampler's settings cannot be used.", [fault])
    say = progress if progress is not None else _silent
    full = [block for block in blocks if block.tasks]
    shape = model_shape(summary, full, priors)
    data = model_data(summary, full, priors, shape)
    say("loading the sampler")
    compiled = (cache if cache is not None else _CACHE).get(shape, data, say)
    for attempt, (multiple, accept) in enumerate(attempts):
        say("sampling" if attempt == 0 else f"sampling again, attempt {attempt + 1} of {len(attempts)}")
        values, stats = _sample(
            compiled, draws * multiple, tune * multiple, chains, cores, seed + attempt, accept
        )
        mu, tau, x = stage_logits(values, data)
        judged = _chains(
            mu, tau, x, block_logits(values, data) if full else (), stats, single=shape.families == 1
        )
        if not judged.faults:
            break
    say("checking the fit")
    posterior = _stage_posterior(summary, mu, tau, x)
    icc = _icc(full, *block_logits(values, data), priors) if full else {}
    grid = fit_grid(summary, priors, draws=4000, seed=seed)
    diagnostics = diagnose(
        summary, full, posterior, icc, priors, grid=grid, chains=judged, loo=loo, seed=seed
    )
    idata = fit_archive(summary, full, posterior, icc, priors, chains=chains, sample_stats=stats, seed=seed)
    return NutsFit(posterior, grid, icc, idata, diagnostics)


def _silent(_: str) -> None:
    return None


def _sample(
    compiled: Any, draws: int, tune: int, chains: int, cores: int, seed: int, accept: float
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Run the chains; return the sampler's coordinates and its statistics, both (chain, draw, ...)."""
    nutpie = stack.load("nutpie")
    try:
        with stack.quiet():
            trace = nutpie.sample(
                compiled,
                draws=draws,
                tune=tune,
                chains=chains,
                cores=min(cores, chains),
                seed=seed,
                save_warmup=False,
                progress_bar=False,
                target_accept=accept,
            )
    except RuntimeError as error:
        fault = Fault("sampler", "a fit that starts", str(error), "check the counts and the priors")
        raise FitFailed("NUTS gave up.", [fault]) from error
    stats = stack.arrays(trace, "sample_stats")
    kept = {name: value for name, value in stats.items() if name in KEPT_STATISTICS}
    return stack.arrays(trace, "posterior"), kept


def _worst(values: list[Floats], function: Callable[[Floats], Floats], reduce: Any) -> Floats:
    """Apply one diagnostic to parameters (chain, draw, S, ...) and reduce all axes after S."""
    rows = [found.reshape(found.shape[0], -1) for found in map(function, values)]
    return np.asarray(reduce(np.concatenate(rows, axis=1), axis=1))


def _chains(
    mu: Floats,
    tau: Floats,
    x: Floats,
    blocks: Sequence[Floats],
    stats: Mapping[str, Floats],
    *,
    single: bool,
) -> Chains:
    stages = [mu] if single else [mu, tau, x]
    found = {
        "r_hat": (stack.r_hat, np.max),
        "ess_bulk": (stack.ess_bulk, np.min),
        "ess_tail": (stack.ess_tail, np.min),
    }
    per_stage = {name: _worst(stages, function, reduce) for name, (function, reduce) in found.items()}
    total = {}
    for name, (function, reduce) in found.items():
        parts = [per_stage[name]] + ([_worst(list(blocks), function, reduce)] if blocks else [])
        total[name] = float(reduce(np.concatenate(parts)))
    return Chains(
        per_stage["r_hat"],
        per_stage["ess_bulk"],
        per_stage["ess_tail"],
        total["r_hat"],
        total["ess_bulk"],
        total["ess_tail"],
        int(stats["diverging"].sum()),
    )


def _rate(x: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


def _flat(values: Floats) -> Floats:
    """Put chains one after another."""
    return values.reshape(-1, *values.shape[2:])


def _stage_posterior(summary: StageSummary, mu: Floats, tau: Floats, x: Floats) -> StagePosterior:
    rates = _rate(x)
    flat = _flat(rates)
    mean = flat.mean(axis=0)
    away = flat - mean
    cov = np.einsum("dsf,dsg->sfg", away, away) / flat.shape[0]
    sd = np.sqrt(np.diagonal(cov, axis1=1, axis2=2))
    error = np.maximum(stack.mcse_mean(rates), stack.mcse_sd(rates)) / sd
    return StagePosterior(
        "nuts",
        summary.stages,
        summary.families,
        {stage: flat[:, row] for row, stage in enumerate(summary.stages)},
        {stage: _flat(mu)[:, row] for row, stage in enumerate(summary.stages)},
        {stage: _flat(tau)[:, row] for row, stage in enumerate(summary.stages)},
        mean,
        cov,
        error.max(axis=1),
    )


def _icc(blocks: Sequence[CountBlock], icc: Floats, logit: Floats, priors: Priors) -> dict[str, IccPosterior]:
    found = {}
    for row, block in enumerate(blocks):
        draws = _flat(icc[:, :, row])
        sd = float(draws.std())
        reason = estimability(block, sd, priors.icc_sd)
        found[block.name] = IccPosterior(
            block.name,
            draws,
            _flat(_rate(logit[:, :, row])),
            priors.icc_sd,
            float(draws.mean()),
            sd,
            not reason,
            reason,
        )
    return found
