"""Whether draws were chosen: exclusions, retries of the serving stack, stopping."""

from __future__ import annotations

from typing import Any

import numpy as np

from verdiv.audit.draws import BoolArray, Draws
from verdiv.audit.evidence import Evidence
from verdiv.audit.outcome import (
    AuditFinding,
    CheckResult,
    Deviation,
    could_not_run,
    found,
    not_applicable,
)

__all__ = ["earlier_stops", "excluded_rows", "exclusions", "infrastructure", "retry_luck", "stopping"]

ALL = ("P1", "P2", "P3", "P4", "P5", "P6", "R1", "R2", "R3", "R4")

LUCK = 1e-4
"""Chance below which retried cells coming out better than others is no accident."""

UNSCORED = "unscored"
"""Kind of error that is a missing outcome, and no failure of the serving stack."""


def excluded_rows(e: Evidence) -> dict[str, BoolArray]:
    """Replay the registered exclusion rules in order: rule to the draws that it takes out of what was left."""
    assert e.plan is not None
    d = e.draws
    left = np.ones(len(d), dtype=bool)
    taken: dict[str, BoolArray] = {}
    for rule in e.plan.exclusions:
        if rule.when == "error":
            hit = d.failed.copy()
        elif rule.when == "unscored":
            hit = d.tri["correct"] < 0
        else:
            hit = np.isin(d.codes[rule.when], [d.code(rule.when, value) for value in rule.values])
        hit &= left
        if rule.scope == "task":
            hit = left & np.isin(d.codes["task_id"], np.unique(d.codes["task_id"][hit]))
        taken[rule.id] = hit
        left &= ~hit
    return taken


def exclusions(e: Evidence) -> CheckResult:
    """Replay the registered exclusions, and hold the counts of a results file against them."""
    if e.plan is None:
        return not_applicable("no registration excludes anything")
    taken = {rule: int(rows.sum()) for rule, rows in excluded_rows(e).items()}
    said = ", ".join(f"{rule} {count}" for rule, count in taken.items()) or "none registered"
    if e.results is None:
        return found([], f"replayed from the registered rules: {said}; no results to compare with")
    stated = {str(item["rule"]): int(item["draws"]) for item in e.results.get("exclusions") or ()}
    findings = []
    if stated != taken:
        shown = ", ".join(f"{rule} {count}" for rule, count in stated.items()) or "none"
        message = f"the results exclude {shown}; the registered rules exclude {said}"
        findings.append(AuditFinding("critical", message, ALL, True, Deviation(said, shown)))
    return found(findings, f"the results exclude what the registered rules exclude: {said}")


def infrastructure(e: Evidence) -> CheckResult:
    """Hold failures and their retries against the registered policy."""
    if e.plan is None:
        return not_applicable("no registration has a policy of retries")
    d = e.draws
    served = d.failed & (d.codes["error_kind"] != d.code("error_kind", UNSCORED))
    if not served.any():
        return not_applicable("no draw failed for want of an answer")
    findings = []
    kinds = {d.names["error_kind"][code] for code in np.unique(d.codes["error_kind"][served])}
    odd = sorted(kind for kind in kinds if not _registered_kind(kind, e.plan.retries.kinds))
    if odd:
        rows = np.flatnonzero(np.isin(d.codes["error_kind"], [d.code("error_kind", kind) for kind in odd]))
        message = f"{len(rows)} failures of kinds that are not registered: {', '.join(odd)[:120]}"
        done = Deviation(", ".join(e.plan.retries.kinds), ", ".join(odd)[:200])
        findings.append(AuditFinding("medium", message, (), True, done, rows))
    rows = np.flatnonzero(served)
    cells, counts = np.unique(np.stack([d.chain[rows], d.attempt[rows]]), axis=1, return_counts=True)
    over = counts > e.plan.retries.max_per_draw + 1
    if over.any():
        message = (
            f"{int(over.sum())} draws failed more often ({int(counts.max())} times) than the "
            f"{e.plan.retries.max_per_draw} registered retries allow"
        )
        bad = rows[np.isin(d.chain[rows], cells[0][over])]
        done = Deviation(
            f"at most {e.plan.retries.max_per_draw} retries", f"up to {int(counts.max())} failures"
        )
        findings.append(AuditFinding("high", message, ALL, True, done, bad))
    return found(
        findings, f"{int(served.sum())} failures, of registered kinds and within the registered retries"
    )


def _registered_kind(kind: str, registered: tuple[str, ...]) -> bool:
    """Whether a kind of failure is registered; ``5xx`` stands for every status from 500 to 599."""
    return kind in registered or (len(kind) == 3 and kind.isdigit() and f"{kind[0]}xx" in registered)


