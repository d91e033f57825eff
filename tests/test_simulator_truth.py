"""True values equal closed forms written elsewhere, and printed figures of the paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from verdiv.pricing.closed import feedback_fresh
from verdiv.pricing.correlated import (
    blind_exchangeable,
    feedback_correlated,
    majority_correlated,
    sticky_ratio_exchangeable,
)
from verdiv.pricing.general import blind_general, feedback_general, teacher_gated_general
from verdiv.protocol.simulator.behaviour import Blind, Greedy, Load, Repairs
from verdiv.protocol.simulator.design import Design
from verdiv.protocol.simulator.plurality import plurality_correct
from verdiv.protocol.simulator.rates import Ease, Icc, Rates
from verdiv.protocol.simulator.scenarios import BREAKS, named_world
from verdiv.protocol.simulator.traits import beta_quantile
from verdiv.protocol.simulator.truth import TrueValues
from verdiv.protocol.simulator.world import Family, World

PRINTED = {
    "quality A3 2": "0.9681",
    "bill A3 2": "1.18",
    "bill A2 2": "1.18",
    "quality A5 2": "0.9720",
    "bill A5 2": "2.70",
    "quality A2 5": "0.80",
    "p_d": "0.18",
}
"""Figures of "The Verifier's Dividend" at its worked parameters, as printed."""


def printed_values(world: World) -> dict[str, float]:
    """Return the true values behind the printed figures."""
    true = world.true_values(Design())
    values = {key: true.estimates[key] for key in PRINTED if " " not in key}
    for key in PRINTED:
        if " " in key:
            what, arm, budget = key.split()
            values[key] = getattr(true, what)(arm, int(budget))
    return values


def agrees(value: float, printed: str) -> bool:
    """Whether a value rounds to a printed figure."""
    figure = Decimal(printed)
    return Decimal(repr(round(value, 12))).quantize(figure) == figure


def test_the_worked_world_prints_the_papers_figures() -> None:
    """The paper's world has the paper's prices, at their printed precision."""
    values = printed_values(World.worked())
    assert {key: values[key] for key in PRINTED if not agrees(values[key], PRINTED[key])} == {}


def test_a_moved_world_does_not_print_them() -> None:
    """The comparison can fail: s2 lower by a hundredth prints another Q_2 and leaves the rest."""
    values = printed_values(World.worked().with_rates(s2=0.84))
    assert [key for key in PRINTED if not agrees(values[key], PRINTED[key])] == ["quality A3 2"]


def single(**rates: Any) -> World:
    """Return a world of one family."""
    return World(families=(Family(name="all", weight=1.0, rates=Rates(**rates)),))


def test_general_forms_hold_with_silent_repairs_and_false_positives() -> None:
    """A2s, A3 and A5 with fpr and lambda equal the general forms derived from the chain, at every budget."""
    world = single(
        q=0.7, delta=0.8, sigma=0.55, s1=0.9, s2=0.6, lambda1=0.1, lambda2=0.3, fpr=0.06, s_false=0.75,
        q_t=0.85, delta_t=0.7,
    )  # fmt: skip
    design = Design(budgets={"A2s": 6, "A3": 6, "A5": 4})
    true = world.true_values(design)
    budgets = np.arange(1, 7)
    repaired = feedback_general(
        budgets, 0.7, 0.24, 0.55, 0.9, 0.6, lambda1=0.1, lambda2=0.3, fpr=0.06, s_false=0.75
    )
    blind = blind_general(budgets, 0.7, 0.24, fpr=0.06)
    taught = teacher_gated_general(np.arange(1, 5), 0.85, 0.105, 2.5, fpr=0.06)
    for arm, price in (("A3", repaired), ("A2s", blind), ("A5", taught)):
        for index, (quality, bill) in enumerate(zip(price.quality, price.bill, strict=True), start=1):
            assert true.quality(arm, index) == pytest.approx(float(quality), abs=1e-12), (arm, index)
            assert true.bill(arm, index) == pytest.approx(float(bill), abs=1e-12), (arm, index)


def test_fresh_repartitioning_is_persistence_zero() -> None:
    """Without class persistence A3 follows the fresh re-partitioning form, which lies above the stable one."""
    world = replace(World.worked(), repairs=Repairs(persistence=0.0))
    fresh, stable = (w.true_values(Design()) for w in (world, World.worked()))
    for budget in range(1, 6):
        price = feedback_fresh(budget, 0.8, 0.18, 0.6, 0.99, 0.85)
        assert fresh.quality("A3", budget) == pytest.approx(float(price.quality), abs=1e-12)
    assert fresh.quality("A3", 3) > stable.quality("A3", 3)


def test_scatter_between_tasks_gives_the_beta_moment_forms() -> None:
    """With icc, A2s, A3 and the sticky ratio equal the Beta-moment forms over unequal families."""
    world = replace(
        World.worked().spread(q=(0.8, 0.0, -0.8), delta=(0.5, 0.0, -0.5)),
        icc=Icc(q=0.6, delta=0.3, s1=0.2, s2=0.5),
    )
    true = world.true_values(Design())
    weights = list(world.weights.values())
    q, delta = ([getattr(f.rates, name) for f in world.families] for name in ("q", "delta"))
    for budget in range(1, 6):
        blind = blind_exchangeable(budget, weights, q, 0.6, delta, 0.3)
        assert true.quality("A2s", budget) == pytest.approx(float(blind.quality), abs=3e-4)
        assert true.bill("A2s", budget) == pytest.approx(float(blind.bill), abs=3e-4)
    ratio = float(sticky_ratio_exchangeable(weights, q, 0.6, delta))
    assert true.estimates["sticky_ratio"] == pytest.approx(ratio, abs=3e-4)
    alone = replace(world, families=(world.families[1],)).true_values(Design())
    for budget in range(1, 6):
        price = feedback_correlated(budget, 0.8, 0.18, 0.6, 0.99, 0.85, icc1=0.2, icc2=0.5)
        assert alone.quality("A3", budget) == pytest.approx(float(price.quality), abs=3e-4)


def test_pairs_of_parallel_draws_repeat_by_the_icc() -> None:
    """Order-free s_blind of one family is (1 - icc) q0, whatever the flags; half of it at twice the distance."""
    world = replace(single(delta=0.4), icc=Icc(q=0.5))
    assert world.true_values(Design()).estimates["s_blind_pairs"] == pytest.approx(0.4, abs=2e-4)
    loose = replace(world, icc=Icc(q=0.25))
    assert loose.true_values(Design()).estimates["s_blind_pairs"] == pytest.approx(0.6, abs=2e-4)


def test_hard_tasks_that_are_less_detected_lower_the_detection_rate() -> None:
    """Delta is draw-weighted: with detection tied to ease it falls below the tasks' mean."""
    tied = replace(single(), icc=Icc(q=0.4, delta=0.2), ease=Ease(delta=0.6))
    loose = replace(tied, ease=Ease())
    assert loose.true_values(Design()).estimates["delta"] == pytest.approx(0.9, abs=2e-4)
    assert tied.true_values(Design()).estimates["delta"] < 0.86


