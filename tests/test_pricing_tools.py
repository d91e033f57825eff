"""The price tool's engine: forms, tables, sweeps, designs, conversations and their documents."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verdiv.errors import UsageRefused
from verdiv.pricing.breakeven import REGIMES, break_even, log_branch, regime
from verdiv.pricing.closed import (
    blended,
    blind,
    blind_greedy,
    crossover_blind,
    crossover_feedback,
    feedback,
    feedback_fresh,
    majority,
    teacher_gated,
)
from verdiv.pricing.correlated import blind_exchangeable, feedback_correlated, majority_correlated
from verdiv.pricing.design import Design, find_designs, printed_figure, prints_as
from verdiv.pricing.document import (
    design_document,
    forms_document,
    sweep_document,
    table_document,
    turns_document,
)
from verdiv.pricing.forms import FORMS, Hazards, choose_form, feedback_prices, solve
from verdiv.pricing.general import feedback_general, feedback_hazards
from verdiv.pricing.parameters import Parameters
from verdiv.pricing.ratecard import ArmBudgets
from verdiv.pricing.rates import Rates
from verdiv.pricing.sensitivity import compare_forms
from verdiv.pricing.series import Array
from verdiv.pricing.sweep import Axis, sweep
from verdiv.pricing.table import price_table
from verdiv.pricing.turns import price_turns

__all__: list[str] = []

rate = st.floats(0.0, 1.0, allow_subnormal=False)
WORKED = Parameters.worked()
B = np.arange(1, 9)


@st.composite
def points(draw: st.DrawFn) -> Parameters:
    """Draw parameter points, boundaries included."""
    q0 = draw(rate)
    return Parameters.from_mapping(
        {
            "q0": q0,
            "p_d": (1 - q0) * draw(rate),
            "sigma": draw(rate),
            "s1": draw(rate),
            "s2": draw(rate),
            "q_T": draw(rate),
            "p_dT": 0.0,
            "rho": draw(st.floats(0.5, 5.0)),
        }
    )


@given(points(), rate, rate)
def test_forms_step_to_their_closed_expressions(p: Parameters, lam: float, icc: float) -> None:
    """Each form, followed draw by draw, gives its closed expression at every budget."""
    args = (B, p.q0, p.p_d, p.sigma, p.s1, p.s2)
    r = Rates.of(p, lambda2=lam)
    pairs = (
        ("class-stable", r, feedback_general(*args, lambda2=lam)),
        ("fresh", Rates.of(p), feedback_fresh(*args)),
        (
            "correlated",
            Rates.of(p, lambda2=lam, icc_s2=icc),
            feedback_correlated(*args, icc2=icc, lambda2=lam),
        ),
    )
    for name, rates, closed in pairs:
        stepped = feedback_prices(FORMS[name], rates, 8)
        np.testing.assert_allclose(stepped.quality, closed.quality, atol=1e-9)
        np.testing.assert_allclose(stepped.bill, closed.bill, atol=1e-9)
        np.testing.assert_allclose(stepped.residual, closed.residual, atol=1e-9)


@settings(max_examples=25)
@given(points(), st.floats(0.1, 1.0), st.floats(0.0, 0.9), st.floats(0.0, 0.9))
def test_limits_of_forms_are_where_their_steps_go(p: Parameters, s: float, lam: float, fpr: float) -> None:
    """The limit that a form states is the quality that a very long chain has."""
    hazards = Hazards(np.asarray([0.9, 0.2]), np.asarray([0.5, 0.1, 0.05]))
    cases: tuple[tuple[str, Rates, Hazards | None], ...] = (
        ("class-stable", Rates.of(p, s1=s, s2=s, lambda1=lam, fpr=fpr, s_false=0.7), None),
        ("fresh", Rates.of(p, s1=s, lambda1=lam), None),
        ("correlated", Rates.of(p, s1=s, s2=s, lambda1=0.3, lambda2=0.5, icc_s1=0.4), None),
        ("hazards", Rates.of(p, lambda2=lam), hazards),
    )
    for name, r, table in cases:
        last = None
        for index, step in enumerate(FORMS[name].steps(r, table)):
            last = step
            if index >= 150:
                break
        assert last is not None
        left = float(np.max(last.residual - last.residual_correct, initial=0.0))
        assert float(FORMS[name].limit(r, table)) == pytest.approx(float(last.quality), abs=left + 1e-9)


@given(points())
def test_solving_agrees_with_search_and_regime(p: Parameters) -> None:
    """The stepwise solver finds the budget of the search over the closed form, and its regime."""
    found = solve(FORMS["class-stable"], Rates.of(p), 8)
    price = feedback(B, p.q0, p.p_d, p.sigma, p.s1, p.s2)
    code = int(regime(p.q0, p.p_d, p.sigma, p.s1, p.s2, p.q_T))
    wanted = 0 if code == 3 else int(break_even(price.quality, price.bill, p.q_T, p.rho))
    edge = np.abs(price.quality - p.q_T).min() < 1e-9 or np.abs(price.bill - p.rho).min() < 1e-9
    assert edge or int(found.b_star) == wanted
    assert edge or int(found.regime) == code


def test_solver_marks_what_is_no_protocol() -> None:
    """Masses above one, NaN and a free teacher are −1 everywhere, and have neither quality nor bill."""
    r = Rates.of(WORKED, p_d=[0.18, 0.3, np.nan], rho=2.5)
    found = solve(FORMS["class-stable"], r, 5)
    assert found.b_star.tolist() == [2, -1, -1]
    assert found.regime.tolist() == [1, -1, -1]
    assert np.isnan(found.quality[1:]).all()
    free = solve(FORMS["class-stable"], Rates.of(WORKED, rho=[0.0, 2.5]), 5)
    assert free.b_star.tolist() == [-1, 2]


def test_load_prices_break_even_out() -> None:
    """With H so large that the loaded second draw costs more than the teacher, B* is none while B_q stays."""
    found = solve(FORMS["class-stable"], Rates.of(WORKED, H=[0.0, 5.0, 7.0], rho=2.5), 5)
    assert found.b_quality.tolist() == [2, 2, 2]
    assert found.b_star.tolist() == [2, 2, 0]  # 1.18 (1 + .18 H) is 2.24 and 2.67
    assert float(found.bill[1]) == pytest.approx(1.18 * 1.9)


def test_a_saturated_frontier_never_touches_its_ceiling() -> None:
    """At D = p_d no budget breaks even, however large the search and whatever rounding says."""
    found = solve(FORMS["class-stable"], Rates.of(WORKED, D=[0.18, 0.179999999]), 60)
    assert found.b_star[0] == 0
    assert found.regime.tolist() == [3, 2]
    assert found.b_star[1] > 5


def test_forms_are_chosen_by_the_parameters_and_ignore_none() -> None:
    """A correlation picks the correlated form; a form that would ignore a parameter is refused by name."""
    assert choose_form(None, Rates.of(WORKED)).name == "class-stable"
    assert choose_form(None, Rates.of(WORKED, icc_s2=0.2)).name == "correlated"
    hazards = Hazards(np.asarray([0.9]), np.asarray([0.5]))
    assert choose_form(None, Rates.of(WORKED), hazards).name == "hazards"
    for name, changes in (
        ("class-stable", {"icc_q": 0.1}),
        ("fresh", {"fpr": 0.1}),
        ("hazards", {"fpr": 0.1}),
    ):
        with pytest.raises(UsageRefused, match=next(iter(changes))):
            choose_form(name, Rates.of(WORKED, **changes), hazards if name == "hazards" else None)
    with pytest.raises(UsageRefused, match="hazards"):
        choose_form("hazards", Rates.of(WORKED))
    with pytest.raises(UsageRefused, match="one of"):
        choose_form("magic", Rates.of(WORKED))


def test_table_rows_are_the_closed_forms() -> None:
    """Every arm's row equals its own closed form, at each budget and in the limit."""
    table = price_table(Rates.of(WORKED), form=FORMS["class-stable"], b_max=4, votes=7)
    p = WORKED
    rates = (p.q0, p.p_d, p.sigma, p.s1, p.s2)
    for b in (1.0, 2.0, 4.0, float("inf")):
        for arm, price in (
            ("A2s", blind(b, p.q0, p.p_d)),
            ("A3", feedback(b, *rates)),
            ("A5", teacher_gated(b, p.q_T, p.p_dT, p.rho)),
            ("blended", blended(b, *rates, p.q_T, p.rho)),
        ):
            row = table.row(arm, b)
            assert float(row.quality) == pytest.approx(float(price.quality), abs=1e-12)
            assert float(row.bill) == pytest.approx(float(price.bill), abs=1e-12)
    assert float(table.row("A2", 4).bill) == pytest.approx(float(blind_greedy(4, p.q0, p.p_d).bill))
    assert float(table.row("A1", 7).quality) == pytest.approx(float(majority(7, p.q0).quality))
    for crossover in table.summary.crossovers:
        k = crossover.k
        want = float(crossover_feedback(k, p.q0, p.sigma, p.s1, p.s2))
        assert float(crossover.feedback) == pytest.approx(want, abs=1e-12)
        assert float(crossover.blind) == pytest.approx(float(crossover_blind(k, p.q0)), abs=1e-12)
    assert float(table.summary.log_branch) == float(log_branch(p.p_d, p.sigma, p.s2, p.edge)) == 2.0
    assert int(table.summary.gate_budget) == 2
    with pytest.raises(KeyError):
        table.row("A3", 9)


