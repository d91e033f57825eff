"""What must hold of prices, break-even and regimes at every parameter point."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import betabinom, binom

from verdiv.errors import InputRefused, UsageRefused
from verdiv.pricing.breakeven import (
    REGIMES,
    Regime,
    break_even,
    explain,
    first_repair_dividend,
    log_branch,
    measured_dividend,
    recovery_limit,
    regime,
)
from verdiv.pricing.closed import (
    Price,
    blended,
    blind,
    blind_greedy,
    ceiling_blind,
    ceiling_oracle,
    ceiling_static,
    crossover_blind,
    crossover_feedback,
    feedback,
    feedback_fresh,
    majority,
    one_shot,
    recovery,
    recovery_fresh,
    teacher,
    teacher_gated,
)
from verdiv.pricing.correlated import (
    blind_exchangeable,
    failure_moments,
    feedback_correlated,
    majority_correlated,
    sticky_ratio_exchangeable,
)
from verdiv.pricing.general import blind_general, feedback_general, feedback_hazards
from verdiv.pricing.measures import (
    accuracy_per_unit,
    known_wrong,
    loaded_bill,
    unanimous_wrong,
    wrong_majority,
)
from verdiv.pricing.parameters import Parameters
from verdiv.pricing.ratecard import ArmBudgets, RateCard, ledger
from verdiv.pricing.series import success_within, trials_within

__all__: list[str] = []

INF = float("inf")
EPS = 1e-12
rate = st.floats(0.0, 1.0, allow_subnormal=False)
BUDGETS = np.arange(1, 13)


@st.composite
def masses(draw: st.DrawFn) -> tuple[float, float]:
    """Draw q0 and p_d on the simplex, corners included."""
    q = draw(rate)
    return q, (1.0 - q) * draw(rate)


@given(masses(), rate, rate, rate)
def test_quality_never_falls_with_budget(m: tuple[float, float], sigma: float, s1: float, s2: float) -> None:
    """More budget never lowers quality, never lowers the bill, and never raises the residual."""
    for price in (
        feedback(BUDGETS, *m, sigma, s1, s2),
        feedback_fresh(BUDGETS, *m, sigma, s1, s2),
        blind(BUDGETS, *m),
        feedback_general(BUDGETS, *m, sigma, s1, s2, lambda1=0.3, lambda2=0.1),
        feedback_correlated(BUDGETS, *m, sigma, s1, s2, icc1=0.4, icc2=0.7),
        blind_exchangeable(BUDGETS, [0.4, 0.6], [m[0], s1], 0.3, [sigma, s2], 0.2),
    ):
        assert np.all(np.diff(price.quality) >= -EPS)
        assert np.all(np.diff(price.bill) >= -EPS)
        assert np.all(np.diff(price.residual) <= EPS)
        assert np.all(price.quality <= 1.0 + EPS)
        assert np.all(price.residual >= -EPS)
        assert np.all((price.bill >= 1.0 - EPS) & (price.bill <= BUDGETS + 1e-9))


@given(masses(), rate, rate, rate)
def test_mass_is_conserved(m: tuple[float, float], sigma: float, s1: float, s2: float) -> None:
    """Correct, known-wrong and silent masses add to one: the silent mass of A3 is p_s at every budget."""
    price = feedback(BUDGETS, *m, sigma, s1, s2)
    np.testing.assert_allclose(price.quality + price.residual, m[0] + m[1], atol=EPS)


@given(masses(), rate, rate, rate)
def test_feedback_is_at_least_greedy_blind(
    m: tuple[float, float], sigma: float, s1: float, s2: float
) -> None:
    """A3 never falls below A2 in quality nor above it in bill; beyond it where a repair can succeed."""
    ours, theirs = feedback(BUDGETS, *m, sigma, s1, s2), blind_greedy(BUDGETS, *m)
    assert np.all(ours.quality >= theirs.quality - EPS)
    assert np.all(ours.bill <= theirs.bill + 1e-9)
    if m[1] * (sigma * s1 + (1 - sigma) * s2) > 1e-9:
        assert np.all(ours.quality[1:] > theirs.quality[1:])


@given(masses(), rate, rate, rate)
def test_fresh_lies_above_class_stable(m: tuple[float, float], sigma: float, s1: float, s2: float) -> None:
    """The fresh form recovers at least as much as the class-stable form from two repairs on, for no more."""
    n = np.arange(0, 12)
    gap = recovery_fresh(n, sigma, s1, s2) - recovery(n, sigma, s1, s2)
    assert np.all(gap >= -EPS)
    np.testing.assert_allclose(gap[:2], 0.0, atol=EPS)
    stable, fresh = feedback(BUDGETS, *m, sigma, s1, s2), feedback_fresh(BUDGETS, *m, sigma, s1, s2)
    assert np.all(fresh.bill <= stable.bill + 1e-9)


@given(masses(), st.floats(0.01, 0.99), st.floats(0.02, 1.0), st.floats(0.02, 1.0))
def test_limits_are_reached(m: tuple[float, float], sigma: float, s1: float, s2: float) -> None:
    """At a large budget every form equals its limit: static ceiling, blind ceiling, E_∞."""
    q, d = m
    far, end = feedback(3000, q, d, sigma, s1, s2), feedback(INF, q, d, sigma, s1, s2)
    assert float(end.quality) == pytest.approx(float(ceiling_static(q, d)), abs=EPS)
    assert float(end.bill) == pytest.approx(1 + d * (sigma / s1 + (1 - sigma) / s2), rel=1e-9)
    assert float(far.quality) == pytest.approx(float(end.quality), abs=1e-9)
    assert float(far.bill) == pytest.approx(float(end.bill), rel=1e-9)
    assert float(feedback_fresh(INF, q, d, sigma, s1, s2).quality) == pytest.approx(q + d, abs=EPS)
    if d < 0.99:
        assert float(blind(INF, q, d).quality) == pytest.approx(float(ceiling_blind(q, d)), abs=1e-9)
        assert float(blind(3000, q, d).quality) == pytest.approx(float(ceiling_blind(q, d)), abs=1e-9)


@given(masses(), rate, rate, rate, rate)
def test_break_even_is_monotone_in_the_edge(
    m: tuple[float, float], sigma: float, s1: float, s2: float, rho: float
) -> None:
    """A better teacher is never matched sooner, and what is matched meets both conditions."""
    price = feedback(BUDGETS, *m, sigma, s1, s2)
    targets = np.linspace(0.0, 1.0, 101)
    cap = 1.0 + 2.0 * rho
    found = break_even(price.quality, price.bill, targets, cap)
    order = np.where(found == 0, 99, found)
    assert np.all(np.diff(order) >= 0)
    for target, budget in zip(targets, found, strict=True):
        if budget:
            assert price.quality[budget - 1] >= target - EPS
            assert price.bill[budget - 1] <= cap + EPS
            assert budget == 1 or price.quality[budget - 2] < target - EPS


@given(masses(), rate, rate, st.floats(0.0, 1.0), rate)
def test_regime_agrees_with_search(
    m: tuple[float, float], sigma: float, s1: float, s2: float, q_T: float
) -> None:
    """Regime 0 is B = 1, (i) needs at most one repair, (ii) some budget, (iii) none at any budget."""
    q, d = m
    code = REGIMES[int(regime(q, d, sigma, s1, s2, q_T))]
    reached = feedback(np.arange(1, 2000), q, d, sigma, s1, s2).quality
    margin = 1e-9
    if code is Regime.ZERO:
        assert q >= q_T - margin
    elif code is Regime.I:
        assert reached[1] >= q_T - margin
        assert q_T - q <= float(first_repair_dividend(d, sigma, s2 - q)) + margin
    elif code is Regime.II:
        limit = float(feedback(INF, q, d, sigma, s1, s2).quality)
        assert limit >= q_T - margin
    else:
        assert np.all(reached <= q_T + margin)


def test_regimes_of_the_worked_set() -> None:
    """D = 0 is (0), up to D_c (i), then (ii), from D = p_d on (iii), boundaries included; NaN has none."""
    worked = (0.8, 0.18, 0.6, 0.99, 0.85)
    edges = np.asarray([0.0, 0.1, 0.1116, 0.1117, 0.17, 0.1799, 0.18, 0.1801, np.nan])
    assert regime(*worked, 0.8 + edges).tolist() == [0, 1, 1, 2, 2, 2, 3, 3, -1]
    assert int(regime(0.8, 0.18, 0.4, 0.99, 0.85, 0.9)) == 2
    assert len({explain(r) for r in Regime}) == len(Regime)


def test_ceiling_is_reached_only_where_one_repair_attains_it() -> None:
    """D = p_d is (iii) where repairs only approach the ceiling, and (ii) where one certain repair attains it."""
    assert int(regime(0.5, 0.25, 0.5, 0.5, 0.5, 0.75)) == 3
    assert int(regime(0.5, 0.25, 0.5, 1.0, 1.0, 0.75)) == 2
    assert recovery_limit([0.3, 0.3, 0.3], [0.0, 0.5, np.nan], [0.9, 0.0, 0.5]).tolist()[:2] == [0.7, 0.3]


def test_break_even_is_vectorised_and_says_none() -> None:
    """Draws on the leading axes are searched together; 0 is none; a bill above the cap does not count."""
    quality = np.asarray([[0.8, 0.95, 0.97], [0.8, 0.85, 0.97], [0.8, 0.8, 0.8], [0.8, np.nan, 0.97]])
    bill = np.asarray([1.0, 1.2, 1.3])
    assert break_even(quality, bill, 0.9, 2.5).tolist() == [2, 3, 0, 3]
    assert break_even(quality, bill, 0.9, 1.25).tolist() == [2, 0, 0, 0]
    assert break_even(quality, bill, np.asarray([0.7, 0.99, 0.8, 0.9]), 2.5).tolist() == [1, 0, 1, 3]


@given(masses(), st.floats(0.0, 0.99), st.floats(0.05, 0.95), rate)
def test_log_branch_is_the_search_with_certain_structural_repair(
    m: tuple[float, float], sigma: float, s2: float, part: float
) -> None:
    """At s1 = 1 the logarithm and the search agree wherever rounding does not decide."""
    q, d = m
    edge = part * d * 0.999
    found = float(log_branch(d, sigma, s2, edge))
    quality = feedback(np.arange(1, 2001), q, d, sigma, 1.0, s2).quality
    lower = break_even(quality, np.zeros(2000), q + edge - 1e-9, 1.0)
    upper = break_even(quality, np.zeros(2000), q + edge + 1e-9, 1.0)
    assert int(lower) <= found
    assert int(upper) == 0 or found <= int(upper)


def test_log_branch_edges() -> None:
    """No edge needs no retry; an edge of all the detectable mass is reached only by a certain repair."""
    assert log_branch(0.18, 0.6, 0.85, [0.0, 0.1, 0.17, 0.18, 0.2]).tolist() == [1, 2, 3, INF, INF]
    assert float(log_branch(0.18, 0.6, 1.0, 0.18)) == 2
    assert float(log_branch(0.18, 0.6, 0.0, 0.15)) == INF
    assert math.isnan(float(log_branch(0.18, 0.6, np.nan, 0.15)))


def test_measured_dividend_generalises_the_printed_form() -> None:
    """With blind redraws at 0 and q0 it is p_d(σ s1 + (1 − σ)φ); stickier redraws raise it."""
    plain = float(measured_dividend(0.18, 0.6, 0.99, 0.85, 0.0, 0.8))
    assert plain == pytest.approx(float(first_repair_dividend(0.18, 0.6, 0.05, 0.99)), abs=EPS)
    assert float(measured_dividend(0.18, 0.6, 0.99, 0.85, 0.0, 0.3)) > plain


@given(st.sampled_from([1, 3, 5, 7, 9, 101, 1001]), rate)
def test_majority_is_the_binomial_tail(k: int, q: float) -> None:
    """The vote equals SciPy's binomial tail at every k, large ones included."""
    assert float(majority(k, q).quality) == pytest.approx(float(binom.sf(k // 2, k, q)), abs=1e-11)


@given(st.sampled_from([1, 3, 5, 9, 101]), st.floats(0.01, 0.99), st.floats(0.01, 0.95))
def test_correlated_majority_is_the_beta_binomial_tail(k: int, m: float, icc: float) -> None:
    """The correlated vote equals SciPy's beta-binomial tail."""
    kappa = 1 / icc - 1
    tail = float(betabinom.sf(k // 2, k, m * kappa, (1 - m) * kappa))
    assert float(majority_correlated(k, m, icc).quality) == pytest.approx(tail, abs=1e-9)


@given(st.sampled_from([1, 3, 5, 9, 201]), rate)
def test_correlated_forms_meet_their_limits(k: int, m: float) -> None:
    """Correlation 0 is the homogeneous form, icc 1 makes repetition worthless, and 1e-9 is close to 0."""
    plain = float(majority(k, m).quality)
    assert float(majority_correlated(k, m, 0.0).quality) == pytest.approx(plain, abs=EPS)
    assert float(majority_correlated(k, m, 1e-9).quality) == pytest.approx(plain, abs=1e-5)
    assert float(majority_correlated(k, m, 1.0).quality) == m


@given(masses(), rate, rate, rate)
def test_correlated_retries_meet_their_limits(
    m: tuple[float, float], sigma: float, s1: float, s2: float
) -> None:
    """Correlation 0 is the homogeneous form to rounding; at icc 1 a second repair adds nothing."""
    q, d = m
    plain, loose = feedback(BUDGETS, q, d, sigma, s1, s2), feedback_correlated(BUDGETS, q, d, sigma, s1, s2)
    for name in ("quality", "bill", "residual"):
        np.testing.assert_allclose(getattr(loose, name), getattr(plain, name), atol=1e-9)
    tight = feedback_correlated(BUDGETS, q, d, sigma, s1, s2, icc1=1.0, icc2=1.0)
    np.testing.assert_allclose(tight.quality[1:], plain.quality[1], atol=EPS)
    delta = 0.0 if q == 1 else d / (1 - q)
    same = blind_exchangeable(BUDGETS, [1.0], [q], 0.0, [delta])
    np.testing.assert_allclose(same.quality, blind(BUDGETS, q, d).quality, atol=1e-9)
    np.testing.assert_allclose(same.bill, blind(BUDGETS, q, d).bill, atol=1e-9)
    np.testing.assert_allclose(same.residual, blind(BUDGETS, q, d).residual, atol=1e-9)
    stuck = blind_exchangeable(BUDGETS, [1.0], [q], 1.0, [delta])
    np.testing.assert_allclose(stuck.quality, q, atol=EPS)


def test_majority_at_icc_one_half() -> None:
    """With icc .5 five votes reach .821 and not .942: the correlated figure and its twin."""
    value = float(majority_correlated(5, 0.8, 0.5).quality)
    assert value == pytest.approx(0.821, abs=5e-4)
    assert value != pytest.approx(0.822, abs=4e-4)
    assert float(majority(5, 0.8).quality) == pytest.approx(0.942, abs=5e-4)


def test_failure_moments_are_exact() -> None:
    """Moments equal their Beta integrals in exact arithmetic, and (1 − m) at icc 1."""
    m, icc = Fraction(7, 10), Fraction(1, 5)
    kappa = 1 / icc - 1
    b = (1 - m) * kappa
    want = [1.0, float(b / kappa), float(b * (b + 1) / (kappa * (kappa + 1)))]
    assert failure_moments(0.7, 0.2, 3).tolist() == pytest.approx(want, rel=1e-14)
    assert failure_moments(0.25, 1.0, 4).tolist() == [1.0, 0.75, 0.75, 0.75]
    assert failure_moments(0.5, 0.0, 4).tolist() == [1.0, 0.5, 0.25, 0.125]


def test_sticky_ratio_of_one_family_is_one_minus_icc() -> None:
    """One family: 1 − icc whatever the detection; two families differ; no flags: not defined."""
    assert float(sticky_ratio_exchangeable([1.0], [0.37], 0.45, [0.2])) == pytest.approx(0.55, abs=EPS)
    assert float(sticky_ratio_exchangeable([0.5, 0.5], [0.9, 0.1], 0.0, [1.0, 1.0])) < 0.5
    assert math.isnan(float(sticky_ratio_exchangeable([1.0], [0.5], 0.1, [0.0])))


@given(masses(), rate, rate, rate)
def test_general_forms_reduce(m: tuple[float, float], sigma: float, s1: float, s2: float) -> None:
    """Without silent repairs and false positives the general forms are the closed ones, draw by draw too."""
    q, d = m
    plain = feedback(BUDGETS, q, d, sigma, s1, s2)
    tiny = feedback_general(BUDGETS, q, d, sigma, s1, s2, fpr=np.where(BUDGETS > 0, 1e-300, 0))
    hazards = feedback_hazards(BUDGETS, q, d, sigma, [s1], [s2])
    for other in (feedback_general(BUDGETS, q, d, sigma, s1, s2), tiny, hazards):
        np.testing.assert_allclose(other.quality, plain.quality, atol=1e-9)
        np.testing.assert_allclose(other.bill, plain.bill, atol=1e-9)
        np.testing.assert_allclose(other.residual, plain.residual, atol=1e-9)
    np.testing.assert_allclose(blind_general(BUDGETS, q, d).quality, blind(BUDGETS, q, d).quality, atol=1e-9)


@given(masses(), rate, rate, rate, rate, rate)
def test_false_positives_at_two_draws(
    m: tuple[float, float], sigma: float, s1: float, s2: float, fpr: float, keeps: float
) -> None:
    """At B = 2 flagged correct draws add q0·fpr(s_F − 1) to quality and q0·fpr to the bill."""
    q, d = m
    got = feedback_general(2, q, d, sigma, s1, s2, fpr=fpr, s_false=keeps)
    plain = feedback(2, q, d, sigma, s1, s2)
    assert float(got.quality) == pytest.approx(float(plain.quality) + q * fpr * (keeps - 1), abs=EPS)
    assert float(got.bill) == pytest.approx(float(plain.bill) + q * fpr, abs=EPS)


@given(rate, st.integers(0, 60))
def test_trials_equal_their_terms(s: float, count: int) -> None:
    """Expected trials and chance of success are their sums, to full precision."""
    want = math.fsum((1 - s) ** j for j in range(count))
    assert float(trials_within(s, count)) == pytest.approx(want, rel=1e-12, abs=1e-300)
    assert float(success_within(s, count)) == pytest.approx(1 - (1 - s) ** count, abs=1e-14)


def test_trials_of_tiny_rates() -> None:
    """A rate of 1e-13 takes its three trials, where the naive quotient is off in the third digit."""
    assert float(trials_within(1e-13, 3)) == pytest.approx(3.0, rel=1e-12)
    assert float(success_within(1e-13, 3)) == pytest.approx(3e-13, rel=1e-12)
    assert float(success_within(1e-130, INF)) == 1.0
    assert float(trials_within(0.0, INF)) == INF
    assert float(trials_within(1.0, INF)) == 1.0
    assert math.isnan(float(trials_within(np.nan, 2)))
    assert math.isnan(float(success_within(np.nan, 2)))


def test_degenerate_limits() -> None:
    """Nobody flagged costs nothing in the limit; a class without success bills without end."""
    assert float(feedback(INF, 0.8, 0.0, 0.5, 0.0, 0.0).bill) == 1.0
    assert float(feedback(INF, 0.8, 0.1, 0.5, 0.0, 0.5).bill) == INF
    assert float(feedback(INF, 0.8, 0.1, 0.0, 0.0, 0.5).bill) == pytest.approx(1.2)
    assert float(feedback(INF, 0.8, 0.1, 0.5, 0.0, 0.5).quality) == pytest.approx(0.85)
    assert float(feedback_general(INF, 0.8, 0.1, 0.5, 0.0, 0.5).quality) == pytest.approx(0.85)
    stuck = blind([1, 2, 3], 0.0, 1.0)
    assert stuck.bill.tolist() == [1, 2, 3]
    assert stuck.quality.tolist() == [0, 0, 0]
    assert float(ceiling_blind(0.0, 1.0)) == 0.0
    assert np.isnan(feedback(2, np.nan, 0.1, 0.5, 0.9, 0.5).quality)


def test_crossovers_solve_their_equations() -> None:
    """At the crossover the two arms meet; where no repair works voting is never met."""
    for k in (3, 5, 7):
        d = float(crossover_feedback(k, 0.7, 0.3, 0.9, 0.4))
        met = float(feedback(k, 0.7, d, 0.3, 0.9, 0.4).quality)
        assert met == pytest.approx(float(majority(k, 0.7).quality), abs=EPS)
        b = float(crossover_blind(k, 0.7))
        assert float(ceiling_blind(0.7, b)) == pytest.approx(float(majority(k, 0.7).quality), abs=EPS)
    assert float(crossover_feedback(3, 0.7, 0.5, 0.0, 0.0)) == INF
    assert float(crossover_feedback(3, 0.3, 0.5, 0.0, 0.0)) == -INF
    assert float(crossover_feedback(1, 0.7, 0.5, 0.9, 0.9)) == 0.0
    assert float(crossover_feedback(3, 0.4, 0.5, 0.9, 0.9)) < 0
    assert math.isnan(float(crossover_blind(3, 0.0)))


def test_broadcasting_keeps_every_axis() -> None:
    """Parameters and budgets broadcast to one shape in every field."""
    q = np.linspace(0.1, 0.6, 5)[:, None, None]
    s = np.linspace(0, 1, 4)[None, :, None]
    for price in (
        feedback(np.arange(1, 4), q, 0.3, 0.5, s, 0.5),
        feedback_general(np.arange(1, 4), q, 0.3, 0.5, s, 0.5, fpr=0.1),
        feedback_correlated(np.arange(1, 4), q, 0.3, 0.5, s, 0.5, icc2=0.2),
        blended(np.arange(1, 4), q, 0.3, 0.5, s, 0.5, 0.9, 2.5),
        feedback_hazards(np.arange(1, 4), q, 0.3, s, [0.9, 0.2], [0.5]),
    ):
        assert price.quality.shape == price.bill.shape == price.residual.shape == (5, 4, 3)
        assert price.residual_correct.shape == (5, 4, 3)


def test_small_prices() -> None:
    """One-shot, teacher, oracle ceiling, load, wrong masses: each at a number done by hand."""
    assert (float(one_shot(0.8).quality), float(one_shot(0.8).bill)) == (0.8, 1.0)
    assert (float(teacher(0.9, 2.5).quality), float(teacher(0.9, 2.5).bill)) == (0.9, 2.5)
    assert float(ceiling_oracle(0.8, 0.18, 0.9)) == pytest.approx(0.998)
    assert float(loaded_bill(1.2, 0.5)) == pytest.approx(1.32)
    assert float(wrong_majority(3, 0.8)) == pytest.approx(0.104)
    assert float(unanimous_wrong(3, 0.8)) == pytest.approx(0.008)
    leaky = blind_general(2, 0.8, 0.18, fpr=0.1)
    assert float(known_wrong(leaky)) == pytest.approx(0.26 * 0.18)
    assert float(teacher_gated(1, 0.9, 0.08, 2.5).bill) == 2.5
    assert float(accuracy_per_unit(Price.of(0.9, 2.5), 0.8)) == pytest.approx(0.04)


@pytest.mark.parametrize("budget", [0, -1, 1.5, np.nan, 10**9])
def test_budgets_that_count_nothing_are_refused(budget: float) -> None:
    """A budget is a whole number of draws from 1."""
    forms: tuple[Callable[[], Price], ...] = (
        lambda: feedback(budget, 0.8, 0.1, 0.5, 0.9, 0.5),
        lambda: blind(budget, 0.8, 0.1),
        lambda: blind_general(budget, 0.8, 0.1, fpr=0.1),
        lambda: feedback_correlated(budget, 0.8, 0.1, 0.5, 0.9, 0.5),
    )
    for form in forms:
        with pytest.raises(UsageRefused, match="budget"):
            form()


def test_forms_followed_draw_by_draw_refuse_the_limit() -> None:
    """Where attempts differ or correct draws are flagged, an unbounded budget is refused, not looped."""
    with pytest.raises(UsageRefused, match="finite budget"):
        feedback_general(INF, 0.8, 0.1, 0.5, 0.9, 0.5, fpr=0.1)
    with pytest.raises(UsageRefused, match="finite budget"):
        feedback_hazards(INF, 0.8, 0.1, 0.5, [0.9], [0.5])
    with pytest.raises(UsageRefused, match="smaller budget"):
        feedback_correlated(50_000, 0.8, 0.1, 0.5, 0.9, 0.5)


def test_even_votes_and_bad_weights_are_refused() -> None:
    """A vote that can tie and weights that are no distribution are faults, not numbers."""
    with pytest.raises(UsageRefused, match="odd"):
        majority([3, 4], 0.8)
    for weights in ([0.5, 0.4], [1.5, -0.5]):
        with pytest.raises(UsageRefused, match="sum to 1"):
            blind_exchangeable(2, weights, [0.8, 0.7], 0.1, [0.9, 0.9])


@pytest.mark.parametrize(
    "values,field",
    [
        ({"q0": 1.2}, "q0"),
        ({"q0": -0.1}, "q0"),
        ({"q0": float("nan")}, "q0"),
        ({"q0": "0.8"}, "q0"),
        ({"q0": True}, "q0"),
        ({"rho": 0}, "rho"),
        ({"rho": float("inf")}, "rho"),
        ({"rho": 10**400}, "rho"),
        ({"p_d": 0.3}, "p_d"),
        ({"p_dT": 0.2}, "p_dT"),
        ({"phi": 0.3}, "phi"),
        ({"s2": -0.1}, "phi"),
        ({"p_d": 0.1, "p_s": 0.2}, "p_s"),
        ({"p_d": 0.1, "delta": 0.2}, "delta"),
        ({"D": 0.1, "q_T": 0.95}, "D"),
        ({"sigmma": 0.5}, "sigmma"),
    ],
)
def test_impossible_parameters_name_their_field(values: dict[str, object], field: str) -> None:
    """A parameter that is no probability, no price or contradicts another is refused by name."""
    with pytest.raises(InputRefused) as caught:
        Parameters.from_mapping(values, where="p.toml")
    assert [f.field for f in caught.value.faults] == [field]
    assert caught.value.faults[0].where == "p.toml"


def test_all_parameter_faults_come_at_once() -> None:
    """Three bad fields are three faults."""
    with pytest.raises(InputRefused) as caught:
        Parameters.from_mapping({"q0": 2, "sigma": -1, "s1": 7})
    assert {f.field for f in caught.value.faults} == {"q0", "sigma", "s1"}


def test_aliases_resolve_to_the_fields_they_bind() -> None:
    """s2, p_s, delta and D give the field they stand for, and agree with it where both are given."""
    p = Parameters.from_mapping({"q0": 0.5, "delta": 0.8, "s2": 0.3, "D": 0.2, "p_dT": 0.1})
    assert (p.p_d, p.phi, p.q_T) == pytest.approx((0.4, -0.2, 0.7))
    assert (p.p_s, p.s2, p.edge, p.delta) == pytest.approx((0.1, 0.3, 0.2, 0.8))
    same = Parameters.from_mapping({"q0": 0.8, "p_d": 0.18, "p_s": 0.02})
    assert same == Parameters.worked()
    assert Parameters.worked().with_(p_s=0.05).p_d == pytest.approx(0.15)
    assert math.isnan(Parameters.from_mapping({"q0": 1.0, "p_d": 0.0, "s2": 1.0}).delta)


def test_ledger_adds_up() -> None:
    """The ledger's sums are those of its rows; leaving arms out and sharing a draw lowers them."""
    p, card = Parameters.worked(), RateCard()
    full = ledger(p, ArmBudgets(), card, tasks=40)
    assert full.expected == pytest.approx(sum(r.expected for r in full.rows), abs=EPS)
    assert full.worst == pytest.approx(sum(r.worst for r in full.rows), abs=EPS)
    assert full.worst_usd == pytest.approx(1.14)
    shared = ledger(p, ArmBudgets(shared_first=True), card, tasks=40)
    assert (full.expected - shared.expected, full.worst - shared.worst) == pytest.approx((1.0, 1.0))
    few = ledger(p, ArmBudgets(A0=0, A1=0, A2=0, A2s=0, A4=0, A5=0), card, tasks=1)
    assert [r.arm for r in few.rows] == ["A3"]
    assert (few.small_draws, few.teacher_draws) == (5, 0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: RateCard(rho=-1),
        lambda: RateCard(cost_small_usd=float("nan")),
        lambda: ArmBudgets(A3=-1),
        lambda: ArmBudgets(A0=2),
        lambda: ArmBudgets(A0=0, shared_first=True),
        lambda: ledger(Parameters.worked(), ArmBudgets(), RateCard(), tasks=0),
    ],
)
def test_impossible_protocols_are_refused(make: object) -> None:
    """Prices and budgets that cannot be are faults."""
    assert callable(make)
    with pytest.raises(InputRefused):
        make()
