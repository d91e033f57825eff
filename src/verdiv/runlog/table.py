"""The draws of one or several run logs as a table, with what was read and what was noticed.

The table has one row a draw, in the order of the log, and exactly the columns of :data:`DRAW_COLUMNS`.
A missing outcome is missing (``NA``, ``NaN``, ``None``, ``NaT``), never 0 or ``False``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from verdiv.errors import Fault, InputRefused
from verdiv.runlog.records import Draw, Header

__all__ = [
    "DRAW_COLUMNS",
    "OUTPUT_COLUMNS",
    "DrawColumns",
    "Finding",
    "InputFile",
    "RunLog",
    "Severity",
    "Status",
    "draws_frame",
    "instants",
    "time_fault",
]

Severity: TypeAlias = Literal["info", "low", "medium", "high"]
"""How much a finding weighs, least first."""

Status: TypeAlias = Literal["complete", "incomplete"]
"""Whether a log ends with a footer that matches it."""

DRAW_COLUMNS: dict[str, str] = {
    "draw_id": "object",
    "task_id": "object",
    "family": "object",
    "arm": "object",
    "condition": "object",
    "copy_of": "object",
    "tier": "object",
    "model": "object",
    "precision": "object",
    "temperature": "float64",
    "top_p": "float64",
    "seed": "Int64",
    "max_tokens": "Int64",
    "replicate": "int64",
    "attempt": "int64",
    "prompt_kind": "object",
    "parent": "object",
    "prompt_sha256": "object",
    "output_sha256": "object",
    "correct": "boolean",
    "flagged": "boolean",
    "error_class": "object",
    "code": "object",
    "answered_class": "object",
    "oracle_flagged": "boolean",
    "billed": "float64",
    "tokens_in": "Int64",
    "tokens_out": "Int64",
    "started_at": "datetime64[ns, UTC]",
    "ended_at": "datetime64[ns, UTC]",
    "in_flight": "Int64",
    "device_seconds": "float64",
    "emitted": "boolean",
    "error_kind": "object",
    "log": "int64",
}
"""Column to dtype of the draws table, in order; ``log`` indexes the inputs."""

OUTPUT_COLUMNS: dict[str, str] = {"output": "object", "message": "object"}
"""Columns that follow when outputs are asked for: the draw's text and the verifier's message."""


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


class DrawColumns:
    """Column buffers that draws are added to batch by batch, at a fraction of the records' memory.

    Parameters
    ----------
    outputs
        Keep the outputs and the verifier's messages too.

    Notes
    -----
    Values that repeat (tasks, arms, models, prompts) are stored once.
    """

    def __init__(self, *, outputs: bool = False) -> None:
        self.names = [*DRAW_COLUMNS, *(OUTPUT_COLUMNS if outputs else {})]
        self.outputs = outputs
        self.rows = 0
        self._parts: dict[str, list[Any]] = {name: [] for name in self.names}
        self._interned: dict[str, str] = {}

    def __len__(self) -> int:
        """Return the number of draws added."""
        return self.rows

    def _same(self, values: Iterable[str | None]) -> list[str | None]:
        """Replace equal strings by one object."""
        keep = self._interned.setdefault
        return [None if value is None else keep(value, value) for value in values]

    def add(self, draws: Sequence[Draw]) -> None:
        """Add a batch of draws, in order.

        Parameters
        ----------
        draws
            Records whose fields hold to their types.

        Raises
        ------
        InputRefused
            A time that no calendar has, with the row it stands in.
        """
        if not draws:
            return
        same, part = self._same, self._part
        decoding = [d.decoding for d in draws]
        static = [d.static for d in draws]
        part("draw_id", _texts([d.draw_id for d in draws]))
        part("task_id", _texts(same(d.task_id for d in draws)))
        part("family", _texts(same(d.family for d in draws)))
        part("arm", _texts(same(d.arm for d in draws)))
        part("condition", _texts(same(d.condition for d in draws)))
        part("copy_of", _texts([d.copy_of for d in draws]))
        part("tier", _texts(same(d.tier for d in draws)))
        part("model", _texts(same(d.model for d in draws)))
        part("precision", _texts(same(d.precision for d in draws)))
        part("temperature", _floats([None if x is None else x.temperature for x in decoding]))
        part("top_p", _floats([None if x is None else x.top_p for x in decoding]))
        part("seed", _integers([None if x is None else x.seed for x in decoding]))
        part("max_tokens", _integers([None if x is None else x.max_tokens for x in decoding]))
        part("replicate", np.array([d.replicate for d in draws], dtype=np.int64))
        part("attempt", np.array([d.attempt for d in draws], dtype=np.int64))
        part("prompt_kind", _texts(same(d.prompt_kind._value_ for d in draws)))
        part("parent", _texts([d.parent for d in draws]))
        part("prompt_sha256", _texts(same(d.prompt_sha256 for d in draws)))
        part("output_sha256", _texts([d.output_sha256 for d in draws]))
        part("correct", _booleans([d.correct for d in draws]))
        part("flagged", _booleans([None if x is None else x.flagged for x in static]))
        classes = [None if x is None else x.error_class for x in static]
        part("error_class", _texts(same(None if c is None else c._value_ for c in classes)))
        part("code", _texts(same(None if x is None else x.code for x in static)))
        answered = [d.answered_class for d in draws]
        part("answered_class", _texts(same(None if c is None else c._value_ for c in answered)))
        part("oracle_flagged", _booleans([None if d.oracle is None else d.oracle.flagged for d in draws]))
        part("billed", np.array([d.billed for d in draws], dtype=np.float64))
        part("tokens_in", _integers([d.tokens_in for d in draws]))
        part("tokens_out", _integers([d.tokens_out for d in draws]))
        part("started_at", self._times("started_at", [d.started_at for d in draws]))
        part("ended_at", self._times("ended_at", [d.ended_at for d in draws]))
        part("in_flight", _integers([d.in_flight for d in draws]))
        part("device_seconds", _floats([d.device_seconds for d in draws]))
        part("emitted", _booleans([d.emitted for d in draws]))
        part("error_kind", _texts(same(None if d.error is None else d.error.kind for d in draws)))
        if self.outputs:
            part("output", _texts([d.output for d in draws]))
            part("message", _texts([None if x is None else x.message for x in static]))
        self.rows += len(draws)

    def frame(self, *, log: int = 0) -> pd.DataFrame:
        """Return the table of all draws added, and empty the buffers.

        Parameters
        ----------
        log
            Index of the input that the draws come from.

        Returns
        -------
        pandas.DataFrame
            Columns of :data:`DRAW_COLUMNS` (then :data:`OUTPUT_COLUMNS`), index 0, 1, 2 ….
        """
        dtypes = {**DRAW_COLUMNS, **OUTPUT_COLUMNS}
        table: dict[str, pd.Series[Any]] = {}
        for name in self.names:
            parts = self._parts.pop(name)
            if name == "log":
                table[name] = pd.Series(np.full(self.rows, log, dtype=np.int64))
            else:
                table[name] = _column(parts, dtypes[name])
        self._parts = {name: [] for name in self.names}
        self.rows = 0
        return pd.DataFrame(table, columns=list(self.names), copy=False)

    def _part(self, name: str, values: Any) -> None:
        self._parts[name].append(values)

    def _times(self, name: str, texts: list[str | None]) -> pd.DatetimeIndex:
        times = instants(texts)
        for row in np.flatnonzero(times.isna()):
            text = texts[int(row)]
            if text is not None:
                raise InputRefused(
                    "draws refused", [time_fault("draws", text, line=self.rows + int(row) + 1, field=name)]
                )
        return times


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
    >>> frame.loc[0, ["draw_id", "attempt", "correct", "temperature"]].tolist()
    ['d1', 1, <NA>, nan]
    """
    columns = DrawColumns(outputs=outputs)
    batch: list[Draw] = []
    for draw in draws:
        batch.append(draw)
        if len(batch) == BATCH:
            columns.add(batch)
            batch = []
    columns.add(batch)
    return columns.frame()