def test_masses_of_every_row_add_to_one() -> None:
    """Right, knowingly wrong and silently wrong answers are all answers, also with a leaky verifier."""
    r = Rates.of(WORKED, fpr=0.05, s_false=0.8, lambda1=0.1, lambda2=0.3)
    for row in price_table(r, form=FORMS["class-stable"], b_max=4).rows:
        assert float(row.quality + row.known_wrong + row.silent_wrong) == pytest.approx(1.0, abs=1e-12)
        assert float(row.silent_wrong) >= 0


def test_correlated_table_uses_the_correlation_everywhere() -> None:
    """In the correlated form A1 and A2s heed the correlation of initial draws, and have no blind crossover."""
    r = Rates.of(WORKED, icc_q=0.5, icc_s2=0.3)
    table = price_table(r, form=FORMS["correlated"], b_max=3)
    assert float(table.row("A1", 5).quality) == pytest.approx(
        float(majority_correlated(5, 0.8, 0.5).quality), abs=1e-12
    )
    form = blind_exchangeable(3, [1.0], [0.8], 0.5, [0.9])
    assert float(table.row("A2s", 3).quality) == pytest.approx(float(form.quality), abs=1e-12)
    assert np.isnan(table.summary.crossovers[0].blind)


def test_draws_are_priced_draw_by_draw() -> None:
    """A table over draws holds, row by row, the tables of the single draws."""
    sigma = np.asarray([0.2, 0.6, 0.9])
    whole = price_table(Rates.of(WORKED, sigma=sigma), form=FORMS["class-stable"], b_max=3)
    for i, value in enumerate(sigma):
        single = price_table(Rates.of(WORKED.with_(sigma=float(value))), form=FORMS["class-stable"], b_max=3)
        for a, b in zip(whole.rows, single.rows, strict=True):
            assert float(a.quality[i]) == pytest.approx(float(b.quality), abs=1e-12)
            assert float(a.loaded[i]) == pytest.approx(float(b.loaded), abs=1e-12)
        assert int(whole.summary.break_even.b_star[i]) == int(single.summary.break_even.b_star)


