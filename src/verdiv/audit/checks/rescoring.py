"""Whether stored outcomes are what scoring again gives, on suites whose tasks are known."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from verdiv.audit.evidence import Evidence
from verdiv.audit.outcome import AuditFinding, CheckResult, Deviation, could_not_run, found
from verdiv.audit.scoring import Rescored

__all__ = ["classes", "correct", "flags", "messages", "outputs", "prompts", "votes"]

ALL = ("P1", "P2", "P3", "P4", "P5", "P6", "R1", "R2", "R3", "R4")
NO_SUITE = "no suite file was given, so that no output can be scored again"
NO_OUTPUTS = "the log holds no outputs of the suite's tasks"


def _rescored(e: Evidence) -> Rescored | str:
    if e.logs.rescored is None:
        return NO_SUITE
    return e.logs.rescored if e.logs.rescored.scored else NO_OUTPUTS


def _compared(
    e: Evidence,
    stored: npt.NDArray[np.int8],
    again: npt.NDArray[np.int8],
    what: str,
    *,
    rules: tuple[str, ...] = ALL,
) -> CheckResult:
    """Compare stored values with recomputed ones wherever both are there."""
    both = (stored >= 0) & (again >= 0) & ~e.draws.failed
    if not both.any():
        return could_not_run(f"no draw has both a stored and a recomputed {what}")
    bad = np.flatnonzero(both & (stored != again))
    findings = []
    if len(bad):
        message = (
            f"{len(bad)} of {int(both.sum())} draws: the stored {what} is not what scoring again gives: "
            f"{e.draws.some(bad)}"
        )
        findings.append(
            AuditFinding("critical", message, rules, True, Deviation(f"{what} as scored", message), bad)
        )
    return found(findings, f"{int(both.sum())} draws scored again, the same {what} for each")


def correct(e: Evidence) -> CheckResult:
    """Score every output against the ground truth again."""
    again = _rescored(e)
    if isinstance(again, str):
        return could_not_run(again)
    return _compared(e, e.draws.tri["correct"], again.correct, "outcome")


def flags(e: Evidence) -> CheckResult:
    """Put every output to the registered verifier again."""
    again = _rescored(e)
    if isinstance(again, str):
        return could_not_run(again)
    return _compared(e, e.draws.tri["flagged"], again.flagged, "flag")


def classes(e: Evidence) -> CheckResult:
    """Compare the class of every flagged error with the verifier's."""
    again = _rescored(e)
    if isinstance(again, str):
        return could_not_run(again)
    d = e.draws
    stored = np.zeros(len(d), dtype=np.int8)
    stored[d.codes["error_class"] == d.code("error_class", "structural")] = 1
    stored[d.codes["error_class"] == d.code("error_class", "semantic")] = 2
    return _compared(e, stored, again.error_class, "error class", rules=("P2", "P3", "P5"))


def messages(e: Evidence) -> CheckResult:
    """Compare every logged message with what the verifier says."""
    again = _rescored(e)
    if isinstance(again, str):
        return could_not_run(again)
    ones = np.where(again.message >= 0, 1, -1).astype(np.int8)
    return _compared(e, ones, again.message, "message", rules=("P2", "P5"))


def outputs(e: Evidence) -> CheckResult:
    """Digest every output again."""
    again = _rescored(e)
    if isinstance(again, str):
        return could_not_run(again)
    ones = np.where(again.output_digest >= 0, 1, -1).astype(np.int8)
    return _compared(e, ones, again.output_digest, "output digest")


def prompts(e: Evidence) -> CheckResult:
    """Build every prompt again, the verifier's messages included, and compare its digest."""
    again = _rescored(e)
    if isinstance(again, str):
        return could_not_run(again)
    if (again.prompt < 0).all():
        return could_not_run("the suite holds no prompts, or the log no digests of them")
    ones = np.where(again.prompt >= 0, 1, -1).astype(np.int8)
    return _compared(e, ones, again.prompt, "prompt")


def votes(e: Evidence) -> CheckResult:
    """Count every vote again: the plurality of canonical outputs, ties to the earliest."""
    again = _rescored(e)
    if isinstance(again, str):
        return could_not_run(again)
    d = e.draws
    arms = [d.code("arm", "A1")]
    if e.plan is not None:
        arms = [d.code("arm", arm) for arm, plan in e.plan.arms.items() if plan.prompt == "initial"]
    rows = d.measured[np.isin(d.codes["arm"][d.measured], arms)]
    if not len(rows):
        return could_not_run("no vote was run")
    bounds = np.append(np.flatnonzero(np.diff(d.chain[rows], prepend=-1) != 0), len(rows))
    bad = []
    counted = 0
    for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        votes_ = rows[start:end]
        answers = again.answer[votes_]
        if (answers == 0).any() or (d.tri["emitted"][votes_] < 0).any():
            continue
        counted += 1
        _, first, counts = np.unique(answers, return_index=True, return_counts=True)
        winner = votes_[first[counts == counts.max()].min()]
        if d.tri["emitted"][winner] != 1:
            bad.append(int(winner))
    if not counted:
        return could_not_run("no vote has all its outputs")
    findings = []
    if bad:
        lost = np.array(bad, dtype=np.int64)
        message = (
            f"{len(bad)} of {counted} votes do not emit their plurality: {d.some(lost)} should have been"
        )
        findings.append(AuditFinding("critical", message, ("P2",), True, rows=lost))
    return found(findings, f"{counted} votes counted again, each emitted its plurality")
