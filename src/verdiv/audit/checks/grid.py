"""Whether the cells of the run are the cells of the plan: task × arm × seed × attempt, in every condition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from verdiv.audit.draws import Draws, IntArray
from verdiv.audit.evidence import Evidence
from verdiv.audit.outcome import (
    AuditFinding,
    CheckResult,
    Deviation,
    could_not_run,
    found,
    not_applicable,
)
from verdiv.preregistration.cells import planned_arms

__all__ = [
    "attempts",
    "budgets",
    "chains",
    "duplicates",
    "retried_after_pass",
    "stopped_early",
    "tasks",
    "unplanned",
    "votes",
]

ALL = ("P1", "P2", "P3", "P4", "P5", "P6", "R1", "R2", "R3", "R4")
NO_PLAN = "no registration says which cells there are"


def _arm_rules(arm: str) -> tuple[str, ...]:
    return {
        "A0": ("P1",),
        "A1": ("P2",),
        "A2": ("P1",),
        "A2s": ("P1", "P2", "P4"),
        "A3": ("P2", "P3", "P4", "P5", "P6", "R1", "R2", "R3", "R4"),
        "A4": ("P3", "R2"),
        "A5": (),
    }.get(arm, ())


def _of_arm(d: Draws, condition: str, arm: str) -> IntArray:
    """Return the rows of one arm under one condition, failures included."""
    here = (d.codes["arm"] == d.code("arm", arm)) & (d.codes["condition"] == d.code("condition", condition))
    return np.flatnonzero(here).astype(np.int64)


def tasks(e: Evidence) -> CheckResult:
    """Compare the tasks that were run with those registered: their number, by family, and by name if known."""
    d = e.draws
    seen = np.unique(np.stack([d.codes["task_id"], d.codes["family"]]), axis=1)
    names = [d.names["task_id"][code] for code in np.unique(seen[0])]
    findings: list[AuditFinding] = []
    several = np.flatnonzero(np.bincount(seen[0]) > 1)
    if len(several):
        message = (
            f"{len(several)} tasks stand under more than one family, first {d.names['task_id'][several[0]]!r}"
        )
        findings.append(AuditFinding("high", message, ("R2",)))
    if e.suite is not None:
        known = set(e.suite.by_id)
        for extra, what in ((set(names) - known, "not in the suite"), (known - set(names), "never run")):
            if extra:
                rows = np.flatnonzero(np.isin(d.codes["task_id"], [d.code("task_id", t) for t in extra]))
                message = f"{len(extra)} tasks are {what}: {', '.join(sorted(extra)[:3])}"
                done = Deviation(f"the {len(known)} tasks of the suite", message)
                findings.append(AuditFinding("high", message, ALL, True, done, rows))
    if e.plan is None:
        return found(findings, "") if findings else could_not_run(NO_PLAN)
    if len(names) != e.plan.suite.tasks and e.suite is None:
        message = f"{len(names)} tasks were run, {e.plan.suite.tasks} are registered"
        done = Deviation(f"{e.plan.suite.tasks} tasks", f"{len(names)} tasks")
        findings.append(AuditFinding("high", message, ALL, True, done))
    by_family = Counter(d.names["family"][code] for code in seen[1])
    for family, count in (e.plan.suite.tasks_by_family or {}).items():
        if by_family.get(family, 0) != count and e.suite is None:
            message = f"family {family} has {by_family.get(family, 0)} tasks, {count} are registered"
            done = Deviation(f"{count} tasks of {family}", f"{by_family.get(family, 0)}")
            findings.append(AuditFinding("high", message, ("P2", "P3", "R2"), True, done))
    unknown = sorted(set(by_family) - set(e.plan.families))
    if unknown:
        rows = np.flatnonzero(np.isin(d.codes["family"], [d.code("family", name) for name in unknown]))
        message = f"families without a registered weight: {', '.join(unknown)}"
        done = Deviation(", ".join(e.plan.families), message)
        findings.append(AuditFinding("high", message, ALL, True, done, rows))
    return found(findings, f"{len(names)} tasks, as registered")


def chains(e: Evidence) -> CheckResult:
    """Look for cells that are missing: tasks without a chain in some arm, seed and condition."""
    if e.plan is None:
        return could_not_run(NO_PLAN)
    d = e.draws
    total = len(np.unique(d.codes["task_id"]))
    findings = []
    for planned in planned_arms(e.plan):
        rows = _of_arm(d, planned.condition, planned.arm)
        place = f"{planned.arm} under {planned.condition}"
        if not len(rows):
            done = Deviation(f"{planned.replicates} chains a task in {place}", "none")
            message = f"{place}: no draw at all, {planned.replicates} chains a task are registered"
            findings.append(AuditFinding("high", message, _arm_rules(planned.arm), True, done))
            continue
        for replicate in range(planned.replicates):
            here = rows[d.replicate[rows] == replicate]
            have = len(np.unique(d.codes["task_id"][here]))
            if have < total:
                message = f"{place}, replicate {replicate}: {total - have} of {total} tasks have no chain"
                done = Deviation(f"a chain for each task in {place}, replicate {replicate}", message)
                findings.append(AuditFinding("high", message, _arm_rules(planned.arm), True, done))
    return found(findings, "every registered arm, condition and replicate has a chain for every task")


def unplanned(e: Evidence) -> CheckResult:
    """Look for cells that no plan has: other arms, conditions and replicates."""
    if e.plan is None:
        return could_not_run(NO_PLAN)
    d = e.draws
    planned = {(p.condition, p.arm): p for p in planned_arms(e.plan)}
    findings = []
    pairs = np.unique(np.stack([d.codes["condition"], d.codes["arm"]]), axis=1).T
    for condition_code, arm_code in pairs.tolist():
        condition, arm = d.names["condition"][condition_code], d.names["arm"][arm_code]
        rows = _of_arm(d, condition, arm)
        plan = planned.get((condition, arm))
        if plan is None:
            message = f"{len(rows)} draws of {arm} under {condition}, which is not registered"
            done = Deviation("no such cell", f"{arm} under {condition}")
            findings.append(AuditFinding("high", message, ALL, True, done, rows))
            continue
        extra = rows[d.replicate[rows] >= plan.replicates]
        if len(extra):
            message = f"{arm} under {condition}: {len(extra)} draws beyond the {plan.replicates} registered replicates"
            done = Deviation(f"{plan.replicates} replicates", f"up to {int(d.replicate[extra].max()) + 1}")
            findings.append(AuditFinding("high", message, _arm_rules(arm), True, done, extra))
    return found(findings, "no draw lies outside the registered cells")


def duplicates(e: Evidence) -> CheckResult:
    """Look for cells with more than one measurement."""
    d = e.draws
    rows = d.measured
    chain, attempt = d.chain[rows], d.attempt[rows]
    again = np.flatnonzero((np.diff(chain) == 0) & (np.diff(attempt) == 0))
    bad = rows[again + 1]
    findings = []
    if len(bad):
        message = f"{len(bad)} draws measure a cell that is measured already: {d.some(bad)}"
        done = Deviation("one measurement a cell", f"{len(bad)} cells measured again")
        findings.append(AuditFinding("critical", message, ALL, True, done, bad))
    return found(findings, f"{len(rows)} measurements, each of a cell of its own")


def attempts(e: Evidence) -> CheckResult:
    """Check that the attempts of a chain run from 1 without a gap, and answer each other in order.

    A draw that another tier makes for the residual of a chain answers that chain's last attempt, across arms.
    """
    d = e.draws
    gated = np.isin(d.codes["prompt_kind"], [d.code("prompt_kind", k) for k in ("blind", "feedback")])
    rows = np.flatnonzero(gated & (d.attempt > 1))
    if not len(rows):
        return not_applicable("no chain has a second draw")
    parent = d.parent[rows]
    if (parent < 0).all():
        return could_not_run("no retry names the draw that it answers")
    known = parent >= 0
    bad = ~known
    before, after = parent[known], rows[known]
    same = {name: d.codes[name][before] == d.codes[name][after] for name in ("condition", "task_id", "tier")}
    escalated = ~same["tier"] & same["condition"] & same["task_id"]
    escalated &= d.replicate[before] == d.replicate[after]
    bad[known] = ((d.chain[before] != d.chain[after]) & ~escalated) | (
        d.attempt[before] != d.attempt[after] - 1
    )
    wrong = rows[bad]
    findings = []
    if len(wrong):
        message = (
            f"{len(wrong)} retries do not answer the attempt before them in their chain: {d.some(wrong)}"
        )
        findings.append(AuditFinding("high", message, ("P2", "P3", "P4", "P5"), True, rows=wrong))
    return found(findings, f"{len(rows)} retries answer the attempt before them")


def budgets(e: Evidence) -> CheckResult:
    """Look for attempts beyond an arm's budget."""
    if e.plan is None:
        return could_not_run(NO_PLAN)
    d = e.draws
    findings = []
    for arm, plan in e.plan.arms.items():
        here = d.codes["arm"] == d.code("arm", arm)
        over = np.flatnonzero(here & (d.attempt > plan.budget))
        if len(over):
            message = f"{arm}: {len(over)} draws beyond its budget of {plan.budget}: {d.some(over)}"
            done = Deviation(f"budget {plan.budget}", f"up to {int(d.attempt[over].max())} draws")
            findings.append(AuditFinding("high", message, _arm_rules(arm), True, done, over))
    return found(findings, "no chain exceeds its arm's budget")


