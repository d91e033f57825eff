"""What judges a fit: predictive checks, prior sensitivity, vetoes, and the archive."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from arviz_loo import arviz_loo, arviz_tail
from model_cases import beta_binomial_block, summary_of
from verdiv.errors import FitFailed
from verdiv.estimators import stack
from verdiv.estimators.archive import fit_archive
from verdiv.estimators.diagnostics import Chains, diagnose
from verdiv.estimators.grid import fit_grid
from verdiv.estimators.predictive import predictive_checks, prior_rates, prior_sensitivity
from verdiv.estimators.priors import Priors
from verdiv.estimators.psis import psis_loo
from verdiv.estimators.rising import count_vector_log_likelihood
from verdiv.estimators.within import fit_icc_grid

SUMMARY = summary_of(
    {
        "q": ([30, 25, 12], [42, 39, 39]),
        "delta": ([9, 12, 20], [12, 14, 27]),
        "fpr": ([0, 0, 0], [30, 25, 12]),
    },
    [1.4, 1.0, 1.0],
)
GRID = fit_grid(SUMMARY, Priors(), draws=4000, seed=1)


def chains(**changes: float) -> Chains:
    """Chains that pass, with changes."""
    each = np.full(3, 1.002)
    good = Chains(each, each * 800, each * 700, 1.002, 800.0, 700.0, 0)
    return replace(good, **changes)  # type: ignore[arg-type]


def test_prior_predictive_is_the_prior() -> None:
    """One family, uniform prior on the rate: every count of N is equally likely, so mid-p is (k + 1/2)/(N + 1)."""
    summary = summary_of({"q": ([3], [9])})
    priors = Priors(uniform=True)
    (row,) = predictive_checks(summary, fit_grid(summary, priors, draws=40_000, seed=2), priors, seed=3)
    assert row.prior_p == pytest.approx(3.5 / 10, abs=4 * np.sqrt(0.25 / 40_000))
    beta = stats.betabinom(9, 4, 7)
    assert row.posterior_p == pytest.approx(beta.cdf(2) + 0.5 * beta.pmf(3), abs=4 * np.sqrt(0.25 / 40_000))
    assert abs(row.prior_p - row.posterior_p) > 0.1


def test_replicates_carry_the_design_effect() -> None:
    """A design effect of 9 widens the replicates: an outlier of 4 binomial sd is then no outlier."""
    far = {"q": ([500, 500, 380], [1000, 1000, 1000])}
    found = {}
    for deff in (1.0, 30.0):
        summary = summary_of(far, deff)
        priors = Priors(tau_sd=0.01)
        rows = predictive_checks(summary, fit_grid(summary, priors, draws=4000, seed=2), priors, seed=3)
        found[deff] = rows[2].posterior_p
    assert found[1.0] < 0.001
    assert 0.01 < found[30.0] < 0.4


def test_prior_rates_have_the_prior_moments() -> None:
    """Logits of prior draws have variance 2.5^2 + .7^2 and covariance 2.5^2 between families."""
    draws = prior_rates(Priors(), "q", 2, 200_000, np.random.default_rng(1))
    x = np.log(draws) - np.log1p(-draws)
    cov = np.cov(x.T)
    assert cov[0, 0] == pytest.approx(6.25 + 0.49, rel=0.02)
    assert cov[0, 1] == pytest.approx(6.25, rel=0.02)


def test_prior_sensitivity_by_refitting() -> None:
    """The shift is the refit's; little data moves more than much, and tau is not changed with one family."""
    small = summary_of({"q": ([2, 3, 4], [4, 4, 4])})
    large = summary_of({"q": ([200, 240, 280], [400, 400, 400])})
    shifts = {}
    for name, summary in (("small", small), ("large", large)):
        fit = fit_grid(summary, Priors(), draws=0)
        rows = prior_sensitivity(summary, fit, Priors())
        assert [r.change for r in rows] == ["mu_sd x 2", "mu_sd / 2", "tau_sd x 2", "tau_sd / 2"]
        narrow = fit_grid(summary, Priors(mu_sd=1.25), draws=0)
        assert rows[1].shift == pytest.approx(
            float(np.max(np.abs(narrow.mean - fit.mean) / fit.sd)), rel=1e-6
        )
        shifts[name] = max(r.shift for r in rows)
    assert shifts["small"] > 2 * shifts["large"]
    one = summary_of({"q": ([2], [4])})
    assert len(prior_sensitivity(one, fit_grid(one, Priors(), draws=0), Priors())) == 2


def test_a_good_fit_passes() -> None:
    """The grid by itself passes, with one row a stage whose moments are the draw-weighted rate's."""
    found = diagnose(SUMMARY, [], GRID, {}, Priors(), grid=GRID)
    assert found.status == "passed"
    assert found.reasons == ()
    found.require()
    assert [row.stage for row in found.stages] == ["q", "delta", "fpr"]
    weights = SUMMARY.N[0] / SUMMARY.N[0].sum()
    pooled = GRID.m["q"] @ weights
    assert found.stages[0].mean == pytest.approx(pooled.mean(), abs=4 * pooled.std() / np.sqrt(4000))
    assert found.stages[0].sd == pytest.approx(pooled.std(), rel=0.05)
    assert found.r_hat_max is None
    assert len(found.predictive) == 9


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"r_hat_max": 1.011}, "R-hat 1.011 is above 1.01"),
        ({"ess_bulk_min": 399.0}, "bulk effective sample size 399"),
        ({"ess_tail_min": 399.0}, "tail effective sample size 399"),
        ({"divergences": 1}, "1 divergent"),
        ({"r_hat_max": float("nan")}, "R-hat nan"),
    ],
)
def test_bad_chains_veto(change: dict[str, float], reason: str) -> None:
    """Each failure by itself fails the fit and says why; the same chains without it pass."""
    nuts = replace(GRID, engine="nuts")
    found = diagnose(SUMMARY, [], nuts, {}, Priors(), grid=GRID, chains=chains(**change))
    assert found.status == "failed"
    assert any(reason in text for text in found.reasons)
    with pytest.raises(FitFailed, match=reason.split()[0]):
        found.require()
    assert diagnose(SUMMARY, [], nuts, {}, Priors(), grid=GRID, chains=chains()).status == "passed"


