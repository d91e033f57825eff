"""Draw records as columns: the contract of the draws table, and its building chunk by chunk.

While a table grows, a column that may miss values is kept as plain NumPy arrays (a value and a mask, or a
code with -1 for missing); it becomes a pandas column once, at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias, cast

import msgspec
import numpy as np
import pandas as pd
from msgspec.structs import astuple
from numpy.typing import NDArray

from verdiv.runlog.records import Decoding, Draw, DrawError, Oracle, Static
from verdiv.runlog.stamps import instants, no_times

__all__ = [
    "DRAW_COLUMNS",
    "OUTPUT_COLUMNS",
    "Chunk",
    "Masked",
    "TableBuilder",
    "bad_times",
    "draw_chunk",
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
    keep = cast(Callable[[str | None, str | None], str | None], interned.setdefault)

    def same(values: Sequence[str | None]) -> NDArray[np.object_]:
        return texts(list(map(keep, values, values)))

    draw = _transposed(draws, Draw)
    decoding = _transposed(draw["decoding"], Decoding)
    static = _transposed(draw["static"], Static)
    columns: dict[str, Column] = {
        "draw_id": texts(draw["draw_id"]),
        "task_id": same(draw["task_id"]),
        "family": same(draw["family"]),
        "arm": same(draw["arm"]),
        "condition": same(draw["condition"]),
        "copy_of": texts(draw["copy_of"]),
        "tier": same(draw["tier"]),
        "model": same(draw["model"]),
        "precision": same(draw["precision"]),
        "temperature": floats(decoding["temperature"]),
        "top_p": floats(decoding["top_p"]),
        "seed": integers(decoding["seed"]),
        "max_tokens": integers(decoding["max_tokens"]),
        "replicate": np.array(draw["replicate"], dtype=np.int64),
        "attempt": np.array(draw["attempt"], dtype=np.int64),
        "prompt_kind": _names(draw["prompt_kind"]),
        "parent": texts(draw["parent"]),
        "prompt_sha256": same(draw["prompt_sha256"]),
        "output_sha256": texts(draw["output_sha256"]),
        "correct": yes_or_no(draw["correct"]),
        "flagged": yes_or_no(static["flagged"]),
        "error_class": _names(static["error_class"]),
        "code": same(static["code"]),
        "answered_class": _names(draw["answered_class"]),
        "oracle_flagged": yes_or_no(_transposed(draw["oracle"], Oracle)["flagged"]),
        "billed": np.array(draw["billed"], dtype=np.float64),
        "tokens_in": integers(draw["tokens_in"]),
        "tokens_out": integers(draw["tokens_out"]),
        "started_at": instants(draw["started_at"]),
        "ended_at": instants(draw["ended_at"]),
        "in_flight": integers(draw["in_flight"]),
        "device_seconds": floats(draw["device_seconds"]),
        "emitted": yes_or_no(draw["emitted"]),
        "error_kind": same(_transposed(draw["error"], DrawError)["kind"]),
    }
    if outputs:
        columns["output"] = texts(draw["output"])
        columns["message"] = texts(static["message"])
    return Chunk(columns, {name: draw[name] for name in ("started_at", "ended_at")}, lines)


def _transposed(records: Sequence[Any], kind: type[msgspec.Struct]) -> dict[str, Sequence[Any]]:
    """Return the fields of records of one kind, field by field; None throughout for a missing record."""
    fields = kind.__struct_fields__
    none = (None,) * len(fields)
    missing = records.count(None)
    if missing == len(records):
        return dict.fromkeys(fields, (None,) * len(records))
    if missing:
        rows = [none if record is None else astuple(record) for record in records]
    else:
        rows = list(map(astuple, records))
    return dict(zip(fields, zip(*rows, strict=True), strict=True))


def texts(values: Sequence[str | None]) -> NDArray[np.object_]:
    """Return strings, some of them None, as an object array."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _names(values: Sequence[StrEnum | None]) -> NDArray[np.object_]:
    """Return the plain strings of enum members."""
    if values.count(None) == len(values):
        return np.full(len(values), None, dtype=object)
    return texts([None if value is None else value._value_ for value in values])


def floats(values: Sequence[float | None]) -> NDArray[np.float64]:
    """Return numbers as floats, ``NaN`` for None."""
    return np.array(values, dtype=np.float64)


def integers(values: Sequence[int | None]) -> Masked:
    """Return integers with a mask for None."""
    if not (missing := values.count(None)):
        return Masked(np.array(values, dtype=np.int64), np.zeros(len(values), dtype=np.bool_))
    if missing == len(values):
        return Masked(np.zeros(len(values), dtype=np.int64), np.ones(len(values), dtype=np.bool_))
    mask = np.array([value is None for value in values], dtype=np.bool_)
    return Masked(np.array([0 if value is None else value for value in values], dtype=np.int64), mask)


def yes_or_no(values: Sequence[bool | None]) -> NDArray[np.int8]:
    """Return 1, 0, and :data:`MISSING` for None."""
    if not values.count(None):
        return np.array(values, dtype=np.bool_).astype(np.int8)
    return np.array([MISSING if value is None else value for value in values], dtype=np.int8)


def bad_times(chunk: Chunk) -> Iterator[tuple[str, int, str]]:
    """Yield what was written, its line and its field for every text that is not a time."""
    for field, stamps in chunk.stamps.items():
        for row in map(int, np.flatnonzero(no_times(stamps, chunk.array(field)))):
            yield str(stamps[row]), chunk.lines[row], field


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
