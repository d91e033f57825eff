"""Whether the rules of a plan can be decided one way only."""

from __future__ import annotations

from verdiv.audit.evidence import Evidence
from verdiv.audit.outcome import AuditFinding, CheckResult, could_not_run, found

__all__ = ["regions"]


def regions(e: Evidence) -> CheckResult:
    """Check that supported and falsified exclude each other, whatever the posterior.

    With J component sides a rule is falsified where some side is exceeded with probability at least
    1 − (1 − γ)/J, and supported where the claim has at least γ. Both at once need γ + 1 − (1 − γ)/J ≤ 1, that
    is (J + 1)γ ≤ 1, which no γ above one half allows; whatever is neither is inconclusive, so that the regions
    are exhaustive too. An alternative inside its own claim would make severity meaningless.
    """
    if e.plan is None:
        return could_not_run("no rule is registered")
    findings = []
    gamma = e.plan.decision.gamma
    if 2 * gamma <= 1:
        findings.append(
            AuditFinding("critical", f"gamma {gamma:g} lets a rule be supported and falsified at once")
        )
    r = e.plan.rules
    inside = {
        "P1": abs(r.P1.alternative) <= r.P1.fraction,
        "P2": r.P2.headroom_alternative > r.P2.headroom_margin
        or r.P2.quality_alternative >= -r.P2.quality_margin,
        "P3": r.P3.alternative >= -r.P3.quality_margin,
        "P4": abs(r.P4.alternative) <= r.P4.margin,
        "P5": r.P5.alternative >= r.P5.fraction,
        "P6": r.P6.alternative <= r.P6.tolerance,
        "R1": abs(r.R1.alternative) <= r.R1.margin,
        "R2": r.R2.alternative >= -r.R2.margin,
        "R3": abs(r.R3.alternative) <= r.R3.margin,
        "R4": abs(r.R4.alternative) <= r.R4.margin,
    }
    for rule, bad in inside.items():
        if bad:
            message = (
                f"{rule}: the registered alternative lies inside the claim, so that its severity says nothing"
            )
            findings.append(AuditFinding("medium", message, (rule,)))
    return found(findings, "every posterior has one verdict, and every alternative lies outside its claim")
