"""From shards to a tally: shards of other tasks laid side by side, and what only the whole run decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from verdiv.estimators.chains import ArmAtBudget, greatest_bill
from verdiv.estimators.columns import Joiner, Sharer
from verdiv.estimators.events import (
    IF_GREEDY,
    IF_UNCLASSIFIED,
    Events,
    middle_of,
    pair_events,
    split_halves,
)
from verdiv.estimators.observations import UNCLASSIFIED, DrawColumns, FloatArray, IntArray
from verdiv.estimators.shard import GATED, MARKS, MAX_VOTES, OUTPUTS, Facts, Key, Shard
from verdiv.estimators.tally import GreedyFlips, Hazard, SeedAnswers, SeedPair, Tally

__all__ = ["TaskList", "assemble", "concatenate", "halves", "shared"]

HALVES = ("delta_first_half", "delta_second_half")


@dataclass(frozen=True)
class TaskList:
    """Tasks in the order of their counts."""

    tasks: tuple[str, ...]
    family: IntArray
    """Family index of each, shape ``(tasks,)``."""
    families: tuple[str, ...]


def halves(shards: Sequence[Shard]) -> list[Shard]:
    """Count detection in both halves of one run, whose shards these are, and let the start times go."""
    starts = [shard.starts for shard in shards if shard.starts is not None]
    middle = middle_of(starts) if len(starts) == len(shards) else None
    out = []
    for shard in shards:
        events = dict(shard.events)
        if middle is not None and shard.starts is not None:
            base = shard.events["delta"].base
            events |= split_halves(shard.starts, middle, len(base), base)
        out.append(replace(shard, events=events, starts=None))
    return out


def shared(shard: Shard, once: Sharer) -> Shard:
    """Hold equal columns of a shard once."""
    events = {
        stage: replace(e, n=once(e.n), k=once(e.k), base=once(e.base)) for stage, e in shard.events.items()
    }
    cells = {}
    for key, cell in shard.cells.items():
        columns: dict[str, Any] = {name: once(getattr(cell, name)) for name in CELL_COLUMNS}
        cells[key] = replace(cell, **columns)
    pairs = {key: (once(r), once(flips)) for key, (r, flips) in shard.pairs.items()}
    return replace(shard, events=events, cells=cells, pairs=pairs)


def _empty_cell(arm: str, budget: int, none: FloatArray) -> ArmAtBudget:
    return ArmAtBudget(arm, budget, none, none, none, none, none, none, -np.inf, -np.inf, np.inf)


def _at_budget(shard: Shard, key: tuple[str, int, str], none: FloatArray) -> ArmAtBudget:
    """Cell of a shard; beyond its own longest chain an arm answers there what it answers with that one."""
    arm, budget, way = key
    while way == "" and budget > 1 and (arm, budget, way) not in shard.cells:
        budget -= 1
    return shard.cells.get((arm, budget, way)) or _empty_cell(arm, key[1], none)


def _pairs(shard: Shard, key: tuple[str, int, str], none: FloatArray) -> tuple[FloatArray, FloatArray]:
    arm, budget, way = key
    while way == "" and budget > 1 and (arm, budget, way) not in shard.pairs:
        budget -= 1
    return shard.pairs.get((arm, budget, way)) or (none, none)


def _lengthened(facts: Facts, longest: Mapping[Key, float]) -> Facts:
    """Add facts at budgets beyond a shard's own longest chains, where its answers stay what they are."""
    out = Facts(dict(facts.sums), facts.most, facts.least)
    own = {str(key[1]): int(value) for key, value in facts.most.items() if key[0] == "attempts"}
    for key, value in facts.sums.items():
        arm = str(key[1]) if len(key) > 1 else ""
        place = {"seed": 3, "pair": 2}.get(str(key[0]))
        if place is None or arm not in GATED or key[place] != own.get(arm):
            continue
        for budget in range(own[arm] + 1, int(longest["attempts", arm]) + 1):
            out.sums[(*key[:place], budget, *key[place + 1 :])] = value
    return out