@pytest.mark.parametrize("k", [1, 3, 5, 9])
def test_a_vote_of_two_outputs_is_the_binomial_majority(k: int) -> None:
    """With one wrong output the plurality is the majority, with and without scatter between tasks."""
    world = replace(single(delta=0.0, eta_ox=1.0), wrong_outputs=1)
    design = Design(budgets={"A1": k})
    exact = float(majority_correlated(k, 0.8, 0.0).quality)
    assert world.true_values(design).quality("A1", k) == pytest.approx(exact, abs=1e-12)
    spread = replace(world, icc=Icc(q=0.5))
    exact = float(majority_correlated(k, 0.8, 0.5).quality)
    assert spread.true_values(design).quality("A1", k) == pytest.approx(exact, abs=5e-4)


def test_a_vote_over_many_outputs_is_counted_out() -> None:
    """The plurality equals the sum over all sequences of draws, ties going to the earliest."""
    p = np.array([0.35, 0.1, 0.05, 0.2, 0.12, 0.1, 0.08])
    for k, spellings in ((3, 1), (4, 2)):
        outputs = [
            (kind, chance / n)
            for kind, chance in enumerate(p)
            for n in [1 if kind < 3 else spellings]
            for _ in range(n)
        ]
        chance = np.array([c for _, c in outputs])
        right = np.array([kind < 3 for kind, _ in outputs])
        total = 0.0
        for sequence in np.ndindex(*(len(outputs),) * k):
            counts = np.bincount(sequence)
            winner = max(sequence, key=lambda o: (counts[o], -sequence.index(o)))
            total += float(chance[list(sequence)].prod()) * bool(right[winner])
        assert float(plurality_correct(p[None, :], k, spellings)[0]) == pytest.approx(total, abs=1e-12)


