"""The Bayesian bootstrap: exact where theory is exact, proper at the extremes, paired where it must be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from verdiv.estimators.bootstrap import Bootstrap

ONE = np.zeros(40, dtype=np.int64)


def boot(k: np.ndarray, n: np.ndarray, draws: int = 20_000, seed: int = 1) -> Bootstrap:
    """One family, one column pair."""
    b = Bootstrap(np.zeros(len(n), dtype=np.int64), np.ones(1), draws=draws, seed=seed)
    b.extend({"k": k, "n": n})
    return b


@pytest.mark.parametrize("k", [0, 1, 13, 40])
def test_one_draw_a_task_is_the_jeffreys_posterior(k: int) -> None:
    """With one draw a task a rate's posterior is exactly Beta(k + ½, n − k + ½), 0/n and n/n included."""
    hits = np.r_[np.ones(k), np.zeros(40 - k)]
    b = boot(hits, np.ones(40))
    exact = stats.beta(k + 0.5, 40 - k + 0.5)
    for draws in (b.rate("k", "n", "n"), b.mean("k", "n")):
        assert stats.kstest(draws, exact.cdf).pvalue > 1e-3
    wrong = stats.beta(k + 1.5, 40 - k + 1.5)
    assert stats.kstest(b.mean("k", "n"), wrong.cdf).pvalue < 1e-6


def test_nothing_observed_is_not_certainty() -> None:
    """0/n has an interval that reaches well above 0, narrower with more tasks."""
    few = boot(np.zeros(20), np.ones(20)).mean("k", "n")
    many = boot(np.zeros(2000), np.ones(2000)).mean("k", "n")
    assert 0.05 < np.quantile(few, 0.975) < 0.2
    assert np.quantile(many, 0.975) < 0.003


def test_a_paired_difference_of_equal_arms_is_ignorance_not_zero() -> None:
    """Two arms that agreed on every task may still differ: the difference has pseudo-tasks at its own extremes."""
    hits = np.r_[np.ones(30), np.zeros(10)]
    b = boot(hits, np.ones(40))
    difference = b.mean("k", "n") - b.mean("k", "n", exchanged=True)
    assert abs(difference.mean()) < 0.002
    assert 0.01 < difference.std() < 0.06


def test_pairing_removes_what_tasks_share() -> None:
    """The spread of a paired difference is that of the differences, not of the two arms apart."""
    rng = np.random.default_rng(0)
    base = (rng.random(500) < 0.5).astype(float)
    better = np.where(rng.random(500) < 0.02, 1.0, base)
    b = Bootstrap(np.zeros(500, dtype=np.int64), np.ones(1), draws=4000, seed=2)
    b.extend({"a": better, "b": base, "n": np.ones(500)})
    paired = b.mean("a", "n") - b.mean("b", "n", exchanged=True)
    apart = np.hypot(b.mean("a", "n").std(), b.mean("b", "n").std())
    assert paired.std() < apart / 3


def test_rates_are_draw_weighted_across_families() -> None:
    """A rate is a ratio of population means: the family whose draws reach the stage more often counts for more."""
    family = np.repeat([0, 1], 1000)
    wrong = np.where(family == 0, 0.1, 0.9) * 10
    flagged = wrong * np.where(family == 0, 1.0, 0.5)
    b = Bootstrap(family, np.array([0.5, 0.5]), draws=500, seed=3)
    b.extend({"k": flagged, "n": wrong, "base": np.full(2000, 10.0)})
    rate = b.rate("k", "n", "base").mean()
    assert rate == pytest.approx((0.1 * 1.0 + 0.9 * 0.5) / (0.1 + 0.9), abs=0.01)
    assert abs(rate - 0.75) > 0.1


def test_columns_added_later_see_the_same_weights() -> None:
    """A column added twice gives the same draws: all terms of a contrast share one weight vector."""
    hits = np.r_[np.ones(11), np.zeros(29)]
    b = boot(hits, np.ones(40), draws=300)
    before = b.mean("k", "n")
    b.extend({"again": hits, "m": np.ones(40)})
    assert np.array_equal(before, b.mean("again", "m"))


def test_a_family_without_data_gives_its_weight_to_the_others() -> None:
    """Weights are renormalised to the families that have data, and none at all is NaN, never 0."""
    family = np.repeat([0, 1], 50)
    b = Bootstrap(family, np.array([0.3, 0.7]), draws=200, seed=1)
    only = np.where(family == 0, 1.0, 0.0)
    b.extend({"k": only, "n": only, "zero": np.zeros(100)})
    assert b.mean("k", "n").mean() > 0.95
    assert np.isnan(b.mean("zero", "zero")).all()
    assert np.isnan(b.rate("zero", "zero", "n")).all()