def test_sampled_rates_price_the_sampled_arms_only() -> None:
    """With rates of two decodings, A1 and A2s follow the sampled ones, A3 and A0 the greedy ones."""
    cold, warm = Rates.of(WORKED), Rates.of(WORKED, q0=0.7, p_d=0.27, s2=0.85)
    table = price_table(cold, form=FORMS["class-stable"], sampled=warm)
    assert float(table.row("A0", 1).quality) == 0.8
    assert float(table.row("A1", 1).quality) == 0.7
    assert float(table.row("A2s", 1).quality) == 0.7
    gap = (float(majority(3, 0.7).quality) - 0.8) / float(feedback(3, 0.0, 1.0, 0.6, 0.99, 0.85).quality)
    assert float(table.summary.crossovers[0].feedback) == pytest.approx(gap)


def test_sweep_equals_single_points() -> None:
    """A grid holds at every point what solving that point alone gives; the axes keep their order."""
    axes = [Axis.parse("sigma=0:1:5"), Axis.parse("D=0.05,0.1,0.17,0.2")]
    grid = sweep(WORKED, axes, form=FORMS["class-stable"], b_max=6)
    assert grid.b_star.shape == (5, 4)
    for i, s in enumerate(axes[0].values):
        for j, edge in enumerate(axes[1].values):
            one = solve(FORMS["class-stable"], Rates.of(WORKED, sigma=float(s), D=float(edge)), 6)
            assert grid.b_star[i, j] == int(one.b_star)
            assert grid.regime[i, j] == int(one.regime)
    want = float(crossover_feedback(5, 0.8, 0.25, 0.99, 0.85))
    assert float(grid.crossover[5][1, 0]) == pytest.approx(want)


