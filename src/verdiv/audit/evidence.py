"""What an audit has to look at: logs as read or as refused, plan, lock, suite, results."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import pandas as pd

from verdiv.audit.draws import DrawCollector, Draws
from verdiv.errors import Fault, InputRefused
from verdiv.preregistration import Preregistration
from verdiv.preregistration.verify import LockReport
from verdiv.runlog.columns import TableBuilder
from verdiv.runlog.lines import Progress, Source
from verdiv.runlog.passes import JsonlPass, LogPass, ParquetPass
from verdiv.runlog.records import Header
from verdiv.runlog.table import InputFile, RunLog

if TYPE_CHECKING:
    from verdiv.audit.scoring import Rescored, Rescorer
    from verdiv.protocol.suite.suitefile import Suite

__all__ = ["Evidence", "ReadLogs", "evidence_of", "read_logs"]

FRAME_ROWS = 32_768
"""Draws held as a table at once."""


@dataclass(frozen=True)
class ReadLogs:
    """Run logs, read once."""

    headers: tuple[Header, ...]
    inputs: tuple[InputFile, ...]
    draws: Draws | None
    """None where a log is refused, or none was named."""
    faults: tuple[Fault, ...] = ()
    """Why logs were refused."""
    total_faults: int = 0
    rescored: Rescored | None = None


@dataclass(frozen=True)
class Evidence:
    """Everything the checks may look at."""

    logs: ReadLogs
    plan: Preregistration | None = None
    lock: LockReport | None = None
    suite: Suite | None = None
    results: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def draws(self) -> Draws:
        """The draws; only for checks that need them, which do not run without."""
        assert self.logs.draws is not None
        return self.logs.draws


def _pass(source: Source, *, outputs: bool) -> LogPass:
    if not source.parquet:
        return JsonlPass(source, outputs=outputs, thorough=False)
    seekable = source.path if Path(source.path).is_file() else cast(BinaryIO, io.BytesIO(source.everything()))
    return ParquetPass(source, seekable, outputs=outputs, thorough=True)


def read_logs(
    paths: Sequence[str | Path], *, rescorer: Rescorer | None = None, progress: Progress | None = None
) -> ReadLogs:
    """Read run logs, checking format and chain on the way, into compact draws.

    Parameters
    ----------
    paths
        Logs in order; ``-`` is standard input.
    rescorer
        Scores every output again as it passes.
    progress
        As :func:`verdiv.runlog.reader.read_run_log`.

    Returns
    -------
    ReadLogs
        Faults instead of draws where a log is refused; a log that cannot be opened at all raises.

    Raises
    ------
    InputRefused
        A log cannot be opened.
    """
    collector = DrawCollector()
    headers: list[Header] = []
    inputs: list[InputFile] = []
    faults: list[Fault] = []
    total = 0
    for place, path in enumerate(paths):
        collector.start_log(place)
        with Source(path, progress=progress) as source:
            try:
                file, header = _read_one(source, collector, place, rescorer)
            except InputRefused as refusal:
                faults += refusal.faults
                total += max(refusal.total, 1)
                continue
        headers.append(header)
        inputs.append(file)
    draws = None if faults or not paths else collector.finish()
    rescored = rescorer.finish() if rescorer is not None and draws is not None else None
    return ReadLogs(tuple(headers), tuple(inputs), draws, tuple(faults), total, rescored)


def _read_one(
    source: Source, collector: DrawCollector, place: int, rescorer: Rescorer | None
) -> tuple[InputFile, Header]:
    reading = _pass(source, outputs=rescorer is not None)
    builder = TableBuilder(outputs=rescorer is not None)
    tasks: set[str] = set()
    count = 0

    def take(frame: pd.DataFrame) -> None:
        nonlocal count
        collector.add(frame)
        if rescorer is not None:
            rescorer.add(frame)
        tasks.update(frame["task_id"].unique())
        count += len(frame)

    for chunk in reading.chunks(builder.interned):
        builder.add(chunk)
        if builder.rows >= FRAME_ROWS:
            take(builder.frame())
    if builder.rows:
        take(builder.frame())
    reading.finish()
    header = reading.header
    file = InputFile(source.path, source.digest(), count, len(tasks), reading.status, header.gate.value)
    return file, header


def evidence_of(log: RunLog, rescorer_for: Callable[[], Rescorer] | None = None) -> ReadLogs:
    """Take a log that is already read into compact draws."""
    collector = DrawCollector()
    rescorer = rescorer_for() if rescorer_for is not None and "output" in log.draws.columns else None
    for place in range(len(log.inputs)):
        collector.start_log(place)
        frame = log.draws[log.draws["log"] == place]
        collector.add(frame)
        if rescorer is not None:
            rescorer.add(frame)
    rescored = rescorer.finish() if rescorer is not None else None
    return ReadLogs(log.headers, log.inputs, collector.finish(), rescored=rescored)
