"""Whether the plan was locked, holds, and is the one that the run followed."""

from __future__ import annotations

from verdiv.audit.evidence import Evidence
from verdiv.audit.outcome import (
    AuditFinding,
    CheckOutcome,
    CheckResult,
    Deviation,
    could_not_run,
    found,
    not_applicable,
    passed,
)

__all__ = ["amended_after_data", "followed", "lock_part"]

ALL = ("P1", "P2", "P3", "P4", "P5", "P6", "R1", "R2", "R3", "R4")
NO_LOCK = "no lock was given, and none stands beside the registration"


def lock_part(e: Evidence, name: str) -> CheckResult:
    """Report one check of the lock, as verification found it."""
    if e.lock is None:
        return could_not_run(NO_LOCK) if e.plan is not None else not_applicable("nothing was registered")
    items = [check for check in e.lock.checks if check.check == name]
    if not items:
        return could_not_run("the lock cannot be read, so that this could not be looked at")
    bad = [item for item in items if item.outcome is CheckOutcome.FINDING]
    if bad:
        return found([AuditFinding("critical", item.message, ALL, True) for item in bad], "")
    weak = [item for item in items if item.outcome is not CheckOutcome.PASS]
    if weak:
        return CheckResult(weak[0].outcome, weak[0].message)
    return passed("; ".join(item.message for item in items[:3]))


def followed(e: Evidence) -> CheckResult:
    """Hold the registration that each log says it followed against the one given and the lock."""
    if e.plan is None:
        return not_applicable("nothing was registered")
    if not e.logs.headers:
        return could_not_run("no log could be read")
    known = {str(e.plan.digest)}
    locked = e.lock.lock if e.lock is not None else None
    if locked is not None:
        known |= {record["digest"] for record in locked.records} | set(locked.registration_digests())
    findings = []
    silent = []
    for header, file in zip(e.logs.headers, e.logs.inputs, strict=True):
        said = header.preregistration_sha256
        if said is None:
            silent.append(file.path)
        elif said not in known:
            findings.append(
                AuditFinding(
                    "critical",
                    f"{file.path} followed registration {said[:12]}…, which is neither the given nor a locked one",
                    ALL,
                    True,
                    Deviation(f"registration {str(e.plan.digest)[:12]}…", f"registration {said[:12]}…"),
                )
            )
    if findings:
        return found(findings, "")
    if silent:
        return could_not_run(f"{', '.join(silent)}: the header names no registration")
    return passed("every log names the registration it followed, and it is this one")


def amended_after_data(e: Evidence) -> CheckResult:
    """Look for amendments made after the first draw."""
    from verdiv.audit.checks.time import first_draw
    from verdiv.runlog.stamps import instants

    if e.lock is None or e.lock.lock is None:
        return could_not_run(NO_LOCK)
    bodies = e.lock.lock.amendments
    if not bodies:
        return not_applicable("the plan was never amended")
    first = first_draw(e)
    if first is None:
        return could_not_run("the log tells no times")
    late = [body for body in bodies if instants([str(body["time"])])[0] > first]
    findings = [
        AuditFinding(
            "high" if body["changes"] else "medium",
            f"amended at {body['time']}, after the first draw, by {str(body['author'])[:80]}: "
            f"{str(body['reason'])[:200]} (seen before: {str(body['seen'])[:200]})",
            ALL,
            True,
        )
        for body in late
    ]
    return found(findings, f"{len(bodies)} amendments, all before the first draw")
