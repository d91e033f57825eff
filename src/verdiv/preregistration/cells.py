"""The cells of a registered run: which arms run under which conditions, how often, and with how many draws."""

from __future__ import annotations

from dataclasses import dataclass

from verdiv.preregistration.plan import Preregistration

__all__ = ["PRIMARY", "PlannedArm", "planned_arms"]

PRIMARY = "primary"
"""Condition that every arm runs under."""


@dataclass(frozen=True, slots=True)
class PlannedArm:
    """One arm under one condition."""

    condition: str
    arm: str
    replicates: int
    """Chains a task."""
    least: int
    """Draws that every chain makes; the first one may be a copy."""
    most: int
    """Draws that a chain makes at most: its budget."""
    copies: int
    """Replicates a task whose first draw is a copy of another arm's."""

    @property
    def gated(self) -> bool:
        """Whether a chain may end before its budget."""
        return self.least < self.most


def planned_arms(plan: Preregistration) -> tuple[PlannedArm, ...]:
    """Lay out a registered run, condition by condition.

    Every arm runs once a seed. An arm that others share their greedy first draw with runs once, and again for
    each registered greedy rerun; where it lacks a replicate, the first of those others makes the draw and the
    rest copy it.

    Examples
    --------
    >>> from verdiv.preregistration import read_preregistration
    >>> [(a.arm, a.replicates, a.copies) for a in planned_arms(read_preregistration("verifiers-dividend"))[:4]]
    [('A0', 2, 0), ('A1', 3, 0), ('A2', 3, 2), ('A2s', 3, 0)]
    """
    found = []
    conditions = {PRIMARY: tuple(plan.arms)}
    for name, condition in plan.conditions.items():
        conditions[name] = condition.arms or tuple(plan.arms)
    seeds = max(1, len(plan.seeds))
    for condition_name, named in conditions.items():
        here = [arm for arm in plan.arms if arm in named]
        sources = {plan.arms[arm].shares_initial_with for arm in here} - {None}
        runs = {arm: 1 + plan.greedy_reruns if arm in sources else seeds for arm in here}
        for arm in here:
            part = plan.arms[arm]
            group = part.shares_initial_with or (arm if arm in sources else None)
            copies = 0
            if group is not None:
                for replicate in range(runs[arm]):
                    sharing = [
                        other
                        for other in here
                        if (other == group or plan.arms[other].shares_initial_with == group)
                        and replicate < runs[other]
                    ]
                    copies += sharing[0] != arm
            least = 1 if part.prompt in ("blind", "feedback") else part.budget
            found.append(PlannedArm(condition_name, arm, runs[arm], least, part.budget, copies))
    return tuple(found)