def concatenate(shards: Sequence[Shard], joined: Joiner) -> Shard:
    """Lay shards of different tasks side by side.

    Parameters
    ----------
    shards
        Shards of one condition, no task in two of them.
    joined
        Lays their columns end to end.
    """
    sizes = [len(shard.parallel) for shard in shards]

    none = [joined.zeros(size) for size in sizes]

    def event(stage: str, part: str) -> FloatArray:
        return joined(
            [
                getattr(s.events[stage], part) if stage in s.events else zero
                for s, zero in zip(shards, none, strict=True)
            ]
        )

    stages = {stage: e for shard in shards for stage, e in shard.events.items()}
    if not all(HALVES[0] in shard.events for shard in shards):
        stages = {stage: e for stage, e in stages.items() if stage not in HALVES}
    events = {
        stage: replace(e, n=event(stage, "n"), k=event(stage, "k"), base=event(stage, "base"))
        for stage, e in stages.items()
    }
    longest: dict[Key, float] = {}
    for shard in shards:
        for key, value in shard.facts.most.items():
            if key[0] == "attempts":
                longest[key] = max(longest.get(key, 0.0), value)
    facts = Facts()
    for shard in shards:
        facts.take(_lengthened(shard.facts, longest))
    cells: dict[tuple[str, int, str], ArmAtBudget] = {}
    pairs = {}
    for key in dict.fromkeys(key for shard in shards for key in shard.cells):
        parts = [_at_budget(s, key, zero) for s, zero in zip(shards, none, strict=True)]
        twins = [_pairs(s, key, zero) for s, zero in zip(shards, none, strict=True)]
        columns: dict[str, Any] = {n: joined([getattr(p, n) for p in parts]) for n in CELL_COLUMNS}
        cells[key] = replace(
            _empty_cell(key[0], key[1], none[0]),
            highest=max(p.highest for p in parts),
            least=min(p.least for p in parts),
            **columns,
        )
        pairs[key] = (joined([t[0] for t in twins]), joined([t[1] for t in twins]))
    parallel = np.concatenate([shard.parallel for shard in shards])[joined.order]
    return Shard(events, cells, pairs, parallel, facts, None)


CELL_COLUMNS = ("n", "k", "bill_n", "bill", "residual", "settled")
"""Arrays of a cell, one entry a task."""


def _events(shard: Shard, *, greedy: bool, unclassified: bool) -> dict[str, Events]:
    """Choose among counts that only the whole run decides between."""
    found = {stage: e for stage, e in shard.events.items() if "!" not in stage}
    for stage, e in shard.events.items():
        name, mark = stage.partition("!")[0], stage[stage.find("!") :]
        if (mark == IF_GREEDY and greedy) or (mark == IF_UNCLASSIFIED and unclassified):
            found[name] = e
    return found


def _ways(facts: Facts, majority_k: int) -> dict[int, str]:
    """Votes of the majority arm to the way in which all its pluralities can be told."""
    out = {}
    for k in range(1, min(majority_k, MAX_VOTES) + 1, 2):
        # The mark knows canonical outputs; hashes know bytes, and are all there is for fewer votes than were cast.
        for way in (MARKS, OUTPUTS):
            if facts.sums.get(("unknown", "A1", k, way)) == 0.0:
                out[k] = way
                break
    return out


def _cells(
    shard: Shard, ways: Mapping[int, str], b_max: int
) -> tuple[dict[tuple[str, int], ArmAtBudget], dict[tuple[str, int], tuple[FloatArray, FloatArray]]]:
    """Arms at budgets, up to the largest at which they are known."""
    most = shard.facts.most
    cells: dict[tuple[str, int], ArmAtBudget] = {}
    pairs: dict[tuple[str, int], tuple[FloatArray, FloatArray]] = {}
    for k, way in ways.items():
        cell = shard.cells["A1", k, way]
        cells["A1", k] = replace(cell, greatest=cell.highest)
        pairs["A1", k] = shard.pairs["A1", max(ways), ways[max(ways)]]
    for arm in sorted({arm for arm, _, _ in shard.cells} - {"A1"}):
        attempts = int(most["attempts", arm])
        longest = attempts if arm in GATED else 1
        # Beyond its longest chain an arm is known only if no chain was still waiting for a retry there.
        settled = arm in GATED and shard.cells[arm, longest, ""].residual.sum() == 0
        for budget in range(1, (b_max if settled else min(b_max, longest)) + 1):
            cell = shard.cells[arm, min(budget, longest), ""]
            top = greatest_bill(cell.highest, most["first", arm], budget, attempts)
            cells[arm, budget] = replace(cell, budget=budget, greatest=top)
            pairs[arm, budget] = shard.pairs[arm, min(budget, longest), ""]
    return cells, pairs


