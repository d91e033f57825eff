"""Every error verdiv raises on purpose: where it is, what was expected, what was got, what to do.

A :class:`Fault` is one thing wrong with an input. A :class:`VerdivError` carries one or many of them
and the exit code that the command ends with, so that all faults of a file are reported together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = [
    "ChainBroken",
    "Fault",
    "FitFailed",
    "InputRefused",
    "MissingExtra",
    "UsageRefused",
    "VerdivError",
    "WriteFailed",
]

SHOWN_FAULTS = 10
"""How many faults of one input are printed in full; the rest are counted."""

MAX_SHOWN_VALUE = 120
"""Characters of a hostile value that an error message repeats at most."""


def _shown(value: str) -> str:
    """Make a value safe and short enough to be repeated in a message."""
    clean = "".join(ch if ch.isprintable() else "\N{REPLACEMENT CHARACTER}" for ch in value)
    return clean if len(clean) <= MAX_SHOWN_VALUE else clean[:MAX_SHOWN_VALUE] + "…"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of one input, located as closely as the reader could."""

    where: str
    """File or object the fault is in."""
    expected: str
    """What was required there."""
    got: str
    """What stood there instead."""
    remedy: str
    """What the user can do about it."""
    line: int | None = None
    """1-based line (or row) number, where there is one."""
    field: str | None = None
    """Dotted path of the field inside the record, where there is one."""

    def __str__(self) -> str:
        """Render as one line: where, expected, got, remedy."""
        place = self.where
        if self.line is not None:
            place += f":{self.line}"
        if self.field:
            place += f": {self.field}"
        return f"{place}: expected {self.expected}, got {_shown(self.got)}; {self.remedy}"


class VerdivError(Exception):
    """Base of all deliberate errors.

    Parameters
    ----------
    message
        One sentence that names the failed operation.
    faults
        The single faults behind it, possibly none.
    total
        Number of faults found, when more were counted than kept.
    """

    exit_code = 2

    def __init__(self, message: str, faults: Iterable[Fault] = (), *, total: int | None = None) -> None:
        self.message = message
        self.faults: Sequence[Fault] = tuple(faults)
        self.total = len(self.faults) if total is None else total
        super().__init__(message)

    def __str__(self) -> str:
        """Render the message, the first faults, and the count of the rest."""
        lines = [self.message]
        lines += [f"  {fault}" for fault in self.faults[:SHOWN_FAULTS]]
        rest = self.total - min(len(self.faults), SHOWN_FAULTS)
        if rest > 0:
            lines.append(f"  … and {rest} more")
        return "\n".join(lines)


class InputRefused(VerdivError):
    """An input file is unreadable or breaks its format."""


class UsageRefused(VerdivError):
    """Arguments that cannot be used together or name nothing."""


class MissingExtra(VerdivError):
    """A heavy optional part is not installed; the message names the extra that brings it."""


class WriteFailed(VerdivError):
    """An output could not be written (disk full, no permission, name taken); nothing half-written is left."""


class ChainBroken(VerdivError):
    """A lock or a log's hash chain does not hold; verdicts are void."""

    exit_code = 3


class FitFailed(VerdivError):
    """The fit failed its own diagnostics; no verdict may come from it."""

    exit_code = 4
