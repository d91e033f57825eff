"""What a registration says: suite, tiers, arms, prices, registered values, priors, rules and conduct.

All records are frozen pydantic models that refuse unknown fields, wrong types, NaN and infinities.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, PrivateAttr, model_validator
from pydantic_core import PydanticCustomError

from verdiv.preregistration.conflicts import Conflict, find_conflicts
from verdiv.preregistration.parts import (
    ArmPlan,
    ConditionPlan,
    DecisionPlan,
    ExclusionRule,
    InfrastructureRetries,
    MissingData,
    Name,
    Plan,
    PriorPlan,
    RateCardPlan,
    RegisteredValues,
    Share,
    StoppingRule,
    Suite,
    Text,
    Tier,
)
from verdiv.preregistration.rules import RulesPlan
from verdiv.runlog.records import Gate

__all__ = ["PREREGISTRATION_SCHEMA", "Preregistration", "RegisteredPlan"]

PREREGISTRATION_SCHEMA = 1
"""Integer version of the registration format; a newer one is refused."""


class Preregistration(Plan):
    """A plan: registered before the run, or the default one of an exploratory analysis.

    Notes
    -----
    ``digest`` and ``source`` belong to the file, not to the plan, and stand outside its fields.
    """

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    schema_version: Literal[1] = Field(default=1, alias="schema")
    """Version of the registration format."""
    title: Text
    authors: tuple[Text, ...] = Field(max_length=200)
    seen_before: Text
    """What the authors had seen of such data before they registered; "nothing" is an answer."""
    hypotheses: dict[str, Text] = Field(max_length=10)
    """Rule id to the hypothesis in words."""
    tiers: dict[Name, Tier] = Field(max_length=20)
    suite: Suite
    families: dict[Name, Share] = Field(min_length=1, max_length=100_000)
    """Family to its weight in the suite; the weights sum to 1."""
    arms: dict[Name, ArmPlan] = Field(max_length=50)
    conditions: dict[Name, ConditionPlan] = Field(default={}, max_length=20)
    """Conditions beside ``primary``."""
    seeds: tuple[int, ...] = Field(max_length=1000)
    """Fixed seeds of the replicates, in order; replicate r uses seeds[r]."""
    greedy_reruns: Annotated[int, Field(ge=0, le=1000)] = 1
    """Further greedy initial draws a task, outside the arms, for the item-flip floor; a count."""
    rate_card: RateCardPlan
    gate: Gate
    """What sends a draw to retry."""
    deployment_gate: Share = 0.85
    """Quality that a policy must reach to be deployed; 0 to 1."""
    break_even_budget: Annotated[int, Field(ge=1, le=1000)] = 2
    """Registered break-even budget B*; draws."""
    max_budget: Annotated[int, Field(ge=1, le=1000)] = 5
    """Largest budget B_max that is priced and searched; draws."""
    estimands: RegisteredValues = RegisteredValues()
    priors: PriorPlan = PriorPlan()
    decision: DecisionPlan = DecisionPlan()
    rules: RulesPlan
    exclusions: tuple[ExclusionRule, ...] = Field(default=(), max_length=100)
    retries: InfrastructureRetries = InfrastructureRetries()
    stopping: StoppingRule
    missing_data: MissingData = MissingData()

    _digest: str | None = PrivateAttr(default=None)
    _source: str | None = PrivateAttr(default=None)

    @property
    def digest(self) -> str | None:
        """SHA-256 of the bytes of the file, in hex; None for a plan that no file holds."""
        return self._digest

    @property
    def source(self) -> str | None:
        """Path or shipped name that the plan was read from."""
        return self._source

    @property
    def registered(self) -> bool:
        """True for a plan that was read from a file, False for the default one."""
        return self._digest is not None

    @property
    def worst_case_units(self) -> float:
        """Most that one task can cost: each arm's budget at its tier's price, in units of one small draw."""
        return sum(arm.budget * self.tiers[arm.tier].cost_units for arm in self.arms.values())

    def with_origin(self, *, source: str, digest: str) -> Self:
        """Return the same plan, marked as read from ``source`` with ``digest``."""
        copy = self.model_copy()
        copy._source, copy._digest = source, digest
        return copy

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        conflicts: list[Conflict] = find_conflicts(self)
        if conflicts:
            said = "; ".join(f"{c.dotted}: expected {c.expected}, got {c.got}" for c in conflicts)
            raise PydanticCustomError(
                "plan_conflict", "{said}", {"said": said, "conflicts": tuple(conflicts)}
            )
        return self


class RegisteredPlan(Preregistration):
    """A plan as a registration file must state it: nobody and nothing may be left out."""

    authors: tuple[Text, ...] = Field(min_length=1, max_length=200)
    tiers: dict[Name, Tier] = Field(min_length=1, max_length=20)
    arms: dict[Name, ArmPlan] = Field(min_length=1, max_length=50)
    seeds: tuple[int, ...] = Field(min_length=1, max_length=1000)
    hypotheses: dict[str, Text] = Field(min_length=10, max_length=10)
    schema_version: Literal[1] = Field(alias="schema")
