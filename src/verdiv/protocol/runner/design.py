"""From a registration and a suite to the chains that must run, in the order in which they run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from verdiv.errors import Fault, UsageRefused
from verdiv.preregistration import Preregistration
from verdiv.protocol.suite.suitefile import Suite

__all__ = ["Chain", "RunDesign", "design_run", "draw_seed"]

PRIMARY = "primary"


@dataclass(frozen=True, slots=True)
class Chain:
    """What one arm does with one task in one replicate under one condition."""

    condition: str
    """Experimental condition."""
    arm: str
    """Name of the arm."""
    task_id: str
    """The task."""
    replicate: int
    """Index of the fixed seed, 0-based; beyond the seeds, a rerun."""
    tier: str
    """Who draws."""
    budget: int
    """Most draws."""
    temperature: float
    """Sampling temperature; 0 is greedy."""
    top_p: float | None
    """Nucleus share, the server's default where None."""
    max_tokens: int
    """Most tokens of a reply."""
    redraw: Literal["initial", "blind", "feedback", "none"]
    """What draws after the first are shown; ``initial`` is a vote."""
    price: float
    """Price of one draw, in units of one small draw."""
    seed: int | None
    """Registered seed; None in a rerun."""
    copies: str | None
    """Draw that serves as this chain's first one, None where it makes its own."""

    def draw_id(self, attempt: int) -> str:
        """Name the draw of an attempt; the same cell always has the same name."""
        return f"{self.condition}/{self.arm}/{self.task_id}/r{self.replicate}/a{attempt}"


@dataclass(frozen=True)
class RunDesign:
    """All chains of a run."""

    chains: tuple[Chain, ...]
    """In running order: condition, replicate, task, arm, so that drift in time touches all arms alike."""
    concurrency: dict[str, int]
    """Condition to the number of requests kept in flight."""
    bound: float | None
    """Declared upper bound of the whole run's bill in units of one small draw; None without one."""

    @property
    def worst_case(self) -> float:
        """Bill if every chain spends its whole budget, shared draws once."""
        return sum(chain.price * (chain.budget - (chain.copies is not None)) for chain in self.chains)


def draw_seed(seed: int | None, arm: str, task_id: str, attempt: int) -> int | None:
    """Derive the seed that is sent to the server for one draw.

    Draws of one prompt must differ in their seed, or a vote would be one draw repeated, and tasks must
    differ too, or their luck would be shared. So the registered seed is spread over arms, tasks and attempts
    by ``SHA-256("seed/arm/task/attempt")``, of which 31 bits are kept.

    Parameters
    ----------
    seed
        Registered seed of the replicate.
    arm
        Name of the arm.
    task_id
        The task.
    attempt
        1-based attempt.

    Returns
    -------
    int or None
        0 to 2³¹ − 1; None where there is no registered seed.

    Examples
    --------
    >>> draw_seed(1, "A1", "date-0001", 1) == draw_seed(1, "A1", "date-0001", 2)
    False
    >>> draw_seed(None, "A0", "date-0001", 1) is None
    True
    """
    if seed is None:
        return None
    digest = hashlib.sha256(f"{seed}/{arm}/{task_id}/{attempt}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def design_run(
    plan: Preregistration, suite: Suite, *, concurrency: int = 1, max_tokens: int = 96
) -> RunDesign:
    """Lay out the chains of a registered run.

    Greedy arms run under every seed too: at temperature 0 these are reruns of the same prompts. An arm that
    others share their first draw with runs once and is rerun ``greedy_reruns`` times; where it has no such
    replicate, the first arm in order that would share draws instead, and the others copy that.

    Parameters
    ----------
    plan
        The registration.
    suite
        The suite it names.
    concurrency
        Requests in flight under conditions that register none.
    max_tokens
        Most tokens of a reply in arms that register none.

    Returns
    -------
    RunDesign
        Chains in running order.

    Raises
    ------
    UsageRefused
        When the suite is not the registered one, or an arm registers no temperature.
    """
    _check(plan, suite)
    conditions = {PRIMARY: (tuple(plan.arms), concurrency)}
    for name, condition in plan.conditions.items():
        conditions[name] = (condition.arms or tuple(plan.arms), condition.in_flight or concurrency)
    chains = [
        chain
        for name, (arms, _) in conditions.items()
        for chain in _condition_chains(plan, suite, name, arms, max_tokens)
    ]
    card = plan.rate_card.declared_bound_units
    runs = len(suite) * max(1, len(plan.seeds)) * len(conditions)
    return RunDesign(
        tuple(chains),
        {name: width for name, (_, width) in conditions.items()},
        None if card is None else card * runs,
    )


def _check(plan: Preregistration, suite: Suite) -> None:
    """Refuse a suite or arms that the registration cannot be run with."""
    faults = []
    if plan.suite.sha256 is not None and plan.suite.sha256 != suite.digest:
        faults.append(
            Fault(
                "suite", f"the registered digest {plan.suite.sha256}", suite.digest,
                "run the registered suite, or register this one", field="sha256",
            )
        )  # fmt: skip
    if plan.suite.tasks != len(suite):
        faults.append(
            Fault(
                "suite",
                f"{plan.suite.tasks} tasks",
                str(len(suite)),
                "run the registered suite",
                field="tasks",
            )
        )
    unknown = {task.family for task in suite.tasks} - set(plan.families)
    if unknown:
        faults.append(
            Fault(
                "suite", "registered families", ", ".join(sorted(unknown)), "register them", field="families"
            )
        )
    for name, arm in plan.arms.items():
        if arm.temperature is None:
            faults.append(
                Fault(
                    "registration", "a temperature", "none", "register it", field=f"arms.{name}.temperature"
                )
            )
    missing = {arm.tier for arm in plan.arms.values()} - set(suite.prompts)
    if missing:
        faults.append(
            Fault(
                "suite",
                "a prompt for each tier",
                f"none for {', '.join(sorted(missing))}",
                "add it",
                field="prompts",
            )
        )
    if faults:
        raise UsageRefused("the registered run cannot be laid out", faults)


def _condition_chains(
    plan: Preregistration, suite: Suite, condition: str, arms: Sequence[str], max_tokens: int
) -> Iterator[Chain]:
    """Lay out the chains of one condition."""
    sources = {plan.arms[name].shares_initial_with for name in arms} - {None}
    for replicate in range(max(len(plan.seeds), 1 + plan.greedy_reruns)):
        seed = plan.seeds[replicate] if replicate < len(plan.seeds) else None
        present = [
            name
            for name in plan.arms
            if name in arms
            and replicate < (1 + plan.greedy_reruns if name in sources else max(1, len(plan.seeds)))
        ]
        for task in suite.tasks:
            first_of: dict[str, str] = {}
            for name in present:
                arm = plan.arms[name]
                group = arm.shares_initial_with or name
                shares = name in sources or arm.shares_initial_with is not None
                chain = Chain(
                    condition=condition,
                    arm=name,
                    task_id=task.task_id,
                    replicate=replicate,
                    tier=arm.tier,
                    budget=arm.budget,
                    temperature=arm.temperature or 0.0,
                    top_p=arm.top_p,
                    max_tokens=arm.max_tokens or max_tokens,
                    redraw=arm.prompt,
                    price=plan.tiers[arm.tier].cost_units,
                    seed=seed,
                    copies=first_of.get(group) if shares else None,
                )
                if shares:
                    first_of.setdefault(group, chain.draw_id(1))
                yield chain
