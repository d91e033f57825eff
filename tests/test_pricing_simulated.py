"""Closed and general forms against brute force: chains drawn one task at a time, arm by arm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

from verdiv.pricing.closed import (
    Price,
    blended,
    blind,
    blind_greedy,
    feedback,
    feedback_fresh,
    majority,
    teacher_gated,
)
from verdiv.pricing.correlated import (
    blind_exchangeable,
    feedback_correlated,
    majority_correlated,
    sticky_ratio_exchangeable,
)
from verdiv.pricing.general import (
    blind_general,
    blind_greedy_general,
    feedback_general,
    feedback_hazards,
    teacher_gated_general,
)

__all__: list[str] = []

TASKS = 1_000_000
BUDGETS = (1, 2, 3, 5)
MAX = max(BUDGETS)
SIGMAS = 5.0
"""Standard errors allowed: about 2e-4 chance of one false alarm over the module's comparisons."""

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Chains:
    """Simulated draws of every task, tasks on rows and attempts on columns, as if no gate stopped them."""

    correct: Flags
    flagged: Flags


def _read(chains: Chains, budget: int) -> tuple[Floats, Floats, Flags]:
    """Gate the chains: per task, was the answer correct, how many draws, did it end flagged."""
    passed = ~chains.flagged[:, :budget]
    stopped: Flags = np.asarray(passed.any(axis=1))
    last = np.where(stopped, passed.argmax(axis=1), budget - 1)
    rows = np.arange(len(last))
    answered = chains.correct[rows, last].astype(float)
    return answered, np.asarray(last + 1.0), np.logical_not(stopped)


def _close(sample: Floats | Flags, form: npt.ArrayLike) -> None:
    """Compare a sample mean with its form at `SIGMAS` standard errors."""
    values = sample.astype(float)
    value = float(np.asarray(form))
    # The standard error that the form itself implies guards rare events whose sample shows none.
    spread = max(float(values.var()), value * (1 - value) if 0 <= value <= 1 else 0.0)
    slack = SIGMAS * np.sqrt(spread / len(values)) + 1e-12
    assert abs(float(values.mean()) - value) <= slack, (float(values.mean()), value, slack)


def _check(chains: Chains, price: Price, budget: int, at: int) -> None:
    """Compare quality, bill and residual of one budget."""
    quality, bill, residual = _read(chains, budget)
    _close(quality, price.quality[at])
    _close(bill, price.bill[at])
    _close(residual, price.residual[at])
    _close(residual & (quality == 1), price.residual_correct[at])


def _initial(rng: np.random.Generator, shape: tuple[int, ...], q: float, d: float, fpr: float) -> Chains:
    """Draw initial-prompt outcomes, all independent."""
    u = rng.random(shape)
    correct = u < q
    flagged = np.where(correct, rng.random(shape) < fpr, u < q + d)
    return Chains(correct, flagged)


def _blind(rng: np.random.Generator, q: float, d: float, fpr: float = 0.0) -> Chains:
    """Draw A2s: every attempt anew from the same prompt."""
    return _initial(rng, (TASKS, MAX), q, d, fpr)


def _greedy(rng: np.random.Generator, q: float, d: float, fpr: float = 0.0) -> Chains:
    """Draw A2: every attempt repeats the first."""
    first = _initial(rng, (TASKS, 1), q, d, fpr)
    return Chains(np.repeat(first.correct, MAX, axis=1), np.repeat(first.flagged, MAX, axis=1))


@dataclass(frozen=True)
class Repair:
    """How repairs behave: success and silence by class (structural, semantic), false positives."""

    s: tuple[float, float] | tuple[Floats, Floats]
    """Success by class; a column per task where tasks differ."""
    silent: tuple[float, float] = (0.0, 0.0)
    fpr: float = 0.0
    keeps: float = 1.0
    fresh: bool = False
    """Each failed repair draws its class anew."""


