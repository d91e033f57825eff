"""The stage model by quadrature, against closed forms and dense integration."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from model_cases import brute_force, summary_of
from verdiv.estimators.conditional import integrate as integrate_out
from verdiv.estimators.conditional import mode, sample
from verdiv.estimators.grid import TOLERANCE, fit_grid
from verdiv.estimators.priors import Priors


@pytest.mark.parametrize(
    ("k", "n", "deff"),
    [
        (0, 1, 1.0),
        (1, 1, 1.0),
        (7, 10, 1.0),
        (7, 10, 2.5),
        (0, 753, 1.0),
        (2876, 8000, 7.9),
        (10**6, 10**6, 1.0),
    ],
)
def test_one_family_uniform_prior_is_beta(k: int, n: int, deff: float) -> None:
    """One family, uniform prior on the rate: SciPy's Beta(K/d + 1, (N - K)/d + 1), moments and draws."""
    found = fit_grid(summary_of({"q": ([k], [n])}, deff), Priors(uniform=True), draws=20_000, seed=3)
    exact = stats.beta(k / deff + 1, (n - k) / deff + 1)
    assert abs(found.mean[0, 0] - exact.mean()) < 1e-4 * exact.std()
    assert found.sd[0, 0] == pytest.approx(exact.std(), rel=1e-4)
    assert stats.kstest(found.m["q"][:, 0], exact.cdf).pvalue > 1e-3
    moved = stats.beta(k / deff + 1.1, (n - k) / deff + 1)
    if n < 100:
        assert abs(found.mean[0, 0] - moved.mean()) > 1e-3 * exact.std()


def test_effective_counts_not_raw_ones() -> None:
    """The design effect divides both counts: the posterior of 700 of 1000 at d = 100 is that of 7 of 10."""
    raw = fit_grid(summary_of({"q": ([700, 300], [1000, 900])}, 100.0), Priors(), draws=0)
    small = fit_grid(summary_of({"q": ([7, 3], [10, 9])}), Priors(), draws=0)
    assert np.allclose(raw.mean, small.mean, rtol=1e-12)
    assert np.allclose(raw.cov, small.cov, rtol=1e-9)


@pytest.mark.parametrize(
    ("k", "n"),
    [([3, 3, 0], [10, 20, 5]), ([1, 0, 0], [1, 0, 0]), ([0, 3], [3, 3]), ([40, 7], [40, 7])],
    ids=["demo-like", "two families never reached", "opposites", "all right"],
)
def test_against_dense_integration(k: list[float], n: list[float]) -> None:
    """Means, standard deviations and covariances equal those of a dense, unadapted mesh to five digits."""
    found = fit_grid(summary_of({"q": (k, n)}), Priors(), draws=0)
    mean, cov = brute_force(k, n, Priors())
    assert np.all(np.abs(found.mean[0] - mean) < 1e-5 * found.sd[0])
    assert np.allclose(found.cov[0], cov, rtol=2e-5, atol=1e-9)
    assert found.error[0] < TOLERANCE


def test_dense_integration_tells_priors_apart() -> None:
    """The twin: a tau prior of .6 for .7 moves the same posterior by far more than the tolerance above."""
    found = fit_grid(summary_of({"q": ([0, 3], [3, 3])}), Priors(), draws=0)
    mean, _ = brute_force([0, 3], [3, 3], Priors(tau_sd=0.6))
    assert np.max(np.abs(found.mean[0] - mean) / found.sd[0]) > 1e-2


def test_two_large_families_by_scipy() -> None:
    """N = 10^6: logits are Gaussian with known variance, mu integrates out, and one integral in tau is left."""
    k, n = np.array([3.0e5, 3.03e5]), np.array([1.0e6, 1.0e6])
    found = fit_grid(summary_of({"q": (k.tolist(), n.tolist())}), Priors(), draws=0)
    rate = k / n
    x, s2 = np.log(rate / (1 - rate)), 1 / (n * rate * (1 - rate))

    def moments(tau: float) -> tuple[float, float]:
        """Marginal density at tau and the conditional mean of the first logit, joint Gaussian."""
        prior = 2.5**2 + np.diag([tau**2] * 2)
        total = prior + np.diag(s2)
        density = stats.multivariate_normal(np.zeros(2), total).pdf(x) * np.exp(-0.5 * (tau / 0.7) ** 2)
        return float(density), float((prior @ np.linalg.solve(total, x))[0])

    edges = [0.0, 0.003, 0.01, 0.05, 0.3, 3.5]
    mass = shifted = 0.0
    for a, b in pairwise(edges):
        mass += integrate.quad(lambda t: moments(t)[0], a, b, epsabs=0, epsrel=1e-9)[0]
        shifted += integrate.quad(lambda t: moments(t)[0] * (moments(t)[1] - x[0]), a, b, epsrel=1e-9)[0]
    exact = shifted / mass / np.sqrt(s2[0])
    centre = np.log(found.mean[0, 0] / (1 - found.mean[0, 0]))
    assert exact > 0.02
    assert (centre - x[0]) / np.sqrt(s2[0]) == pytest.approx(exact, abs=2e-3)