def test_engines_that_disagree_veto() -> None:
    """A posterior shifted by .2 sd of one family, with small Monte-Carlo error, fails; by .05 sd it passes."""
    for shift, status in ((0.2, "failed"), (0.05, "passed")):
        mean = GRID.mean.copy()
        mean[1, 2] += shift * GRID.sd[1, 2]
        nuts = replace(GRID, engine="nuts", mean=mean, error=np.full(3, 0.015))
        found = diagnose(SUMMARY, [], nuts, {}, Priors(), grid=GRID, chains=chains())
        assert found.status == status
    assert (
        diagnose(SUMMARY, [], GRID, {}, Priors(), grid=replace(GRID, error=np.full(3, 0.02))).status
        == "failed"
    )


def test_leave_one_out_equals_arviz() -> None:
    """Densities and tail shapes of a real block equal ArviZ's on the same log likelihoods and tail."""
    block = beta_binomial_block("q", 60, 5, 0.6, 0.5, seed=4)
    fit = fit_icc_grid(block, ("all",), Priors(), draws=4000, seed=1)
    log = count_vector_log_likelihood(block, fit.m, fit.icc)
    theirs, ours = arviz_loo(log), psis_loo(log, tail=arviz_tail(len(log)))
    assert ours.elpd == pytest.approx(theirs.elpd, rel=0, abs=1e-9)
    assert ours.pareto_k == pytest.approx(theirs.pareto_k, rel=0, abs=1e-9)


def test_chain_diagnostics_of_known_chains() -> None:
    """White noise has R-hat 1 and full size; a shifted chain and a random walk do not."""
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(4, 1000, 2))
    assert np.all(np.abs(stack.r_hat(noise) - 1) < 0.005)
    assert np.all(stack.ess_bulk(noise) > 3000)
    assert np.all(stack.ess_tail(noise) > 2500)
    assert stack.mcse_mean(noise) == pytest.approx(1 / np.sqrt(4000), rel=0.1)
    assert stack.mcse_sd(noise) == pytest.approx(1 / np.sqrt(8000), rel=0.15)
    shifted = noise + np.array([0, 0, 0, 0.5])[:, None, None]
    assert np.all(stack.r_hat(shifted) > 1.01)
    walk = np.cumsum(noise, axis=1)
    assert np.all(stack.ess_bulk(walk) < 50)


def test_highest_density_interval_is_not_equal_tailed() -> None:
    """Of an exponential the highest-density interval starts at 0; the equal-tailed one does not."""
    low, high = stack.hdi(np.random.default_rng(2).exponential(size=40_000), 0.9)
    assert low < 0.002
    assert high == pytest.approx(-np.log(0.1), rel=0.03)


def test_archive_goes_through_netcdf(tmp_path: Path) -> None:
    """Draws, data, labels and priors survive a netCDF file, and either generation of ArviZ opens it."""
    block = beta_binomial_block("q", 20, 3, 0.7, 0.3, seed=1, families=3)
    icc = {"q": fit_icc_grid(block, SUMMARY.families, Priors(), draws=4000, seed=1)}
    archive = fit_archive(SUMMARY, [block], GRID, icc, Priors(tau_sd=0.6), chains=4, seed=5)
    path = tmp_path / "fit.nc"
    archive.write(path)
    back = stack.read_netcdf(path)
    posterior = stack.arrays(back, "posterior")
    assert posterior["m"].shape == (4, 1000, 3, 3)
    assert np.array_equal(posterior["m"][:, :, 1].reshape(4000, 3), GRID.m["delta"])
    assert np.array_equal(posterior["icc_q"].ravel(), icc["q"].icc)
    assert np.array_equal(stack.arrays(back, "observed_data")["K"], SUMMARY.K)
    assert list(back["posterior"]["stage"].to_numpy()) == ["q", "delta", "fpr"]
    assert json.loads(back["posterior"].attrs["priors"])["tau_sd"] == 0.6
    rebuilt = archive.inference_data()
    stack.write_netcdf(rebuilt, tmp_path / "again.nc")
    again = stack.arrays(stack.read_netcdf(tmp_path / "again.nc"), "posterior")
    assert np.array_equal(again["tau"], posterior["tau"])


def test_divergences_go_through_netcdf(tmp_path: Path) -> None:
    """A sampler's yes-or-no statistics survive a netCDF file, which has no such type, as what they were."""
    diverging = np.zeros((4, 1000), dtype=np.bool_)
    diverging[2, 7] = True
    stats_of_draws = {"diverging": diverging, "tree_depth": np.full((4, 1000), 3)}
    archive = fit_archive(SUMMARY, [], GRID, {}, Priors(), chains=4, sample_stats=stats_of_draws)
    archive.write(tmp_path / "fit.nc")
    back = stack.arrays(stack.read_netcdf(tmp_path / "fit.nc"), "sample_stats")
    assert back["diverging"].dtype == np.bool_
    assert np.array_equal(back["diverging"], diverging)
    assert np.array_equal(back["tree_depth"], stats_of_draws["tree_depth"])
