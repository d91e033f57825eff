"""The parts of a registration, one frozen record each."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = [
    "ArmPlan",
    "ConditionPlan",
    "DecisionPlan",
    "ExclusionRule",
    "InfrastructureRetries",
    "MissingData",
    "Name",
    "Plan",
    "PriorPlan",
    "RateCardPlan",
    "RegisteredValues",
    "Share",
    "StoppingRule",
    "Suite",
    "Text",
    "Tier",
]

Text = Annotated[str, Field(min_length=1, max_length=20_000)]
"""Words for the reader of a report."""
Name = Annotated[str, Field(min_length=1, max_length=200)]
"""Name of an arm, tier, family or condition, as the log spells it."""
Share = Annotated[float, Field(ge=0, le=1)]
"""A probability or a share."""
Positive = Annotated[float, Field(gt=0, le=1e12)]
Budget = Annotated[int, Field(ge=1, le=1000)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Plan(BaseModel):
    """Settings shared by every part of a registration: frozen, strict, nothing unknown, no NaN."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


class Tier(Plan):
    """One model that draws."""

    model: Text
    precision: Text | None = None
    """Numeric format of the weights."""
    cost_units: Positive
    """Price of one draw in units of one small draw."""


class Suite(Plan):
    """The tasks."""

    path: Text | None = None
    """Where the suite lies, relative to the registration; words where it is not a file."""
    sha256: Digest | None = None
    """SHA-256 of the suite file, in hex."""
    tasks: Annotated[int, Field(ge=1, le=10**9)]
    """Number of tasks."""
    tasks_by_family: dict[Name, Annotated[int, Field(ge=1)]] | None = None
    """Family to its number of tasks, where the design fixes it."""


class ArmPlan(Plan):
    """One arm: who draws, how often at most, how warm, and what a redraw is shown."""

    tier: Name
    budget: Budget
    """Most draws a task; for a vote, the number of votes."""
    temperature: Annotated[float, Field(ge=0, le=100)] | None = None
    """Sampling temperature; 0 is deterministic decoding, absent is unknown."""
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    prompt: Literal["initial", "blind", "feedback", "none"]
    """What draws after the first are shown.

    ``initial``: parallel draws of the first prompt (a vote); ``blind``: the same prompt after a flag;
    ``feedback``: the prompt with the verifier's message; ``none``: there is no second draw.
    """
    k: Budget | None = None
    """Number of votes of a majority arm; draws."""
    shares_initial_with: Name | None = None
    """Arm whose greedy first draw this arm lists as its own, drawn and billed once."""

    @model_validator(mode="after")
    def _budget_fits_prompt(self) -> Self:
        if self.prompt == "initial" and self.k != self.budget:
            raise ValueError(f"a vote draws k times: k = {self.k} and budget = {self.budget} must be equal")
        if self.prompt != "initial" and self.k is not None:
            raise ValueError(f"k belongs to an arm with prompt 'initial', not to prompt {self.prompt!r}")
        if self.prompt == "none" and self.budget != 1:
            raise ValueError(f"an arm without a second draw has budget 1, not {self.budget}")
        return self


class ConditionPlan(Plan):
    """A condition under which some arms are repeated."""

    text: Text
    precision: dict[Name, Text] = {}
    """Tier to the numeric format it is served in under this condition."""
    in_flight: Annotated[int, Field(ge=1)] | None = None
    """Requests kept in flight, a count."""
    arms: tuple[Name, ...] = ()
    """Arms repeated under this condition; none named means all."""


class RateCardPlan(Plan):
    """Declared prices."""

    rho: Positive
    """Price of a teacher draw in units of one small draw."""
    cost_small_usd: Positive | None = None
    """Upper bound of the price of one small draw, USD."""
    declared_bound_units: Positive | None = None
    """Declared upper bound of the bill, units of one small draw a task and replicate."""


