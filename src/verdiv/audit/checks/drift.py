"""Whether models, precision, decoding, seeds and prompts stayed what was registered, from first draw to last."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verdiv.audit.draws import MISSING_INT, BoolArray, Draws, IntArray
from verdiv.audit.evidence import Evidence
from verdiv.audit.outcome import (
    AuditFinding,
    CheckResult,
    Deviation,
    could_not_run,
    found,
    not_applicable,
)

__all__ = ["decoding", "gate", "models", "precision", "prompts", "seeds", "suite_digest"]

ALL = ("P1", "P2", "P3", "P4", "P5", "P6", "R1", "R2", "R3", "R4")
SIMULATOR = "verdiv.protocol.simulator"
"""Harness of simulated logs."""
STAND_IN = "simulated-"
"""What the simulator calls a model, the tier behind it."""

NO_PLAN = "no registration says what it should be"


def _cells(d: Draws) -> Iterator[tuple[str, str, BoolArray]]:
    """Yield tier, condition and their draws."""
    pairs = np.unique(np.stack([d.codes["tier"], d.codes["condition"]]), axis=1).T
    for tier, condition in pairs.tolist():
        if tier >= 0:
            here = (d.codes["tier"] == tier) & (d.codes["condition"] == condition)
            yield d.names["tier"][tier], d.names["condition"][condition], here


def _named(e: Evidence, column: str, what: str) -> CheckResult:
    """Check a name that every tier has under a condition: registered, and one from first draw to last."""
    d = e.draws
    known = d.codes[column] >= 0
    if not known.any():
        return could_not_run(f"the log names no {what}")
    findings = []
    for tier, condition, here in _cells(d):
        codes = np.unique(d.codes[column][here & known])
        values = [d.names[column][code] for code in codes]
        wanted = _registered(e, tier, condition, column)
        if wanted is not None:
            odd = [value for value in values if value != wanted]
            rows = np.flatnonzero(here & np.isin(d.codes[column], [d.code(column, value) for value in odd]))
            if odd:
                message = (
                    f"{tier} under {condition}: {what} {', '.join(odd)[:120]} in {len(rows)} draws from "
                    f"{d.name(int(rows[0]))} on, {wanted} is registered"
                )
                done = Deviation(f"{what} {wanted}", ", ".join(odd)[:200])
                findings.append(AuditFinding("critical", message, ALL, True, done, rows))
        elif len(values) > 1:
            message = f"{tier} under {condition}: {what} changes within the run: {', '.join(values)[:160]}"
            findings.append(AuditFinding("high", message, ALL, True, rows=np.flatnonzero(here)))
    if e.plan is None and not findings:
        return could_not_run(f"{NO_PLAN}; within the log it does not change")
    return found(findings, f"{what} as registered, from the first draw to the last")


def simulated(e: Evidence) -> bool:
    """Whether every log says that it was simulated and no model was asked."""
    return bool(e.logs.headers) and all(header.harness == SIMULATOR for header in e.logs.headers)


def _registered(e: Evidence, tier: str, condition: str, column: str) -> str | None:
    if e.plan is None or tier not in e.plan.tiers:
        return None
    if column == "model":
        model = e.plan.tiers[tier].model
        if simulated(e):
            return f"{STAND_IN}{tier}"
        return None if model == "as logged" else model
    changed = e.plan.conditions.get(condition)
    if changed is not None and tier in changed.precision:
        return changed.precision[tier]
    return e.plan.tiers[tier].precision


def models(e: Evidence) -> CheckResult:
    """Check that each tier's model is the registered one, in draws and headers."""
    result = _named(e, "model", "model")
    findings = list(result.findings)
    for header, file in zip(e.logs.headers, e.logs.inputs, strict=True):
        for tier, card in header.models.items():
            wanted = _registered(e, tier, "primary", "model")
            if wanted is not None and card.name != wanted:
                message = f"{file.path}: the header names {card.name} as {tier}, {wanted} is registered"
                findings.append(AuditFinding("critical", message, ALL, True, Deviation(wanted, card.name)))
    if findings:
        return found(findings, result.message)
    if simulated(e) and e.plan is not None:
        return could_not_run("the run is simulated: no model was asked, stand-ins are named throughout")
    return result


def precision(e: Evidence) -> CheckResult:
    """Check that each tier's numeric format is the registered one under every condition."""
    return _named(e, "precision", "precision")


def decoding(e: Evidence) -> CheckResult:
    """Check temperature, top-p and token limit of every arm against the plan, or against themselves."""
    d = e.draws
    findings = []
    for code, arm in enumerate(d.names["arm"]):
        here = d.codes["arm"] == code
        plan = None if e.plan is None else e.plan.arms.get(arm)
        limits = d.masked["max_tokens"].astype(np.float64)
        limits[d.masked["max_tokens"] == MISSING_INT] = np.nan
        settings = (
            ("temperature", d.numbers["temperature"], None if plan is None else plan.temperature),
            ("top_p", d.numbers["top_p"], None if plan is None else plan.top_p),
            ("max_tokens", limits, None if plan is None else plan.max_tokens),
        )
        for name, values, wanted in settings:
            known = here & ~np.isnan(values)
            distinct = np.unique(values[known])
            if wanted is not None:
                rows = np.flatnonzero(known & (np.abs(values - wanted) > 1e-9))
                if len(rows):
                    message = (
                        f"{arm}: {name} {values[rows[0]]:g} in {len(rows)} draws from {d.name(int(rows[0]))} on, "
                        f"{wanted:g} is registered"
                    )
                    done = Deviation(f"{name} {wanted:g}", f"{values[rows[0]]:g}")
                    findings.append(AuditFinding("high", message, ALL, True, done, rows))
            elif len(distinct) > 1:
                shown = ", ".join(f"{value:g}" for value in distinct[:4])
                message = f"{arm}: {name} changes within the run: {shown}"
                findings.append(AuditFinding("medium", message, ALL, True, rows=np.flatnonzero(known)))
    if np.isnan(d.numbers["temperature"]).all():
        return found(findings, "") if findings else could_not_run("the log tells no decoding")
    return found(findings, "decoding as registered, and the same throughout")


