"""From draws to per-task counts: how many draws reached each stage, and how many events happened there.

Everything that is estimated later (hierarchical model, Bayesian bootstrap, cross-checks) sees these counts only.
Draws of one task in parallel are exchangeable, so no count depends on their logged order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from verdiv.estimators.chains import ArmAtBudget
from verdiv.estimators.events import Events
from verdiv.estimators.observations import DrawColumns, FloatArray, IntArray

__all__ = ["GreedyFlips", "Hazard", "SeedAnswers", "SeedPair", "Tally", "tally_draws"]


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
class GreedyFlips:
    """Greedy blind redraws of A2, and greedy reruns outside it."""

    redraws: int
    flips: int
    """Redraws whose ``correct`` differs from the draw they repeat."""
    bytes_differ: int
    """Redraws whose output differs, where outputs are hashed."""
    reruns: int
    """Greedy reruns, outside A2, of draws that the gate sent back."""
    rerun_flips: int


@dataclass(frozen=True)
class SeedAnswers:
    """Answers of an arm at one budget under one seed."""

    arm: str
    budget: int
    replicate: int
    n: float
    """Tasks with a scored answer."""
    k: float
    """Those with a correct one."""
    executed: bool
    """Whether any draw of the arm's chains under this seed was made, and not copied."""


@dataclass(frozen=True)
class SeedPair:
    """Two seeds of an arm at one budget over the tasks that both ran."""

    first: int
    second: int
    tasks: int
    difference: float
    """Correct answers under the first seed minus those under the second, summed over tasks."""


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
    has_flags: bool
    """Whether any draw was seen by a verifier."""
    has_classes: bool
    """Whether any error carries a class."""
    events: Mapping[str, Events]
    arms: tuple[str, ...]
    """Arms with an answer at some budget."""
    at_budget: Mapping[tuple[str, int], ArmAtBudget]
    pairs: Mapping[tuple[str, int], tuple[FloatArray, FloatArray]]
    """Replicates of an arm at a budget that are independent re-executions, and unordered pairs of them that differ;
    per task, shape ``(tasks,)`` each."""
    seeds: tuple[SeedAnswers, ...]
    """By arm, budget and replicate; of a majority, with most votes."""
    seed_pairs: Mapping[int, tuple[SeedPair, ...]]
    """Pairs of seeds of A3 by budget."""
    hazards: tuple[Hazard, ...]
    parallel: FloatArray
    """Columns N, c, d per task of stochastic initial draws: drawn, correct, wrong and flagged. Shape ``(tasks, 3)``."""
    greedy: GreedyFlips
    disagreeing_copies: int
    """Greedy observations whose records disagree in ``correct``."""
    greedy_observations: int
    """Greedy observations with two or more executed records."""
    longest: Mapping[str, int]
    """Arm to the attempts of its longest chain."""
    draws: DrawColumns | None = field(default=None, repr=False)
    """The draws, where they were counted here; None where the counts come from a file."""

    def answers(self, arm: str, budget: int) -> tuple[SeedAnswers, ...]:
        """Answers of an arm at a budget, seed by seed; beyond its longest chain those at that."""
        at = min(budget, self.longest.get(arm, 1))
        return tuple(s for s in self.seeds if s.arm == arm and s.budget == at)

    def seed_differences(self, budget: int) -> tuple[SeedPair, ...]:
        """Pairs of seeds of A3 at a budget; beyond its longest chain those at that."""
        return self.seed_pairs.get(min(budget, self.longest.get("A3", 1)), ())

    def has(self, stage: str) -> bool:
        """Whether any draw reached the stage."""
        return stage in self.events and self.events[stage].total_n > 0


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
    from verdiv.estimators.assemble import TaskList, assemble, halves
    from verdiv.estimators.shard import count_shard

    shard = count_shard(draws, gate=gate, b_max=b_max, condition=condition)
    family = np.zeros(len(draws.tasks), dtype=np.int64)
    family[draws.task] = draws.family
    tasks = TaskList(draws.tasks, family, draws.families)
    return assemble(halves([shard])[0], tasks, gate=gate, b_max=b_max, majority_k=majority_k, draws=draws)