class RegisteredValues(Plan):
    """Values that the registration expects the estimands to have; each may be left out.

    The names are the estimate ids of ``results.json``; ``p_d_t`` is the teacher's detected share of all its
    initial draws, p_dT.
    """

    q0: Share | None = None
    q0_greedy: Share | None = None
    p_d: Share | None = None
    p_s: Share | None = None
    delta: Share | None = None
    eta_ox: Share | None = None
    sigma: Share | None = None
    s1: Share | None = None
    s2: Share | None = None
    lambda1: Share | None = None
    lambda2: Share | None = None
    phi: Annotated[float, Field(ge=-1, le=1)] | None = None
    phi_matched: Annotated[float, Field(ge=-1, le=1)] | None = None
    s_blind: Share | None = None
    sticky_ratio: Annotated[float, Field(ge=0)] | None = None
    fpr: Share | None = None
    q_t: Share | None = None
    delta_t: Share | None = None
    p_d_t: Share | None = None
    break_even: Budget | Literal["none"] | None = None
    """Draws, or the word none."""
    h: Annotated[float, Field(ge=-100, le=100)] | None = None
    """Load correction H, elasticity of device seconds in requests in flight."""

    def stated(self) -> dict[str, float | str]:
        """Return the values that were registered, by estimate id."""
        return {name: value for name, value in self.model_dump().items() if value is not None}


class PriorPlan(Plan):
    """Priors of the hierarchical model; logits unless said otherwise."""

    mu_mean: float = 0.0
    """Mean of the suite-level logit of a stage."""
    mu_sd: Positive = 2.5
    """Standard deviation of the suite-level logit of a stage."""
    fpr_mu_mean: float = -4.0
    """Mean of the suite-level logit of the false positive rate."""
    fpr_mu_sd: Positive = 3.0
    """Standard deviation of the suite-level logit of the false positive rate."""
    tau_sd: Positive = 0.7
    """Scale of the half-normal prior of the between-family standard deviation."""
    icc_a: Positive = 1.0
    """First shape of the Beta prior of the within-task correlation."""
    icc_b: Positive = 1.5
    """Second shape of the Beta prior of the within-task correlation."""


class DecisionPlan(Plan):
    """How sure a verdict must be."""

    gamma: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    """Least posterior probability of the claim for ``supported``."""


class ExclusionRule(Plan):
    """A rule that takes draws or tasks out of the analysis, stated so that it can be replayed on a log."""

    id: Name
    text: Text
    scope: Literal["draw", "task"] = "draw"
    """Whether the draw itself leaves, or all draws of its task."""
    when: Literal["error", "error_kind", "unscored", "task_id", "condition"]
    """Field that decides: an infrastructure error, its kind, a missing outcome, the task, the condition."""
    values: tuple[Text, ...] = Field(default=(), max_length=100_000)
    """Values that are excluded, for ``error_kind``, ``task_id`` and ``condition``."""

    @model_validator(mode="after")
    def _values_where_needed(self) -> Self:
        named = self.when in ("error_kind", "task_id", "condition")
        if named != bool(self.values):
            raise ValueError(f"an exclusion by {self.when} {'names' if named else 'takes no'} values")
        return self


class InfrastructureRetries(Plan):
    """Retries after failures of the serving stack, which are no draws of the protocol."""

    max_per_draw: Annotated[int, Field(ge=0, le=1000)] = 5
    """Most infrastructure retries of one draw, a count."""
    kinds: tuple[Text, ...] = ("timeout", "429", "5xx", "connection")
    """Kinds of failure that are retried."""
    text: Text = "A request that fails without an answer is sent again; the failure is logged and not billed."


class StoppingRule(Plan):
    """When the run ends."""

    kind: Literal["fixed", "other"] = "fixed"
    """``fixed``: all planned draws are made, whatever they show."""
    text: Text
    planned_tasks: Annotated[int, Field(ge=1)] | None = None
    planned_replicates: Annotated[int, Field(ge=1)] | None = None


class MissingData(Plan):
    """What happens to draws without an outcome."""

    handling: Literal["drop"] = "drop"
    """``drop``: not a measurement, counted in the flow table. No other handling exists."""
    text: Text = "A draw without an outcome is no measurement: it is left out and counted in the flow table."