def _feedback(rng: np.random.Generator, q: float, d: float, sigma: float, how: Repair) -> Chains:
    """Draw A3 attempt by attempt: every task keeps its class, every flagged draw is answered."""
    first = _initial(rng, (TASKS,), q, d, how.fpr)
    correct, flagged = np.empty((TASKS, MAX), dtype=bool), np.empty((TASKS, MAX), dtype=bool)
    correct[:, 0], flagged[:, 0] = first.correct, first.flagged
    structural = rng.random(TASKS) < sigma
    for j in range(1, MAX):
        if how.fresh:
            structural = rng.random(TASKS) < sigma
        was = correct[:, j - 1]
        chance = np.where(was, how.keeps, np.where(structural, how.s[0], how.s[1]))
        correct[:, j] = rng.random(TASKS) < chance
        silent = rng.random(TASKS) < np.where(structural, how.silent[0], how.silent[1])
        flagged[:, j] = np.where(correct[:, j], rng.random(TASKS) < how.fpr, ~silent)
    return Chains(correct, flagged)


BOUNDARIES = (
    # q0, p_d, sigma, s1, s2: the worked set, then each boundary by itself.
    (0.8, 0.18, 0.6, 0.99, 0.85),
    (0.8, 0.18, 0.0, 0.99, 0.85),
    (0.8, 0.18, 1.0, 0.99, 0.85),
    (0.7, 0.2, 0.5, 0.9, 0.3),  # φ < 0
    (0.6, 0.3, 0.5, 0.2, 0.7),  # s1 < s2
    (0.8, 0.0, 0.6, 0.99, 0.85),  # p_d 0
    (0.0, 0.7, 0.4, 0.5, 0.2),  # q0 0
    (1.0, 0.0, 0.4, 0.5, 0.2),  # q0 1
    (0.8, 0.2, 0.6, 0.9, 0.8),  # p_s 0
    (0.0, 1.0, 0.5, 0.4, 0.1),  # all flagged
    (0.5, 0.4, 0.5, 0.0, 0.6),  # structural repairs never work
    (0.5, 0.4, 0.5, 1.0, 1.0),  # repairs always work
)


def _random_sets(count: int) -> list[tuple[float, float, float, float, float]]:
    """Draw parameter sets over the whole simplex and cube."""
    rng = np.random.default_rng(2024)
    masses = rng.dirichlet([1.5, 1.0, 0.7], size=count)
    rates = rng.random((count, 3))
    return [
        (float(m[0]), float(m[1]), float(r[0]), float(r[1]), float(r[2]))
        for m, r in zip(masses, rates, strict=True)
    ]


def _compare_everything(case: tuple[float, float, float, float, float], seed: int) -> None:
    """Simulate each arm at one parameter set and compare all budgets."""
    q, d, sigma, s1, s2 = case
    rng = np.random.default_rng(seed)
    budgets = np.asarray(BUDGETS)
    votes = rng.binomial(3, q, size=TASKS)
    _close(votes >= 2, majority(3, q).quality)
    drawn = _blind(rng, q, d)
    repeated = _greedy(rng, q, d)
    stable = _feedback(rng, q, d, sigma, Repair((s1, s2)))
    fresh = _feedback(rng, q, d, sigma, Repair((s1, s2), fresh=True))
    prices = (
        (drawn, blind(budgets, q, d)),
        (repeated, blind_greedy(budgets, q, d)),
        (stable, feedback(budgets, q, d, sigma, s1, s2)),
        (fresh, feedback_fresh(budgets, q, d, sigma, s1, s2)),
    )
    for at, budget in enumerate(BUDGETS):
        for chains, price in prices:
            _check(chains, price, budget, at)
        quality, bill, residual = _read(stable, budget)
        teacher = np.where(residual, rng.random(TASKS) < 0.9, quality == 1)
        mixed = blended(budget, q, d, sigma, s1, s2, 0.9, 2.5)
        _close(teacher, mixed.quality)
        _close(bill + 2.5 * residual, mixed.bill)


@pytest.mark.parametrize("case", BOUNDARIES[:6:5])
def test_arms_match_brute_force(case: tuple[float, float, float, float, float]) -> None:
    """Quality, bill and residual of every arm are what a million gated tasks show."""
    _compare_everything(case, 11)


@pytest.mark.slow
@pytest.mark.parametrize("case", [*BOUNDARIES, *_random_sets(50)])
def test_arms_match_brute_force_everywhere(case: tuple[float, float, float, float, float]) -> None:
    """The same over the boundaries and fifty random parameter sets."""
    _compare_everything(case, 12)


