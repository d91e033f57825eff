"""NUTS against the quadrature: the same posterior by two independent routes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from model_cases import beta_binomial_block, summary_of
from verdiv.errors import UsageRefused
from verdiv.estimators import stack
from verdiv.estimators.agreement import EngineGap, compare_engines
from verdiv.estimators.grid import fit_grid
from verdiv.estimators.nuts_model import model_data, model_shape, stage_logits
from verdiv.estimators.nuts_sampling import ModelCache, NutsFit, fit_nuts
from verdiv.estimators.priors import Priors
from verdiv.estimators.summary import StageSummary
from verdiv.estimators.within import fit_icc_grid

FAMILIES = ("f0", "f1", "f2")
BLOCK = beta_binomial_block("q", 60, 4, 0.7, 0.35, seed=6, families=3)

LIMITS = EngineGap(mean=0.05, sd=0.05, end=0.1, stage="", family="", monte_carlo=0.0)
"""Largest accepted differences of the engines; Monte-Carlo error is no excuse, so enough is drawn."""

RUNS: dict[str, StageSummary] = {
    "forty tasks": summary_of(
        {
            "q": ([30, 25, 12], [42, 39, 39]),
            "delta": ([9, 12, 20], [12, 14, 27]),
            "fpr": ([0, 0, 0], [30, 25, 12]),
        },
        [1.4, 1.0, 1.0],
    ),
    "boundary": summary_of(
        {"q": ([40, 0, 3], [40, 0, 3]), "delta": ([0, 0, 1], [9, 0, 1]), "fpr": ([0, 0, 1], [753, 0, 2])}
    ),
    "a million draws": summary_of(
        {
            "q": ([300_000, 300_500, 302_000], [10**6] * 3),
            "delta": ([10**5, 5 * 10**5, 9 * 10**5], [10**6] * 3),
            "fpr": ([3, 0, 20_000], [10**6] * 3),
        },
        [5.0, 1.0, 2.0],
    ),
}


@pytest.fixture(scope="session")
def cache() -> ModelCache:
    """Models compiled once for the whole session."""
    return ModelCache()


@pytest.fixture(scope="session")
def long_fit(cache: ModelCache) -> Callable[[str], NutsFit]:
    """Sample a run often enough to judge the limits, once."""
    made: dict[str, NutsFit] = {}

    def sampled(name: str) -> NutsFit:
        if name not in made:
            made[name] = fit(RUNS[name], cache, draws=10_000)
        return made[name]

    return sampled


def mean_errors(found: NutsFit) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Monte-Carlo standard errors of the sampled means, in the grid's standard deviations, shape (S, F)."""
    draws = np.stack([found.posterior.m[stage] for stage in found.posterior.stages], axis=1)
    return stack.mcse_mean(draws.reshape(4, -1, *draws.shape[1:])) / found.grid.sd


def fit(summary: StageSummary, cache: ModelCache, seed: int = 2, draws: int = 1000) -> NutsFit:
    """Sample with the shared model."""
    return fit_nuts(
        summary, [BLOCK], Priors(), draws=draws, cores=1, seed=seed, loo=draws == 1000, cache=cache
    )


@pytest.mark.fit
@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_every_stage_equals_the_grid(
    name: str, long_fit: Callable[[str], NutsFit], cache: ModelCache
) -> None:
    """Means within .05 sd, sds within 5 %, interval ends within .1 sd; no divergence; small, boundary, a million."""
    summary, found = RUNS[name], long_fit(name)
    assert found.diagnostics.status == "passed", found.diagnostics.reasons
    assert found.diagnostics.divergences == 0
    reached = summary.N > 0
    grid = fit_grid(summary, Priors(), draws=200_000, seed=1)
    gap = compare_engines(grid, found.posterior, reached)
    assert gap.mean <= LIMITS.mean, gap
    assert gap.sd <= LIMITS.sd, gap
    assert gap.end <= LIMITS.end, gap
    error = mean_errors(found)
    assert (error < LIMITS.mean / 4)[reached].all()
    assert (np.abs(found.posterior.mean - grid.mean) / grid.sd <= 4.5 * error)[reached].all()
    assert len(cache) == 1


