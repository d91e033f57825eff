"""What is computed in NumPy to start fast, held to the packages that compute it too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import statsmodels.api as sm
from scipy.interpolate import CubicSpline
from statsmodels.stats.proportion import proportion_confint

from arviz_loo import arviz_loo, arviz_tail
from verdiv.estimators import stack
from verdiv.estimators.archive import FitArchive
from verdiv.estimators.crosscheck import cross_check
from verdiv.estimators.psis import psis_loo
from verdiv.estimators.spline import interpolate, middles, spline_matrix

Floats = npt.NDArray[np.float64]


@pytest.mark.parametrize("count", [4, 5, 13, 81])
def test_splines_are_those_of_scipy(count: int) -> None:
    """Not-a-knot splines agree at any point, as a function and as a matrix."""
    rng = np.random.default_rng(count)
    values, at = rng.normal(size=count), rng.random(100) * (count - 1)
    whole = CubicSpline(np.arange(count), values)
    np.testing.assert_allclose(interpolate(values, at), whole(at), atol=1e-12)
    np.testing.assert_allclose(spline_matrix(count, 6) @ values, whole(middles(count, 6)), atol=1e-12)


def test_too_few_nodes_make_no_spline() -> None:
    """Three nodes do not determine a not-a-knot spline with free ends."""
    with pytest.raises(ValueError, match="needs 4 nodes"):
        interpolate(np.zeros(3), np.zeros(1))


@pytest.mark.parametrize(("n", "k"), [(10, 0), (10, 10), (40, 33), (7, 1)])
def test_intervals_are_those_of_statsmodels(n: int, k: int) -> None:
    """Wilson inside, Clopper–Pearson at the ends."""
    found = cross_check(np.ones(n), (np.arange(n) < k).astype(float))
    assert found is not None
    method = "beta" if k in (0, n) else "wilson"
    assert (found.low, found.high) == pytest.approx(proportion_confint(k, n, method=method), abs=1e-12)
    assert found.cluster_robust is None


def test_cluster_robust_intervals_are_those_of_statsmodels() -> None:
    """Weighted least squares on a constant with HC1 errors and a t reference."""
    rng = np.random.default_rng(3)
    n = rng.integers(1, 7, 60).astype(float)
    k = rng.binomial(n.astype(int), 0.4).astype(float)
    found = cross_check(n, k)
    assert found is not None
    assert found.cluster_robust is not None
    fit = sm.WLS(k / n, np.ones((60, 1)), weights=n).fit(cov_type="HC1", use_t=True)
    ends = (found.cluster_robust.low, found.cluster_robust.high)
    assert ends == pytest.approx(np.asarray(fit.conf_int())[0], abs=1e-12)


def wild_log_likelihood() -> Floats:
    """Return log likelihoods of 20 observations under 4,000 draws, some with tails beyond trust."""
    rng = np.random.default_rng(0)
    y = rng.standard_t(3, size=20)
    scale = np.exp(rng.normal(size=(4000, 1)))
    return np.asarray(-0.5 * (y - 0.6 * rng.normal(size=(4000, 1))) ** 2 * scale)


def tame_log_likelihood() -> Floats:
    """Return log likelihoods of 20 observations under 4,000 draws that each of them hardly moves."""
    rng = np.random.default_rng(1)
    y = rng.normal(size=20)
    return np.asarray(-0.5 * (y - 0.1 * rng.normal(size=(4000, 1))) ** 2)


@pytest.mark.parametrize(
    "log_likelihood", [wild_log_likelihood(), tame_log_likelihood()], ids=["wild", "tame"]
)
def test_leave_one_out_is_that_of_arviz(log_likelihood: Floats) -> None:
    """Densities and tail shapes agree to the last digits, of tame and of wild observations.

    Of 4,000 draws the published tail is 189.7 weights long: this project and ArviZ 0 smooth 190, ArviZ 1 smooths
    189. That one weight is the whole difference between the generations, so the tail is handed over here.
    """
    theirs = arviz_loo(log_likelihood)
    ours = psis_loo(log_likelihood, tail=arviz_tail(len(log_likelihood)))
    np.testing.assert_allclose(ours.elpd, theirs.elpd, rtol=0, atol=1e-9)
    np.testing.assert_allclose(ours.pareto_k, theirs.pareto_k, rtol=0, atol=1e-9)


def test_one_weight_of_the_tail_matters_to_wild_observations_only() -> None:
    """The test above can fail: a tail one weight shorter moves wild entries by far more than its tolerance."""
    moved = {}
    for make in (wild_log_likelihood, tame_log_likelihood):
        whole, shorter = psis_loo(make()), psis_loo(make(), tail=189)
        moved[make] = np.abs(whole.elpd - shorter.elpd).max()
        assert (whole.pareto_k.max() > 0.7) == (make is wild_log_likelihood)
    assert moved[wild_log_likelihood] > 0.01
    assert moved[tame_log_likelihood] < 1e-4


def test_an_archive_is_read_by_arviz(tmp_path: Path) -> None:
    """Groups, axes, labels and attributes come back as they were put in."""
    m = np.arange(24.0).reshape(1, 4, 2, 3)
    archive = FitArchive(
        {"posterior": {"m": m}, "observed_data": {"N": np.ones((2, 3)), "v": np.arange(5.0)}},
        {"m": ["stage", "family"], "N": ["stage", "family"], "v": ["vector"]},
        {"stage": ["q", "δ"], "family": ["a", "b", "c"]},
        {"engine": "grid"},
    )
    archive.write(tmp_path / "fit.nc")
    found = stack.read_netcdf(tmp_path / "fit.nc")
    np.testing.assert_array_equal(stack.arrays(found, "posterior")["m"], m)
    assert list(found["posterior"]["stage"].values) == ["q", "δ"]
    assert found["posterior"]["m"].dims == ("chain", "draw", "stage", "family")
    assert found["observed_data"]["v"].dims == ("vector",)
    assert found["posterior"].attrs["engine"] == "grid"
