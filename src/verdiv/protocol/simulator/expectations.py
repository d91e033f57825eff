"""Expectations over the tasks of one family, added up by name: what the true values are ratios of."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from verdiv.protocol.simulator.design import Design
from verdiv.protocol.simulator.law import (
    CORRECT,
    FLAGGED,
    SILENT,
    BoolArray,
    FloatArray,
    IntArray,
    Shift,
    Traits,
    blind_law,
    first_law,
    repair_law,
    teacher_law,
)
from verdiv.protocol.simulator.markov import Masses, fresh_chain, greedy_chain, repair_chain
from verdiv.protocol.simulator.plurality import plurality_correct
from verdiv.protocol.simulator.world import World

__all__ = ["Sums", "add_family"]

VOTE_NODES = 4096
"""Integration nodes a family for the plurality."""

S, M, W_SEEN = 3, 4, 5
"""Kinds: flagged structural, flagged semantic, silent and seen by the oracle."""
FALSE = FLAGGED & CORRECT
WRONG = ~CORRECT
DETECTED = FLAGGED & ~CORRECT

Surroundings = list[tuple[float, Shift]]
"""Shares and shifts of the surroundings of stochastic draws."""


@dataclass(slots=True)
class Sums:
    """Expectations over families, by name; an event ``x_right`` belongs to the stage ``x`` it is reached from."""

    rate: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    quality: dict[tuple[str, int], float] = field(default_factory=lambda: defaultdict(float))
    draws: dict[tuple[str, int], float] = field(default_factory=lambda: defaultdict(float))
    flip: dict[tuple[str, int], float] = field(default_factory=lambda: defaultdict(float))

    def add(self, weight: float, name: str, reach: FloatArray, event: FloatArray | None = None) -> None:
        """Add the mean over tasks of the mass that reaches a stage, and of the mass of its event."""
        self.rate[name] += weight * float(np.mean(reach))
        if event is not None:
            self.rate[f"{name}_right"] += weight * float(np.mean(event))

    def ratio(self, event: str, reach: str) -> float:
        """Return a ratio of expectations; NaN where nothing reaches the stage."""
        reached = self.rate[reach]
        return self.rate[event] / reached if reached > 0.0 else math.nan

    def enter(self, weight: float, arm: str, budget: int, quality: FloatArray, draws: FloatArray) -> None:
        """Add an arm at a budget."""
        self.quality[arm, budget] += weight * float(np.mean(quality))
        self.draws[arm, budget] += weight * float(np.mean(draws))

    def enter_chain(self, weight: float, arm: str, masses: Masses, *, flips: bool) -> None:
        """Add a gated arm at every budget; ``flips``: two replicates are independent given the task."""
        for budget, (quality, draws) in enumerate(zip(masses.quality, masses.draws, strict=True), start=1):
            self.enter(weight, arm, budget, quality, draws)
            self.flip[arm, budget] += weight * (_differ(quality) if flips else math.nan)


def _differ(quality: FloatArray) -> float:
    return float(np.mean(2.0 * quality * (1.0 - quality)))


def _everyone(traits: Traits) -> IntArray:
    return np.arange(len(traits.q))


def _mass(chances: FloatArray, kinds: BoolArray) -> FloatArray:
    """Sum the chances of some kinds."""
    return np.asarray(chances[:, kinds].sum(axis=1), dtype=np.float64)


def _first(traits: Traits, shift: Shift) -> FloatArray:
    return first_law(traits, _everyone(traits), shift).chances()


def add_family(
    sums: Sums, share: float, world: World, design: Design, traits: Traits, condition: str
) -> None:
    """Add one family.

    Parameters
    ----------
    sums
        Receives the expectations.
    share
        Weight of the family; all weights sum to 1.
    world, design
        What is run and what comes of it.
    traits
        Equally weighted tasks of the family.
    condition
        Experimental condition.
    """
    greedy, sampled = _surroundings(world, design, condition)
    _add_greedy(sums, share, world, design, traits, greedy)
    _add_votes(sums, share, world, design.budgets.get("A1", 0), traits, sampled)
    usual = sum((w * first_law(traits, _everyone(traits), z).flag_wrong for w, z in sampled), 0.0 * traits.q)
    own = sampled if design.a3_stochastic else [(1.0, greedy)]
    for weight, shift in sampled:
        sums.add(share * weight, "q", _mass(_first(traits, shift), CORRECT))
        _add_blind(sums, share * weight, world, design, traits, shift, usual)
    for weight, shift in own:
        _add_feedback(sums, share * weight, world, design, traits, shift, usual)
    _add_matched(sums, share, world, traits, own, sampled)
    _add_pairs(sums, share, design, traits, sampled)
    _add_halves(sums, share, world, traits, sampled, condition)
    _add_teacher(sums, share, world, design, traits)


def _surroundings(world: World, design: Design, condition: str) -> tuple[Shift, Surroundings]:
    """Return what surrounds greedy draws, and stochastic ones: each seed, each half of the run."""
    effect = world.effect(condition)
    greedy = Shift(effect.q_logit + world.greedy.logit, effect.delta_logit, effect.repair_logit)
    count = design.replicates
    seeds, times = np.unique(np.resize(world.seed_logits or (0.0,), count), return_counts=True)
    drift = world.drift.second_half
    halves = [1.0] if drift == 1.0 or condition != "primary" else [1.0, drift]
    return greedy, [
        (
            n / count / len(halves),
            Shift(effect.q_logit + z, effect.delta_logit, effect.repair_logit + z, half),
        )
        for z, n in zip(seeds.tolist(), times.tolist(), strict=True)
        for half in halves
    ]


def _add_greedy(
    sums: Sums, share: float, world: World, design: Design, traits: Traits, greedy: Shift
) -> None:
    """Add A0 and A2, which show the canonical output of the first prompt."""
    canon, flip = _first(traits, greedy), world.greedy.flip
    right = _mass(canon, CORRECT)
    sums.add(share, "q_greedy", right)
    sums.enter(share, "A0", 1, right, np.ones_like(right))
    sums.flip["A0", 1] += share * _greedy_pairs(right, flip)
    redraw = 1.0 - (1.0 - flip) * (1.0 - world.blind.greedy_flip)
    masses = greedy_chain(canon, flip, redraw, design.budgets.get("A2", 1))
    sums.enter_chain(share, "A2", masses, flips=False)
    shared = {"A0", "A2"} if design.a3_stochastic else {"A0", "A2", "A3"}
    if shared & design.budgets.keys():
        _add_false(sums, share, masses.drawn[:2] if "A2" in design.budgets else [canon])


def _greedy_pairs(right: FloatArray, flip: float) -> float:
    """P(two executions of one greedy prompt differ): given the canonical outcome they are independent."""
    if_right, if_wrong = 1.0 - flip + flip * right, flip * right
    pairs = right * if_right * (1.0 - if_right) + (1.0 - right) * if_wrong * (1.0 - if_wrong)
    return float(np.mean(2.0 * pairs))


def _add_votes(sums: Sums, share: float, world: World, k: int, traits: Traits, sampled: Surroundings) -> None:
    few = Traits(*(getattr(traits, name)[:VOTE_NODES] for name in Traits.__slots__))
    for votes in range(1, k + 1):
        won = np.zeros(len(few.q))
        for weight, shift in sampled:
            won = won + weight * plurality_correct(_first(few, shift), votes, world.wrong_outputs)
        sums.enter(share, "A1", votes, won, np.full(len(won), float(votes)))
        sums.flip["A1", votes] += share * _differ(won)


def _add_blind(
    sums: Sums, share: float, world: World, design: Design, traits: Traits, shift: Shift, usual: FloatArray
) -> None:
    """Add A2s and what its first redraws tell."""
    first, sticky = _first(traits, shift), max(0.0, world.blind.stickiness)
    everyone = _everyone(traits)

    def fresh(kind: int) -> FloatArray:
        return blind_law(world, traits, everyone, np.full(len(everyone), kind), shift).chances()

    masses = fresh_chain(first, fresh, sticky, design.budgets.get("A2s", 1))
    sums.enter_chain(share, "A2s", masses, flips=True)
    redraw = fresh_chain(first, fresh, sticky, 2).drawn[1]
    sums.add(share, "blind", _mass(first, FLAGGED), _mass(redraw, CORRECT))
    detected = _mass(first, DETECTED)
    sums.add(share, "exchangeable", detected, detected * _mass(first, CORRECT))
    for name, kind in (("b1", S), ("b2", M)):
        success = (1.0 - sticky) * _mass(fresh(kind), CORRECT)
        sums.add(share, name, first[:, kind], first[:, kind] * success)
    _add_drift(sums, share, "drift_blind", masses, usual)
    parallel = design.replicates * design.budgets.get("A1", 0)
    _add_false(sums, share, [first * parallel])
    if "A2s" in design.budgets:
        _add_false(sums, share * design.replicates, masses.drawn)


def _add_drift(sums: Sums, share: float, name: str, masses: Masses, usual: FloatArray) -> None:
    """Add how much likelier wrong redraws are flagged than the task's wrong first draws usually are."""
    late = sum(masses.drawn[1:], np.zeros_like(masses.drawn[0]))
    wrong = _mass(late, WRONG)
    sums.add(share, name, wrong, _mass(late, DETECTED) - wrong * usual)


