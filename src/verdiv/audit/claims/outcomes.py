"""What comes of a claim: its outcome, the right value, and the assumptions that would make the print right."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

__all__ = ["ClaimOutcome", "ClaimResult", "Rescue"]


class ClaimOutcome(StrEnum):
    """What came of a claim, best first."""

    REPRODUCED = "reproduced"
    """Equal at the printed precision, and in the printed direction."""
    ROUNDED = "rounded"
    """Equal only with one digit fewer."""
    CONFLICT = "conflict"
    """Not equal, or the other way round; or built on a claim in conflict, and not reproduced."""
    UNDERDETERMINED = "underdetermined"
    """The source gives no form, or the claim is built on one without."""
    ERROR = "error"
    """It could not be worked out."""


@dataclass(frozen=True, slots=True)
class Rescue:
    """An assumption under which the print would be right."""

    text: str
    value: float | bool
    """What the expression gives then."""
    breaks: tuple[str, ...] = ()
    """Claims that are reproduced as registered and would not be under it."""


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """The outcome of one claim."""

    id: str
    outcome: ClaimOutcome
    printed: str
    unit: str | None
    recomputed: float | bool | None
    """In the printed unit, unrounded; None where nothing could be worked out."""
    right: str | None
    """The recomputed value as it would be printed."""
    reason: str
    """One sentence."""
    inherited_from: tuple[str, ...] = ()
    """Claims that the outcome comes from."""
    rescues: tuple[Rescue, ...] = ()
    """Assumptions that would make the print right."""
    readings: tuple[str, ...] = ()
    """What the forms give that the source leaves possible."""
    decision_error: bool = False
    """The decision that rests on the figure is another one with the recomputed value."""
    expected: str | None = None
    """Outcome that the file expects."""

    @property
    def as_expected(self) -> bool | None:
        """Whether the outcome is the one the file expects; None where it expects none."""
        return None if self.expected is None else self.expected == self.outcome.value

    @property
    def severity(self) -> str:
        """How much it weighs as a finding; ``note`` for a figure that is reproduced."""
        return {
            ClaimOutcome.REPRODUCED: "note",
            ClaimOutcome.ROUNDED: "low",
            ClaimOutcome.UNDERDETERMINED: "medium",
        }.get(self.outcome, "high")

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        said: dict[str, Any] = {
            "outcome": self.outcome.value,
            "recomputed": self.recomputed,
            "printed": self.printed,
            "unit": self.unit,
            "right_value": self.right,
            "reason": self.reason,
            "inherited_from": list(self.inherited_from),
            "assumptions_that_would_print_it": [
                {"assumption": r.text, "value": r.value, "breaks": list(r.breaks)} for r in self.rescues
            ],
            "readings": list(self.readings),
            "decision_error": self.decision_error,
        }
        return said if self.expected is None else said | {"expected": self.expected}
