"""The audit: every check over the evidence, deviations reconciled, one report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from verdiv.audit.checks.selection import earlier_stops
from verdiv.audit.deviations import DeclaredDeviation, Reconciled, reconcile
from verdiv.audit.evidence import Evidence, evidence_of
from verdiv.audit.outcome import (
    SEVERITIES,
    AuditFinding,
    CheckOutcome,
    CheckResult,
    could_not_run,
)
from verdiv.audit.registry import CHECKS, Check
from verdiv.preregistration import Preregistration
from verdiv.preregistration.lock import default_lock_path
from verdiv.preregistration.lockfile import Lock
from verdiv.preregistration.severity import severity_faults, severity_shares
from verdiv.preregistration.verify import verify_lock
from verdiv.runlog.table import RunLog

__all__ = ["AuditReport", "audit_evidence", "audit_for_analysis", "neighbour_lock"]


@dataclass(frozen=True)
class AuditReport:
    """The results of all checks."""

    results: tuple[tuple[Check, CheckResult], ...]
    deviations: Reconciled
    evidence: Evidence
    stops: tuple[dict[str, Any], ...] = ()
    """What each earlier stop would have shown."""

    def findings(self) -> list[tuple[str, AuditFinding]]:
        """Return check and finding, the most serious first."""
        every = [(check.id, finding) for check, result in self.results for finding in result.findings]
        return sorted(every, key=lambda item: SEVERITIES.index(item[1].severity))

    def outcomes(self) -> dict[str, str]:
        """Return check to outcome."""
        return {check.id: result.outcome.value for check, result in self.results}

    @property
    def broken(self) -> bool:
        """Whether the lock or a log's chain does not hold, so that verdicts are void."""
        names = {check for check, finding in self.findings() if finding.severity == "critical"}
        return any(name.startswith("lock.") or name in _CHAIN for name in names)

    @property
    def status(self) -> str:
        """``broken``, ``findings`` or ``passed``; checks that could not run do not make it better."""
        if self.broken:
            return "broken"
        return "findings" if self.findings() else "passed"

    def affected(self) -> npt.NDArray[np.int64]:
        """Return the rows of every draw that a finding of medium severity or more touches."""
        serious = [f.rows for _, f in self.findings() if f.severity in ("critical", "high", "medium")]
        return np.unique(np.concatenate(serious)) if serious else np.zeros(0, dtype=np.int64)

    def spared(self) -> npt.NDArray[np.bool_]:
        """Return which draws stay when every chain with an affected draw, and every chain that copies one, leaves."""
        d = self.evidence.draws
        gone = np.zeros(len(d), dtype=np.bool_)
        gone[self.affected()] = True
        while True:
            more = np.isin(d.chain, d.chain[gone])
            more |= (d.copy_of >= 0) & more[d.copy_of]
            more |= (d.parent >= 0) & more[d.parent]
            if (more == gone).all():
                return ~gone
            gone = more

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain JSON values."""
        counts = {outcome.value: 0 for outcome in CheckOutcome}
        for _, result in self.results:
            counts[result.outcome.value] += 1
        return {
            "status": self.status,
            "counts": counts,
            "checks": [
                {
                    "check": check.id,
                    "outcome": result.outcome.value,
                    "severity": _worst(result),
                    "message": result.message,
                    "title": check.title,
                    "section": check.section,
                    "findings": [_finding_json(finding) for finding in result.findings],
                }
                for check, result in self.results
            ],
            "declared": list(self.deviations.declared),
            "undeclared": list(self.deviations.undeclared),
            "not_found": list(self.deviations.not_found),
            "earlier_stops": list(self.stops),
            "affected_draws": len(self.affected()),
        }


_CHAIN = ("log.chain", "log.count")


def _worst(result: CheckResult) -> str | None:
    if not result.findings:
        return None
    return min((finding.severity for finding in result.findings), key=SEVERITIES.index)


def _finding_json(finding: AuditFinding) -> dict[str, Any]:
    return {
        "severity": finding.severity,
        "message": finding.message,
        "rules": list(finding.rules),
        "could_depend_on_outcomes": finding.outcome_dependent,
        "draws": len(finding.rows),
    }


def audit_evidence(evidence: Evidence, declared: Sequence[DeclaredDeviation] = ()) -> AuditReport:
    """Run every check.

    Parameters
    ----------
    evidence
        Logs, plan, lock, suite, results: whatever is there.
    declared
        Deviations as declared.

    Returns
    -------
    AuditReport
        One result a check; a check without what it needs could not run, which is no pass.
    """
    results = []
    for check in CHECKS:
        if check.needs_draws and evidence.logs.draws is None:
            why = (
                "the log is refused, so that its draws cannot be looked at"
                if evidence.logs.faults
                else "no log was given"
            )
            results.append((check, could_not_run(why)))
        elif check.needs_draws and not len(evidence.logs.draws or ()):
            results.append((check, could_not_run("the log holds no draw")))
        else:
            results.append((check, check.look(evidence)))
    found = [(check.id, finding) for check, result in results for finding in result.findings]
    outcomes = {check.id: result.outcome for check, result in results}
    timing = {
        CheckOutcome.PASS: "after the lock, by both clocks",
        CheckOutcome.FINDING: "not after the lock",
    }.get(outcomes["time.after_lock"], "order of lock and data not established")
    stops = tuple(earlier_stops(evidence)) if evidence.logs.draws is not None and len(evidence.draws) else ()
    return AuditReport(tuple(results), reconcile(declared, found, timing), evidence, stops)


def neighbour_lock(plan: Preregistration | None) -> Path | None:
    """Return the lock that stands beside a registration's file; None where there is none."""
    if plan is None or plan.source is None:
        return None
    path = default_lock_path(plan.source)
    return path if path.is_file() else None


