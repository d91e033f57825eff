"""Whether times are possible: the lock first, starts before ends, answers after what they answer."""

from __future__ import annotations

import numpy as np

from verdiv.audit.draws import MISSING_TIME
from verdiv.audit.evidence import Evidence
from verdiv.audit.outcome import AuditFinding, CheckResult, could_not_run, found, not_applicable
from verdiv.runlog.stamps import instants

__all__ = ["after_lock", "chains_monotone", "first_draw", "header_first", "starts_before_ends"]

ALL = ("P1", "P2", "P3", "P4", "P5", "P6", "R1", "R2", "R3", "R4")
NO_TIMES = "the log tells no times"


def first_draw(e: Evidence) -> np.datetime64 | None:
    """Return when the first draw started; None where no time is told."""
    started = e.draws.times["started_at"]
    known = started[started != MISSING_TIME]
    return None if not len(known) else np.datetime64(int(known.min()), "ns")


def _text(moment: np.datetime64) -> str:
    return f"{np.datetime_as_string(moment, unit='s')}Z"


def after_lock(e: Evidence) -> CheckResult:
    """Check that the first draw came after the lock, as far as both clocks are to be believed."""
    if e.plan is None:
        return not_applicable("nothing was registered")
    if e.lock is None or e.lock.lock is None:
        return could_not_run("there is no lock that holds")
    first = first_draw(e)
    if first is None:
        return could_not_run(NO_TIMES)
    locked = instants([e.lock.lock.locked_at])[0]
    findings = []
    if first <= locked:
        findings.append(
            AuditFinding(
                "critical",
                f"the first draw started at {_text(first)}, not after the lock of {e.lock.lock.locked_at}",
                ALL,
                True,
            )
        )
    return found(
        findings, f"the first draw, at {_text(first)}, came after the lock of {e.lock.lock.locked_at}"
    )


def starts_before_ends(e: Evidence) -> CheckResult:
    """Check that no draw ended before it started."""
    d = e.draws
    started, ended = d.times["started_at"], d.times["ended_at"]
    both = (started != MISSING_TIME) & (ended != MISSING_TIME)
    if not both.any():
        return could_not_run(NO_TIMES)
    rows = np.flatnonzero(both & (ended < started))
    findings = []
    if len(rows):
        findings.append(
            AuditFinding(
                "high",
                f"{len(rows)} draws ended before they started: {d.some(rows)}",
                ("P6", "R4"),
                rows=rows,
            )
        )
    return found(findings, f"{int(both.sum())} draws start before they end")


def chains_monotone(e: Evidence) -> CheckResult:
    """Check that every draw started after the draw it answers had ended."""
    d = e.draws
    started, ended = d.times["started_at"], d.times["ended_at"]
    rows = np.flatnonzero(d.parent >= 0)
    if not len(rows):
        return not_applicable("no draw answers another")
    parent = d.parent[rows]
    known = (started[rows] != MISSING_TIME) & (ended[parent] != MISSING_TIME)
    if not known.any():
        return could_not_run(NO_TIMES)
    wrong = rows[known & (started[rows] < ended[parent])]
    findings = []
    if len(wrong):
        message = f"{len(wrong)} draws started before the draw they answer had ended: {d.some(wrong)}"
        findings.append(AuditFinding("high", message, ("P2", "P3", "P5"), True, rows=wrong))
    return found(findings, f"{int(known.sum())} draws follow what they answer")


def header_first(e: Evidence) -> CheckResult:
    """Check that no draw precedes the start of its log."""
    d = e.draws
    said = [(at, header.started_at) for at, header in enumerate(e.logs.headers) if header.started_at]
    if not said:
        return could_not_run("no header tells when its log was started")
    findings = []
    started = d.times["started_at"]
    for at, stamp in said:
        begin = int(instants([stamp])[0].astype("datetime64[ns]").astype(np.int64))
        rows = np.flatnonzero((d.log == at) & (started != MISSING_TIME) & (started < begin))
        if len(rows):
            message = f"{len(rows)} draws started before their log, at {stamp}: {d.some(rows)}"
            findings.append(AuditFinding("high", message, rows=rows))
    return found(findings, "no draw precedes the start of its log")
