"""0 of n and n of n where draws cluster in tasks: what is bounded, and by which count of what."""

from __future__ import annotations

import html
from dataclasses import asdict

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from sample_document import sample_document
from verdiv.estimators.bootstrap import Bootstrap
from verdiv.estimators.crosscheck import cross_check
from verdiv.estimators.grid import fit_grid
from verdiv.estimators.priors import Priors
from verdiv.estimators.summary import StageTally, cluster_size, design_effect, summarise
from verdiv.reports import render_html, render_markdown, validate_document

Array = npt.NDArray[np.float64]


def boot(n: Array, k: Array, families: int = 1, draws: int = 20_000) -> Bootstrap:
    """Tasks in equal families."""
    family = np.arange(len(n), dtype=np.int64) % families
    b = Bootstrap(family, np.full(families, 1.0 / families), draws=draws, seed=1)
    b.extend({"k": k, "n": n})
    return b


@pytest.mark.parametrize("seen", [0.0, 1.0])
def test_equal_draws_of_clustered_tasks_are_as_many_observations_as_tasks(seen: float) -> None:
    """Of 40 tasks with 12 draws each, all equal, the other outcome has the posterior Beta(1, 40)."""
    n = np.full(40, 12.0)
    other = np.abs(boot(n, seen * n).rate("k", "n", "n") - seen)
    assert stats.kstest(other, stats.beta(1, 40).cdf).pvalue > 1e-3
    for wrong in (stats.beta(0.5, 40.5), stats.beta(0.5, 480.5), stats.beta(1, 44)):
        assert stats.kstest(other, wrong.cdf).pvalue < 1e-9


def test_families_share_the_unseen_task() -> None:
    """Four families of ten tasks bound the rate as 40 tasks do, up to a tenth: each is weighed by its own draws."""
    n = np.full(40, 12.0)
    bound = np.quantile(boot(n, np.zeros(40), families=4).rate("k", "n", "n"), 0.95)
    assert 1.0 <= bound / stats.beta.ppf(0.95, 1, 40) < 1.15


def test_one_event_tells_of_clustering() -> None:
    """As soon as draws differ, tasks are weighed as ever, with half a pseudo-draw on each side."""
    n = np.full(40, 12.0)
    k = np.zeros(40)
    k[3] = 1.0
    b = boot(n, k)
    rng = np.random.default_rng(0)
    w = rng.standard_exponential((20_000, 40))
    high, low = rng.standard_gamma(0.5, (2, 20_000))
    again = (w @ k + high) / (w @ n + high + low)
    assert stats.ks_2samp(b.rate("k", "n", "n"), again).pvalue > 1e-3


def test_a_contrast_of_equal_clustered_draws_is_ignorance_on_both_sides() -> None:
    """Two stages with every draw flagged may differ either way, by as much as 40 tasks leave open."""
    n = np.full(40, 12.0)
    b = boot(n, n)
    difference = b.rate("k", "n", "n") - b.rate("k", "n", "n", exchanged=True)
    second = stats.beta(1, 40).rvs((2, 20_000), random_state=3)
    assert stats.ks_2samp(difference, second[0] - second[1]).pvalue > 1e-3


def test_a_difference_that_was_never_seen_has_both_ends_open() -> None:
    """Where a quantity between -1 and 1 was 0 in every draw, whole pseudo-tasks stand at both ends."""
    n = np.full(40, 12.0)
    rate = boot(n, np.zeros(40)).rate("k", "n", "n", least=-1.0)
    part = stats.dirichlet.rvs([1.0, 40.0, 1.0], 20_000, random_state=4)
    assert stats.ks_2samp(rate, part[:, 0] - part[:, 2]).pvalue > 1e-3


def beta_binomial_nothing(n: Array, p: float, icc: float) -> float:
    """Chance of no event, by SciPy's beta-binomial."""
    if icc == 1.0:
        return float((1.0 - p) ** len(n))
    kappa = 1.0 / icc - 1.0
    return float(np.prod(stats.betabinom.pmf(0, n.astype(int), p * kappa, (1.0 - p) * kappa)))