EXTREMES: dict[str, tuple[Sequence[float], Sequence[float]]] = {
    "none of many": ([0, 0, 0], [1e6, 1e6, 1e6]),
    "all of many": ([1e6, 1e6, 0], [1e6, 1e6, 0]),
    "one draw each": ([1, 0, 1], [1, 1, 1]),
    "uneven": ([5e5, 1, 0], [1e6, 10, 1]),
    "far apart": ([1, 5e5, 999_999], [1e6, 1e6, 1e6]),
    "equal and huge": ([2e5, 2e5, 2e5], [1e6, 1e6, 1e6]),
}


@pytest.mark.parametrize("name", EXTREMES)
@pytest.mark.parametrize("stage", ["q", "fpr"])
def test_extremes_keep_the_stated_error(name: str, stage: str) -> None:
    """From one draw to a million, none to all, the error estimate stays within its tolerance and all is finite."""
    k, n = EXTREMES[name]
    for priors in (Priors(), Priors().scaled(mu=2.0), Priors().scaled(tau=2.0), Priors(uniform=True)):
        found = fit_grid(summary_of({stage: (k, n)}), priors, draws=500, seed=1)
        assert found.error[0] < TOLERANCE
        assert np.all((found.mean > 0) & (found.mean < 1) & np.isfinite(found.sd))
        assert np.isfinite(found.m[stage]).all()


def test_thirty_families() -> None:
    """Thirty families: the spread is learnt (true tau .8), and draws agree with moments."""
    rng = np.random.default_rng(5)
    rate = 1 / (1 + np.exp(-(0.3 + 0.8 * rng.normal(size=30))))
    n = np.full(30, 400)
    found = fit_grid(
        summary_of({"q": (rng.binomial(n, rate).tolist(), n.tolist())}), Priors(), draws=8000, seed=2
    )
    tau = found.tau["q"]
    assert np.quantile(tau, 0.025) < 0.8 < np.quantile(tau, 0.975)
    assert tau.std() < 0.15
    z = (found.m["q"].mean(axis=0) - found.mean[0]) / found.sd[0] * np.sqrt(8000)
    assert np.abs(z).max() < 4.5


@settings(max_examples=25)
@given(
    counts=st.lists(
        st.tuples(st.integers(0, 60), st.integers(0, 60)).map(lambda p: (min(p), max(p))),
        min_size=1,
        max_size=4,
    ).filter(lambda c: any(n for _, n in c)),
    deff=st.floats(1, 9),
)
def test_draws_agree_with_moments(counts: list[tuple[int, int]], deff: float) -> None:
    """Joint draws have the quadrature's means and covariances within Monte-Carlo error, whatever the counts."""
    k, n = [c[0] for c in counts], [c[1] for c in counts]
    found = fit_grid(summary_of({"delta": (k, n)}, deff), Priors(), draws=4000, seed=9)
    draws = found.m["delta"]
    assert found.error[0] < TOLERANCE
    assert np.all(np.abs(draws.mean(axis=0) - found.mean[0]) < 5.5 * found.sd[0] / np.sqrt(4000))
    away = (draws - found.mean[0]) / found.sd[0]
    product = away[:, :1] * away
    wanted = found.cov[0, 0] / (found.sd[0, 0] * found.sd[0])
    assert np.all(np.abs(product.mean(axis=0) - wanted) < 5.5 * product.std(axis=0) / np.sqrt(4000) + 1e-3)


def test_family_order_does_not_matter() -> None:
    """Permuting families permutes the posterior and nothing else."""
    k, n = [3.0, 0.0, 9.0], [10.0, 7.0, 9.0]
    order = [2, 0, 1]
    one = fit_grid(summary_of({"q": (k, n)}), Priors(), draws=0)
    two = fit_grid(summary_of({"q": ([k[i] for i in order], [n[i] for i in order])}), Priors(), draws=0)
    assert np.allclose(one.mean[0, order], two.mean[0], rtol=1e-10)


