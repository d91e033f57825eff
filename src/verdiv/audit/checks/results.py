"""Whether a results file belongs to this run, and says what the log says."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from verdiv.audit.evidence import Evidence
from verdiv.audit.outcome import AuditFinding, CheckResult, could_not_run, found, not_applicable
from verdiv.preregistration import RULE_IDS

__all__ = ["counts", "flow", "inputs", "ledger", "plan", "rules"]

ALL = ("P1", "P2", "P3", "P4", "P5", "P6", "R1", "R2", "R3", "R4")
NONE = "no results were given"


def inputs(e: Evidence) -> CheckResult:
    """Check that the results were made from these logs, byte for byte."""
    if e.results is None:
        return not_applicable(NONE)
    if not e.logs.inputs:
        return could_not_run("no log was given")
    stated = {str(item["sha256"]): item["path"] for item in e.results["inputs"]}
    given = {file.sha256: file.path for file in e.logs.inputs}
    findings = []
    if set(stated) != set(given):
        named = ", ".join(map(str, stated.values()))
        message = f"the results were made from {named}, with other digests than these logs"
        findings.append(AuditFinding("critical", message, ALL, True))
    return found(findings, "the results were made from these logs")


def plan(e: Evidence) -> CheckResult:
    """Check that the results were judged by this plan, value by value: a margin moved after the lock shows."""
    from verdiv.preregistration.amend import changed_fields
    from verdiv.preregistration.lock import stated_plan

    if e.results is None:
        return not_applicable(NONE)
    if e.plan is None:
        return could_not_run("no registration was given")
    stated = e.results["preregistration"]
    findings = []
    if stated.get("digest") != e.plan.digest:
        said = str(stated.get("digest"))[:12]
        message = f"the results name registration {said}…, {str(e.plan.digest)[:12]}… was given"
        findings.append(AuditFinding("critical", message, ALL, True))
    judged = stated.get("plan")
    if isinstance(judged, Mapping):
        ours = stated_plan(e.plan)
        keys = (
            "rules",
            "decision",
            "families",
            "arms",
            "rate_card",
            "priors",
            "break_even_budget",
            "max_budget",
        )
        changes = [
            change
            for key in keys
            for change in changed_fields(ours.get(key), judged.get(key), key)
            if not (isinstance(change["from"], float | int) and change["from"] == change["to"])
        ]
        for change in changes[:5]:
            message = (
                f"the results were judged with {change['field']} = {change['to']!r}, "
                f"{change['from']!r} is registered"
            )
            findings.append(AuditFinding("critical", message[:400], ALL, True))
    return found(findings, "the results were judged by this plan")


def rules(e: Evidence) -> CheckResult:
    """Check that all ten rules are reported, each with one verdict that its numbers allow."""
    if e.results is None:
        return not_applicable(NONE)
    verdicts = ("supported", "falsified", "inconclusive", "untestable", "void")
    stated = e.results["rules"]
    gamma = 0.95 if e.plan is None else e.plan.decision.gamma
    findings = []
    missing = [rule for rule in RULE_IDS if rule not in stated]
    if missing:
        findings.append(
            AuditFinding("critical", f"rules without a report: {', '.join(missing)}", tuple(missing), True)
        )
    for rule, record in stated.items():
        verdict, chance = record.get("verdict"), record.get("probability_claim")
        if verdict not in verdicts:
            findings.append(AuditFinding("critical", f"{rule}: {verdict!r} is no verdict", (rule,), True))
        parts = [part.get("verdict") for part in record.get("parts") or ()]
        if verdict != "void" and parts:
            allowed = {"falsified"} if "falsified" in parts else set(verdicts) - {"falsified", "void"}
            if verdict not in allowed:
                message = f"{rule} is {verdict}, though its parts are {', '.join(map(str, parts))}"
                findings.append(AuditFinding("critical", message, (rule,), True))
        if verdict == "supported" and isinstance(chance, int | float) and chance < gamma - 1e-9:
            message = f"{rule} is supported at probability {chance:.4f}, gamma is {gamma:g}"
            findings.append(AuditFinding("critical", message, (rule,), True))
    return found(findings, "ten rules, each with a verdict that its parts and probability allow")


def flow(e: Evidence) -> CheckResult:
    """Count attempted and errored draws of every cell again."""
    if e.results is None:
        return not_applicable(NONE)
    if e.logs.draws is None or e.plan is None:
        return could_not_run("a log and a registration are needed")
    from verdiv.audit.checks.selection import excluded_rows

    d = e.draws
    left = np.ones(len(d), dtype=bool)
    for rows in excluded_rows(e).values():
        left &= ~rows
    findings = []
    for row in e.results["flow"]:
        here = (d.codes["arm"] == d.code("arm", str(row["arm"]))) & (
            d.codes["condition"] == d.code("condition", str(row.get("condition") or "primary"))
        )
        copies = int((here & left & (d.copy_of >= 0) & (d.tri["correct"] >= 0)).sum())
        stated = row.get("copies")
        attempted = int((here & left).sum())
        if row.get("attempted") != attempted:
            message = (
                f"{row['arm']}: the results count {row.get('attempted')} draws, the log holds {attempted}"
            )
            findings.append(AuditFinding("high", message, ALL, True))
        elif isinstance(stated, int) and stated != copies:
            message = f"{row['arm']}: the results count {stated} copies, the log holds {copies}"
            findings.append(AuditFinding("high", message, ALL, True))
    return found(findings, "the flow table counts what the log holds")


def ledger(e: Evidence) -> CheckResult:
    """Add the bill up again."""
    if e.results is None:
        return not_applicable(NONE)
    if e.logs.draws is None:
        return could_not_run("no log was given")
    stated = (e.results.get("ledger") or {}).get("total_units")
    d = e.draws
    total = float(d.numbers["billed"][d.copy_of < 0].sum())
    findings = []
    if not isinstance(stated, int | float) or not math.isclose(stated, total, rel_tol=1e-9, abs_tol=1e-6):
        message = f"the results bill {stated} units, the log's draws sum to {total:g}"
        findings.append(AuditFinding("high", message, ("P3", "P6"), True))
    return found(findings, f"{total:g} units, as the results say")


def counts(e: Evidence) -> CheckResult:
    """Check that every estimate's counts and interval are possible."""
    if e.results is None:
        return not_applicable(NONE)
    findings = []
    compared = []
    for name, record in e.results["estimates"].items():
        k, n, mean = record.get("k"), record.get("n"), record.get("mean")
        if not all(isinstance(x, int | float) for x in (k, n, mean)) or record.get("low") is None:
            continue
        compared.append(name)
        if not (record["low"] <= mean <= record["high"]):
            message = (
                f"{name}: mean {mean:g} lies outside its interval {record['low']:g} to {record['high']:g}"
            )
            findings.append(AuditFinding("high", message, ALL, True))
        if k > n + 1e-9 or k < 0:
            findings.append(AuditFinding("high", f"{name}: {k} of {n} is no count", ALL, True))
    return found(findings, f"counts and intervals of {len(compared)} estimates are possible")