def _ends(d: Draws) -> IntArray:
    """Return the last measured row of each chain."""
    if not len(d.measured):
        return np.zeros(0, dtype=np.int64)
    ends: IntArray = d.measured[np.append(d.chain_starts[1:], len(d.measured)) - 1]
    return ends


def retried_after_pass(e: Evidence) -> CheckResult:
    """Look for retries of draws that the gate let pass."""
    d = e.draws
    gates = {header.gate.value for header in e.logs.headers}
    if gates == {"none"}:
        return not_applicable("nothing gates the retries of this log")
    if len(gates) > 1:
        return could_not_run("the logs have different gates")
    column, let_pass = ("flagged", 0) if gates == {"verifier"} else ("correct", 1)
    rows = np.flatnonzero(d.parent >= 0)
    if not len(rows):
        return not_applicable("no draw answers another")
    bad = rows[d.tri[column][d.parent[rows]] == let_pass]
    findings = []
    if len(bad):
        message = f"{len(bad)} draws retry a draw that the gate let pass: {d.some(bad)}"
        done = Deviation("retries of flagged draws only", f"{len(bad)} others")
        findings.append(AuditFinding("critical", message, ("P1", "P2", "P3", "P4", "P5"), True, done, bad))
    return found(findings, f"{len(rows)} retries, each of a draw that the gate held")


