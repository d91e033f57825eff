"""Within-task correlation: the beta-binomial without gamma functions, its posterior, and leave-one-out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from model_cases import beta_binomial_block
from verdiv.estimators.predictive import compare_blocks
from verdiv.estimators.priors import Priors
from verdiv.estimators.rising import EXACT, count_vector_log_likelihood, rising_terms
from verdiv.estimators.summary import CountBlock
from verdiv.estimators.within import MIN_REPLICATED_TASKS, fit_icc_grid, fit_independent_grid


def ints(*values: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Build a vector of counts."""
    return np.array(values, dtype=np.int64)


CRUXEVAL_LIKE = CountBlock(
    "q",
    ints(*[0] * 11),
    ints(*[10] * 11),
    ints(*range(11)),
    ints(420, 28, 22, 18, 15, 14, 13, 15, 20, 25, 210),
)
"""800 tasks of ten draws, 420 never right and 210 always."""


@settings(max_examples=60)
@given(
    m=st.floats(0.01, 0.99),
    icc=st.floats(0.001, 0.95),
    n=st.integers(1, 40),
    share=st.floats(0, 1),
)
def test_count_vectors_are_beta_binomial(m: float, icc: float, n: int, share: float) -> None:
    """Products of linear terms equal SciPy's beta-binomial wherever that is defined."""
    k = round(share * n)
    block = CountBlock("q", ints(0), ints(n), ints(k), ints(1))
    found = count_vector_log_likelihood(block, np.array([[m]]), np.array([icc]))[0, 0]
    kappa = 1 / icc - 1
    assert found == pytest.approx(stats.betabinom.logpmf(k, n, m * kappa, (1 - m) * kappa), abs=1e-8)


def test_no_correlation_is_binomial_and_full_is_bernoulli() -> None:
    """Icc = 0 is the binomial exactly; as icc goes to 1 a task is all right with probability m."""
    block = CountBlock("q", ints(0, 0), ints(10, 10), ints(3, 10), ints(1, 1))
    none = count_vector_log_likelihood(block, np.array([[0.4]]), np.zeros(1))[0]
    assert none == pytest.approx(stats.binom.logpmf([3, 10], 10, 0.4), abs=1e-12)
    full = count_vector_log_likelihood(block, np.array([[0.4]]), np.array([1 - 1e-9]))[0]
    assert full[1] == pytest.approx(np.log(0.4), abs=1e-7)
    assert full[0] < -15


def test_sums_over_tasks_equal_the_count_vectors() -> None:
    """The weights of the products give the same likelihood as the count vectors with multiplicity."""
    block = CountBlock("q", ints(0, 0, 1, 1), ints(3, 7, 5, 1), ints(0, 4, 5, 1), ints(4, 1, 9, 2))
    terms = rising_terms(block, ("a", "b"))
    m, icc = np.array([0.3, 0.8]), np.array([0.25])
    summed = terms.log_likelihood(m[:, None], icc).sum()
    choose = stats.binom.logpmf(block.k, block.n, 0.5) - block.n * np.log(0.5)
    each = count_vector_log_likelihood(block, m[None, :], icc)[0] - choose
    assert summed == pytest.approx(float(block.multiplicity @ each), abs=1e-10)
    assert terms.padded(16).log_likelihood(m[:, None], icc).sum() == pytest.approx(summed, abs=1e-12)


@pytest.mark.parametrize("draws", [EXACT + 1, 5_000, 1_000_000])
@pytest.mark.parametrize("icc", [1e-6, 0.02, 0.7])
def test_merged_terms_keep_the_likelihood(draws: int, icc: float) -> None:
    """Tasks of up to a million draws: merged terms agree with gamma functions to a millionth of a nat."""
    k = draws // 3
    block = CountBlock("q", ints(0), ints(draws), ints(k), ints(1))
    terms = rising_terms(block, ("all",))
    assert terms.width < 1200
    found = terms.log_likelihood(np.array([[0.34]]), np.array([icc]))[0, 0]
    j = np.arange(draws, dtype=np.longdouble)

    def rising(start: float, count: int) -> np.longdouble:
        """Sum every term."""
        return np.longdouble(np.log(np.longdouble(start) + j[:count] * np.longdouble(icc)).sum())

    exact = rising(0.34 * (1 - icc), k) + rising(0.66 * (1 - icc), draws - k) - rising(1 - icc, draws)
    assert abs(found - float(exact)) < 1e-6 * max(1.0, abs(float(exact)) * 1e-3)