def seeds(e: Evidence) -> CheckResult:
    """Check that every seed is the registered one of its replicate, or derived from it draw by draw."""
    from verdiv.audit.checks.seeding import derived_seed

    if e.plan is None:
        return could_not_run("no registration names the seeds")
    d = e.draws
    logged = d.masked["seed"]
    registered = np.array([*e.plan.seeds, MISSING_INT], dtype=np.int64)
    wanted = registered[np.minimum(d.replicate, len(registered) - 1)]
    if (logged == MISSING_INT).all():
        return could_not_run("the log tells no seeds")
    own = d.copy_of < 0
    off = np.flatnonzero(own & (logged != wanted))
    if len(off):
        explained = [
            wanted[row] != MISSING_INT
            and logged[row]
            in derived_seed(
                int(wanted[row]), str(d.text("arm", row)), str(d.text("task_id", row)), int(d.attempt[row])
            )
            for row in off.tolist()
        ]
        off = off[~np.array(explained, dtype=bool)]
    findings = []
    if len(off):
        row = int(off[0])
        shown = "none" if logged[row] == MISSING_INT else str(int(logged[row]))
        right = "none" if wanted[row] == MISSING_INT else str(int(wanted[row]))
        message = (
            f"{len(off)} draws have another seed than their replicate: {d.name(row)} has {shown}, "
            f"{right} is registered"
        )
        done = Deviation(f"seeds {', '.join(map(str, e.plan.seeds[:10]))}", f"{len(off)} draws with others")
        findings.append(AuditFinding("high", message, ("R1", "P1", "P2"), True, done, off))
    return found(findings, "every seed is the registered one of its replicate, or derived from it")


def prompts(e: Evidence) -> CheckResult:
    """Check that a task's first prompt is one and the same for a tier, in every arm, replicate and condition."""
    d = e.draws
    first = (d.attempt == 1) & (d.digests["prompt_sha256"] != 0)
    rows = np.flatnonzero(first)
    if not len(rows):
        return could_not_run("the log tells no digests of prompts")
    order = rows[np.lexsort((rows, d.codes["tier"][rows], d.codes["task_id"][rows]))]
    start = np.ones(len(order), dtype=bool)
    start[1:] = (np.diff(d.codes["task_id"][order]) != 0) | (np.diff(d.codes["tier"][order]) != 0)
    reference = d.digests["prompt_sha256"][order][
        np.maximum.accumulate(np.where(start, np.arange(len(order)), 0))
    ]
    bad: IntArray = order[d.digests["prompt_sha256"][order] != reference]
    findings = []
    if len(bad):
        message = f"{len(bad)} first prompts differ from the task's first one: {d.some(bad)}"
        done = Deviation("one first prompt a task", f"{len(bad)} draws with another")
        findings.append(AuditFinding("high", message, ALL, True, done, bad))
    return found(findings, "every task was asked with one first prompt")


def suite_digest(e: Evidence) -> CheckResult:
    """Compare the suite that logs, plan, lock and suite file name."""
    named = {}
    if e.plan is not None and e.plan.suite.sha256 is not None:
        named["the registration"] = e.plan.suite.sha256
    if e.lock is not None and e.lock.lock is not None and e.lock.lock.current.get("suite_sha256"):
        named["the lock"] = str(e.lock.lock.current["suite_sha256"])
    if e.suite is not None:
        named["the suite file"] = e.suite.digest
    for header, file in zip(e.logs.headers, e.logs.inputs, strict=True):
        if header.suite_sha256 is not None:
            named[file.path] = header.suite_sha256
    if len(named) < 2:
        return could_not_run("fewer than two of registration, lock, suite and log name the suite's digest")
    said = ", ".join(f"{place} {digest[:12]}…" for place, digest in named.items())
    findings = []
    if len(set(named.values())) > 1:
        findings.append(
            AuditFinding("critical", f"the suites differ: {said}", ALL, True, Deviation("one suite", said))
        )
    return found(findings, f"one suite: {said}")


def gate(e: Evidence) -> CheckResult:
    """Compare what sent draws to retry with the plan."""
    gates = sorted({header.gate.value for header in e.logs.headers})
    if e.plan is None:
        return not_applicable(f"nothing was registered; gate {', '.join(gates)}")
    findings = []
    if gates != [e.plan.gate.value]:
        message = f"gate {', '.join(gates)} in the log, {e.plan.gate.value} is registered"
        done = Deviation(f"gate {e.plan.gate.value}", ", ".join(gates))
        findings.append(AuditFinding("critical", message, ALL, True, done))
    return found(findings, f"gate {e.plan.gate.value}, as registered")
