"""Counts of some of a run's tasks: what can be added up without looking at the other tasks.

A task's draws never need those of another task, so a run of any length is counted in shards of whole tasks. What only
the whole run decides (decoding of the feedback arm, whether errors carry classes, how pluralities can be told) is
counted for every answer; :mod:`verdiv.estimators.assemble` chooses.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from verdiv.estimators.chains import (
    ArmAtBudget,
    Chains,
    Majority,
    chains_of,
    majority_by_marks,
    majority_by_outputs,
    replicate_pairs,
)
from verdiv.estimators.events import (
    CLASS_NAMES,
    TEACHER,
    Counter,
    Events,
    Starts,
    answered_classes,
    initial_events,
    late_events,
    pool_starts,
    retry_events,
)
from verdiv.estimators.observations import (
    KINDS,
    SEMANTIC,
    STRUCTURAL,
    UNCLASSIFIED,
    BoolArray,
    DrawColumns,
    FloatArray,
    observation_groups,
)

__all__ = ["GATED", "MARKS", "MAX_VOTES", "OUTPUTS", "Facts", "Key", "Shard", "count_shard"]

GATED = ("A2", "A2s", "A3", "A5")
"""Arms that retry what the gate sends back."""

MAX_VOTES = 63
"""Most votes of the majority arm that are counted."""

MAX_SEEDS = 64
"""Most seeds that are compared in pairs; those beyond are left out."""

OUTPUTS, MARKS = "outputs", "marks"
"""Two ways of telling a plurality: by output hashes, or by the draw marked as emitted."""

Key: TypeAlias = tuple[str | int, ...]
"""What a fact is about: its kind, then arm, class, budget, seed …"""


@dataclass(frozen=True)
class Facts:
    """Numbers about several tasks together, by key: sums add up, the others keep their extreme."""

    sums: dict[Key, float] = field(default_factory=dict)
    most: dict[Key, float] = field(default_factory=dict)
    least: dict[Key, float] = field(default_factory=dict)

    def add(self, key: Key, value: float) -> None:
        """Add to a sum."""
        self.sums[key] = self.sums.get(key, 0.0) + float(value)

    def take(self, other: Facts) -> None:
        """Take in the facts about other tasks."""
        for key, value in other.sums.items():
            self.add(key, value)
        for key, value in other.most.items():
            self.most[key] = max(self.most.get(key, -np.inf), value)
        for key, value in other.least.items():
            self.least[key] = min(self.least.get(key, np.inf), value)


@dataclass(frozen=True)
class Shard:
    """Counts of some tasks under one condition."""

    events: Mapping[str, Events]
    """Stage, with a mark where the whole run decides between several counts, to counts per task."""
    cells: Mapping[tuple[str, int, str], ArmAtBudget]
    """Arm, budget and way of telling the answer (empty but for a majority) to sums per task."""
    pairs: Mapping[tuple[str, int, str], tuple[FloatArray, FloatArray]]
    """The same keys to replicates per task and pairs of them that differ, shape ``(tasks,)`` each."""
    parallel: FloatArray
    """Columns N, c, d of stochastic initial draws: drawn, correct, wrong and sent to retry. Shape ``(tasks, 3)``."""
    facts: Facts
    starts: Starts | None
    """Start times behind the halves of the run; None once they were counted."""


def _greedy_facts(draws: DrawColumns, ok: BoolArray, pool: Counter, facts: Facts, gate: str) -> None:
    """Count greedy redraws of A2, greedy reruns outside it, and records of one greedy prompt that disagree.

    Only reruns of draws that the gate sent back are counted: A2 redraws no others, and those lie near a boundary and
    flip more often than the rest.
    """
    own = draws.source == np.arange(len(draws))
    greedy = ok & own & (draws.temperature == 0.0)
    redraw = greedy & draws.arm.equals("A2") & (draws.kind == KINDS["blind"]) & (draws.parent >= 0)
    redraw &= draws.measured[draws.parent]
    rows = np.flatnonzero(redraw)
    parent = draws.parent[rows]
    both = (draws.output[rows] >= 0) & (draws.output[parent] >= 0)
    facts.add(("greedy", "redraws"), len(rows))
    facts.add(("greedy", "flips"), (draws.correct[rows] != draws.correct[parent]).sum())
    facts.add(("greedy", "bytes"), (both & (draws.output[rows] != draws.output[parent])).sum())
    initial = np.flatnonzero(greedy & ~draws.tier.equals(TEACHER) & (draws.kind == KINDS["initial"]))
    if len(initial):
        groups = observation_groups(draws, initial)
        first = np.full(groups.max() + 1, -1)
        first[groups[::-1]] = initial[::-1]
        start = first[groups]
        sent_back = draws.correct[start] == 0 if gate == "truth" else draws.flagged[start] == 1
        again = (initial != start) & sent_back
        facts.add(("greedy", "reruns"), again.sum())
        differ = draws.correct[initial] != draws.correct[start]
        facts.add(("greedy", "rerun_flips"), (differ & again).sum())
    executed = (draws.source[pool.rows] == pool.rows) & (draws.temperature[pool.rows] == 0.0)
    if executed.any():
        groups = pool.groups[executed]
        size = np.bincount(groups)
        right = np.bincount(groups, weights=(draws.correct[pool.rows[executed]] == 1).astype(float))
        repeated = size >= 2
        facts.add(("greedy", "observations"), repeated.sum())
        facts.add(("greedy", "disagree"), (repeated & (right > 0) & (right < size)).sum())


def _hazard_facts(draws: DrawColumns, ok: BoolArray, facts: Facts) -> None:
    retries = np.flatnonzero(ok & (draws.kind != KINDS["initial"]))
    arms, arm = draws.arm.ranked(retries)
    feedback = draws.kind[retries] == KINDS["feedback"]
    cls = np.where(feedback, draws.answered[retries], 0)
    known = ~feedback | np.isin(cls, (STRUCTURAL, SEMANTIC, UNCLASSIFIED))
    kinds = len(CLASS_NAMES) + 1
    attempts, attempt = np.unique(draws.attempt[retries][known], return_inverse=True)
    right = (draws.correct[retries] == 1)[known].astype(float)
    place = (arm[known] * kinds + cls[known]) * len(attempts) + attempt
    size = len(arms) * kinds * len(attempts)
    n, k = np.bincount(place, minlength=size), np.bincount(place, weights=right, minlength=size)
    for at in np.flatnonzero(n).tolist():
        a, c = divmod(at // len(attempts), kinds)
        key = ("hazard", arms[a], CLASS_NAMES.get(c, ""), int(attempts[at % len(attempts)]))
        facts.add((*key, "n"), n[at])
        facts.add((*key, "k"), k[at])


def _seed_facts(draws: DrawColumns, chains: Chains, budgets: range, way: str, facts: Facts) -> None:
    """Count answers by seed, and differences of seeds over the tasks that both ran."""
    own = (chains.rows >= 0) & (draws.source[chains.rows] == chains.rows)
    seeds = np.unique(chains.replicate)
    column = np.searchsorted(seeds, chains.replicate)
    for j, seed in enumerate(seeds.tolist()):
        facts.add(("executed", chains.arm, way, seed), own[column == j].sum())
    for budget in budgets:
        outcome = chains.answers(budget)
        scored = outcome >= 0
        n = np.bincount(column[scored], minlength=len(seeds))
        k = np.bincount(column[scored], weights=outcome[scored], minlength=len(seeds))
        for j, seed in enumerate(seeds.tolist()):
            facts.add(("seed", chains.arm, way, budget, seed, "n"), n[j])
            facts.add(("seed", chains.arm, way, budget, seed, "k"), k[j])
        if chains.arm != "A3" or not 2 <= len(seeds) <= MAX_SEEDS:
            continue
        seen = np.zeros((chains.tasks, len(seeds)))
        value = np.zeros((chains.tasks, len(seeds)))
        seen[chains.task[scored], column[scored]] = 1.0
        value[chains.task[scored], column[scored]] = outcome[scored]
        common, above = seen.T @ seen, value.T @ seen
        for i, j in itertools.combinations(range(len(seeds)), 2):
            pair = (int(seeds[i]), int(seeds[j]))
            facts.add(("pair", chains.arm, budget, *pair, "n"), common[i, j])
            facts.add(("pair", chains.arm, budget, *pair, "d"), above[i, j] - above[j, i])


class _Arms:
    """Counts arms at budgets."""

    def __init__(self, draws: DrawColumns, gate: str, condition: str, facts: Facts) -> None:
        self.draws, self.gate, self.condition, self.facts = draws, gate, condition, facts
        self.cells: dict[tuple[str, int, str], ArmAtBudget] = {}
        self.pairs: dict[tuple[str, int, str], tuple[FloatArray, FloatArray]] = {}

    def majority(self, arm: str, k: int) -> bool:
        """Count a majority over ``k`` votes both ways; whether any chain has as many."""
        reached = False
        for way, count in ((OUTPUTS, majority_by_outputs), (MARKS, majority_by_marks)):
            found: Majority | None = count(self.draws, arm, k, condition=self.condition)
            if found is None:
                continue
            reached = True
            self.facts.add(("unknown", arm, k, way), found.unknown)
            self._cell((arm, k, way), found.tally)
            self.pairs[arm, k, way] = replicate_pairs(self.draws, found.emitted, 1)
            _seed_facts(self.draws, found.emitted, range(1, 2), f"{way} {k}", self.facts)
        return reached

    def chains(self, arm: str) -> None:
        """Count an arm of chains at every budget up to its longest."""
        gate = self.gate if arm in GATED else "none"
        made = chains_of(self.draws, arm, gate=gate, condition=self.condition)
        if made is None:
            return
        longest = made.attempts if arm in GATED else 1
        self.facts.most["attempts", arm] = float(made.attempts)
        self.facts.most["first", arm] = float(np.nanmax(made.billed[:, 0]))
        for budget in range(1, longest + 1):
            self._cell((arm, budget, ""), made.at(budget))
            self.pairs[arm, budget, ""] = replicate_pairs(self.draws, made, budget)
        _seed_facts(self.draws, made, range(1, longest + 1), "", self.facts)

    def _cell(self, key: tuple[str, int, str], cell: ArmAtBudget) -> None:
        self.cells[key] = cell
        self.facts.most["bill", *key] = cell.highest
        self.facts.least["bill", *key] = cell.least


def count_shard(draws: DrawColumns, *, gate: str, b_max: int, condition: str) -> Shard:
    """Count some tasks.

    Parameters
    ----------
    draws
        All draws of these tasks.
    gate
        What sent a draw to retry: ``verifier``, ``truth`` or ``none``.
    b_max
        Largest budget looked at: later repairs are no late repairs.
    condition
        Experimental condition counted.

    Returns
    -------
    Shard
        Counts per task and facts about all of them.
    """
    facts = Facts()
    mine = draws.condition.equals(condition)
    ok = draws.measured & mine
    initial = draws.kind == KINDS["initial"]
    small_initial = ok & ~draws.tier.equals(TEACHER) & initial
    greedy = draws.temperature == 0.0
    a3_first = ok & draws.arm.equals("A3") & initial
    for name, mask in (("a3", a3_first), ("small", small_initial)):
        facts.add(("initial", name, "all"), mask.sum())
        facts.add(("initial", name, "greedy"), (mask & greedy).sum())
    for cls, count in enumerate(answered_classes(draws, ok).tolist()):
        facts.add(("answered", cls), count)
    facts.add(("has", "flags"), (draws.flagged >= 0).sum())
    classed = (draws.error_class > 0) | ((draws.answered > 0) & (draws.answered < UNCLASSIFIED))
    facts.add(("has", "classes"), classed.sum())
    events: dict[str, Events] = {}
    pool = initial_events(draws, ok, events)
    retry_events(draws, ok, gate, events)
    late_events(draws, ok, pool, b_max, events)
    arms = _Arms(draws, gate, condition, facts)
    for arm in draws.arm.present(mine):
        if arm != "A1":
            arms.chains(arm)
            continue
        for k in range(1, MAX_VOTES + 1, 2):
            if not arms.majority(arm, k):
                break
    stochastic = Counter(draws, small_initial & ~greedy)
    wrong = (draws.correct == 0) & ((draws.flagged == 1) | (gate == "truth"))
    parallel = np.stack(
        [stochastic.base, stochastic.count(draws.correct == 1), stochastic.count(wrong)], axis=1
    )
    _greedy_facts(draws, ok, pool, facts, gate)
    _hazard_facts(draws, ok, facts)
    return Shard(events, arms.cells, arms.pairs, parallel, facts, pool_starts(draws, pool))
