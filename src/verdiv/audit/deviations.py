"""Deviations as declared: the file, and its reconciliation with what the audit found."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from verdiv.audit.outcome import AuditFinding
from verdiv.errors import Fault, InputRefused
from verdiv.preregistration.positions import find_line, key_lines

__all__ = [
    "DEVIATIONS_SCHEMA",
    "DeclaredDeviation",
    "DeviationsFile",
    "Reconciled",
    "read_deviations",
    "reconcile",
]

DEVIATIONS_SCHEMA = 1
"""Integer version of the format; a newer one is refused."""

MAX_BYTES = 2**20

Text = Annotated[str, Field(min_length=1, max_length=20_000)]


class DeclaredDeviation(BaseModel):
    """One deviation, as somebody declares it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    check: Annotated[str, Field(pattern=r"^[a-z_]+\.[a-z_]+$")] | None = None
    """Check of the audit that it concerns, e.g. ``grid.missing``; absent for what no log can show."""
    registered: Text
    """What the plan says."""
    done: Text
    """What was done."""
    reason: Text
    timing: Literal["before data", "before outcomes", "after outcomes"]
    """When it was decided."""
    rules: Annotated[tuple[Annotated[str, Field(pattern="^[PR][1-6]$")], ...], Field(max_length=10)] = ()
    effect: Text = "not stated"
    """Likely effect on the reader's conclusion."""


class DeviationsFile(BaseModel):
    """A deviations file."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, validate_by_name=True, validate_by_alias=True
    )

    schema_version: Literal[1] = Field(alias="schema")
    deviation: Annotated[tuple[DeclaredDeviation, ...], Field(max_length=1000)] = ()


def read_deviations(path: Path) -> tuple[DeclaredDeviation, ...]:
    """Read a ``deviations.toml``.

    Raises
    ------
    InputRefused
        It cannot be read, or breaks its format; all faults at once.
    """
    name = str(path)
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ValueError(f"more than {MAX_BYTES} bytes")
        text = data.decode("utf-8-sig")
        document = json.dumps(tomllib.loads(text))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        fault = Fault(name, "declared deviations in TOML", reason, "check the file")
        raise InputRefused("the deviations cannot be read", [fault]) from error
    try:
        return DeviationsFile.model_validate_json(document).deviation
    except ValidationError as error:
        lines = key_lines(text)
        faults = [
            Fault(
                name, item["msg"], repr(item["input"])[:80], "correct it",
                line=find_line(lines, tuple(item["loc"])), field=".".join(map(str, item["loc"])) or None,
            )
            for item in error.errors(include_url=False)
        ]  # fmt: skip
        raise InputRefused("the deviations were refused", faults) from error


@dataclass(frozen=True, slots=True)
class Reconciled:
    """Declared and derived deviations, held against each other; rows as the report prints them."""

    declared: tuple[dict[str, Any], ...]
    undeclared: tuple[dict[str, Any], ...]
    """Found by the audit, not declared."""
    not_found: tuple[dict[str, Any], ...]
    """Declared with a check that found nothing."""


def reconcile(
    declared: Sequence[DeclaredDeviation], found: Iterable[tuple[str, AuditFinding]], timing: str
) -> Reconciled:
    """Match deviations by their check.

    Parameters
    ----------
    declared
        As declared.
    found
        Check and finding, for findings that are deviations.
    timing
        What the log and the lock tell about the order of plan and data.
    """
    derived = [(check, finding) for check, finding in found if finding.deviation is not None]
    checks = {check for check, _ in derived}
    named = {item.check for item in declared if item.check is not None}
    rows: list[dict[str, Any]] = []
    missing: list[dict[str, Any]] = []
    for item in declared:
        how = (
            "declared only: no log can show it"
            if item.check is None
            else f"declared, and found by {item.check}"
        )
        if item.check is not None and item.check not in checks:
            how = f"declared; {item.check} found nothing"
        row = {
            "registered": item.registered, "done": item.done, "found": how, "timing": item.timing,
            "rules": list(item.rules), "effect": item.effect, "reason": item.reason, "check": item.check,
        }  # fmt: skip
        rows.append(row)
        if item.check is not None and item.check not in checks:
            missing.append(row)
    undeclared = [
        {
            "registered": finding.deviation.registered,
            "done": finding.deviation.done,
            "found": f"by the audit, {check}",
            "timing": timing,
            "rules": list(finding.rules),
            "effect": "could depend on outcomes"
            if finding.outcome_dependent
            else "could not depend on outcomes",
            "check": check,
        }
        for check, finding in derived
        if check not in named and finding.deviation is not None
    ]
    return Reconciled(tuple(rows), tuple(undeclared), tuple(missing))