def test_stages_share_nothing() -> None:
    """Adding a stage leaves the moments and the very draws of the others as they were."""
    alone = fit_grid(summary_of({"q": ([3, 4], [9, 9])}), Priors(), draws=100, seed=7)
    both = fit_grid(
        summary_of({"fpr": ([0, 0], [50, 9]), "q": ([3, 4], [9, 9])}), Priors(), draws=100, seed=7
    )
    assert np.array_equal(alone.m["q"], both.m["q"])
    assert np.array_equal(alone.mean[0], both.mean[1])
    other = fit_grid(summary_of({"q": ([3, 4], [9, 9])}), Priors(), draws=100, seed=8)
    assert not np.array_equal(alone.m["q"], other.m["q"])


def test_unreached_family_follows_the_others() -> None:
    """A family without draws is predicted by the hierarchy: between its peers' mean and the prior, and wider."""
    found = fit_grid(summary_of({"q": ([450, 450, 0], [500, 500, 0])}), Priors(), draws=0)
    assert 0.75 < found.mean[0, 2] < found.mean[0, 0]
    assert found.sd[0, 2] > 5 * found.sd[0, 0]


@settings(max_examples=60)
@given(
    mu=st.floats(-20, 20),
    tau=st.sampled_from([0.0, 1e-3, 0.1, 1.0, 5.0, 20.0]),
    log_n=st.floats(0, 6),
    share=st.sampled_from([0.0, 1e-3, 0.3, 1.0]),
)
def test_mode_is_found(mu: float, tau: float, log_n: float, share: float) -> None:
    """The bracketed Newton search ends at the mode and never cycles, saturated starts included."""
    n = np.array([10.0**log_n])
    k = share * n
    u, sharp = mode(np.array([mu]), np.array([tau]), k, n)
    slope = tau * (k - n / (1 + np.exp(-(mu + tau * u)))) - u
    assert abs(slope[0]) / np.sqrt(sharp[0]) < 1e-3


def test_mode_where_newton_cycles() -> None:
    """A start on the flat shoulder of none in 69,606, from which plain Newton steps swing between two points."""
    n = np.array([69605.58965836377])
    u, sharp = mode(np.array([2.701402817935136]), np.array([0.1]), np.zeros(1), n)
    slope = -0.1 * n / (1 + np.exp(-(2.701402817935136 + 0.1 * u))) - u
    assert abs(slope[0]) / np.sqrt(sharp[0]) < 1e-3


@pytest.mark.parametrize(("k", "n"), [(0.0, 1.0), (0.0, 1e6), (3.0, 10.0), (0.0, 0.0)])
def test_conditional_draws_are_exact(k: float, n: float) -> None:
    """Rejection under tangents gives the integrated density: Kolmogorov-Smirnov against its quadrature."""
    mu, tau = -1.0, 1.7
    x = sample(
        np.full(20_000, mu), np.full(20_000, tau), np.array([k]), np.array([n]), np.random.default_rng(4)
    )
    u = np.linspace(-14, 14, 200_001)
    grid = mu + tau * u
    density = np.exp(k * grid - n * np.logaddexp(0, grid) - 0.5 * u * u)
    cdf = np.cumsum(density) / density.sum()
    assert stats.kstest(x[:, 0], lambda v: np.interp(v, grid, cdf)).pvalue > 1e-3


def test_conditional_mass_and_derivatives() -> None:
    """Log mass equals SciPy's integral, and score and curvature are its derivatives."""
    k, n, reference = np.array([[4.0]]), np.array([[11.0]]), np.array([[0.4]])
    at = np.array([-0.3])

    def mass(mu: float) -> float:
        """Integral over u by SciPy."""

        def term(u: float) -> float:
            x = mu + 0.9 * u
            return float(np.exp(4 * x - 11 * np.log1p(np.exp(x)) - 0.5 * u * u) / np.sqrt(2 * np.pi))

        return float(np.log(integrate.quad(term, -12, 12, epsabs=0, epsrel=1e-12)[0]))

    full, half = integrate_out(at, np.array([0.9]), k, n, reference, points=25)
    step = 1e-3
    low, middle, high = mass(-0.3 - step), mass(-0.3), mass(-0.3 + step)
    assert full.log_mass[0, 0] == pytest.approx(middle, abs=1e-9)
    assert full.score[0, 0] == pytest.approx((high - low) / (2 * step), rel=1e-5)
    assert full.curvature[0, 0] == pytest.approx((high - 2 * middle + low) / step**2, rel=1e-4)
    assert 0 < abs(half.log_mass[0, 0] - middle) < 1e-2