def test_quantiles_have_the_mean_and_the_icc() -> None:
    """Traits have the family's mean and variance icc m (1 - m), at extreme scatter too; the ends are points."""
    u = (np.arange(200_000) + 0.5) / 200_000
    for mean, icc in ((0.8, 0.5), (0.05, 0.3), (0.9, 0.8)):
        theta = beta_quantile(mean, icc, u)
        assert theta.mean() == pytest.approx(mean, abs=1e-5)
        assert theta.var() == pytest.approx(icc * mean * (1 - mean), rel=1e-3)
    assert beta_quantile(1.0, 0.5, u).min() == 1.0
    assert beta_quantile(0.3, 0.0, u).tolist() == [0.3] * len(u)


def test_greedy_flips_leave_rates_but_open_the_floor() -> None:
    """Flip noise keeps q0_greedy, moves A2 off its flat line, and gives reruns the flips 2f q(1-q)(2-f)."""
    f = 0.2
    world = replace(World.worked(), greedy=Greedy(flip=f))
    true = world.true_values(Design())
    assert true.quality("A0", 1) == pytest.approx(0.8, abs=1e-12)
    assert true.frontier["A0", 1].p_flip == pytest.approx(2 * f * 0.16 * (2 - f), abs=1e-12)
    assert true.quality("A2", 2) > 0.81
    assert World.worked().true_values(Design()).quality("A2", 5) == pytest.approx(0.8, abs=1e-12)


def test_break_even_is_searched_and_may_be_none() -> None:
    """B* is the first budget that reaches the teacher within its bill, NaN where none does."""
    assert World.worked().true_values(Design()).estimates["break_even"] == 2
    assert World.worked().with_rates(q_t=0.97).true_values(Design()).estimates["break_even"] == 3
    assert World.worked().with_rates(q_t=0.78).true_values(Design()).estimates["break_even"] == 1
    assert np.isnan(World.worked().with_rates(q_t=0.99).true_values(Design()).estimates["break_even"])
    assert np.isnan(replace(World.worked(), rho=1.1).true_values(Design()).estimates["break_even"])


def test_what_cannot_be_measured_has_no_value() -> None:
    """Stages that no draw reaches are NaN, not 0: nothing wrong, nothing detected, constant load."""
    never_wrong = single(q=1.0).true_values(Design()).estimates
    assert all(np.isnan(never_wrong[name]) for name in ("delta", "sigma", "s1", "s2", "eta_ox", "b1"))
    assert never_wrong["p_d"] == 0.0
    undetected = single(delta=0.0).true_values(Design()).estimates
    assert undetected["delta"] == 0.0
    assert np.isnan(undetected["sigma"])
    constant = replace(World.worked(), load=Load(in_flight_min=4, in_flight_max=4))
    assert np.isnan(constant.true_values(Design()).estimates["h"])


