"""What a run does: how many tasks, which arms with which budgets, seeds, decoding and conditions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

from verdiv.errors import Fault, UsageRefused
from verdiv.protocol.simulator.rates import between, whole

__all__ = ["ARM_ORDER", "MAX_DRAWS", "ArmDesign", "ConditionDesign", "Design"]

ARM_ORDER = ("A0", "A2", "A3", "A1", "A2s", "A4", "A5")
"""Arms in the order in which a task is run; those that share their greedy first draw come first."""

MAX_DRAWS = 200_000_000
"""Largest worst-case number of draws that is simulated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmDesign:
    """One arm."""

    name: str
    """One of :data:`ARM_ORDER`."""
    budget: int
    """Draws a chain may make at most; for A1 the number of votes k."""
    stochastic: bool
    """Sampled at the design's temperature; otherwise greedy."""
    replicates: int
    """Chains a task."""

    @property
    def teacher(self) -> bool:
        """Whether the teacher draws."""
        return self.name in ("A4", "A5")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionDesign:
    """A further condition and the arms that run under it."""

    name: str
    arms: tuple[str, ...] = ("A0", "A3")


def _paper_budgets() -> dict[str, int]:
    return {"A0": 1, "A1": 5, "A2": 5, "A2s": 5, "A3": 5, "A4": 1, "A5": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """A protocol run: by default the seven arms of "The Verifier's Dividend" on 40 tasks under three seeds.

    Greedy arms run under every seed as well: at temperature 0 these are reruns of the same prompts. A0 runs
    once and is rerun ``greedy_reruns`` times, for the item-flip floor. A2 and (when greedy) A3 hold a copy of
    A0's first draw of the same replicate, where A0 has that replicate; otherwise the first of them that runs
    draws it.

    Raises
    ------
    UsageRefused
        If a value is out of range; all faults are reported together.
    """

    tasks: int = 40
    seeds: tuple[int, ...] = (1, 2, 3)
    """One replicate a seed."""
    budgets: dict[str, int] = field(default_factory=_paper_budgets)
    """Arm to its budget; an arm left out is not run."""
    greedy_reruns: int = 1
    """Reruns of A0 beyond the first run."""
    a3_stochastic: bool = False
    """A3 samples its first draw and its repairs, so that its replicates carry information."""
    a5_stochastic: bool = True
    """A5 samples; its closed form ``q_T (1 - p_dT^B)/(1 - p_dT)`` holds only then, as greedy redraws are flat."""
    temperature: float = 0.7
    """Temperature of the stochastic arms."""
    conditions: tuple[ConditionDesign, ...] = ()

    def __post_init__(self) -> None:
        """Refuse values out of range, all at once."""
        found = self.faults()
        if found:
            raise UsageRefused("design refused", found)

    def faults(self) -> list[Fault]:
        """List what is wrong with the design."""
        where = "design"
        found = [
            *whole(where, "tasks", self.tasks, 1, 10_000_000),
            *whole(where, "greedy_reruns", self.greedy_reruns, 0, 1000),
            *between(where, "temperature", self.temperature, 1e-6, 100.0),
            *whole(where, "seeds", len(self.seeds), 1, 1000),
        ]
        if len(set(self.seeds)) != len(self.seeds):
            found.append(
                Fault(where, "distinct seeds", repr(self.seeds), "drop the repeated one", field="seeds")
            )
        for name, budget in self.budgets.items():
            if name not in ARM_ORDER:
                found.append(
                    Fault(
                        where,
                        "an arm among " + ", ".join(ARM_ORDER),
                        repr(name),
                        "rename it",
                        field="budgets",
                    )
                )
            found += whole(where, f"budgets[{name!r}]", budget, 1, 64)
            if name in ("A0", "A4") and budget != 1:
                found.append(
                    Fault(where, "1, a one-shot arm", str(budget), "set it to 1", field=f"budgets[{name!r}]")
                )
        if not self.budgets:
            found.append(Fault(where, "at least one arm", "none", "add one", field="budgets"))
        names = [condition.name for condition in self.conditions]
        if len(set(names)) != len(names) or "primary" in names:
            found.append(
                Fault(
                    where,
                    "distinct conditions beside 'primary'",
                    repr(names),
                    "rename one",
                    field="conditions",
                )
            )
        for condition in self.conditions:
            if len(condition.name) > 200 or not condition.name or not condition.name.isprintable():
                found.append(
                    Fault(where, "a printable name", repr(condition.name), "rename it", field="conditions")
                )
            unknown = [arm for arm in condition.arms if arm not in self.budgets]
            if unknown:
                found.append(
                    Fault(
                        where,
                        "arms of the design",
                        repr(unknown),
                        "add them to the budgets",
                        field="conditions",
                    )
                )
        if not found and self.most_draws > MAX_DRAWS:
            found.append(
                Fault(
                    where, f"at most {MAX_DRAWS} draws", str(self.most_draws), "lower tasks, seeds or budgets"
                )
            )
        return found

    @property
    def replicates(self) -> int:
        """Number of seeds."""
        return len(self.seeds)

    @property
    def most_draws(self) -> int:
        """Draws of the run if every chain used its whole budget."""
        runs = [("primary", ARM_ORDER), *((c.name, c.arms) for c in self.conditions)]
        arms = (arm for _, names in runs for arm in self.arms(names))
        return self.tasks * sum(arm.budget * arm.replicates for arm in arms)

    def arms(self, names: tuple[str, ...] = ARM_ORDER) -> tuple[ArmDesign, ...]:
        """Return the arms that are run, in running order.

        Parameters
        ----------
        names
            Restrict to these arms.

        Examples
        --------
        >>> [(arm.name, arm.replicates) for arm in Design().arms(("A0", "A3"))]
        [('A0', 2), ('A3', 3)]
        """
        stochastic = {"A1": True, "A2s": True, "A3": self.a3_stochastic, "A5": self.a5_stochastic}
        return tuple(
            ArmDesign(
                name=name,
                budget=self.budgets[name],
                stochastic=stochastic.get(name, False),
                replicates=1 + self.greedy_reruns if name == "A0" else self.replicates,
            )
            for name in ARM_ORDER
            if name in self.budgets and name in names
        )

    def with_conditions(self, *names: str) -> Self:
        """Return the design with A0 and A3 run under further conditions too."""
        return replace(self, conditions=tuple(ConditionDesign(name=name) for name in names))