def _add_false(sums: Sums, share: float, drawn: list[FloatArray]) -> None:
    """Add correct draws and those flagged; a greedy prompt executed again and again is one observation."""
    for chances in drawn:
        sums.add(share, "fpr", _mass(chances, CORRECT), _mass(chances, FALSE))


def _add_feedback(
    sums: Sums, share: float, world: World, design: Design, traits: Traits, shift: Shift, usual: FloatArray
) -> None:
    """Add A3, the first draws of its decoding and its repairs."""
    first, everyone = _first(traits, shift), _everyone(traits)
    masses = repair_chain(world, traits, shift, max(1, design.budgets.get("A3", 1)), first)
    sums.enter_chain(share, "A3", masses, flips=design.a3_stochastic)
    sums.add(share, "p_d", _mass(first, DETECTED))
    sums.add(share, "p_s", _mass(first, SILENT))
    sums.add(share, "seen", first[:, W_SEEN])
    sums.add(share, "structural", first[:, S])
    sums.add(share, "fpr_initial", _mass(first, CORRECT), _mass(first, FALSE))
    for index, kind in (("1", S), ("2", M)):
        answered = np.full(len(everyone), kind)
        law, mass = repair_law(world, traits, everyone, answered, 2, shift), first[:, kind]
        sums.add(share, f"s{index}", mass, mass * law.correct)
        missed = mass * (1.0 - law.correct)
        sums.add(share, f"lambda{index}", missed, missed * (1.0 - law.flag_wrong))
        for attempt, waiting in enumerate(masses.answered[1:], start=3):
            success = repair_law(world, traits, everyone, answered, attempt, shift).correct
            sums.add(share, f"late{index}", waiting[:, kind], waiting[:, kind] * success)
    sums.add(share, "s_false", _mass(first, FALSE), _mass(first, FALSE) * traits.s_false)
    _add_drift(sums, share, "drift_feedback", masses, usual)
    if "A3" in design.budgets:
        sampled = design.a3_stochastic
        times = design.replicates if sampled else 1
        _add_false(sums, share * times, masses.drawn if sampled else masses.drawn[1:])


