"""Recommendations: the right choice, its probability, and what information is worth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from policy_world import World, truth, verify
from verdiv.cli.app import run
from verdiv.errors import UsageRefused
from verdiv.policy import GatedRetry, PolicyLog, Tier
from verdiv.policy.recommend import Candidate, Goal, Recommendation, candidates, recommend
from verdiv.pricing.closed import blended, feedback, teacher_gated
from verdiv.pricing.forms import FORMS, solve
from verdiv.pricing.parameters import Parameters
from verdiv.pricing.rates import Rates

__all__: list[str] = []

STABLE = FORMS["class-stable"]
Floats = npt.NDArray[np.float64]


def made(name: str, quality: Any, bill: Any) -> Candidate:
    """Make a candidate of its own arm."""
    return Candidate(name, 2, 0, np.asarray(quality, dtype=float), np.asarray(bill, dtype=float))


def worked(goal: Goal, target: float, **options: Any) -> Recommendation:
    """Recommend at the worked parameters."""
    r = Rates.of(Parameters.worked())
    return recommend(candidates(r, STABLE), goal, target, b_star=solve(STABLE, r, 5).b_star, **options)


def label(advice: Recommendation) -> str | None:
    """Name the choice."""
    return None if advice.choice is None else advice.choice.label


@pytest.mark.parametrize(
    ("floor", "best"),
    [
        (0.8, "A0"),
        (0.81, "A3 B=2"),
        (0.9681, "A3 B=2"),
        (0.9682, "A3 B=3"),
        (0.97995, "A3 B=5"),
        (0.97997, "A3 B=5, then teacher"),
        (0.99, None),
    ],
)
def test_the_cheapest_policy_at_each_floor_of_the_worked_set(floor: float, best: str | None) -> None:
    """At the worked parameters Q_2 = .96812 and Q_5 = .979964; A2s and A3 bill alike at B = 2, A3 is better."""
    assert label(worked(Goal.COST, floor)) == best


@pytest.mark.parametrize(
    ("budget", "best"),
    [
        (0.9, None),
        (1.0, "A0"),
        (1.18, "A3 B=2"),
        (1.1919, "A3 B=3"),
        (3.0, "A3 B=5, then teacher (gated, B=2)"),
    ],
)
def test_the_best_policy_at_each_budget_of_the_worked_set(budget: float, best: str | None) -> None:
    """E_2 = 1.18 and E_3 = 1.19188; with money to spare the residual goes to the gated teacher."""
    assert label(worked(Goal.QUALITY, budget)) == best


def test_every_candidate_is_priced_by_its_closed_form() -> None:
    """A3 and both escalations have the quality and bill of their forms; A2 is no candidate."""
    found = {c.label: c for c in candidates(Rates.of(Parameters.worked()), STABLE)}
    rates = (0.8, 0.18, 0.6, 0.99, 0.85)
    a3, mixed, a5 = feedback(3, *rates), blended(3, *rates, 0.9, 2.5), teacher_gated(2, 0.9, 0.08, 2.5)
    m = float(a3.residual)
    gated = float(a3.quality) + m * float(a5.quality), float(a3.bill) + m * float(a5.bill)
    for name, quality, bill in (
        ("A3 B=3", float(a3.quality), float(a3.bill)),
        ("A3 B=3, then teacher", float(mixed.quality), float(mixed.bill)),
        ("A3 B=3, then teacher (gated, B=2)", *gated),
        ("A5 B=2", 0.972, 2.7),
    ):
        assert found[name].quality[0] == pytest.approx(quality, abs=1e-12)
        assert found[name].bill[0] == pytest.approx(bill, abs=1e-12)
    assert not any(name.startswith("A2 ") for name in found)


def test_without_a_teacher_nothing_of_it_is_compared() -> None:
    """A largest teacher budget of 0 leaves out A4, A5 and escalation; of 1, gated teachers."""
    r = Rates.of(Parameters.worked())
    assert {c.arm for c in candidates(r, STABLE, teacher_max=0)} == {"A0", "A1", "A2s", "A3"}
    once = candidates(r, STABLE, teacher_max=1)
    assert {c.arm for c in once} == {"A0", "A1", "A2s", "A3", "A4", "blended"}
    assert {c.teacher_budget for c in once} == {0, 1}


def test_without_doubt_the_choice_is_right_and_nothing_is_worth_knowing() -> None:
    """A single point leaves probability 1 and no value of information."""
    advice = worked(Goal.COST, 0.97)
    assert (advice.right, advice.meets, advice.optimum) == (1.0, 1.0, {"A3 B=3": 1.0})
    assert advice.information is not None
    assert advice.information.perfect == pytest.approx(0, abs=1e-12)
    assert advice.information.break_even == pytest.approx(0, abs=1e-12)


def test_the_value_of_information_by_hand() -> None:
    """Two policies of quality 1, one at 1 or 3, the other at 2: knowing which draw saves (2 − 1)/2 = ½ a task."""
    found = [made("X", [1.0, 1.0], [1.0, 3.0]), made("Y", [1.0, 1.0], [2.0, 2.0])]
    rates = {"told": np.array([0.0, 1.0]), "silent": np.array([5.0, 5.0])}
    advice = recommend(found, Goal.COST, 0.9, b_star=[2, 0], parameters=rates)
    assert advice.information is not None
    assert advice.information.perfect == pytest.approx(0.5, abs=1e-9)
    assert advice.information.break_even == pytest.approx(0.5, abs=1e-9)
    assert set(advice.information.parameters) == {"told"}
    assert advice.right == 0.5
    assert advice.b_star == {"none": 0.5, "2": 0.5}


def test_a_signal_that_says_nothing_is_worth_nothing() -> None:
    """B* that is independent of every price is worth exactly 0, though choices could be mixed along it."""
    quality = np.tile([0.8, 0.9], 2)
    found = [made("X", quality, np.full(4, 1.0)), made("Y", quality + 0.1, np.full(4, 2.0))]
    advice = recommend(found, Goal.COST, 0.9, b_star=[1, 1, 2, 2])
    assert advice.information is not None
    assert advice.information.break_even == pytest.approx(0.0, abs=1e-9)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from(list(Goal)))
def test_the_value_of_perfect_information_is_that_of_the_linear_programme(seed: int, goal: Goal) -> None:
    """V(nothing) − V(all) equals what an LP solver finds for choices mixed without and with the draw known."""
    rng = np.random.default_rng(seed)
    arms, draws = 4, 6
    quality, bill = rng.uniform(0.5, 1, (arms, draws)), rng.uniform(1, 3, (arms, draws))
    cost = goal is Goal.COST
    target = float(quality.mean(axis=1).min()) + 0.02 if cost else float(bill.mean(axis=1).max()) - 0.02
    found = [made(f"X{i}", quality[i], bill[i]) for i in range(arms)]
    known = recommend(found, goal, target, b_star=rng.integers(0, 3, draws)).information
    if known is None:
        return
    aim, held, bound = (bill, quality, target) if cost else (-quality, -bill, -target)
    gain = _mixed(aim.mean(1)[:, None], held.mean(1)[:, None], bound) - _mixed(aim, held, bound)
    assert known.perfect == pytest.approx(gain, abs=1e-7)
    assert 0 <= known.break_even <= known.perfect + 1e-9


def _mixed(aim: Floats, held: Floats, bound: float) -> float:
    """Least expected aim with expected held ≥ bound, choices mixed in every draw, by linear programming."""
    arms, draws = aim.shape
    done = linprog(
        aim.ravel() / draws,
        A_ub=-held.ravel()[None] / draws,
        b_ub=[-bound],
        A_eq=np.kron(np.ones((1, arms)), np.eye(draws)),
        b_eq=np.ones(draws),
    )
    assert done.status == 0
    assert done.fun is not None
    return float(done.fun)


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_the_choice_is_the_best_of_all_that_meet_the_target(seed: int) -> None:
    """Enumeration: nothing that meets the floor in expectation is cheaper, and shares of the optimum sum to 1."""
    rng = np.random.default_rng(seed)
    drawn = {
        "q0": rng.uniform(0.6, 0.8, 50), "sigma": rng.uniform(0.2, 0.8, 50), "s2": rng.uniform(0.1, 0.9, 50)
    }  # fmt: skip
    r = Rates.of(Parameters.worked(), **drawn)
    found = candidates(r, STABLE)
    floor = float(rng.uniform(0.7, 0.98))
    advice = recommend(found, Goal.COST, floor, b_star=solve(STABLE, r, 5).b_star)
    able = [c for c in found if c.quality.mean() >= floor]
    assert (advice.choice is None) == (not able)
    if advice.choice is not None:
        assert advice.choice.bill.mean() <= min(c.bill.mean() for c in able) + 1e-12
        assert advice.meets == np.mean(advice.choice.quality >= floor - 1e-12)
    assert sum(advice.optimum.values()) == pytest.approx(1.0)
    assert sum(advice.b_star.values()) == pytest.approx(1.0)


def test_assurance_asks_for_more_than_the_expectation() -> None:
    """A policy that meets the floor on average but in half of the draws only is refused at assurance .9."""
    found = [made("X", [0.8, 1.0], [1.0, 1.0]), made("Y", [0.95, 0.95], [2.0, 2.0])]
    plain = recommend(found, Goal.COST, 0.9, b_star=[0, 0])
    sure = recommend(found, Goal.COST, 0.9, b_star=[0, 0], assurance=0.9)
    assert plain.choice is found[0]
    assert (plain.meets, plain.right) == (0.5, 0.5)
    assert sure.choice is found[1]
    assert sure.certificate is not None
    assert sure.certificate.passed


def test_the_rate_worth_measuring_is_the_one_that_decides() -> None:
    """Where only X's bill is in doubt, its rate is worth the whole, and a rate of nothing is worth nothing."""
    rng = np.random.default_rng(1)
    rate, other = rng.uniform(0, 1, 4000), rng.uniform(0, 1, 4000)
    found = [made("X", np.ones(4000), 1 + 2 * rate), made("Y", np.ones(4000), np.full(4000, 2.0))]
    both = {"rate": rate, "other": other}
    known = recommend(found, Goal.COST, 0.9, b_star=np.zeros(4000), parameters=both).information
    assert known is not None
    assert known.perfect == pytest.approx(0.25, abs=0.02)  # E max(2u − 1, 0) = ¼
    assert known.parameters["rate"] == pytest.approx(known.perfect, abs=0.02)
    assert known.parameters["other"] < 0.01