@pytest.mark.parametrize(
    "name", ["sigma", "phi", "s2", "delta", "p_d", "p_s", "rho", "D", "q_T", "q0", "H", "s1"]
)
def test_every_parameter_can_be_swept(name: str) -> None:
    """Fields and aliases sweep alike, and the alias agrees with the field it binds."""
    grid = sweep(WORKED, [Axis(name, np.asarray([0.02, 0.05, 0.1]))], form=FORMS["class-stable"])
    assert grid.b_star.shape == (3,)
    same = {"s2": ("phi", -0.8), "p_s": ("p_d", None), "D": ("q_T", 0.8)}
    if name in ("s2", "D"):
        field, shift = same[name]
        assert shift is not None
        other = sweep(
            WORKED, [Axis(field, np.asarray([0.02, 0.05, 0.1]) + shift)], form=FORMS["class-stable"]
        )
        assert other.b_star.tolist() == grid.b_star.tolist()


def test_sweep_over_posterior_draws_gives_shares() -> None:
    """Over draws, each point has the probability of each B*, which add to one, and its mode."""
    rng = np.random.default_rng(1)
    draws = {"sigma": rng.beta(6, 4, 500), "s2": rng.beta(8, 2, 500), "p_d": np.full(500, 0.18)}
    grid = sweep(WORKED, [Axis.parse("D=0.1,0.17")], form=FORMS["class-stable"], b_max=5, draws=draws)
    total = sum((share for share in grid.b_share.values()), np.zeros(2))
    np.testing.assert_allclose(total, 1.0, atol=1e-12)
    alone = solve(FORMS["class-stable"], Rates.of(WORKED, D=0.17, **draws), 5)
    for b, share in grid.b_share.items():
        assert share[1] == pytest.approx(float((alone.b_star == b).mean()), abs=1e-12)
    assert grid.b_star[1] == np.bincount(alone.b_star).argmax()
    swept = sweep(WORKED, [Axis.parse("phi=0,0.05")], form=FORMS["class-stable"], draws=draws)
    assert swept.draws == 500  # the swept headroom replaces the draws of s2


def test_a_million_points_take_about_a_second() -> None:
    """A million parameter points are solved in processor time that a person does not notice."""
    axes = [Axis("sigma", np.linspace(0, 1, 1000)), Axis("D", np.linspace(0, 0.2, 1000))]
    best = np.inf
    for _ in range(2):
        before = time.process_time()
        grid = sweep(WORKED, axes, form=FORMS["class-stable"], votes=(3,))
        best = min(best, time.process_time() - before)
    assert grid.b_star.size == 1_000_000
    assert best < 3.0


@pytest.mark.parametrize(
    "axes",
    [
        ["sigmma=0:1:5"],
        ["gate=0:1:5"],
        ["sigma=0:1:1"],
        ["sigma=a,b"],
        ["sigma=0:1:99999999"],
        ["sigma=nan,1"],
        ["sigma=0:1:5", "sigma=0:1:5"],
        ["phi=0:1:5", "s2=0:1:5"],
        ["p_s=0:1:5", "delta=0:1:5"],
        ["sigma=0:1:5", "phi=0:1:5", "rho=1:2:3"],
        ["sigma=0:1:90000", "phi=0:1:90000"],
        ["icc_q=0:1:5"],
    ],
)
def test_sweeps_that_mean_nothing_are_refused(axes: list[str]) -> None:
    """Unknown, doubled, bound, ignored or endless axes are refused before anything is computed."""
    with pytest.raises(UsageRefused):
        sweep(WORKED, [Axis.parse(a) for a in axes], form=FORMS["class-stable"])


