"""Reading run logs: one or several, in any of their forms, all faults of a log at once."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

import pandas as pd

from verdiv.errors import Fault, InputRefused
from verdiv.runlog.columns import TableBuilder
from verdiv.runlog.joins import joined
from verdiv.runlog.jsonl import JsonlStream
from verdiv.runlog.lines import Progress, Source
from verdiv.runlog.notices import notices
from verdiv.runlog.passes import JsonlPass, LogPass, ParquetPass
from verdiv.runlog.records import Draw, Header
from verdiv.runlog.table import Finding, InputFile, RunLog, Status

__all__ = [
    "Origin",
    "ValidationReport",
    "iter_draws",
    "iter_frames",
    "read_run_log",
    "read_run_logs",
    "validate",
]

Origin: TypeAlias = "str | Path | BinaryIO"
"""A path, ``-`` for standard input, or an open binary stream."""

FRAME_ROWS = 65_536
"""Draws in one table of :func:`iter_frames`, about."""


def read_run_log(path: Origin, *, outputs: bool = False, progress: Progress | None = None) -> RunLog:
    """Read one run log.

    Parameters
    ----------
    path
        JSONL, gzip or zstd of it, or Parquet, told apart by their first bytes; ``-`` is standard input.
    outputs
        Load the draws' outputs and the verifier's messages too.
    progress
        Called with the stored bytes read so far and, where it is known, their total.

    Returns
    -------
    RunLog
        A log without a footer, or whose last line is cut off, reads as ``incomplete``, with a finding.

    Raises
    ------
    InputRefused
        It cannot be read, or breaks the format: all its faults together, with line and field.

    Notes
    -----
    A Parquet log's values and footer are checked, its chain is not computed again: :func:`validate` does it.
    """
    with Source(path, progress=progress) as source:
        reading = _pass(source, outputs=outputs)
        builder = TableBuilder(outputs=outputs)
        for chunk in reading.chunks(builder.interned):
            builder.add(chunk)
        reading.finish()
        return _run_log(reading, source, builder.frame())


def read_run_logs(
    paths: Sequence[Origin], *, outputs: bool = False, progress: Progress | None = None
) -> RunLog:
    """Read one or several run logs as one.

    Parameters
    ----------
    paths
        Logs in the order they are to be joined.
    outputs, progress
        As :func:`read_run_log`.

    Returns
    -------
    RunLog
        The column ``log`` tells which input a draw comes from; clashes between the logs are findings.

    Raises
    ------
    InputRefused
        No log named; the faults of the first log that has any; the same file, or the same draws, twice;
        gates that cannot be analysed together.
    """
    if not paths:
        raise InputRefused("no run log named", [Fault("arguments", "a run log", "none", "name one or more")])
    return joined([read_run_log(path, outputs=outputs, progress=progress) for path in paths])


def iter_frames(
    path: Origin, *, outputs: bool = False, progress: Progress | None = None, rows: int = FRAME_ROWS
) -> Iterator[pd.DataFrame]:
    """Yield a log's draws as tables, in order and in bounded memory.

    Parameters
    ----------
    path, outputs, progress
        As :func:`read_run_log`.
    rows
        Draws in one table, about.

    Yields
    ------
    pandas.DataFrame
        Columns of :data:`~verdiv.runlog.table.DRAW_COLUMNS`.

    Raises
    ------
    InputRefused
        As :func:`read_run_log`; faults come at the end, so that tables yielded before it count for nothing.
    """
    with Source(path, progress=progress) as source:
        reading = _pass(source, outputs=outputs)
        builder = TableBuilder(outputs=outputs)
        for chunk in reading.chunks(builder.interned):
            builder.add(chunk)
            if builder.rows >= rows:
                yield builder.frame()
        if builder.rows:
            yield builder.frame()
        reading.finish()


def iter_draws(path: Origin, *, progress: Progress | None = None) -> Iterator[Draw]:
    """Yield a log's draws as records, in order and in bounded memory.

    Parameters
    ----------
    path, progress
        As :func:`read_run_log`.

    Yields
    ------
    Draw
        With everything that the log holds of it.

    Raises
    ------
    InputRefused
        As :func:`iter_frames`, but what ties draws together is not checked.
    """
    with Source(path, progress=progress) as source:
        if source.parquet:
            yield from _pass(source).records()
            return
        stream = JsonlStream(source)
        for batch in stream.batches():
            yield from batch.draws
        stream.finish()


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """What is wrong with one log, or that nothing is."""

    path: str
    faults: tuple[Fault, ...]
    """The first faults in full."""
    total_faults: int
    """All faults, those not kept included."""
    findings: tuple[Finding, ...]
    """What was noticed; empty where the log is refused."""
    header: Header | None
    """None where it cannot be read."""
    input: InputFile | None
    """Digest, counts and status; None where the log is refused."""

    @property
    def valid(self) -> bool:
        """Whether a reader takes the log."""
        return self.total_faults == 0

    @property
    def status(self) -> Status | None:
        """``complete`` or ``incomplete``; None where the log is refused."""
        return None if self.input is None else self.input.status


def validate(path: Origin, *, progress: Progress | None = None) -> ValidationReport:
    """Check everything that can be checked of one log by itself.

    Parameters
    ----------
    path, progress
        As :func:`read_run_log`.

    Returns
    -------
    ValidationReport
        Beyond what reading checks: fields given twice in a line and, in Parquet, the chain computed again.
    """
    header: Header | None = None
    name = str(path) if isinstance(path, str | Path) else str(getattr(path, "name", "stream"))
    try:
        with Source(path, progress=progress) as source:
            reading = _pass(source, thorough=True)
            header = reading.header
            builder = TableBuilder()
            for chunk in reading.chunks(builder.interned):
                builder.add(chunk)
            reading.finish()
            log = _run_log(reading, source, builder.frame())
    except InputRefused as refusal:
        return ValidationReport(name, tuple(refusal.faults), max(refusal.total, 1), (), header, None)
    return ValidationReport(name, (), 0, log.findings, header, log.inputs[0])


def _pass(source: Source, *, outputs: bool = False, thorough: bool = False) -> LogPass:
    """Begin to read a log in whatever form it is."""
    if not source.parquet:
        return JsonlPass(source, outputs=outputs, thorough=thorough)
    seekable = source.path if Path(source.path).is_file() else cast(BinaryIO, io.BytesIO(source.everything()))
    return ParquetPass(source, seekable, outputs=outputs, thorough=thorough)


def _run_log(reading: LogPass, source: Source, frame: pd.DataFrame) -> RunLog:
    file = InputFile(
        path=source.path,
        sha256=source.digest(),
        draws=len(frame),
        tasks=int(frame["task_id"].nunique()),
        status=reading.status,
        gate=reading.header.gate.value,
    )
    findings = (*reading.findings, *notices(frame, reading.header, source.path))
    return RunLog((reading.header,), frame, (file,), findings)