def _compare_general(
    case: tuple[float, float, float, float, float], lam: tuple[float, float], fpr: float, keeps: float
) -> None:
    """Simulate silent repairs and false positives at one parameter set."""
    q, d, sigma, s1, s2 = case
    rng = np.random.default_rng(13)
    budgets = np.asarray(BUDGETS)
    repaired = _feedback(rng, q, d, sigma, Repair((s1, s2), lam, fpr, keeps))
    form = feedback_general(
        budgets, q, d, sigma, s1, s2, lambda1=lam[0], lambda2=lam[1], fpr=fpr, s_false=keeps
    )
    pairs = (
        (repaired, form),
        (_blind(rng, q, d, fpr), blind_general(budgets, q, d, fpr=fpr)),
        (_greedy(rng, q, d, fpr), blind_greedy_general(budgets, q, d, fpr=fpr)),
    )
    for at, budget in enumerate(BUDGETS):
        for chains, price in pairs:
            _check(chains, price, budget, at)


GENERAL = (
    ((0.8, 0.18, 0.6, 0.9, 0.5), (0.1, 0.4), 0.0, 1.0),
    ((0.7, 0.2, 0.5, 0.6, 0.3), (0.2, 0.5), 0.3, 0.6),
)


@pytest.mark.parametrize("case,lam,fpr,keeps", GENERAL)
def test_general_forms_match_brute_force(
    case: tuple[float, float, float, float, float], lam: tuple[float, float], fpr: float, keeps: float
) -> None:
    """Silent repairs and false positives, apart and together, change the price as simulated."""
    _compare_general(case, lam, fpr, keeps)


@pytest.mark.slow
@pytest.mark.parametrize("case", [*BOUNDARIES, *_random_sets(12)])
@pytest.mark.parametrize("lam,fpr,keeps", [((0.3, 0.6), 0.2, 0.5), ((1.0, 0.0), 1.0, 0.0), ((0, 1), 0.05, 1)])
def test_general_forms_match_brute_force_everywhere(
    case: tuple[float, float, float, float, float], lam: tuple[float, float], fpr: float, keeps: float
) -> None:
    """The same over boundaries and random sets, with verifiers that flag everything."""
    _compare_general(case, lam, fpr, keeps)


def test_flagged_correct_draws_break_the_short_form() -> None:
    """From three draws on, g = p_d + q0·fpr in place of p_d misprices A3's bill; brute force decides."""
    q, d, sigma, s1, s2, fpr = 0.7, 0.2, 0.5, 0.6, 0.3, 0.3
    form = feedback_general(3, q, d, sigma, s1, s2, fpr=fpr)
    g = d + q * fpr
    short = 1 + g * (sigma * (1 + 1 - s1) + (1 - sigma) * (1 + 1 - s2))
    chains = _feedback(np.random.default_rng(14), q, d, sigma, Repair((s1, s2), fpr=fpr))
    _, bill, _ = _read(chains, 3)
    _close(bill, form.bill)
    with pytest.raises(AssertionError):
        _close(bill, short)


def test_measured_hazards_match_brute_force() -> None:
    """Repair success that falls with the attempt prices as simulated."""
    rng = np.random.default_rng(15)
    q, d, sigma = 0.6, 0.35, 0.4
    first, second = (0.9, 0.5, 0.2, 0.2), (0.4, 0.1, 0.05, 0.0)
    start = _initial(rng, (TASKS,), q, d, 0.0)
    structural = rng.random(TASKS) < sigma
    correct, flagged = np.empty((TASKS, MAX), dtype=bool), np.empty((TASKS, MAX), dtype=bool)
    correct[:, 0], flagged[:, 0] = start.correct, start.flagged
    for j in range(1, MAX):
        correct[:, j] = rng.random(TASKS) < np.where(structural, first[j - 1], second[j - 1])
        flagged[:, j] = ~correct[:, j] & (rng.random(TASKS) >= 0.25)
    form = feedback_hazards(np.asarray(BUDGETS), q, d, sigma, first, second, lambda1=0.25, lambda2=0.25)
    for at, budget in enumerate(BUDGETS):
        _check(Chains(correct, flagged), form, budget, at)


