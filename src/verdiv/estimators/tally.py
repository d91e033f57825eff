"""From draws to per-task counts: how many draws reached each stage, and how many events happened there.

Everything that is estimated later (hierarchical model, Bayesian bootstrap, cross-checks) sees these counts only.
Draws of one task in parallel are exchangeable, so no count depends on their logged order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from verdiv.estimators.chains import ArmAtBudget, Chains, chains_of, majority_at
from verdiv.estimators.events import (
    CLASS_NAMES,
    TEACHER,
    Counter,
    Events,
    initial_events,
    late_events,
    pair_events,
    retry_events,
    split_halves,
)
from verdiv.estimators.observations import (
    KINDS,
    SEMANTIC,
    STRUCTURAL,
    UNCLASSIFIED,
    BoolArray,
    DrawColumns,
    FloatArray,
    IntArray,
)

__all__ = ["Hazard", "Tally", "tally_draws"]

GATED = ("A2", "A2s", "A3", "A5")


@dataclass(frozen=True)
class Hazard:
    """Success of an answer at one attempt, among chains that made it."""

    arm: str
    error_class: str | None
    """Class of the answered error, None on blind redraws."""
    attempt: int
    k: int
    n: int


@dataclass(frozen=True)
class Tally:
    """All counts of a run that estimators need."""

    tasks: tuple[str, ...]
    family: IntArray
    """Family index of each task, shape ``(tasks,)``."""
    families: tuple[str, ...]
    gate: str
    repair_decoding: Literal["greedy", "stochastic"]
    """Decoding of the initial draws that the feedback arm uses."""
    unclassified: bool
    """True where answered errors carry no class, so that s2 and phi are computed on all of them."""
    events: Mapping[str, Events]
    chains: Mapping[str, Chains]
    at_budget: Mapping[tuple[str, int], ArmAtBudget]
    hazards: tuple[Hazard, ...]
    parallel: FloatArray
    """Columns N, c, d per task of stochastic initial draws: drawn, correct, wrong and flagged. Shape ``(tasks, 3)``."""
    disagreeing_copies: int
    """Greedy observations whose records disagree in ``correct``."""
    greedy_observations: int
    """Greedy observations with two or more executed records."""
    draws: DrawColumns = field(repr=False)

    def has(self, stage: str) -> bool:
        """Whether any draw reached the stage."""
        return stage in self.events and self.events[stage].total_n > 0


def _hazards(draws: DrawColumns, ok: BoolArray) -> tuple[Hazard, ...]:
    found = []
    for arm in sorted({str(a) for a in draws.arm}):
        for kind, classes in (("blind", (0,)), ("feedback", (STRUCTURAL, SEMANTIC, UNCLASSIFIED))):
            for cls in classes:
                mask = ok & (draws.arm == arm) & (draws.kind == KINDS[kind])
                if kind == "feedback":
                    mask &= draws.answered == cls
                attempts = draws.attempt[mask]
                for attempt in np.unique(attempts).tolist():
                    at = mask & (draws.attempt == attempt)
                    found.append(
                        Hazard(
                            arm,
                            CLASS_NAMES.get(cls),
                            int(attempt),
                            int((draws.correct[at] == 1).sum()),
                            int(at.sum()),
                        )
                    )
    return tuple(found)


def tally_draws(
    draws: DrawColumns, *, gate: str, b_max: int = 5, majority_k: int = 5, condition: str = "primary"
) -> Tally:
    """Count what every estimator needs.

    Parameters
    ----------
    draws
        All draws of the run.
    gate
        What sent a draw to retry: ``verifier``, ``truth`` or ``none``.
    b_max
        Largest budget looked at.
    majority_k
        Draws of the majority arm.
    condition
        Experimental condition counted; estimands use ``primary`` only.

    Returns
    -------
    Tally
        Counts per task.
    """
    ok = draws.measured & (draws.condition == condition)
    a3_first = ok & (draws.arm == "A3") & (draws.kind == KINDS["initial"])
    small_initial = ok & (draws.tier != TEACHER) & (draws.kind == KINDS["initial"])
    reference = a3_first if a3_first.any() else small_initial
    temps = draws.temperature[reference]
    repair_greedy = bool(len(temps)) and bool((temps == 0.0).all())
    events: dict[str, Events] = {}
    pool = initial_events(draws, ok, repair_greedy, events)
    unclassified = retry_events(draws, ok, events)
    late_events(draws, ok, pool, b_max, unclassified, events)
    split_halves(draws, ok, pool, events)
    chains: dict[str, Chains] = {}
    at_budget: dict[tuple[str, int], ArmAtBudget] = {}
    for arm in sorted({str(a) for a in draws.arm[draws.condition == condition]}):
        if arm == "A1":
            for k in range(1, majority_k + 1, 2):
                found = majority_at(draws, arm, k, condition=condition)
                if found is not None:
                    at_budget[arm, k], chains[arm] = found
            continue
        made = chains_of(draws, arm, gate=gate if arm in GATED else "none", condition=condition)
        if made is None:
            continue
        chains[arm] = made
        if arm not in GATED:
            at_budget[arm, 1] = made.at(1)
            continue
        # Beyond its longest chain an arm is known only if no chain was still waiting for a retry there.
        settled = made.at(made.attempts).residual.sum() == 0
        for budget in range(1, (b_max if settled else min(b_max, made.attempts)) + 1):
            at_budget[arm, budget] = made.at(budget)
    stochastic = ~(draws.temperature == 0.0)
    parallel_rows = Counter(draws, small_initial & stochastic)
    correct, flagged_wrong = draws.correct == 1, (draws.correct == 0) & (draws.flagged == 1)
    if gate == "truth":
        flagged_wrong = draws.correct == 0
    n_par, c_par = parallel_rows.base, parallel_rows.count(correct)
    parallel = np.stack([n_par, c_par, parallel_rows.count(flagged_wrong)], axis=1)
    events["s_blind_pairs"] = pair_events(n_par, c_par)
    copies, disagree = _disagreeing(draws, pool)
    return Tally(
        tasks=draws.tasks,
        family=_task_families(draws),
        families=draws.families,
        gate=gate,
        repair_decoding="greedy" if repair_greedy else "stochastic",
        unclassified=unclassified,
        events=events,
        chains=chains,
        at_budget=at_budget,
        hazards=_hazards(draws, ok),
        parallel=parallel,
        disagreeing_copies=disagree,
        greedy_observations=copies,
        draws=draws,
    )


def _task_families(draws: DrawColumns) -> IntArray:
    family = np.zeros(len(draws.tasks), dtype=np.int64)
    family[draws.task] = draws.family
    return family


def _disagreeing(draws: DrawColumns, pool: Counter) -> tuple[int, int]:
    """Greedy initial observations recorded more than once by execution, and how many of them disagree."""
    executed = (draws.source[pool.rows] == pool.rows) & (draws.temperature[pool.rows] == 0.0)
    if not executed.any():
        return 0, 0
    groups = pool.groups[executed]
    size = np.bincount(groups)
    right = np.bincount(groups, weights=(draws.correct[pool.rows[executed]] == 1).astype(float))
    repeated = size >= 2
    return int(repeated.sum()), int((repeated & (right > 0) & (right < size)).sum())