def retry_luck(e: Evidence) -> CheckResult:
    """Ask whether cells that failed first came out better than others: the trace of failures made up after the fact."""
    d = e.draws
    if not d.failed.any():
        return not_applicable("no draw failed")
    key = d.chain * (int(d.attempt.max()) + 1) + d.attempt
    again = np.isin(key, key[d.failed & (d.codes["error_kind"] != d.code("error_kind", UNSCORED))])
    scored = (d.tri["correct"] >= 0) & (d.copy_of < 0)
    retried = scored & again
    if retried.sum() < 5:
        return could_not_run(f"{int(retried.sum())} retried cells with an outcome, too few to tell")
    right = d.tri["correct"] == 1
    from scipy.stats import fisher_exact  # takes longer to import than the audit of a small log

    table = np.array(
        [
            [(retried & right).sum(), (retried & ~right).sum()],
            [(scored & ~again & right).sum(), (scored & ~again & ~right).sum()],
        ],
        dtype=np.int64,
    )
    chance = float(fisher_exact(table, alternative="greater")[1])
    findings = []
    if chance < LUCK:
        message = (
            f"{table[0, 0]} of {table[0].sum()} draws made after a failure are correct, {table[1, 0]} of "
            f"{table[1].sum()} others: such luck has probability {chance:.1e}"
        )
        findings.append(AuditFinding("high", message, ALL, True, rows=np.flatnonzero(retried)))
    return found(
        findings,
        f"{int(retried.sum())} draws made after a failure are not better than others (p {chance:.2g})",
    )


def stopping(e: Evidence) -> CheckResult:
    """Compare planned with actual tasks and replicates, and tell what each earlier stop would have shown."""
    if e.plan is None:
        return could_not_run("no registration says when the run ends")
    d, rule = e.draws, e.plan.stopping
    tasks = len(np.unique(d.codes["task_id"]))
    primary = d.codes["condition"] == d.code("condition", "primary")
    replicates = int(d.replicate[primary].max()) + 1 if primary.any() else 0
    wanted = rule.planned_tasks or e.plan.suite.tasks
    runs = rule.planned_replicates or max(1, len(e.plan.seeds))
    findings = []
    for what, planned, actual in (("tasks", wanted, tasks), ("replicates", runs, replicates)):
        if actual < planned:
            stops = "; ".join(stop["text"] for stop in earlier_stops(e))
            message = (
                f"the run stopped at {actual} of {planned} planned {what}. "
                f"Earlier stops: {stops or 'not computable'}"
            )
            done = Deviation(f"{planned} {what}", f"{actual}")
            findings.append(AuditFinding("high", message, ALL, True, done))
    return found(findings, f"{tasks} tasks and {replicates} replicates, as planned")


def _answers(d: Draws, arm: str, budget: int, rows: BoolArray) -> tuple[Any, Any]:
    """Return task codes and outcomes of an arm read at a budget: the draw each chain would have ended on."""
    here = d.measured[rows[d.measured] & (d.codes["arm"][d.measured] == d.code("arm", arm))]
    here = here[d.attempt[here] <= budget]
    last = np.append(np.diff(d.chain[here]) != 0, True) if len(here) else np.zeros(0, dtype=bool)
    ends = here[last]
    ends = ends[d.tri["correct"][ends] >= 0]
    return d.codes["task_id"][ends], d.tri["correct"][ends].astype(np.float64)


def earlier_stops(e: Evidence) -> list[dict[str, Any]]:
    """Give A3 − A4 at the break-even budget after each quarter of the tasks, in the order they were first drawn."""
    if e.plan is None:
        return []
    d = e.draws
    primary = d.codes["condition"] == d.code("condition", "primary")
    order = d.codes["task_id"][np.sort(np.unique(d.codes["task_id"], return_index=True)[1])]
    found_: list[dict[str, Any]] = []
    for quarter in (1, 2, 3, 4):
        some = order[: max(1, round(len(order) * quarter / 4))]
        rows = primary & np.isin(d.codes["task_id"], some)
        means = []
        for arm, budget in (("A3", e.plan.break_even_budget), ("A4", 1)):
            tasks, outcomes = _answers(d, arm, budget, rows)
            if not len(tasks):
                return found_
            totals = np.bincount(tasks, weights=outcomes, minlength=len(d.names["task_id"]))
            counts = np.bincount(tasks, minlength=len(d.names["task_id"]))
            means.append(np.divide(totals, counts, out=np.full(len(totals), np.nan), where=counts > 0))
        gap = (means[0] - means[1])[some]
        gap = gap[~np.isnan(gap)]
        if len(gap) < 2:
            continue
        mean, error = float(gap.mean()), float(gap.std(ddof=1) / np.sqrt(len(gap)))
        text = f"after {len(some)} tasks A3 − A4 is {mean:+.3f} ± {1.96 * error:.3f}"
        found_.append({"tasks": len(some), "difference": mean, "standard_error": error, "text": text})
    return found_
