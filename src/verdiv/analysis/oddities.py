"""What is odd about the draws of a log that is counted bucket by bucket: the findings that reading it whole gives."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from verdiv.analysis.flatcolumns import FlatDraws
from verdiv.estimators.observations import BoolArray, Labels
from verdiv.runlog.notices import ODDITIES, RETRYING, SHOWN, oddity
from verdiv.runlog.records import Header
from verdiv.runlog.table import Finding, InputFile

__all__ = ["Odd", "log_findings", "oddities"]

Odd: TypeAlias = dict[tuple[int, str], tuple[int, list[tuple[int, str]]]]
"""Input and check to the draws that it names: how many, and row and id of the first of them."""


def _odd(flat: FlatDraws) -> Iterator[tuple[str, BoolArray]]:
    """Yield what is odd about draws, by the name of the check."""
    d = flat.columns
    own = np.arange(len(d))
    yield "log.ended_before_started", d.seconds < 0
    other = (d.parent < 0) | (d.task[d.parent] != d.task)
    yield "log.parent_of_other_task", flat.named_parent & other
    source = d.source
    lost = source == own
    differs = (
        (d.task[source] != d.task) | (d.tier.codes[source] != d.tier.codes) | (d.correct[source] != d.correct)
    )
    for column in (d.flagged, d.output):
        differs |= (column[source] >= 0) & (column >= 0) & (column[source] != column)
    yield "log.copy_disagrees", flat.named_copy & (lost | differs)
    yield "log.retry_prompt", _retrying(d.arm) & (d.attempt > 1) & (d.kind == 0)
    yield "log.unscored", (d.correct < 0) & ~d.errored


def _retrying(arm: Labels) -> BoolArray:
    retries = np.array([*(name in RETRYING for name in arm.names), False])
    return retries[arm.codes]


def oddities(flat: FlatDraws) -> Odd:
    """Collect what is odd about the draws of some tasks."""
    found: Odd = {}
    for check, mask in _odd(flat):
        if not mask.any():
            continue
        for log in np.unique(flat.log[mask]).tolist():
            rows = np.flatnonzero(mask & (flat.log == log))
            first = rows[np.argsort(flat.row[rows], kind="stable")[:SHOWN]]
            names = [(int(flat.row[i]), flat.ids[int(i)].as_py()) for i in first]
            found[log, check] = (len(rows), names)
    return found


def log_findings(
    odd: Sequence[Odd], logs: Sequence[tuple[Header, InputFile, tuple[Finding, ...]]]
) -> Iterator[Finding]:
    """Yield the findings of each log, its own first, then what its draws share in all buckets."""
    for i, (header, file, own) in enumerate(logs):
        yield from own
        if header.expected_draws is not None and header.expected_draws != file.draws:
            message = (
                f"{file.path}: the design calls for {header.expected_draws} draws, {file.draws} were read"
            )
            yield Finding("medium", "log.expected_draws", message)
        for check in ODDITIES:
            told = [found[i, check] for found in odd if (i, check) in found]
            if told:
                first = heapq.nsmallest(SHOWN, (one for _, names in told for one in names))
                yield oddity(
                    check, sum(n for n, _ in told), [name for _, name in first], file.draws, file.path
                )