def test_posterior_against_dense_integration() -> None:
    """Mean and standard deviation of icc equal those of a dense mesh in (icc, logit m)."""
    block = beta_binomial_block("q", 25, 4, 0.7, 0.4, seed=3)
    found = fit_icc_grid(block, ("all",), Priors(), draws=10)
    icc = (np.arange(1500) + 0.5) / 1500
    x = np.linspace(-6, 8, 701)
    m = 1 / (1 + np.exp(-x))
    kappa = (1 / icc - 1)[:, None]
    log = sum(
        w * stats.betabinom.logpmf(k, n, m * kappa, (1 - m) * kappa)
        for n, k, w in zip(block.n, block.k, block.multiplicity, strict=True)
    )
    density = np.exp(log - np.max(log)) * stats.norm.pdf(x, 0, 2.5)
    weight = density.sum(axis=1) * stats.beta.pdf(icc, 1, 1.5)
    weight /= weight.sum()
    mean = float(weight @ icc)
    sd = float(np.sqrt(weight @ (icc - mean) ** 2))
    assert found.mean == pytest.approx(mean, abs=2e-4 * sd + 2e-5)
    assert found.posterior_sd == pytest.approx(sd, rel=1e-3)
    assert abs(found.mean - float(weight @ (icc + 0.02))) > 100 * (2e-4 * sd)


@pytest.mark.parametrize("icc", [0.0, 0.1, 0.4, 0.8])
@pytest.mark.parametrize(("tasks", "draws"), [(400, 3), (60, 8)])
def test_icc_is_recovered(icc: float, tasks: int, draws: int) -> None:
    """Forty simulated blocks: 95 % intervals cover the truth in at least 33 (binomial test at .001)."""
    covered = 0
    for seed in range(40):
        block = beta_binomial_block("q", tasks, draws, 0.6, icc, seed=seed, families=2)
        found = fit_icc_grid(block, ("a", "b"), Priors(), draws=1500, seed=seed)
        low, high = np.quantile(found.icc, [0.025, 0.975]) if icc > 0 else np.quantile(found.icc, [0.0, 0.95])
        covered += bool(low <= icc + 0.01 * (icc == 0) and icc <= high)
    assert covered >= 33


def test_draws_agree_with_the_mesh() -> None:
    """Draws have the mesh's moments, and the same seed gives the same draws whatever stands beside it."""
    block = beta_binomial_block("s1", 80, 3, 0.9, 0.3, seed=1, families=3)
    found = fit_icc_grid(block, ("a", "b", "c"), Priors(), draws=20_000, seed=5)
    assert abs(found.icc.mean() - found.mean) < 4.5 * found.posterior_sd / np.sqrt(20_000)
    assert found.icc.std() == pytest.approx(found.posterior_sd, rel=0.03)
    again = fit_icc_grid(block, ("a", "b", "c"), Priors(), draws=20_000, seed=5)
    assert np.array_equal(found.icc, again.icc)
    assert np.array_equal(found.m, again.m)
    assert found.m.shape == (20_000, 3)


