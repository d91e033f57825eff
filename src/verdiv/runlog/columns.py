"""Draw records as columns: the contract of the draws table, and its building chunk by chunk.

While a table grows, a column that may miss values is kept as plain NumPy arrays (a value and a mask, or a
code with -1 for missing); it becomes a pandas column once, at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from verdiv.errors import Fault
from verdiv.runlog.records import Draw

__all__ = [
    "DRAW_COLUMNS",
    "OUTPUT_COLUMNS",
    "Chunk",
    "Masked",
    "TableBuilder",
    "bad_times",
    "draw_chunk",
    "instants",
    "time_fault",
]

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

MISSING = -1
"""Code of a missing yes-or-no while a table grows."""

NOT_A_TIME = np.datetime64("NaT", "ns")


class Masked(NamedTuple):
    """Integers of which some are missing."""

    values: NDArray[np.int64]
    """0 where missing."""
    missing: NDArray[np.bool_]


Column: TypeAlias = "NDArray[Any] | Masked"
"""Texts (object), numbers, yes-or-no codes (int8), instants (datetime64[ns]) or :class:`Masked` integers."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some draws in the order of the log, column by column."""

    columns: dict[str, Column]
    """Every column of the table but ``log``."""
    stamps: Mapping[str, Sequence[str | None]]
    """``started_at`` and ``ended_at`` as they were written."""
    lines: Sequence[int]
    """1-based line (or row) of each draw in its log."""

    def __len__(self) -> int:
        """Return the number of draws."""
        return len(self.lines)

    def array(self, name: str) -> NDArray[Any]:
        """Return a column that is one plain array."""
        column = self.columns[name]
        if isinstance(column, Masked):
            raise TypeError(f"{name} is masked")
        return column


class TableBuilder:
    """Gathers chunks into one draws table.

    Parameters
    ----------
    outputs
        Keep the outputs and the verifier's messages too.
    """

    def __init__(self, *, outputs: bool = False) -> None:
        self.dtypes = {**DRAW_COLUMNS, **(OUTPUT_COLUMNS if outputs else {})}
        self.rows = 0
        self.interned: dict[str, str] = {}
        """Texts that repeat (tasks, arms, models, prompts), each kept once."""
        self._parts: dict[str, list[Column]] = {name: [] for name in self.dtypes}

    def add(self, chunk: Chunk) -> None:
        """Add the next draws."""
        for name, parts in self._parts.items():
            if name != "log":
                parts.append(chunk.columns[name])
        self.rows += len(chunk)

    def frame(self, *, log: int = 0) -> pd.DataFrame:
        """Return the table of all draws added so far, and start anew.

        Parameters
        ----------
        log
            Index of the input that the draws come from.

        Returns
        -------
        pandas.DataFrame
            Columns of :data:`DRAW_COLUMNS` (then :data:`OUTPUT_COLUMNS`), index 0, 1, 2 ….
        """
        table: dict[str, Any] = {}
        for name, dtype in self.dtypes.items():
            parts = self._parts[name]
            self._parts[name] = []
            table[name] = (
                np.full(self.rows, log, dtype=np.int64) if name == "log" else _finished(parts, dtype)
            )
        self.rows = 0
        return pd.DataFrame(table, copy=False)