def _seeds(facts: Facts, ways: Mapping[int, str]) -> tuple[SeedAnswers, ...]:
    way = f"{ways[max(ways)]} {max(ways)}" if ways else None
    out = []
    for key, n in facts.sums.items():
        if key[0] != "seed" or key[-1] != "n":
            continue
        _, arm, said, budget, seed, _ = key
        if arm == "A1" and said != way:
            continue
        k = facts.sums[(*key[:-1], "k")]
        executed = facts.sums.get(("executed", arm, said, seed), 0.0) > 0
        out.append(SeedAnswers(str(arm), int(budget), int(seed), n, k, executed))
    return tuple(sorted(out, key=lambda s: (s.arm, s.budget, s.replicate)))


def _seed_pairs(facts: Facts) -> dict[int, tuple[SeedPair, ...]]:
    out: dict[int, list[SeedPair]] = {}
    for key, n in facts.sums.items():
        if key[0] == "pair" and key[-1] == "n":
            _, _, budget, first, second, _ = key
            pair = SeedPair(int(first), int(second), round(n), facts.sums[(*key[:-1], "d")])
            out.setdefault(int(budget), []).append(pair)
    return {b: tuple(sorted(found, key=lambda p: (p.first, p.second))) for b, found in out.items()}


def _hazards(facts: Facts) -> tuple[Hazard, ...]:
    kinds = ("", "structural", "semantic", "unclassified")
    found = [
        Hazard(str(key[1]), str(key[2]) or None, int(key[3]), round(facts.sums[(*key[:-1], "k")]), round(n))
        for key, n in facts.sums.items()
        if key[0] == "hazard" and key[-1] == "n"
    ]
    return tuple(sorted(found, key=lambda h: (h.arm, kinds.index(h.error_class or ""), h.attempt)))


def _greedy(facts: Facts) -> GreedyFlips:
    names = ("redraws", "flips", "bytes", "reruns", "rerun_flips")
    return GreedyFlips(*(round(facts.sums.get(("greedy", name), 0.0)) for name in names))


def _pair_stages(parallel: FloatArray, gate: str, flags: bool) -> dict[str, Events]:
    """Pairs of parallel draws: after every wrong one, and after those that a verifier sends to retry.

    Where the truth is the gate, or no verifier looks, every wrong draw is sent back and the two are one.
    """
    drawn, correct, sent_back = parallel.T
    found = {"s_blind_pairs": pair_events("s_blind_pairs", drawn, correct, drawn - correct, "wrong")}
    if flags and gate != "truth":
        name = "s_blind_exchangeable"
        found[name] = pair_events(name, drawn, correct, sent_back, "wrong and sent to retry")
    return found


def assemble(
    shard: Shard, tasks: TaskList, *, gate: str, b_max: int, majority_k: int, draws: DrawColumns | None = None
) -> Tally:
    """Make the tally of a whole run.

    Parameters
    ----------
    shard
        Counts of all tasks under one condition.
    tasks
        The tasks in the same order.
    gate
        What sent a draw to retry.
    b_max, majority_k
        Largest budget and number of votes looked at.
    draws
        The draws, where they are at hand.
    """
    facts = shard.facts
    sums = facts.sums
    group = "a3" if sums.get(("initial", "a3", "all"), 0.0) > 0 else "small"
    drawn = sums.get(("initial", group, "all"), 0.0)
    greedy = drawn > 0 and sums[("initial", group, "greedy")] == drawn
    classes = {c for c in range(4) if sums.get(("answered", c), 0.0) > 0}
    unclassified = classes == {UNCLASSIFIED}
    events = _events(shard, greedy=greedy, unclassified=unclassified)
    events |= _pair_stages(shard.parallel, gate, sums.get(("has", "flags"), 0.0) > 0)
    ways = _ways(facts, majority_k)
    cells, pairs = _cells(shard, ways, b_max)
    longest = {str(key[1]): int(value) for key, value in facts.most.items() if key[0] == "attempts"}
    if ways:
        longest["A1"] = 1
    return Tally(
        tasks=tasks.tasks,
        family=tasks.family,
        families=tasks.families,
        gate=gate,
        repair_decoding="greedy" if greedy else "stochastic",
        unclassified=unclassified,
        has_flags=sums.get(("has", "flags"), 0.0) > 0,
        has_classes=sums.get(("has", "classes"), 0.0) > 0,
        events=events,
        arms=tuple(sorted(longest)),
        at_budget=cells,
        pairs=pairs,
        seeds=_seeds(facts, ways),
        seed_pairs=_seed_pairs(facts),
        hazards=_hazards(facts),
        parallel=shard.parallel,
        greedy=_greedy(facts),
        disagreeing_copies=round(sums.get(("greedy", "disagree"), 0.0)),
        greedy_observations=round(sums.get(("greedy", "observations"), 0.0)),
        longest=longest,
        draws=draws,
    )
