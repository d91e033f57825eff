"""Several logs as one: their draws one after the other, and where they clash."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pandas as pd

from verdiv.errors import Fault, InputRefused
from verdiv.runlog.records import Gate, Header
from verdiv.runlog.table import Finding, InputFile, RunLog

__all__ = ["header_findings", "joined"]


def joined(logs: Sequence[RunLog]) -> RunLog:
    """Return several logs as one.

    Parameters
    ----------
    logs
        Logs of one file each, in order.

    Returns
    -------
    RunLog
        ``log`` in the table is the place in ``inputs``. Where logs of different runs use the same draw_id
        for different draws, the later log's ids get its run id in front, which is a finding.

    Raises
    ------
    InputRefused
        A file given twice; draws that stand in two logs; one log gated by the verifier and another by the
        truth. A log whose gate is ``none`` joins either.
    """
    if len(logs) == 1:
        return logs[0]
    faults = [*_same_file(logs), *_gates(logs)]
    if faults:
        raise InputRefused("the logs cannot be joined", faults)
    findings = [finding for log in logs for finding in log.findings]
    findings += _clashes(logs)
    seen: set[str] = set()
    frames: list[pd.DataFrame] = []
    for place, log in enumerate(logs):
        frame = log.draws.assign(log=np.full(len(log.draws), place, dtype=np.int64))
        if not seen.isdisjoint(frame["draw_id"]):
            frame, finding = _renamed(frame, log, seen, frames, logs)
            findings.append(finding)
        seen.update(frame["draw_id"])
        frames.append(frame)
    return RunLog(
        headers=tuple(header for log in logs for header in log.headers),
        draws=pd.concat(frames, ignore_index=True),
        inputs=tuple(one for log in logs for one in log.inputs),
        findings=tuple(findings),
    )


def header_findings(headers: Sequence[Header], inputs: Sequence[InputFile]) -> list[Finding]:
    """Return what the headers of several logs disagree in, without their draws.

    Raises
    ------
    InputRefused
        A file or a run given twice, or logs of two gates, as :func:`joined`.
    """
    logs = [RunLog((h,), pd.DataFrame(), (i,), ()) for h, i in zip(headers, inputs, strict=True)]
    faults = [*_same_file(logs), *_gates(logs)]
    if faults:
        raise InputRefused("the logs cannot be joined", faults)
    return list(_clashes(logs))


def _same_file(logs: Sequence[RunLog]) -> Iterator[Fault]:
    first: dict[str, str] = {}
    for log in logs:
        one = log.inputs[0]
        if one.sha256 in first:
            got = f"the same bytes as {first[one.sha256]}"
            yield Fault(one.path, "a log that is not named twice", got, "name each log once")
        first.setdefault(one.sha256, one.path)


def _gates(logs: Sequence[RunLog]) -> Iterator[Fault]:
    gated = [
        (log.inputs[0].path, log.headers[0].gate) for log in logs if log.headers[0].gate is not Gate.NONE
    ]
    for path, gate in gated[1:]:
        if gate is not gated[0][1]:
            yield Fault(
                path,
                f"gate {gated[0][1].value}, as in {gated[0][0]}",
                gate.value,
                "what a retry answers differs between them: analyse them apart",
                field="gate",
            )


def _clashes(logs: Sequence[RunLog]) -> Iterator[Finding]:
    """Yield what the headers disagree in."""
    told: list[tuple[str, str, Callable[[Header], str | None]]] = [
        ("log.registrations_differ", "registration digests", lambda one: one.preregistration_sha256),
        ("log.suites_differ", "suite digests", lambda one: one.suite_sha256),
    ]
    for check, what, read in told:
        values = {log.inputs[0].path: read(log.headers[0]) for log in logs}
        said = {value for value in values.values() if value is not None}
        if len(said) > 1:
            places = ", ".join(f"{path} {value[:12]}…" for path, value in values.items() if value is not None)
            yield Finding("high", check, f"the logs' {what} differ: {places}")
        elif said and None in values.values():
            without = ", ".join(path for path, value in values.items() if value is None)
            yield Finding("low", check, f"the logs' {what} cannot be compared: none in {without}")
    tiers = sorted({tier for log in logs for tier in log.headers[0].models})
    for tier in tiers:
        cards = {log.headers[0].models[tier] for log in logs if tier in log.headers[0].models}
        if len(cards) > 1:
            names = ", ".join(sorted(f"{c.name} ({c.precision or 'precision unknown'})" for c in cards))
            yield Finding("medium", "log.models_differ", f"tier {tier} is not one model in all logs: {names}")


def _renamed(
    frame: pd.DataFrame, log: RunLog, seen: set[str], frames: list[pd.DataFrame], logs: Sequence[RunLog]
) -> tuple[pd.DataFrame, Finding]:
    """Put a log's run id in front of its draw ids, unless the draws themselves stand in two logs."""
    path, run = log.inputs[0].path, log.headers[0].run_id
    taken = frame["draw_id"].isin(seen).to_numpy()
    before = pd.concat(frames, ignore_index=True)
    runs = [other.headers[0].run_id for other in logs[: len(frames)]]
    own = frame[taken].set_index("draw_id").drop(columns="log")
    there = before[before["draw_id"].isin(own.index)].set_index("draw_id").drop(columns="log")
    same = own.equals(there.loc[own.index])
    prefix = f"{run}/"
    renamed = prefix + frame["draw_id"].astype(object)
    if run in runs or same or not seen.isdisjoint(renamed):
        example = str(own.index[0])
        got = f"{int(taken.sum())} draws that stand in another log too, first {example!r}"
        fault = Fault(
            path, "draws of its own", got, "name each run once, or give the runs draw_ids of their own"
        )
        raise InputRefused("the logs cannot be joined", [fault])
    frame = frame.assign(draw_id=renamed.astype(object))
    for field in ("parent", "copy_of"):
        values = frame[field]
        frame[field] = values.where(values.isna(), prefix + values.astype(str)).astype(object)
    message = f"{path}: {int(taken.sum())} draw ids stand in another run's log too; its ids read {prefix}… from here on"
    return frame, Finding("medium", "log.draw_ids_clash", message)