def test_stickiness_and_its_opposite_move_blind_redraws() -> None:
    """A redraw repeats the first output with the sticky share, or is pushed towards success below zero."""
    sticky = replace(World.worked(), blind=Blind(stickiness=0.75)).true_values(Design()).estimates
    assert sticky["s_blind"] == pytest.approx(0.25 * 0.8, abs=1e-12)
    lucky = replace(World.worked(), blind=Blind(stickiness=-0.5)).true_values(Design()).estimates
    assert lucky["s_blind"] == pytest.approx(0.8 + 0.5 * 0.2, abs=1e-12)


SAMPLED = Design(a3_stochastic=True)


def truth(world: World, condition: str = "primary") -> TrueValues:
    """Return true values at a coarse integration, exact enough for margins."""
    return world.true_values(SAMPLED, condition=condition, nodes=2048)


def p1(world: World) -> bool:
    """A2s gains what exchangeable draws would, within a quarter, and greedy redraws show no more flips."""
    t = truth(world)
    gain = t.quality("A2s", 2) - t.quality("A2s", 1)
    fair = gain / (t.estimates["s_blind_exchangeable"] * t.estimates["p_d"])
    return abs(fair - 1.0) <= 0.25 and world.blind.greedy_flip == 0.0


def p2(world: World) -> bool:
    """The first repair beats a blind redraw, and A3 is no worse than the vote."""
    t = truth(world)
    return t.estimates["D_c"] > 0.02 and t.quality("A3", 5) - t.quality("A1", 5) >= -0.05


def p3(world: World) -> bool:
    """Two gated draws are as good as the teacher, for no more than its bill."""
    t = truth(world)
    return t.quality("A3", 2) - t.quality("A4", 1) >= -0.05 and t.bill("A3", 2) <= t.bill("A4", 1)


def p4(world: World) -> bool:
    """Detection does not drift along chains or along the run."""
    e = truth(world).estimates
    halves = e["delta_second_half"] - e["delta_first_half"]
    return max(abs(e["drift_blind"]), abs(e["drift_feedback"]), abs(halves)) <= 0.1


def p5(world: World) -> bool:
    """Late repairs succeed at least half as often as first ones."""
    e = truth(world).estimates
    return e["late2"] / e["s2"] >= 0.5 and e["late1"] / e["s1"] >= 0.5


def p6(world: World) -> bool:
    """Retries raise the bill by their load by at most a twentieth."""
    t = truth(world)
    return t.estimates["h"] * (t.bill("A3", 2) - 1.0) <= 0.05


def r1(world: World) -> bool:
    """Seeds agree on the quality of A3 at two draws."""
    alone = [truth(replace(world, seed_logits=(z,))).quality("A3", 2) for z in world.seed_logits or (0.0,)]
    return max(alone) - min(alone) <= 0.05


def r2(world: World) -> bool:
    """Spend parity survives leaving out each family."""
    return all(
        p3(replace(world, families=tuple(f for f in world.families if f != out))) for out in world.families
    )


def alike(world: World, condition: str) -> bool:
    """Return whether a condition leaves the quality of A3 at one and two draws where it is."""
    here, there = truth(world), truth(world, condition)
    return all(abs(here.quality("A3", b) - there.quality("A3", b)) <= 0.05 for b in (1, 2))


CLAIMS: dict[str, Callable[[World], bool]] = {
    "P1": p1, "P2": p2, "P3": p3, "P4": p4, "P5": p5, "P6": p6, "R1": r1, "R2": r2,
    "R3": lambda world: alike(world, "nvfp4"),
    "R4": lambda world: alike(world, "heavy-load"),
}  # fmt: skip
"""Rule to "its claim is true of a world", at the default margins."""


@pytest.mark.parametrize("rule", list(CLAIMS))
def test_every_claim_holds_in_the_null_world(rule: str) -> None:
    """The null world satisfies all ten claims at the default margins."""
    assert CLAIMS[rule](named_world("null"))


@pytest.mark.parametrize("name", list(BREAKS))
def test_a_break_breaks_its_rule(name: str) -> None:
    """Each named break makes the claim of its rule false."""
    assert not CLAIMS[BREAKS[name][0]](named_world(f"null+{name}"))