@pytest.mark.fit
@pytest.mark.slow
def test_another_prior_is_told_apart(long_fit: Callable[[str], NutsFit]) -> None:
    """The twin: against the grid of slightly other priors each of the three limits is broken."""
    summary, found = RUNS["forty tasks"], long_fit("forty tasks")
    other = fit_grid(summary, Priors(mu_sd=2.0, fpr_mu_sd=2.5), draws=200_000, seed=1)
    gap = compare_engines(other, found.posterior, summary.N > 0)
    assert gap.mean > LIMITS.mean
    assert gap.sd > LIMITS.sd
    assert gap.end > LIMITS.end


@pytest.mark.fit
@pytest.mark.slow
def test_within_task_block_equals_the_grid(cache: ModelCache) -> None:
    """The block's correlation by NUTS equals its quadrature to Monte-Carlo error."""
    sampled = fit(RUNS["forty tasks"], cache).icc["q"]
    exact = fit_icc_grid(BLOCK, FAMILIES, Priors(), draws=8000, seed=1)
    assert abs(sampled.mean - exact.mean) < 4.5 * exact.posterior_sd / np.sqrt(1000)
    assert sampled.posterior_sd == pytest.approx(exact.posterior_sd, rel=0.1)
    assert sampled.estimable == exact.estimable
    spread = exact.m.std(axis=0)
    assert np.all(np.abs(sampled.m.mean(axis=0) - exact.m.mean(axis=0)) < 4.5 * spread / np.sqrt(1000))


@pytest.mark.fit
@pytest.mark.slow
def test_same_seed_same_draws(cache: ModelCache) -> None:
    """A seed fixes every draw; another seed gives others."""
    one, two, other = (fit(RUNS["forty tasks"], cache, seed) for seed in (3, 3, 4))
    assert np.array_equal(one.posterior.m["q"], two.posterior.m["q"])
    assert not np.array_equal(one.posterior.m["q"], other.posterior.m["q"])


@pytest.mark.fit
@pytest.mark.slow
def test_one_family_uniform_prior_is_beta(cache: ModelCache) -> None:
    """One family and a uniform prior on the rate: SciPy's Beta posterior with effective counts."""
    summary = summary_of({"q": ([70], [100]), "delta": ([0], [9])}, [2.5, 1.0])
    said: list[str] = []
    found = fit_nuts(summary, [], Priors(uniform=True), draws=1000, seed=5, cache=cache, progress=said.append)
    assert found.diagnostics.status == "passed", found.diagnostics.reasons
    assert said[0] == "loading the sampler"
    for row, exact in enumerate((stats.beta(29, 13), stats.beta(1, 10))):
        error = 4.5 * mean_errors(found)[row, 0] * exact.std()
        assert abs(found.posterior.mean[row, 0] - exact.mean()) < error
        assert found.posterior.sd[row, 0] == pytest.approx(exact.std(), rel=0.1)
        assert abs(found.posterior.mean[row, 0] - exact.mean() - 0.3 * exact.std()) > error


def test_coordinates_are_exact() -> None:
    """Standardised coordinates carry back to x = mu + tau u; with no data they are the plain non-centred form."""
    summary = summary_of({"q": ([0, 0, 0], [0, 0, 0]), "delta": ([500, 300, 0], [1000, 900, 0])})
    shape = model_shape(summary, [], Priors())
    data = model_data(summary, [], Priors(), shape)
    rng = np.random.default_rng(1)
    draws = {"mu_z": rng.normal(size=(5, 2)), "tau_z": rng.random((5, 2)), "u_z": rng.normal(size=(5, 2, 3))}
    mu, tau, x = stage_logits(draws, data)
    assert np.allclose(mu[:, 0], 2.5 * draws["mu_z"][:, 0])
    assert np.allclose(tau, 0.7 * draws["tau_z"])
    assert np.allclose(x[:, 0], mu[:, :1] + tau[:, :1] * draws["u_z"][:, 0])
    at = np.array([0.0, np.log(300.5 / 600.5)])
    large = dict(draws, u_z=np.zeros((5, 2, 3)), tau_z=np.full((5, 2), 3.0))
    assert np.allclose(stage_logits(large, data)[2][:, 1, :2], at, atol=0.01)


@pytest.mark.parametrize("settings", [{"chains": 1}, {"draws": 10}, {"tune": 0}])
def test_settings_that_cannot_be_judged_are_refused(settings: dict[str, int]) -> None:
    """R-hat needs two chains, and every diagnostic some length."""
    with pytest.raises(UsageRefused, match="at least 2 chains"):
        fit_nuts(RUNS["forty tasks"], [], Priors(), **settings)  # type: ignore[arg-type]