BATCH = 4096
"""Draws turned into columns at once."""


def instants(texts: Sequence[str | None]) -> pd.DatetimeIndex:
    """Return RFC 3339 times as UTC instants; ``NaT`` for None and for what is not a time.

    Times outside 1678 to 2261 do not fit a 64-bit count of nanoseconds and count as no time.
    """
    if not any(texts):
        return pd.DatetimeIndex(np.full(len(texts), "NaT", dtype="datetime64[ns]"), tz="UTC")
    upper = [None if text is None else text.upper() for text in texts]
    found = pd.to_datetime(pd.Series(upper, dtype=object), format="ISO8601", utc=True, errors="coerce")
    return pd.DatetimeIndex(found.astype("datetime64[ns, UTC]"))


def time_fault(where: str, text: str, *, line: int | None, field: str) -> Fault:
    """Return the fault of a time that no calendar has."""
    return Fault(
        where,
        "an RFC 3339 time with offset between the years 1678 and 2261",
        repr(text),
        "write it like 2026-01-31T09:30:00.250Z",
        line=line,
        field=field,
    )


def _texts(values: Sequence[str | None]) -> np.ndarray[Any, np.dtype[np.object_]]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _floats(values: list[float | None]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array(values, dtype=np.float64)


def _integers(values: list[int | None]) -> Any:
    missing = np.array([value is None for value in values], dtype=np.bool_)
    filled = np.array([0 if value is None else value for value in values], dtype=np.int64)
    return pd.arrays.IntegerArray(filled, missing)


def _booleans(values: list[bool | None]) -> Any:
    coded = np.array([2 if value is None else value for value in values], dtype=np.int8)
    return pd.arrays.BooleanArray(coded == 1, coded == 2)


def _column(parts: list[Any], dtype: str) -> pd.Series[Any]:
    if not parts:
        return pd.Series([], dtype=dtype)
    if dtype in ("object", "float64", "int64"):
        return pd.Series(np.concatenate(parts), dtype=dtype, copy=False)
    joined: pd.Series[Any] = pd.concat([pd.Series(part) for part in parts], ignore_index=True)
    return joined
