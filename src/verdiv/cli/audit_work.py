"""What ``verdiv audit`` does: read what is named, check it, show it, choose the exit code."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from verdiv.audit.page import audit_html, audit_lines
from verdiv.cli.failures import FINDINGS, keep
from verdiv.cli.options import Severity, reaches
from verdiv.cli.output import check_folder, write_text
from verdiv.cli.run_analysis import VOID
from verdiv.errors import Fault, UsageRefused

if TYPE_CHECKING:
    from verdiv.audit.claims.outcomes import ClaimResult
    from verdiv.audit.run import AuditReport

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
    verdicts: bool
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


def _report(request: Request) -> AuditReport:
    """Read what is named and check it."""
    from verdiv.audit.deviations import read_deviations
    from verdiv.audit.evidence import Evidence, read_logs
    from verdiv.audit.run import audit_evidence, neighbour_lock
    from verdiv.cli.progress import ProgressBar
    from verdiv.preregistration import read_preregistration
    from verdiv.preregistration.verify import verify_lock

    plan = None if request.prereg is None else read_preregistration(request.prereg)
    path = request.lock or neighbour_lock(plan)
    given = Path(request.prereg) if request.prereg is not None and Path(request.prereg).is_file() else None
    lock = None if path is None else verify_lock(path, registration=given)
    suite = None
    rescorer = None
    if request.suite is not None:
        from verdiv.audit.scoring import Rescorer
        from verdiv.protocol.suite.suitefile import read_suite

        suite = read_suite(request.suite)
        rescorer = Rescorer(suite)
    results = None
    if request.results is not None:
        from verdiv.reports import load_document

        results = load_document(request.results)
    declared = () if request.deviations is None else read_deviations(request.deviations)
    with ProgressBar() as progress:
        logs = read_logs(
            request.logs, rescorer=rescorer, progress=lambda done, total: progress("reading", done, total)
        )
    return audit_evidence(Evidence(logs, plan, lock, suite, results), declared)


def _claims(request: Request, report: AuditReport | None) -> tuple[ClaimResult, ...]:
    """Judge the claims, with the places that results and log give."""
    from verdiv.audit.claims.claimsfile import read_claims
    from verdiv.audit.claims.judge import judge_claims
    from verdiv.audit.claims.places import log_places, results_places

    if request.claims is None:
        return ()
    places: dict[str, float | bool] = {}
    if report is not None and report.evidence.results is not None:
        places |= results_places(report.evidence.results)
    if report is not None and report.evidence.logs.draws is not None:
        places |= log_places(report.evidence.draws)
    return judge_claims(read_claims(request.claims), places)


def run_audit(request: Request) -> int:
    """Run the audit and return the exit code.

    Raises
    ------
    UsageRefused
        Nothing is named that could be audited.
    VerdivError
        Something named cannot be read.
    """
    run = bool(request.logs or request.prereg or request.lock or request.results)
    if not run and request.claims is None:
        expected = "a log, --prereg, --lock, --results or --claims"
        raise UsageRefused("nothing to audit", [Fault("arguments", expected, "none", "name one")])
    if request.out is not None:
        check_folder(request.out, force=request.force)
    report = _report(request) if run else None
    judged = _claims(request, report)
    claims = {result.id: result.as_json() for result in judged}
    document: dict[str, Any] = {} if report is None else report.as_json()
    if report is None:
        bad = any(result.severity != "note" for result in judged)
        document["status"] = "findings" if bad else "passed"
    if request.claims is not None:
        document["claims"] = claims
    if request.verdicts:
        if report is None or not request.logs:
            raise UsageRefused("no verdict to give", [Fault("--verdicts", "a log", "none", "name a log")])
        from verdiv.cli.audit_verdicts import verdicts_of

        document["verdicts"] = verdicts_of(report, request.logs)
    if request.as_json:
        typer.echo(json.dumps(claims if report is None else document, indent=2, allow_nan=False))
    else:
        lines = [] if report is None else audit_lines(document)
        typer.echo("\n".join([*lines, *(claim_lines(judged) if judged else [])]))
    if request.out is not None:
        request.out.mkdir(parents=True, exist_ok=True)
        write_text(request.out / "audit.json", json.dumps(document, indent=2) + "\n", force=request.force)
        write_text(request.out / "audit.html", audit_html(document, "Audit"), force=request.force)
        keep(f"the audit is complete in {request.out}")
    if report is not None and report.broken:
        return VOID
    severities = [result.severity for result in judged]
    if report is not None:
        severities += [finding.severity for _, finding in report.findings()]
    return FINDINGS if reaches(severities, request.fail_on) else 0
