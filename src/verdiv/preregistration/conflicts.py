"""Places where the parts of one registration contradict each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from verdiv.preregistration.rules import RULE_IDS

if TYPE_CHECKING:
    from verdiv.preregistration.plan import Preregistration

__all__ = ["Conflict", "find_conflicts"]

WEIGHT_TOLERANCE = 1e-9
"""How far the family weights may miss a sum of 1, and a price the price it repeats."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """One contradiction, at the field that is best changed."""

    path: tuple[str | int, ...]
    """Keys from the top of the file to the field."""
    expected: str
    got: str
    remedy: str

    @property
    def dotted(self) -> str:
        """The path as one dotted name."""
        return ".".join(str(key) for key in self.path)


def _families(plan: Preregistration) -> Iterator[Conflict]:
    total = math.fsum(plan.families.values())
    if abs(total - 1.0) > WEIGHT_TOLERANCE:
        yield Conflict(
            ("families",), "weights that sum to 1", f"a sum of {total!r}", "divide each by their sum"
        )
    counts = plan.suite.tasks_by_family
    if counts is None:
        return
    if set(counts) != set(plan.families):
        odd = sorted(set(counts) ^ set(plan.families))
        yield Conflict(
            ("suite", "tasks_by_family"),
            "the same families as [families]",
            f"{', '.join(odd)} in one of them only",
            "name each family in both tables",
        )
    if sum(counts.values()) != plan.suite.tasks:
        yield Conflict(
            ("suite", "tasks"),
            f"the sum of tasks_by_family, {sum(counts.values())}",
            str(plan.suite.tasks),
            "correct the number of tasks",
        )


def _arms(plan: Preregistration) -> Iterator[Conflict]:
    for name, arm in plan.arms.items():
        if arm.tier not in plan.tiers:
            yield Conflict(
                ("arms", name, "tier"),
                f"a tier of [tiers]: {', '.join(plan.tiers) or 'none is named'}",
                arm.tier,
                "name a tier or add it",
            )
        if arm.prompt in ("blind", "feedback") and arm.budget > plan.max_budget:
            yield Conflict(
                ("arms", name, "budget"),
                f"at most max_budget, {plan.max_budget}",
                str(arm.budget),
                "raise max_budget or lower the budget",
            )
        if arm.shares_initial_with is not None:
            yield from _sharing(plan, name, arm.shares_initial_with)
    vote = plan.arms.get("A1")
    if vote is not None and vote.k is not None and vote.k != plan.rules.P2.k:
        yield Conflict(
            ("rules", "P2", "k"), f"the votes of A1, {vote.k}", str(plan.rules.P2.k), "make both the same"
        )


def _sharing(plan: Preregistration, name: str, other: str) -> Iterator[Conflict]:
    path = ("arms", name, "shares_initial_with")
    if other not in plan.arms or other == name:
        yield Conflict(path, "another arm of [arms]", other, "name the arm that makes the draw")
        return
    one, two = plan.arms[name], plan.arms[other]
    if (one.tier, one.temperature) != (two.tier, two.temperature) or one.temperature != 0:
        yield Conflict(
            path,
            "an arm of the same tier, both at temperature 0",
            f"{other} ({two.tier}, temperature {two.temperature}) for {one.tier}, {one.temperature}",
            "only deterministic first draws of one tier can be shared",
        )


def _budgets(plan: Preregistration) -> Iterator[Conflict]:
    if plan.break_even_budget > plan.max_budget:
        yield Conflict(
            ("break_even_budget",),
            f"at most max_budget, {plan.max_budget}",
            str(plan.break_even_budget),
            "raise max_budget or lower it",
        )


def _prices(plan: Preregistration) -> Iterator[Conflict]:
    for tier, price in (("small", 1.0), ("teacher", plan.rate_card.rho)):
        if tier in plan.tiers and not math.isclose(
            plan.tiers[tier].cost_units, price, rel_tol=WEIGHT_TOLERANCE
        ):
            source = "1, the unit" if tier == "small" else f"rate_card.rho, {price!r}"
            yield Conflict(
                ("tiers", tier, "cost_units"), source, repr(plan.tiers[tier].cost_units), "make both the same"
            )


def _names(plan: Preregistration) -> Iterator[Conflict]:
    for rule in plan.hypotheses:
        if rule not in RULE_IDS:
            yield Conflict(
                ("hypotheses", rule), f"a rule: {', '.join(RULE_IDS)}", rule, "rename or remove it"
            )
    if "primary" in plan.conditions:
        yield Conflict(("conditions", "primary"), "conditions beside primary", "primary", "remove the entry")
    for name, condition in plan.conditions.items():
        for arm in condition.arms:
            if arm not in plan.arms:
                yield Conflict(
                    ("conditions", name, "arms"), f"arms of [arms]: {', '.join(plan.arms)}", arm, "name one"
                )
        for tier in condition.precision:
            if tier not in plan.tiers:
                yield Conflict(
                    ("conditions", name, "precision"), f"a tier: {', '.join(plan.tiers)}", tier, "name one"
                )
    for rule, named in (("R3", plan.rules.R3.condition), ("R4", plan.rules.R4.condition)):
        if named == "primary" or (plan.conditions and named not in plan.conditions):
            known = ", ".join(plan.conditions) or "any but primary"
            yield Conflict(
                ("rules", rule, "condition"), f"a condition beside primary: {known}", named, "name one"
            )


def _repeats(plan: Preregistration) -> Iterator[Conflict]:
    if len(set(plan.seeds)) != len(plan.seeds):
        yield Conflict(("seeds",), "seeds that differ", str(list(plan.seeds)), "drop the repeated ones")
    ids = [rule.id for rule in plan.exclusions]
    if len(set(ids)) != len(ids):
        yield Conflict(("exclusions",), "ids that differ", ", ".join(ids), "rename the repeated ones")


_LOOKS: tuple[Callable[[Preregistration], Iterator[Conflict]], ...] = (
    _families,
    _arms,
    _budgets,
    _prices,
    _names,
    _repeats,
)


def find_conflicts(plan: Preregistration) -> list[Conflict]:
    """Return every contradiction in a plan whose single fields are sound, in a fixed order."""
    return [conflict for look in _LOOKS for conflict in look(plan)]
