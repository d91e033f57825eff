"""What ``verdiv audit`` does: read what is named, check it, show it, choose the exit code."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from verdiv.cli.failures import FINDINGS
from verdiv.cli.options import Severity, reaches
from verdiv.errors import Fault, UsageRefused

if TYPE_CHECKING:
    from verdiv.audit.claims.outcomes import ClaimResult

__all__ = ["Request", "claim_lines", "run_audit"]


@dataclass(frozen=True, slots=True)
class Request:
    """One call of the audit, as the command line states it."""

    logs: tuple[str, ...]
    prereg: str | None
    lock: Path | None
    results: Path | None
    claims: str | None
    deviations: Path | None
    suite: Path | None
    out: Path | None
    as_json: bool
    force: bool
    fail_on: Severity


def claim_lines(results: Iterable[ClaimResult]) -> list[str]:
    """Write claims for the terminal: failures in full, then the count of each outcome."""
    lines: list[str] = []
    counts: dict[str, int] = {}
    for result in results:
        counts[result.outcome.value] = counts.get(result.outcome.value, 0) + 1
        if result.outcome.value == "reproduced":
            continue
        mark = "  DECISION ERROR" if result.decision_error else ""
        unit = f" {result.unit}" if result.unit else ""
        lines.append(f"{result.outcome.value.upper():15} {result.id}: printed {result.printed}{unit}{mark}")
        lines.append(f"{'':15} {result.reason}")
        for rescue in result.rescues:
            tail = f", but then {', '.join(rescue.breaks)} would not print" if rescue.breaks else ""
            lines.append(f"{'':15} would be right if {rescue.text}{tail}")
        lines += [f"{'':15} possible: {reading}" for reading in result.readings]
    total = sum(counts.values())
    said = ", ".join(f"{count} {name}" for name, count in sorted(counts.items(), key=lambda item: -item[1]))
    lines.append(f"{total} claims: {said}")
    return lines


def run_audit(request: Request) -> int:
    """Run the audit and return the exit code."""
    from verdiv.audit.claims.claimsfile import read_claims
    from verdiv.audit.claims.judge import judge_claims

    if request.claims is None:
        raise UsageRefused(
            "nothing to audit", [Fault("arguments", "a log, --claims or --lock", "none", "name one")]
        )
    judged = judge_claims(read_claims(request.claims))
    if request.as_json:
        typer.echo(json.dumps({result.id: result.as_json() for result in judged}, indent=2))
    else:
        typer.echo("\n".join(claim_lines(judged)))
    return FINDINGS if reaches((result.severity for result in judged), request.fail_on) else 0
