"""Whether every arm got what its name says: the prompt, the message, the vote, the answer."""

from __future__ import annotations

import numpy as np

from verdiv.audit.evidence import Evidence
from verdiv.audit.outcome import (
    AuditFinding,
    CheckResult,
    Deviation,
    could_not_run,
    found,
    not_applicable,
)

__all__ = [
    "answered_class",
    "blind_prompts",
    "emission",
    "failures",
    "feedback_prompts",
    "prompt_kinds",
    "sharing",
]

FEEDBACK_RULES = ("P2", "P3", "P4", "P5")


def prompt_kinds(e: Evidence) -> CheckResult:
    """Check that retries of every arm have the kind of prompt that the plan gives them."""
    if e.plan is None:
        return could_not_run("no registration says what an arm is shown")
    d = e.draws
    findings = []
    for arm, plan in e.plan.arms.items():
        wanted = plan.prompt if plan.prompt in ("blind", "feedback") else "initial"
        later = (d.codes["arm"] == d.code("arm", arm)) & (d.attempt > 1)
        rows = np.flatnonzero(later & (d.codes["prompt_kind"] != d.code("prompt_kind", wanted)))
        if len(rows):
            message = (
                f"{arm}: {len(rows)} draws after the first have a prompt of another kind than {wanted}: "
                f"{d.some(rows)}"
            )
            done = Deviation(f"{wanted} prompts", f"{len(rows)} others")
            findings.append(AuditFinding("critical", message, ("P1", *FEEDBACK_RULES), True, done, rows))
    return found(findings, "draws after the first are shown what the plan says")


def _against_first(e: Evidence, kind: str, *, equal: bool) -> CheckResult:
    """Compare retry prompts with the prompt that the chain began with."""
    d = e.draws
    rows = np.flatnonzero(
        (d.codes["prompt_kind"] == d.code("prompt_kind", kind)) & (d.digests["prompt_sha256"] != 0)
    )
    if not (d.codes["prompt_kind"] == d.code("prompt_kind", kind)).any():
        return not_applicable(f"no draw has a {kind} prompt")
    first = np.zeros(int(d.chain.max()) + 1, dtype=np.uint64)
    begin = np.flatnonzero(d.attempt == 1)
    first[d.chain[begin]] = d.digests["prompt_sha256"][begin]
    rows = rows[first[d.chain[rows]] != 0]
    if not len(rows):
        return could_not_run("the log tells no digests of prompts")
    same = d.digests["prompt_sha256"][rows] == first[d.chain[rows]]
    bad = rows[same != equal]
    findings = []
    if len(bad):
        rules: tuple[str, ...]
        if equal:
            message = (
                f"{len(bad)} blind prompts are not the prompt that their chain began with: {d.some(bad)}"
            )
            done, rules = (
                Deviation("blind prompts repeat the first", f"{len(bad)} do not"),
                ("P1", "P2", "P4"),
            )
        else:
            message = (
                f"{len(bad)} feedback prompts are the first prompt again, without any message: {d.some(bad)}"
            )
            done, rules = Deviation("feedback prompts hold the message", f"{len(bad)} do not"), FEEDBACK_RULES
        findings.append(AuditFinding("critical", message, rules, True, done, bad))
    return found(findings, f"{len(rows)} {kind} prompts {'repeat' if equal else 'differ from'} the first")


def blind_prompts(e: Evidence) -> CheckResult:
    """Check that a blind prompt equals the first one of its chain."""
    return _against_first(e, "blind", equal=True)


def feedback_prompts(e: Evidence) -> CheckResult:
    """Check that a feedback prompt differs from the first one, and from those of other errors' answers.

    With a suite and outputs the whole prompt is built again (`scoring.prompts`); by digests alone, a prompt
    equal to the first one certainly lacks the message.
    """
    return _against_first(e, "feedback", equal=False)