def test_designs_behind_the_published_bills() -> None:
    """15.33 and 27.5 belong to uneven budgets 4/5, 5/4, 3/6, 6/3 of A2s and A3; one budget gives 28.5."""
    found = find_designs(WORKED, "15.33", "27.5")
    pairs = {(d.budgets.A2s, d.budgets.A3) for d in found.both}
    assert pairs == {(4, 5), (5, 4), (3, 6), (6, 3)}
    assert {d.budgets.A2 for d in found.both} == {5}
    assert [(d.budgets.A3, d.worst) for d in found.expected_only] == [(5, 28.5)]
    (shared,) = found.worst_only
    assert shared.budgets == ArmBudgets(shared_first=True)
    assert prints_as(shared.expected, printed_figure("14.33"))
    reading = " ".join(found.reading)
    assert "conflict" in reading
    assert "28.5, not 27.5" in reading
    assert "14.33, not 15.33" in reading
    assert "5/4/5; A2/A2s/A3 = 5/3/6" in reading
    even = find_designs(WORKED, "15.33", "28.5")
    assert any(d.spread == 0 for d in even.both)
    assert "conflict" not in " ".join(even.reading)
    assert "conflict" in find_designs(WORKED, "99.99", "27.5").reading[0]


@settings(max_examples=15)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6), st.sampled_from([1, 3, 5]), st.integers(1, 3))
def test_a_design_is_found_from_its_own_bills(a2: int, a2s: int, a3: int, k: int, b_t: int) -> None:
    """Whatever the budgets, printing their bills leads back to them."""
    price = feedback(a3, 0.8, 0.18, 0.6, 0.99, 0.85)
    mean = 1 + k + 1 + 0.18 * (a2 - 1) + float(blind(a2s, 0.8, 0.18).bill) + float(price.bill) + 2.5
    mean += float(teacher_gated(b_t, 0.9, 0.08, 2.5).bill)
    most = 1 + k + a2 + a2s + a3 + 2.5 * (1 + b_t)
    found = find_designs(WORKED, f"{mean:.4f}", f"{most:.1f}", votes=(1, 3, 5), teacher_budgets=(1, 2, 3))
    assert ArmBudgets(A1=k, A2=a2, A2s=a2s, A3=a3, A5=b_t) in [d.budgets for d in found.both]


@pytest.mark.parametrize("text", ["", "abc", "-3", "0", "1e5", "nan", "inf", "1" * 40])
def test_published_figures_are_plain_decimals(text: str) -> None:
    """A published figure is a positive decimal as printed; nothing else sets a precision."""
    with pytest.raises(UsageRefused):
        printed_figure(text)


@pytest.mark.parametrize("options", [{"votes": (4,)}, {"teacher_budgets": ()}, {"largest": 99}])
def test_design_ranges_are_bounded(options: dict[str, object]) -> None:
    """A search that would tie, find nothing or not end is refused."""
    with pytest.raises(UsageRefused):
        find_designs(WORKED, "15.33", "27.5", **options)  # type: ignore[arg-type]


def test_even_spread_of_a_design() -> None:
    """The spread of a design is the distance of its gated budgets."""
    assert Design(ArmBudgets(A2=5, A2s=3, A3=6), 1.0, 2.0).spread == 3


def test_turns_are_solved_one_by_one_and_as_a_whole() -> None:
    """Each turn has its own B*; the conversation multiplies qualities and adds bills."""
    talk = price_turns(WORKED, [0.18, 0.12, 0.05], form=FORMS["class-stable"], b_max=4)
    assert talk.turns.b_star.tolist() == [2, 2, 0]
    at_two = [float(feedback(2, 0.8, d, 0.6, 0.99, 0.85).quality) for d in (0.18, 0.12, 0.05)]
    assert float(talk.by_budget_quality[1]) == pytest.approx(float(np.prod(at_two)))
    assert float(talk.by_budget_bill[1]) == pytest.approx(3.35)
    assert (talk.teacher_quality, talk.teacher_bill) == pytest.approx((0.9**3, 7.5))
    assert talk.uniform == 2
    assert talk.own_quality == pytest.approx(at_two[0] * at_two[1] * 0.9)
    assert talk.own_bill == pytest.approx(1.18 + 1.12 + 2.5)


def test_parity_in_every_turn_is_parity_of_the_whole() -> None:
    """Where every turn meets the teacher at its own B*, the conversation does too, for no more."""
    talk = price_turns(WORKED, [0.18, 0.15, 0.17], form=FORMS["class-stable"])
    assert (talk.turns.b_star > 0).all()
    assert talk.own_quality >= talk.teacher_quality
    assert talk.own_bill <= talk.teacher_bill


