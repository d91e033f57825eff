"""What a check comes to: pass, finding, not applicable, or could not run; and what a finding says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from verdiv.preregistration.verify import CheckOutcome

__all__ = [
    "SEVERITIES",
    "AuditFinding",
    "CheckOutcome",
    "CheckResult",
    "Deviation",
    "Severity",
    "could_not_run",
    "found",
    "not_applicable",
    "passed",
]

Severity: TypeAlias = Literal["critical", "high", "medium", "low", "info"]
"""How much a finding weighs."""

SEVERITIES: tuple[Severity, ...] = ("critical", "high", "medium", "low", "info")
"""Most serious first."""

Rows: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Deviation:
    """A departure of the run from its plan, derived from the log."""

    registered: str
    """What the plan says."""
    done: str
    """What was done."""


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """One thing that a check found."""

    severity: Severity
    message: str
    """One sentence with places and values."""
    rules: tuple[str, ...] = ()
    """Rules that it touches; empty for none in particular."""
    outcome_dependent: bool = False
    """Whether somebody who saw outcomes could have brought it about to their liking."""
    deviation: Deviation | None = None
    """What to hold against the declared deviations."""
    rows: Rows = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Draws affected, by row; what a verdict without them leaves out."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check."""

    outcome: CheckOutcome
    message: str
    """What was checked, or why it could not be."""
    findings: tuple[AuditFinding, ...] = ()


def passed(message: str) -> CheckResult:
    """Return a pass that says what was checked."""
    return CheckResult(CheckOutcome.PASS, message)


def not_applicable(message: str) -> CheckResult:
    """Return that there is nothing of the kind to check."""
    return CheckResult(CheckOutcome.NOT_APPLICABLE, message)


def could_not_run(message: str) -> CheckResult:
    """Return what was missing; never a pass."""
    return CheckResult(CheckOutcome.COULD_NOT_RUN, message)


def found(findings: Sequence[AuditFinding], otherwise: str) -> CheckResult:
    """Return the findings, or a pass where there are none."""
    if not findings:
        return passed(otherwise)
    return CheckResult(CheckOutcome.FINDING, "; ".join(f.message for f in findings[:3]), tuple(findings))
