"""The draws of one or several run logs as a table, with what was read and what was noticed.

The table has one row a draw, in the order of the log, and exactly the columns of :data:`DRAW_COLUMNS`.
A missing outcome is missing (``NA``, ``NaN``, ``None``, ``NaT``), never 0 or ``False``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal, TypeAlias

import pandas as pd

from verdiv.errors import InputRefused
from verdiv.runlog.columns import (
    DRAW_COLUMNS,
    OUTPUT_COLUMNS,
    TableBuilder,
    bad_times,
    draw_chunk,
)
from verdiv.runlog.records import Draw, Header
from verdiv.runlog.stamps import time_fault

__all__ = [
    "DRAW_COLUMNS",
    "OUTPUT_COLUMNS",
    "Finding",
    "InputFile",
    "RunLog",
    "Severity",
    "Status",
    "draws_frame",
]

Severity: TypeAlias = Literal["info", "low", "medium", "high"]
"""How much a finding weighs, least first."""

Status: TypeAlias = Literal["complete", "incomplete"]
"""Whether a log ends with a footer that matches it."""

BATCH = 4096
"""Draws turned into columns at once."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """One run log as it was read."""

    path: str
    """Where it was read from; ``-`` is standard input."""
    sha256: str
    """SHA-256 of the file's bytes as stored (compressed where it is compressed), lower-case hex."""
    draws: int
    """Number of draw records, copies and failures included."""
    tasks: int
    """Number of distinct tasks."""
    status: Status
    """``incomplete``: no footer, or a half last line."""
    gate: str
    """What sent a draw to retry: ``verifier``, ``truth`` or ``none``."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something noticed that does not stop the reading."""

    severity: Severity
    check: str
    """Short stable name of the check, e.g. ``log.incomplete``."""
    message: str
    """One sentence with the place and the values."""
    rules: tuple[str, ...] = ()
    """Rules that it touches, e.g. ``("P5",)``; empty for none in particular."""


@dataclass(frozen=True, slots=True)
class RunLog:
    """Draws of one or several run logs."""

    headers: tuple[Header, ...]
    """One header an input, in the same order."""
    draws: pd.DataFrame
    """The draws table, see :data:`DRAW_COLUMNS`."""
    inputs: tuple[InputFile, ...]
    findings: tuple[Finding, ...]


def draws_frame(draws: Iterable[Draw], outputs: bool = False) -> pd.DataFrame:
    """Return draw records as the draws table.

    Parameters
    ----------
    draws
        Records, in the order the table keeps.
    outputs
        Add the columns of :data:`OUTPUT_COLUMNS`.

    Returns
    -------
    pandas.DataFrame
        One row a draw; exactly the columns and dtypes of :data:`DRAW_COLUMNS`; ``log`` is 0. No draws give
        the same columns without rows.

    Raises
    ------
    InputRefused
        A time that no calendar has.

    Examples
    --------
    >>> from verdiv.runlog.records import Draw
    >>> frame = draws_frame([Draw(draw_id="d1", task_id="t1", arm="A0", correct=None, billed=1.0)])
    >>> frame.loc[0, ["draw_id", "arm", "correct", "parent"]].tolist()
    ['d1', 'A0', <NA>, None]
    """
    builder = TableBuilder(outputs=outputs)
    row = 1
    for batch in _batches(draws):
        chunk = draw_chunk(batch, range(row, row + len(batch)), builder.interned, outputs=outputs)
        faults = [time_fault("draws", *bad) for bad in bad_times(chunk)]
        if faults:
            raise InputRefused("draws refused", faults)
        builder.add(chunk)
        row += len(batch)
    return builder.frame()


def _batches(draws: Iterable[Draw]) -> Iterator[list[Draw]]:
    left = iter(draws)
    while batch := list(islice(left, BATCH)):
        yield batch