@pytest.mark.parametrize("p_d", [[], [0.3], [[0.1]], [np.nan]])
def test_turns_that_are_no_protocol_are_refused(p_d: list[float]) -> None:
    """A turn whose masses exceed one, or that is no number, is named and refused."""
    with pytest.raises(UsageRefused):
        price_turns(WORKED, np.asarray(p_d, dtype=np.float64), form=FORMS["class-stable"])


def test_forms_are_compared_with_what_they_neglect() -> None:
    """Each form takes what it heeds and says which parameters it left out, at which value."""
    hazards = Hazards(np.asarray([0.99]), np.asarray([0.85, 0.2]))
    r = Rates.of(WORKED, icc_s2=0.5, lambda2=0.2)
    found = {f.form.name: f for f in compare_forms(r, b_max=4, hazards=hazards)}
    assert set(found) == set(FORMS)
    assert dict(found["class-stable"].neglected) == {"icc_s2": 0.0}
    assert not found["correlated"].neglected
    want = feedback_hazards(
        np.arange(1, 5), 0.8, 0.18, 0.6, hazards.structural, hazards.semantic, lambda2=0.2
    )
    np.testing.assert_allclose(found["hazards"].price.quality, want.quality, atol=1e-12)
    assert found["correlated"].price.quality[-1] < found["class-stable"].price.quality[-1]
    assert found["fresh"].price.quality[-1] > found["class-stable"].price.quality[-1]


@pytest.mark.parametrize("bad", [[], [1.2], [np.nan]])
def test_hazards_are_probabilities(bad: list[float]) -> None:
    """Empty hazards and hazards outside [0, 1] are refused."""
    with pytest.raises(UsageRefused):
        Hazards(np.asarray(bad, dtype=np.float64), np.asarray([0.5]))


def test_documents_are_strict_json() -> None:
    """Every document is JSON without NaN or infinity, also at the boundaries of the parameter space."""
    edge: dict[str, float] = {
        "q0": 0.0,
        "p_d": 1.0,
        "sigma": 1.0,
        "s1": 0.0,
        "s2": 0.0,
        "q_T": 0.0,
        "p_dT": 1.0,
    }
    for p in (WORKED, Parameters.from_mapping(edge)):
        form = FORMS["class-stable"]
        for r in (Rates.of(p), Rates.of(p, rho=np.asarray([1.5, 2.5]))):
            table = price_table(r, form=form, b_max=3)
            document = table_document(table, r, b_max=3, cost_small_usd=0.001)
            json.dumps(document, allow_nan=False)
        grid = sweep(p, [Axis.parse("rho=1,2"), Axis.parse("sigma=0,1")], form=form)
        json.dumps(sweep_document(grid, form), allow_nan=False)
        json.dumps(forms_document(compare_forms(Rates.of(p)), 5), allow_nan=False)
    json.dumps(design_document(find_designs(WORKED, "15.33", "27.5")), allow_nan=False)
    talk = price_turns(WORKED, [0.18, 0.05], form=FORMS["class-stable"])
    json.dumps(turns_document(talk, FORMS["class-stable"]), allow_nan=False)


def test_document_of_draws_has_intervals_and_odds() -> None:
    """Over draws a figure is mean and equal-tailed interval, B* and regime are probabilities."""
    sigma: Array = np.linspace(0.0, 1.0, 201)
    r = Rates.of(WORKED, sigma=sigma, D=0.1)
    table = price_table(r, form=FORMS["class-stable"], b_max=3)
    document = table_document(table, r, b_max=3, cost_small_usd=0.001)
    quality = next(x for x in document["rows"] if (x["arm"], x["budget"]) == ("A3", 2))["quality"]
    values = 0.8 + 0.18 * (sigma * 0.99 + (1 - sigma) * 0.85)
    assert quality["mean"] == pytest.approx(float(values.mean()))
    assert quality["low"] == pytest.approx(float(np.percentile(values, 2.5)))
    assert document["interval"] == {"kind": "eti", "probability": 0.95}
    assert sum(document["break_even"]["regime"].values()) == pytest.approx(1.0)
    assert set(document["break_even"]["regime"]) == {r.value for r in REGIMES}
    assert document["break_even"]["B_star"]["2"] == 1.0