def audit_for_analysis(
    log: RunLog,
    plan: Preregistration | None,
    *,
    lock_path: Path | None = None,
    declared: Sequence[DeclaredDeviation] = (),
) -> dict[str, Any]:
    """Audit a log on behalf of an analysis.

    Parameters
    ----------
    log
        The log, as read for the analysis.
    plan
        The registration, None where the analysis is exploratory.
    lock_path
        The lock; the registration's neighbour if absent.
    declared
        Deviations as declared.

    Returns
    -------
    dict
        ``audit`` (the block of the results document), ``deviations`` (its rows), ``findings`` (dicts of severity,
        check, message, rules), ``void`` (why every verdict is void, or None), ``affected`` (draw ids that serious
        findings touch), ``preregistration`` (fields to set in that block: status, locked_at, strength, order,
        verify_command, severity, amendments).
    """
    path = lock_path or neighbour_lock(plan)
    registration = (
        Path(plan.source) if plan is not None and plan.source and Path(plan.source).is_file() else None
    )
    lock = None if path is None else verify_lock(path, registration=registration)
    report = audit_evidence(Evidence(evidence_of(log), plan, lock), declared)
    ids = evidence_ids(report)
    block = report.as_json()
    reasons = [message for check, message in _void_reasons(report)]
    return {
        "audit": block,
        "deviations": list(report.deviations.declared),
        "findings": [
            {"severity": f.severity, "check": check, "message": f.message, "rules": list(f.rules)}
            for check, f in report.findings()
        ],
        "void": "; ".join(reasons) or None,
        "affected": ids,
        "preregistration": _registration_fields(report),
    }


def evidence_ids(report: AuditReport) -> list[str]:
    """Return the ids of the draws that serious findings touch."""
    if report.evidence.logs.draws is None:
        return []
    return [str(name) for name in report.evidence.draws.ids[report.affected()]]


def _void_reasons(report: AuditReport) -> list[tuple[str, str]]:
    return [
        (check, finding.message)
        for check, finding in report.findings()
        if finding.severity == "critical" and (check.startswith("lock.") or check in _CHAIN)
    ]


def _locked_severity(lock: Lock | None) -> dict[str, Any] | None:
    """Count the simulated verdicts that a lock holds; None without them, or where they do not hold together."""
    record = None if lock is None else lock.current.get("severity")
    if record is None or list(severity_faults(record)):
        return None
    return {"runs": record["runs"], "seed": record["seed"], "rules": severity_shares(record)}


def _registration_fields(report: AuditReport) -> Mapping[str, Any]:
    """Say what the lock allows to be said of the registration."""
    lock = report.evidence.lock
    if lock is None:
        return {}
    outcome = report.outcomes()["time.after_lock"]
    order = {
        "pass": "the first draw came after the lock, by the clocks of the machines that wrote them",
        "finding": "the first draw did not come after the lock",
    }.get(outcome, "not established")
    held = lock.lock
    return {
        "status": "broken" if report.broken else "locked",
        "locked_at": None if held is None else held.locked_at,
        "strength": None if lock.strength is None else lock.strength.text,
        "order": order,
        "verify_command": f"verdiv verify {lock.path}",
        "severity": _locked_severity(held),
        "amendments": []
        if held is None
        else [
            {
                "time": body["time"],
                "author": body["author"],
                "reason": body["reason"],
                "seen": body["seen"],
                "changes": "; ".join(
                    f"{c['field']}: {c['from']!r} to {c['to']!r}" for c in body["changes"][:20]
                )
                or "none",
            }
            for body in held.amendments
        ],
    }
