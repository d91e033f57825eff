"""Whether the log is whole and untouched, and its draws are draws of their own."""

from __future__ import annotations

import numpy as np

from verdiv.audit.evidence import Evidence
from verdiv.audit.outcome import AuditFinding, CheckResult, could_not_run, found, not_applicable
from verdiv.errors import Fault

__all__ = ["complete", "copies", "expected_count", "integrity", "seed_forwarded"]

ALL = ("P1", "P2", "P3", "P4", "P5", "P6", "R1", "R2", "R3", "R4")

MANY = 20
"""Pairs of wrong outputs that must all be equal before a seed looks unused."""

PARTS = ("chain", "count", "ids", "times", "format")
"""What a fault of a refused log can be about."""


def part_of(fault: Fault) -> str:
    """Say which part of a log's integrity a reader's fault is about."""
    field = fault.field or ""
    if field in ("prev", "head"):
        return "chain"
    if field == "draws" or "behind the footer" in fault.expected:
        return "count"
    if field in ("draw_id", "parent", "copy_of"):
        return "ids"
    if field in ("started_at", "ended_at"):
        return "times"
    return "format"


def integrity(e: Evidence, part: str) -> CheckResult:
    """Report what the readers found of one part: chain, count and head, ids, times, format."""
    faults = [fault for fault in e.logs.faults if part_of(fault) == part]
    if faults:
        more = f" (and {len(faults) - 3} more like it)" if len(faults) > 3 else ""
        said = "; ".join(str(fault) for fault in faults[:3]) + more
        return found([AuditFinding("critical", said, ALL, True)], "")
    if e.logs.faults:
        return could_not_run("a log is refused for other faults, after which nothing of it is certain")
    if not e.logs.inputs:
        return could_not_run("no log was given")
    said = {
        "chain": "every line carries the digest of the line before it",
        "count": "the footers' counts are the draws that stand there",
        "ids": "every draw has an id of its own, and answers or repeats draws that are there",
        "times": "every time is of the calendar and has an offset",
        "format": "every field is known and of its type",
    }[part]
    return found([], said)


def complete(e: Evidence) -> CheckResult:
    """Check that every log ends with its footer."""
    if not e.logs.inputs:
        return could_not_run("no log could be read")
    findings = [
        AuditFinding(
            "medium",
            f"{file.path} has no footer: its last draws may be missing, and its last line may have been changed",
            ALL,
            True,
        )
        for file in e.logs.inputs
        if file.status == "incomplete"
    ]
    return found(findings, "every log ends with its footer")


def expected_count(e: Evidence) -> CheckResult:
    """Compare the draws of a log with the number that its header expects."""
    said = [(h.expected_draws, f) for h, f in zip(e.logs.headers, e.logs.inputs, strict=True)]
    if all(count is None for count, _ in said):
        return not_applicable("no header fixes a number of draws")
    findings = [
        AuditFinding("high", f"{file.path} holds {file.draws} draws, its header expects {count}", ALL, True)
        for count, file in said
        if count is not None and count != file.draws
    ]
    return found(findings, "every log holds the number of draws that its header expects")


def copies(e: Evidence) -> CheckResult:
    """Hold every copied draw against the draw it repeats."""
    d = e.draws
    rows = np.flatnonzero(d.copy_of >= 0)
    if not len(rows):
        return not_applicable("no draw is a copy")
    source = d.copy_of[rows]
    wrong = np.zeros(len(rows), dtype=bool)
    for name in ("correct", "flagged"):
        wrong |= d.tri[name][rows] != d.tri[name][source]
    for name in ("task_id", "tier", "error_class", "condition"):
        wrong |= d.codes[name][rows] != d.codes[name][source]
    for name in ("output_sha256", "prompt_sha256"):
        wrong |= d.digests[name][rows] != d.digests[name][source]
    wrong |= d.copy_of[source] >= 0
    bad = rows[wrong]
    findings = []
    if len(bad):
        message = f"{len(bad)} draws differ from the draw they say they repeat: {d.some(bad)}"
        findings.append(AuditFinding("high", message, ("P1", "P2", "P3"), True, rows=bad))
    return found(findings, f"{len(rows)} copies equal what they repeat")


def seed_forwarded(e: Evidence) -> CheckResult:
    """Look for sampled draws whose outputs never differ: a seed or a temperature that never reached the server.

    Pairs are neighbouring sampled draws of one prompt with different seeds, or different attempts of a vote.
    Equal correct outputs say nothing, since a right answer may have one spelling; wrong ones that are all equal
    do.
    """
    d = e.draws
    sampled = (d.numbers["temperature"] > 0) & ~d.failed & (d.copy_of < 0) & (d.digests["output_sha256"] != 0)
    rows = np.flatnonzero(
        sampled & (d.attempt == 1) | sampled & (d.codes["prompt_kind"] == d.code("prompt_kind", "initial"))
    )
    if len(rows) < 2:
        return could_not_run("no two sampled first draws with outputs or their digests")
    keys = (d.codes["task_id"][rows], d.codes["tier"][rows], d.codes["arm"][rows], d.codes["condition"][rows])
    order = np.lexsort((d.attempt[rows], d.replicate[rows], *keys))
    rows = rows[order]
    one, two = rows[:-1], rows[1:]
    same = np.ones(len(one), dtype=bool)
    for name in ("task_id", "tier", "arm", "condition"):
        same &= d.codes[name][one] == d.codes[name][two]
    wrong = (d.tri["correct"][one] == 0) & (d.tri["correct"][two] == 0)
    pairs = same & wrong
    equal = d.digests["output_sha256"][one] == d.digests["output_sha256"][two]
    findings = []
    told = False
    for arm_code, arm in enumerate(d.names["arm"]):
        here = pairs & (d.codes["arm"][one] == arm_code)
        count = int(here.sum())
        if count < MANY:
            continue
        told = True
        if equal[here].all():
            message = (
                f"{arm}: {count} of {count} pairs of sampled wrong outputs to one prompt are equal byte for byte; "
                "the seed or the temperature seems not to have reached the server"
            )
            findings.append(AuditFinding("high", message, ("P1", "P2", "R1"), rows=two[here]))
    if not told:
        return could_not_run(f"no arm has {MANY} pairs of sampled wrong outputs to one prompt")
    return found(findings, "sampled wrong outputs to one prompt differ")