@pytest.mark.parametrize(
    "n", [np.full(40, 12.0), np.tile(np.array([1.0, 5.0, 12.0, 23.0]), 10)], ids=["even", "uneven"]
)
@pytest.mark.parametrize("icc", [0.1, 0.5, 0.9, 1.0])
def test_the_bound_by_tasks_covers_whatever_the_correlation(n: Array, icc: float) -> None:
    """A rate at the bound stays unseen in 5 % at most, and rules use a bound as wide; that by draws misses."""
    checked = cross_check(n, np.zeros(len(n)), level=0.9)
    assert checked is not None
    assert checked.by_tasks is not None
    for bound in (
        checked.by_tasks.high,
        float(np.quantile(boot(n, np.zeros(len(n))).rate("k", "n", "n"), 0.95)),
    ):
        assert beta_binomial_nothing(n, bound, icc) < 0.052
        assert bound == pytest.approx(checked.by_tasks.high, rel=0.04)
    if icc >= 0.5:
        assert beta_binomial_nothing(n, checked.high, icc) > 0.4


@pytest.mark.parametrize("hits", [0, 134])
def test_clopper_and_pearson_stand_twice_by_draws_and_by_tasks(hits: int) -> None:
    """0/n and n/n keep their interval by draws, and that by tasks beside it is statsmodels' of 0 and 134 in 134."""
    n = np.full(134, 5.0)
    found = cross_check(n, n * (hits > 0))
    assert found is not None
    assert found.by_tasks is not None
    assert (found.low, found.high) == pytest.approx(
        proportion_confint(5 * hits, 670, method="beta"), abs=1e-12
    )
    assert found.by_tasks.tasks == found.by_tasks.effective == 134
    by_tasks = proportion_confint(hits, 134, method="beta")
    assert (found.by_tasks.low, found.by_tasks.high) == pytest.approx(by_tasks, abs=1e-12)


def test_single_draws_and_unequal_ones_have_no_bound_by_tasks() -> None:
    """With one draw a task both bounds are one, and with events the sandwich tells of clustering."""
    alone = cross_check(np.ones(30), np.zeros(30))
    mixed = cross_check(np.full(30, 3.0), np.r_[1.0, np.zeros(29)])
    assert alone is not None
    assert mixed is not None
    assert alone.by_tasks is mixed.by_tasks is None
    assert mixed.cluster_robust is not None


@pytest.mark.parametrize("seen", [0.0, 1.0])
def test_the_design_effect_of_equal_draws_is_the_cluster_size(seen: float) -> None:
    """Nothing varies, so a task counts once: d = Σn²/Σn, over all families, and 1 with one draw a task."""
    n = np.array([2.0, 4.0, 0.0, 6.0])
    family = np.array([0, 0, 1, 1])
    assert cluster_size(n) == pytest.approx(56.0 / 12.0)
    assert design_effect(StageTally("q", family, n, seen * n), 2) == pytest.approx(56.0 / 12.0)
    assert design_effect(StageTally("q", family, np.ones(4), seen * np.ones(4)), 2) == 1.0


def test_the_models_bound_widens_with_the_cluster() -> None:
    """0 of 480 in 40 tasks bounds the model's rate as 0 of 40 single draws does."""
    none = np.zeros(40)
    family = np.zeros(40, dtype=np.int64)
    clustered, single = (
        fit_grid(summarise([StageTally("fpr", family, n, none)], ["all"]), Priors(), draws=4000, seed=1)
        for n in (np.full(40, 12.0), np.ones(40))
    )
    assert clustered.mean[0, 0] == pytest.approx(single.mean[0, 0], rel=1e-6)


def test_the_report_says_both_bounds() -> None:
    """The cross-check of 0/n names draws, tasks and the bound by tasks in words, and both pages are valid."""
    document = sample_document()
    n = np.full(134, 5.0)
    found = cross_check(n, np.zeros(134))
    assert found is not None
    record = document["estimates"]["fpr"]
    record |= {"k": 0, "n": 670}
    record["cross_check"] = asdict(found)
    validate_document(document)
    for page in (render_markdown(document), html.unescape(render_html(document))):
        assert "0 of 670 draws in 134 tasks: the bound by tasks is" in page
        assert "0.027" in page