def draw_chunk(
    draws: Sequence[Draw], lines: Sequence[int], interned: dict[str, str], *, outputs: bool = False
) -> Chunk:
    """Return draw records as columns.

    Parameters
    ----------
    draws
        Records whose fields hold to their types.
    lines
        Line of each.
    interned
        Texts kept once; it grows.
    outputs
        Add the columns of :data:`OUTPUT_COLUMNS`.

    Returns
    -------
    Chunk
        A time that no calendar has becomes ``NaT``; :func:`bad_times` finds it.
    """
    keep = interned.setdefault

    def same(values: Iterable[str | None]) -> NDArray[np.object_]:
        return texts([None if value is None else keep(value, value) for value in values])

    decoding = [d.decoding for d in draws]
    static = [d.static for d in draws]
    classes = [None if x is None else x.error_class for x in static]
    stamps = {"started_at": [d.started_at for d in draws], "ended_at": [d.ended_at for d in draws]}
    columns: dict[str, Column] = {
        "draw_id": texts([d.draw_id for d in draws]),
        "task_id": same([d.task_id for d in draws]),
        "family": same([d.family for d in draws]),
        "arm": same([d.arm for d in draws]),
        "condition": same([d.condition for d in draws]),
        "copy_of": texts([d.copy_of for d in draws]),
        "tier": same([d.tier for d in draws]),
        "model": same([d.model for d in draws]),
        "precision": same([d.precision for d in draws]),
        "temperature": floats([None if x is None else x.temperature for x in decoding]),
        "top_p": floats([None if x is None else x.top_p for x in decoding]),
        "seed": integers([None if x is None else x.seed for x in decoding]),
        "max_tokens": integers([None if x is None else x.max_tokens for x in decoding]),
        "replicate": np.array([d.replicate for d in draws], dtype=np.int64),
        "attempt": np.array([d.attempt for d in draws], dtype=np.int64),
        "prompt_kind": texts([d.prompt_kind._value_ for d in draws]),
        "parent": texts([d.parent for d in draws]),
        "prompt_sha256": same([d.prompt_sha256 for d in draws]),
        "output_sha256": texts([d.output_sha256 for d in draws]),
        "correct": yes_or_no([d.correct for d in draws]),
        "flagged": yes_or_no([None if x is None else x.flagged for x in static]),
        "error_class": texts([None if c is None else c._value_ for c in classes]),
        "code": same([None if x is None else x.code for x in static]),
        "answered_class": texts(
            [None if d.answered_class is None else d.answered_class._value_ for d in draws]
        ),
        "oracle_flagged": yes_or_no([None if d.oracle is None else d.oracle.flagged for d in draws]),
        "billed": np.array([d.billed for d in draws], dtype=np.float64),
        "tokens_in": integers([d.tokens_in for d in draws]),
        "tokens_out": integers([d.tokens_out for d in draws]),
        "started_at": instants(stamps["started_at"]),
        "ended_at": instants(stamps["ended_at"]),
        "in_flight": integers([d.in_flight for d in draws]),
        "device_seconds": floats([d.device_seconds for d in draws]),
        "emitted": yes_or_no([d.emitted for d in draws]),
        "error_kind": same([None if d.error is None else d.error.kind for d in draws]),
    }
    if outputs:
        columns["output"] = texts([d.output for d in draws])
        columns["message"] = texts([None if x is None else x.message for x in static])
    return Chunk(columns, stamps, lines)


def texts(values: Sequence[str | None]) -> NDArray[np.object_]:
    """Return strings, some of them None, as an object array."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def floats(values: Sequence[float | None]) -> NDArray[np.float64]:
    """Return numbers as floats, ``NaN`` for None."""
    return np.array(values, dtype=np.float64)


def integers(values: Sequence[int | None]) -> Masked:
    """Return integers with a mask for None."""
    missing = np.array([value is None for value in values], dtype=np.bool_)
    return Masked(np.array([0 if value is None else value for value in values], dtype=np.int64), missing)


def yes_or_no(values: Sequence[bool | None]) -> NDArray[np.int8]:
    """Return 1, 0, and :data:`MISSING` for None."""
    return np.array([MISSING if value is None else value for value in values], dtype=np.int8)


def instants(stamps: Sequence[str | None]) -> NDArray[np.datetime64]:
    """Return RFC 3339 times as UTC instants; ``NaT`` for None and for what no calendar has.

    The table counts nanoseconds in 64 bits; times before 1678 or after 2261 do not fit and count as none.
    """
    if not any(stamps):
        return np.full(len(stamps), NOT_A_TIME)
    upper = pd.Series([None if stamp is None else stamp.upper() for stamp in stamps], dtype=object)
    found = pd.to_datetime(upper, format="ISO8601", utc=True, errors="coerce")
    return found.dt.tz_localize(None).astype("datetime64[ns]").to_numpy()


def bad_times(chunk: Chunk) -> Iterator[tuple[str, int, str]]:
    """Yield what was written, its line and its field for every time that no calendar has."""
    for field, stamps in chunk.stamps.items():
        for row in np.flatnonzero(np.isnat(chunk.array(field))):
            stamp = stamps[int(row)]
            if stamp is not None:
                yield stamp, chunk.lines[int(row)], field


def time_fault(where: str, stamp: str, line: int, field: str) -> Fault:
    """Return the fault of a time that no calendar has."""
    return Fault(
        where,
        "an RFC 3339 time with offset in the years 1700 to 2199",
        repr(stamp),
        "write it like 2026-01-31T09:30:00.250Z",
        line=line,
        field=field,
    )


def _finished(parts: Sequence[Column], dtype: str) -> Any:
    """Join a column's parts into what the table holds."""
    if not parts:
        return pd.Series([], dtype=dtype)
    if dtype == "Int64":
        masked = [part for part in parts if isinstance(part, Masked)]
        values = np.concatenate([part.values for part in masked])
        return pd.arrays.IntegerArray(values, np.concatenate([part.missing for part in masked]))
    whole = np.concatenate([part for part in parts if not isinstance(part, Masked)])
    if dtype == "boolean":
        return pd.arrays.BooleanArray(whole == 1, whole == MISSING)
    if dtype.startswith("datetime64"):
        return pd.DatetimeIndex(whole).tz_localize("UTC")
    return pd.Series(whole, dtype=dtype, copy=False)