def stopped_early(e: Evidence) -> CheckResult:
    """Look for chains that ended on a flagged draw before their budget, without a failure that ended them."""
    if e.plan is None:
        return could_not_run(NO_PLAN)
    d = e.draws
    ends = _ends(d)
    failed_chains = np.unique(d.chain[d.failed]) if d.failed.any() else np.zeros(0, dtype=np.int64)
    findings = []
    for arm, plan in e.plan.arms.items():
        if plan.prompt not in ("blind", "feedback"):
            continue
        here = ends[d.codes["arm"][ends] == d.code("arm", arm)]
        short = here[(d.tri["flagged"][here] == 1) & (d.attempt[here] < plan.budget)]
        short = short[~np.isin(d.chain[short], failed_chains)]
        if len(short):
            message = f"{arm}: {len(short)} chains ended flagged before their budget of {plan.budget}: {d.some(short)}"
            done = Deviation(f"retries up to {plan.budget} draws", f"{len(short)} chains ended before")
            rows = np.flatnonzero(np.isin(d.chain, d.chain[short]))
            findings.append(AuditFinding("high", message, _arm_rules(arm), True, done, rows))
    return found(findings, "every chain ended on a draw that passed, or at its budget")


def _vote_rows(e: Evidence) -> Iterator[tuple[str, int, IntArray]]:
    assert e.plan is not None
    for arm, plan in e.plan.arms.items():
        if plan.prompt == "initial" and plan.k is not None:
            yield (
                arm,
                plan.k,
                np.flatnonzero(e.draws.codes["arm"] == e.draws.code("arm", arm)).astype(np.int64),
            )


def votes(e: Evidence) -> CheckResult:
    """Check that every vote has its registered number of draws; failures count as draws that were made."""
    if e.plan is None:
        return could_not_run(NO_PLAN)
    d = e.draws
    findings = []
    seen = False
    for arm, k, rows in _vote_rows(e):
        if not len(rows):
            continue
        seen = True
        cells = np.unique(np.stack([d.chain[rows], d.attempt[rows]]), axis=1)
        chain, counts = np.unique(cells[0], return_counts=True)
        bad = chain[counts != k]
        if len(bad):
            affected = rows[np.isin(d.chain[rows], bad)]
            message = f"{arm}: {len(bad)} votes have another number of draws than {k}: {d.some(affected)}"
            done = Deviation(f"k = {k}", f"{len(bad)} votes of {int(counts.min())} to {int(counts.max())}")
            findings.append(AuditFinding("high", message, _arm_rules(arm), True, done, affected))
    if not seen:
        return not_applicable("no vote was registered and run")
    return found(findings, "every vote has its registered number of draws")
