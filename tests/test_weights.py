"""Weighted sums: exact weights, and the fast transform that stands for them where tasks are very many."""

from __future__ import annotations

import numpy as np
import pytest

from verdiv.estimators import weights
from verdiv.estimators.bootstrap import Bootstrap
from verdiv.estimators.weights import TaskWeights, Transform, rare_tasks

TASKS, DRAWS = 6000, 2000


def columns() -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    """Counts of a common event, a rare one, and the draws behind them."""
    rng = np.random.default_rng(1)
    n = np.full(TASKS, 5.0)
    k = rng.binomial(5, 0.8, TASKS).astype(float)
    rare = np.zeros(TASKS)
    rare[rng.choice(TASKS, 4, replace=False)] = 1.0
    return {"k": k, "n": n, "rare": rare, "wrong": n - k}


def bootstrap(many: int, monkeypatch: pytest.MonkeyPatch) -> Bootstrap:
    """Bootstrap of two families with the fast transform above ``many`` tasks."""
    monkeypatch.setattr(weights, "MANY", many)
    monkeypatch.setattr("verdiv.estimators.bootstrap.MANY", many)
    family = (np.arange(TASKS) % 2).astype(np.int64)
    made = Bootstrap(family, np.array([0.5, 0.5]), draws=DRAWS, seed=3, watch=columns().values())
    made.extend(columns())
    return made


def test_the_transform_is_orthogonal() -> None:
    """Every row of the matrix has entries of size 1 and is orthogonal to the others."""
    for size in (2, 16, 32):
        h = Transform(size)(np.eye(size))
        np.testing.assert_array_equal(np.abs(h), 1.0)
        np.testing.assert_array_equal(h @ h.T, size * np.eye(size))


def test_fast_sums_have_the_mean_and_covariance_of_exact_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mean, spread and correlation of two sums agree with the formulas that Exp(1) weights obey."""
    fast = bootstrap(1000, monkeypatch)
    data = columns()
    for f in (0, 1):
        mine = np.arange(TASKS) % 2 == f
        k, n = fast.sums("k")[:, f], fast.sums("n")[:, f]
        for sums, values in ((k, data["k"][mine]), (n, data["n"][mine])):
            sd = np.sqrt((values**2).sum())
            assert sums.mean() == pytest.approx(values.sum(), abs=4 * sd / np.sqrt(DRAWS))
            assert sums.std() == pytest.approx(sd, rel=0.05)
            assert sums.std() != pytest.approx(1.2 * sd, rel=0.05)
        expected = (data["k"] * data["n"])[mine].sum() / np.sqrt(
            (data["k"][mine] ** 2).sum() * (data["n"][mine] ** 2).sum()
        )
        assert np.corrcoef(k, n)[0, 1] == pytest.approx(expected, abs=0.01)


def test_rare_events_keep_exact_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four events make a Gamma(4) sum, skewed and never below 0, and not a normal one."""
    fast = bootstrap(1000, monkeypatch)
    total = fast.sums("rare").sum(axis=1)
    assert total.min() > 0
    skew = ((total - total.mean()) ** 3).mean() / total.std() ** 3
    assert skew == pytest.approx(1.0, abs=0.3)
    assert rare_tasks([columns()["rare"]], TASKS).sum() == 4


def test_sums_are_linear_whenever_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong and right draws add up to all draws in every posterior draw, so that no rate leaves [0, 1]."""
    for many in (1000, 10**9):
        made = bootstrap(many, monkeypatch)
        np.testing.assert_allclose(made.sums("k") + made.sums("wrong"), made.sums("n"), rtol=1e-9)
        made.extend({"later": 2.0 * columns()["k"]})
        np.testing.assert_allclose(made.sums("later"), 2.0 * made.sums("k"), rtol=1e-9)


def test_quantiles_agree_with_exact_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interval ends of a rate lie within Monte-Carlo error of those under weights drawn one by one."""
    fast = bootstrap(1000, monkeypatch).mean("k", "n")
    exact = bootstrap(10**9, monkeypatch).mean("k", "n")
    sd = exact.std()
    for q in (0.025, 0.5, 0.975):
        assert abs(np.quantile(fast, q) - np.quantile(exact, q)) < 0.2 * sd


def test_blocks_make_no_difference() -> None:
    """Weights kept and weights drawn again in blocks are the same."""
    bounds = np.array([0, 100], dtype=np.int64)
    matrix = np.arange(200.0).reshape(100, 2)
    kept = TaskWeights(bounds, 50, 7)
    first = kept.sums(matrix)
    np.testing.assert_array_equal(first, kept.sums(matrix))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weights, "KEPT", 0)
        patch.setattr(weights, "BLOCK", 700)
        np.testing.assert_allclose(TaskWeights(bounds, 50, 7).sums(matrix), first, rtol=1e-12)
