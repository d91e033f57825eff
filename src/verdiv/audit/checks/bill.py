"""Whether the bill adds up: prices of the rate card, failures free, the declared bound kept."""

from __future__ import annotations

import numpy as np

from verdiv.audit.evidence import Evidence
from verdiv.audit.outcome import AuditFinding, CheckResult, Deviation, could_not_run, found

__all__ = ["bound", "prices"]

RULES = ("P3", "P6")
SLACK = 1e-9


def prices(e: Evidence) -> CheckResult:
    """Check every draw's price against the rate card; failures cost nothing."""
    if e.plan is None:
        return could_not_run("no registration has a rate card")
    d = e.draws
    wanted = np.full(len(d), np.nan)
    for tier, plan in e.plan.tiers.items():
        wanted[d.codes["tier"] == d.code("tier", tier)] = plan.cost_units
    billed = d.numbers["billed"]
    bad = np.flatnonzero(~d.failed & (np.abs(billed - wanted) > SLACK))
    findings = []
    if len(bad):
        row = int(bad[0])
        message = (
            f"{len(bad)} draws are billed otherwise than the rate card says: {d.name(row)} at {billed[row]:g}, "
            f"not {wanted[row]:g}"
        )
        done = Deviation("prices of the rate card", f"{len(bad)} draws at others")
        findings.append(AuditFinding("high", message, RULES, True, done, bad))
    unknown = np.flatnonzero(np.isnan(wanted))
    if len(unknown):
        message = f"{len(unknown)} draws of a tier without a registered price: {d.some(unknown)}"
        findings.append(AuditFinding("high", message, RULES, True, rows=unknown))
    own = d.copy_of < 0
    return found(
        findings, f"prices of the rate card; {float(billed[own].sum()):g} units in all, shared draws once"
    )


def bound(e: Evidence) -> CheckResult:
    """Hold the bill of every task and replicate, and of the whole run, against the declared upper bound."""
    if e.plan is None or e.plan.rate_card.declared_bound_units is None:
        return could_not_run("no upper bound was declared")
    d, most = e.draws, e.plan.rate_card.declared_bound_units
    findings = []
    for code, condition in enumerate(d.names["condition"]):
        rows = np.flatnonzero(d.codes["condition"] == code)
        span = int(d.replicate.max()) + 1
        key = d.codes["task_id"][rows].astype(np.int64) * span + np.minimum(d.replicate[rows], span)
        totals = np.bincount(key, weights=d.numbers["billed"][rows])
        over = np.flatnonzero(totals > most + SLACK)
        if len(over):
            task = d.names["task_id"][int(over[0]) // span]
            message = (
                f"{condition}: {len(over)} tasks and replicates cost more than the declared {most:g} units, "
                f"first {task!r} with {totals[over[0]]:g}"
            )
            done = Deviation(f"at most {most:g} units a task", f"up to {totals.max():g}")
            findings.append(AuditFinding("high", message, RULES, False, done, rows[np.isin(key, over)]))
    return found(findings, f"no task and replicate costs more than the declared {most:g} units")