def _add_matched(
    sums: Sums, share: float, world: World, traits: Traits, own: Surroundings, sampled: Surroundings
) -> None:
    """Add the gain of feedback over blind redraws on the semantic first errors of A3."""
    everyone = _everyone(traits)
    answered = np.full(len(everyone), M)
    sticky = max(0.0, world.blind.stickiness)
    blind = np.zeros(len(everyone))
    for weight, shift in sampled:
        blind = blind + weight * (1.0 - sticky) * blind_law(world, traits, everyone, answered, shift).correct
    for weight, shift in own:
        mass = _first(traits, shift)[:, M]
        gain = repair_law(world, traits, everyone, answered, 2, shift).correct - blind
        sums.add(share * weight, "matched", mass, mass * gain)


def _add_pairs(sums: Sums, share: float, design: Design, traits: Traits, sampled: Surroundings) -> None:
    """Add ordered pairs of parallel stochastic first draws of one task, the first of them wrong."""
    arms = [arm for arm in design.arms() if arm.stochastic and not arm.teacher]
    drawn = float(sum(arm.replicates * (arm.budget if arm.name == "A1" else 1) for arm in arms))
    rates = [(weight, first_law(traits, _everyone(traits), shift).correct) for weight, shift in sampled]
    total = drawn * sum((weight * q for weight, q in rates), np.zeros_like(traits.q))
    for weight, q in rates:
        wrong = weight * drawn * (1.0 - q)
        sums.add(share, "pairs", wrong * (drawn - 1.0), wrong * (total - q))


def _add_halves(
    sums: Sums, share: float, world: World, traits: Traits, sampled: Surroundings, condition: str
) -> None:
    """Add detection of stochastic first draws in each half of the run."""
    drift = world.drift.second_half if condition == "primary" else 1.0
    for name, factor in (("first_half", 1.0), ("second_half", drift)):
        for weight, shift in sampled:
            first = _first(traits, Shift(shift.q_logit, shift.delta_logit, 0.0, factor))
            sums.add(share * weight, name, _mass(first, WRONG), _mass(first, DETECTED))


def _add_teacher(sums: Sums, share: float, world: World, design: Design, traits: Traits) -> None:
    """Add A4 and A5."""
    law, flip = teacher_law(traits, _everyone(traits)), world.greedy.flip
    first = law.chances()
    right = _mass(first, CORRECT)
    sums.add(share, "q_t", right)
    sums.add(share, "p_d_t", _mass(first, DETECTED))
    sums.enter(share, "A4", 1, right, np.ones_like(right))
    sums.flip["A4", 1] += share * _greedy_pairs(right, flip)
    budget = design.budgets.get("A5", 1)
    if design.a5_stochastic:
        masses = fresh_chain(first, lambda _: first, 0.0, budget)
    else:
        masses = greedy_chain(first, flip, flip, budget)
    sums.enter_chain(share, "A5", masses, flips=design.a5_stochastic)
    if "A4" in design.budgets or ("A5" in design.budgets and not design.a5_stochastic):
        _add_false(sums, share, [first])
    if "A5" in design.budgets:
        sampled = design.a5_stochastic
        times = design.replicates if sampled else 1
        _add_false(sums, share * times, masses.drawn if sampled else masses.drawn[1:2])