def answered_class(e: Evidence) -> CheckResult:
    """Check that the class a feedback prompt answered is the class of the error before it."""
    d = e.draws
    rows = np.flatnonzero((d.codes["answered_class"] >= 0) & (d.parent >= 0))
    if not len(rows):
        return not_applicable("no draw says which class of error it answers")
    translate = np.full(len(d.names["error_class"]) + 1, -1)
    for code, name in enumerate(d.names["error_class"]):
        translate[code] = d.code("answered_class", name)
    of_parent = translate[d.codes["error_class"][d.parent[rows]]]
    unclassified = d.codes["answered_class"][rows] == d.code("answered_class", "unclassified")
    bad = rows[(of_parent != d.codes["answered_class"][rows]) & ~(unclassified & (of_parent == -1))]
    findings = []
    if len(bad):
        message = (
            f"{len(bad)} draws answer another class of error than the draw before them had: {d.some(bad)}"
        )
        findings.append(AuditFinding("high", message, FEEDBACK_RULES, True, rows=bad))
    return found(findings, f"{len(rows)} draws answer the class of the error before them")


def emission(e: Evidence) -> CheckResult:
    """Check that every chain emits one answer: the first that passed, else the last; a vote, one of its draws."""
    d = e.draws
    emitted = d.tri["emitted"]
    if (emitted < 0).all():
        return could_not_run("the log does not say what was answered")
    rows, starts = d.measured, d.chain_starts
    if not len(rows):
        return could_not_run("no draw is a measurement")
    told = np.minimum.reduceat(emitted[rows], starts) >= 0
    count = np.add.reduceat((emitted[rows] == 1).astype(np.int64), starts)
    failed = np.isin(d.chain[rows[starts]], np.unique(d.chain[d.failed]))
    wrong = told & (count != 1) & ~(failed & (count == 0))
    findings = []
    bad = rows[starts[wrong]]
    if len(bad):
        message = f"{len(bad)} chains emit not one draw: {d.some(bad)}"
        findings.append(AuditFinding("high", message, ("P2", "P3"), True, rows=bad))
    gated = np.isin(d.codes["arm"], [d.code("arm", arm) for arm in _gated(e)])
    ends = np.append(starts[1:], len(rows)) - 1
    stop = rows[ends]
    odd = told & (count == 1) & gated[stop] & (emitted[stop] != 1) & ~failed
    bad = stop[odd]
    if len(bad):
        message = f"{len(bad)} gated chains do not emit the draw that they ended on: {d.some(bad)}"
        findings.append(AuditFinding("high", message, ("P2", "P3"), True, rows=bad))
    return found(findings, f"{int(told.sum())} chains emit one draw each, a gated one its last")


def _gated(e: Evidence) -> list[str]:
    if e.plan is None:
        return [arm for arm in ("A2", "A2s", "A3", "A5") if arm in e.draws.names["arm"]]
    return [arm for arm, plan in e.plan.arms.items() if plan.prompt in ("blind", "feedback")]


def failures(e: Evidence) -> CheckResult:
    """Check that failed draws are no measurements: no answer, no bill."""
    d = e.draws
    failed = d.failed
    if not failed.any():
        return not_applicable("no draw failed")
    bad = np.flatnonzero(
        failed & ((d.tri["emitted"] == 1) | (d.numbers["billed"] > 0) | (d.tri["correct"] >= 0))
    )
    served = bad[np.isin(d.codes["error_kind"][bad], [d.code("error_kind", "unscored")], invert=True)]
    findings = []
    if len(served):
        message = f"{len(served)} failed draws are emitted, billed or scored: {d.some(served)}"
        findings.append(AuditFinding("high", message, ("P2", "P3"), True, rows=served))
    return found(findings, f"{int(failed.sum())} failed draws, none of them used as a measurement")


def sharing(e: Evidence) -> CheckResult:
    """Check that first draws are copies exactly where the plan lets arms share them."""
    if e.plan is None:
        return could_not_run("no registration says which arms share a first draw")
    d = e.draws
    groups = {arm: plan.shares_initial_with or arm for arm, plan in e.plan.arms.items()}
    heads = [groups.get(name, name) for name in d.names["arm"]]
    group_of = np.array([heads.index(head) for head in heads], dtype=np.int64)
    rows = np.flatnonzero(d.copy_of >= 0)
    arms = d.codes["arm"]
    bad = rows[(group_of[arms[rows]] != group_of[arms[d.copy_of[rows]]]) | (d.attempt[rows] != 1)]
    findings = []
    if len(bad):
        message = f"{len(bad)} draws are copies where the plan shares none: {d.some(bad)}"
        done = Deviation("draws of their own", f"{len(bad)} copies")
        findings.append(AuditFinding("high", message, ("P1", "P2", "P3"), True, done, bad))
    return found(findings, f"{len(rows)} copies, each of a first draw that the plan shares")