def _beta(rng: np.random.Generator, mean: float, icc: float) -> Floats:
    """Draw one rate a task with a given mean and within-task correlation."""
    if icc == 0:
        return np.full((TASKS, 1), mean)
    if icc == 1:
        return (rng.random((TASKS, 1)) < mean).astype(float)
    kappa = 1 / icc - 1
    return rng.beta(mean * kappa, (1 - mean) * kappa, size=(TASKS, 1))


@pytest.mark.parametrize("icc", [0.3, pytest.param(0.0, marks=pytest.mark.slow), 1.0])
def test_correlated_forms_match_brute_force(icc: float) -> None:
    """Votes, blind redraws and repairs that share a task's own rate price as simulated."""
    rng = np.random.default_rng(16)
    theta = _beta(rng, 0.6, icc)
    draws = rng.random((TASKS, MAX)) < theta
    _close(draws.sum(axis=1) >= 3, majority_correlated(5, 0.6, icc).quality)
    grip = _beta(rng, 0.8, icc / 2)
    flagged = ~draws & (rng.random((TASKS, MAX)) < grip)
    budgets = np.asarray(BUDGETS)
    form = blind_exchangeable(budgets, [1.0], [0.6], icc, [0.8], icc / 2)
    repaired = _feedback(
        rng, 0.6, 0.35, 0.4, Repair((_beta(rng, 0.7, icc)[:, 0], _beta(rng, 0.3, icc)[:, 0]), (0.1, 0.3))
    )
    repair = feedback_correlated(
        budgets, 0.6, 0.35, 0.4, 0.7, 0.3, icc1=icc, icc2=icc, lambda1=0.1, lambda2=0.3
    )
    for at, budget in enumerate(BUDGETS):
        _check(Chains(draws, flagged), form, budget, at)
        _check(repaired, repair, budget, at)


def test_families_and_stickiness_match_brute_force() -> None:
    """Unequal families price as their mixture, and the predicted sticky ratio is the one seen."""
    rng = np.random.default_rng(17)
    weights, q, delta, icc = [0.5, 0.3, 0.2], [0.9, 0.6, 0.2], [0.5, 0.9, 0.7], 0.4
    family = rng.choice(3, p=weights, size=TASKS)
    kappa = 1 / icc - 1
    m = np.asarray(q)[family]
    theta = rng.beta(m * kappa, (1 - m) * kappa)[:, None]
    correct = rng.random((TASKS, MAX)) < theta
    flagged = ~correct & (rng.random((TASKS, MAX)) < np.asarray(delta)[family][:, None])
    form = blind_exchangeable(np.asarray(BUDGETS), weights, q, icc, delta)
    for at, budget in enumerate(BUDGETS):
        _check(Chains(correct, flagged), form, budget, at)
    second = correct[flagged[:, 0], 1]
    base = float(np.dot(weights, q))
    _close(second, base * sticky_ratio_exchangeable(weights, q, icc, delta))


def test_gated_teacher_matches_brute_force() -> None:
    """A5 is blind retry at the teacher's rates, its bill in units of ρ."""
    rng = np.random.default_rng(18)
    budgets = np.asarray(BUDGETS)
    price = teacher_gated(budgets, 0.9, 0.08, 2.5)
    chains = _blind(rng, 0.9, 0.08)
    general = teacher_gated_general(budgets, 0.9, 0.08, 2.5, fpr=0.1)
    leaky = _blind(rng, 0.9, 0.08, 0.1)
    for at, budget in enumerate(BUDGETS):
        for drawn, form in ((chains, price), (leaky, general)):
            quality, bill, residual = _read(drawn, budget)
            _close(quality, form.quality[at])
            _close(2.5 * bill, form.bill[at])
            _close(residual, form.residual[at])


def test_brute_force_can_fail() -> None:
    """A form that is off by half a point does not pass the comparison."""
    rng = np.random.default_rng(19)
    quality, _, _ = _read(_blind(rng, 0.8, 0.18), 2)
    _close(quality, 0.8 * 1.18)
    with pytest.raises(AssertionError):
        _close(quality, 0.8 * 1.18 + 0.005)