def test_estimable_needs_ten_replicated_tasks_and_a_narrow_posterior() -> None:
    """Both halves of the rule, each with its reason; without replicates the posterior is the prior."""
    few = fit_icc_grid(
        beta_binomial_block("q", MIN_REPLICATED_TASKS - 1, 60, 0.5, 0.2, seed=1), ("a",), Priors()
    )
    assert not few.estimable
    assert "9 tasks of at least two draws" in few.reason
    vague = fit_icc_grid(beta_binomial_block("q", 10, 2, 0.97, 0.2, seed=1), ("a",), Priors())
    assert not vague.estimable
    assert "above half the prior's" in vague.reason
    clear = fit_icc_grid(beta_binomial_block("q", 60, 5, 0.5, 0.2, seed=1), ("a",), Priors())
    assert clear.estimable
    assert clear.reason == ""
    assert clear.posterior_sd <= 0.5 * clear.prior_sd
    single = fit_icc_grid(beta_binomial_block("q", 40, 1, 0.5, 0.2, seed=1), ("a",), Priors())
    assert single.mean == pytest.approx(0.4, abs=1e-4)
    assert single.posterior_sd == pytest.approx(Priors().icc_sd, abs=1e-4)


def test_nearly_deterministic_tasks() -> None:
    """800 tasks, 420 of 0/10 and 210 of 10/10: icc near .8, known to .02, and the mean rate not dragged away."""
    found = fit_icc_grid(CRUXEVAL_LIKE, ("all",), Priors(), seed=1)
    assert found.estimable
    assert 0.72 < found.mean < 0.85
    assert found.posterior_sd < 0.02
    pooled = float(CRUXEVAL_LIKE.multiplicity @ CRUXEVAL_LIKE.k / 8000)
    assert abs(found.m.mean() - pooled) < 0.03


def test_leave_one_out_tells_correlation_from_none() -> None:
    """PSIS-LOO prefers correlation by far where draws of a task agree, and not where they are independent."""
    fit = fit_icc_grid(CRUXEVAL_LIKE, ("all",), Priors(), seed=1)
    (row,) = compare_blocks([CRUXEVAL_LIKE], {"q": fit}, ("all",), Priors(), seed=1)
    assert row.tasks == 800
    assert row.preferred == "correlated"
    assert row.difference > 10 * row.se
    assert row.bad_k == 0
    plain = beta_binomial_block("q", 400, 6, 0.6, 0.0, seed=2)
    fit = fit_icc_grid(plain, ("all",), Priors(), seed=1)
    (row,) = compare_blocks([plain], {"q": fit}, ("all",), Priors(), seed=1)
    assert row.preferred != "correlated"
    assert abs(row.difference) < 3


def test_leave_one_out_against_refits() -> None:
    """Each task's predictive density equals the one of a refit without it, to Monte-Carlo error."""
    block = beta_binomial_block("q", 14, 5, 0.6, 0.3, seed=4)
    fit = fit_icc_grid(block, ("all",), Priors(), draws=40_000, seed=1)
    (row,) = compare_blocks([block], {"q": fit}, ("all",), Priors(), seed=1)
    total = 0.0
    for p in range(block.n.size):
        left = block.multiplicity.copy()
        left[p] -= 1
        keep = left > 0
        rest = CountBlock("q", block.family[keep], block.n[keep], block.k[keep], left[keep])
        without = fit_icc_grid(rest, ("all",), Priors(), draws=40_000, seed=2)
        density = np.exp(count_vector_log_likelihood(block, without.m, without.icc)[:, p]).mean()
        total += block.multiplicity[p] * np.log(density)
    assert row.elpd_correlated == pytest.approx(total, abs=0.06)
    assert abs(row.elpd_correlated - row.elpd_independent) > 0.2


def test_independent_rates_are_the_binomial_posterior() -> None:
    """Without correlation and with a uniform prior the block's rates have SciPy's Beta posterior."""
    block = beta_binomial_block("q", 30, 4, 0.6, 0.0, seed=2)
    m = fit_independent_grid(block, ("all",), Priors(uniform=True), draws=20_000, seed=3)[:, 0]
    k, n = float(block.multiplicity @ block.k), float(block.multiplicity @ block.n)
    assert stats.kstest(m, stats.beta(k + 1, n - k + 1).cdf).pvalue > 1e-3