def test_nothing_to_choose_from_is_refused() -> None:
    """No candidates, or a target that is no number, give no advice."""
    with pytest.raises(UsageRefused):
        recommend([], Goal.COST, 0.9, b_star=[0])
    with pytest.raises(UsageRefused):
        worked(Goal.COST, float("nan"))


def told(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """Run ``verdiv policy recommend``."""
    capsys.readouterr()
    assert run(["policy", "recommend", *words]) == code
    printed = capsys.readouterr()
    return printed.err if code else " ".join(printed.out.split())


def test_the_command_gives_its_document(capsys: pytest.CaptureFixture[str]) -> None:
    """--json is one document without NaN, with the choice, its escalation rule and every candidate."""
    words = ("--floor", "0.97997", "--rho", "4", "--cost-small-usd", "0.01", "--json")
    found = json.loads(told(capsys, *words))
    assert (found["schema"], found["kind"], found["goal"]) == (1, "recommendation", "cost")
    choice = found["choice"]
    assert (choice["arm"], choice["budget"], choice["teacher_budget"]) == ("blended", 5, 1)
    assert choice["escalation"] == "residual to the teacher, one draw"
    assert choice["usd"] == pytest.approx(choice["bill"] * 0.01)
    assert found["rate_card"] == {"rho": 4.0, "cost_small_usd": 0.01}
    assert len(found["candidates"]) == 23


def test_the_command_says_the_choice_and_the_lack_of_one(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a goal the gate is the floor; a target out of reach is told, not an error."""
    assert "at least 0.85: A3 B=2." in told(capsys)
    assert "No policy compared here" in told(capsys, "--floor", "0.999")
    assert "at most 1.1 small draws a task: A0." in told(capsys, "--max-bill", "1.1")
    assert "at least 0.7: A0." in told(capsys, "--gate", "0.7")


def test_two_goals_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """One goal at a time, and a rate card that is one."""
    assert "one goal" in told(capsys, "--floor", "0.9", "--max-bill", "2", code=2)
    told(capsys, "--rho", "-1", code=2)


def test_from_a_fit_to_a_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A fit gives doubt: a probability within (0, 1), a worth of measuring, and the same again from one seed."""
    from verdiv.analysis import analyze

    world, path = World(4), tmp_path / "policy.runlog.jsonl"
    with PolicyLog.begin(path) as log:
        policy = GatedRetry(Tier(model=world.small, budget=3), verifier=verify, truth=truth, log=log)
        for number in range(120):
            policy.run(f"t{number}", "x")
    document = analyze([str(path)]).document
    (tmp_path / "results.json").write_text(json.dumps(document))
    words = ["--fit", str(tmp_path), "--floor", "0.95", "--json"]
    found = json.loads(told(capsys, *words))
    known = found["information"]
    assert found["draws"] == 4000
    assert 0 < found["right"] < 1
    assert known["perfect"] > 0
    assert known["perfect_usd"] == pytest.approx(known["perfect"] * 100_000 * 0.001)
    assert found == json.loads(told(capsys, *words))
    assert "is right with probability" in told(capsys, *words[:-1])
