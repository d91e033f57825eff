"""The one verdict enum, and the records that rules end in."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import numpy.typing as npt

__all__ = ["ComponentResult", "PartResult", "RuleResult", "Verdict"]


class Verdict(StrEnum):
    """What a rule, or a part of one, came to."""

    SUPPORTED = "supported"
    FALSIFIED = "falsified"
    INCONCLUSIVE = "inconclusive"
    UNTESTABLE = "untestable"
    VOID = "void"


@dataclass(frozen=True)
class ComponentResult:
    """One quantity with a claim interval, judged."""

    id: str
    label: str
    estimate: float
    """Posterior mean; the median where the mean lies outside the interval."""
    low: float
    high: float
    """Equal-tailed 95 % interval."""
    claim_low: float | None
    claim_high: float | None
    """Claim interval; None where it is open."""
    probability_claim: float
    exceedance_low: float | None
    """P(component below the claim); None where the claim is open there."""
    exceedance_high: float | None
    n: float | None
    floor: float | None
    """Noise floor of the difference; None where no floor is defined for the quantity."""
    floor_n: int | None
    """Task and replicate pairs the floor was computed for."""
    floor_tasks: int | None
    """Tasks among them."""
    severity: float | None
    """Chance this design had of falsifying the claim under the registered alternative (normal approximation)."""
    tasks_to_decide: int | None


@dataclass(frozen=True)
class PartResult:
    """One part of a rule, judged."""

    id: str
    claim: str
    verdict: Verdict
    reason: str
    probability_claim: float | None
    components: tuple[ComponentResult, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class RuleResult:
    """One rule, judged."""

    id: str
    title: str
    claim: str
    target: str
    verdict: Verdict
    reason: str
    sentence: str
    probability_claim: float | None
    exceedance: float | None
    """Largest one-sided posterior probability of lying beyond the claim."""
    gamma: float
    threshold: float
    """Probability beyond one side at which the rule is falsified: 1 − (1 − γ)/J."""
    parts: tuple[PartResult, ...]
    statistic: str
    margin: float | None
    severity: float | None
    tasks_to_decide: int | None
    missing: tuple[str, ...] = ()
    holds: npt.NDArray[np.bool_] | None = field(default=None, repr=False, compare=False)
    """Per posterior draw, whether every testable part's claim holds; None where nothing is testable."""
