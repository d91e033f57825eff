"""Batches of a Parquet log as columns, and the rows whose values the format does not allow."""

from __future__ import annotations

import json
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import inspect
from numpy.typing import NDArray

from verdiv.errors import Fault
from verdiv.runlog.columns import MISSING, Chunk, Column, Masked, texts
from verdiv.runlog.faults import line_faults
from verdiv.runlog.records import Draw
from verdiv.runlog.stamps import instants

__all__ = ["batch_chunk", "misfits", "row_faults"]

NESTED = {
    "temperature": "decoding.temperature",
    "top_p": "decoding.top_p",
    "seed": "decoding.seed",
    "max_tokens": "decoding.max_tokens",
    "flagged": "static.flagged",
    "error_class": "static.class",
    "code": "static.code",
    "oracle_flagged": "oracle.flagged",
    "error_kind": "error.kind",
    "message": "static.message",
}
"""Columns of the draws table that stand inside a struct."""

UNIQUE = frozenset({"draw_id", "parent", "copy_of", "output_sha256", "output", "message"})
"""Columns of text that seldom repeats."""

TEXTS = (
    *("draw_id", "task_id", "family", "arm", "condition", "copy_of", "tier", "model", "precision"),
    *("prompt_kind", "parent", "prompt_sha256", "output_sha256", "error_class", "code", "answered_class"),
    "error_kind",
)
FLOATS = ("temperature", "top_p", "billed", "device_seconds")
COUNTS = ("seed", "max_tokens", "tokens_in", "tokens_out", "in_flight")
WHOLE = ("replicate", "attempt")
FLAGS = ("correct", "flagged", "oracle_flagged", "emitted")


def batch_chunk(batch: Any, first: int, interned: dict[str, str], *, outputs: bool = False) -> Chunk:
    """Return a record batch as columns.

    Parameters
    ----------
    batch
        Record batch of a Parquet log whose rows fit, see :func:`misfits`.
    first
        1-based row of its first draw.
    interned
        Texts kept once; it grows.
    outputs
        Add the outputs and the verifier's messages.

    Returns
    -------
    Chunk
        The same columns that the draws give as records.
    """
    names = (*TEXTS, *(("output", "message") if outputs else ()))
    columns: dict[str, Column] = {}
    for name in names:
        column = _column(batch, name)
        columns[name] = _unique(column) if name in UNIQUE else _repeating(column, interned)
    for name in FLOATS:
        columns[name] = pc.fill_null(_column(batch, name), float("nan")).to_numpy(zero_copy_only=False)
    for name in WHOLE:
        columns[name] = _column(batch, name).to_numpy(zero_copy_only=False)
    for name in COUNTS:
        column = _column(batch, name)
        values = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
        columns[name] = Masked(values, pc.is_null(column).to_numpy(zero_copy_only=False))
    for name in FLAGS:
        coded = pc.fill_null(_column(batch, name).cast(pa.int8()), MISSING)
        columns[name] = coded.to_numpy(zero_copy_only=False)
    stamps = {name: _column(batch, name).to_pylist() for name in ("started_at", "ended_at")}
    for name, said in stamps.items():
        columns[name] = instants(said)
    return Chunk(columns, stamps, range(first, first + batch.num_rows))


def _column(batch: Any, name: str) -> Any:
    """Return a column, from inside its struct where it stands in one; null where the struct is."""
    column = batch.column(name) if name not in NESTED else None
    if column is None:
        outer, _, inner = NESTED[name].partition(".")
        struct = batch.column(outer)
        column = struct.flatten()[struct.type.get_field_index(inner)]
    return column


def _unique(column: Any) -> NDArray[np.object_]:
    return texts(column.to_pylist())


def _repeating(column: Any, interned: dict[str, str]) -> NDArray[np.object_]:
    """Return texts of which each is held once."""
    coded = column.dictionary_encode()
    names = [interned.setdefault(name, name) for name in coded.dictionary.to_pylist()]
    table = texts([*names, None])
    places = pc.fill_null(coded.indices, len(names)).to_numpy(zero_copy_only=False)
    return cast("NDArray[np.object_]", table[places])


def misfits(batch: Any) -> NDArray[np.intp]:
    """Return the rows of a batch with a value that its field does not allow.

    The limits are those of the record types: required fields, lengths, ranges, names of a set. Digests and
    times are checked on the columns, as for every form.
    """
    kind = cast(inspect.StructType, inspect.type_info(Draw))
    bad: Any = np.zeros(batch.num_rows, dtype=np.bool_)
    for one in kind.fields:
        if one.encode_name in batch.schema.names:
            bad |= _misfit(one.type, batch.column(one.encode_name), np.ones(batch.num_rows, dtype=np.bool_))
    return np.flatnonzero(bad)


def _misfit(kind: inspect.Type, column: Any, there: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return where a column does not fit its type; ``there`` is where its struct stands."""
    null = _mask(pc.is_null(column))
    bad = np.zeros(len(null), dtype=np.bool_)
    if isinstance(kind, inspect.UnionType):
        kind = next(one for one in kind.types if not isinstance(one, inspect.NoneType))
    else:
        bad |= null
    kind = kind.type if isinstance(kind, inspect.Metadata) else kind
    if pa.types.is_dictionary(column.type):
        wrong = _misfit(kind, column.dictionary, np.ones(len(column.dictionary), dtype=np.bool_))
        if wrong.any():
            bad |= ~null & wrong[pc.fill_null(column.indices, 0).to_numpy()]
    elif isinstance(kind, inspect.StructType):
        inner = dict(zip([field.name for field in column.type], column.flatten(), strict=True))
        for one in kind.fields:
            if one.encode_name in inner:
                bad |= _misfit(one.type, inner[one.encode_name], there & ~null)
    elif isinstance(kind, inspect.StrType):
        length = pc.utf8_length(column)
        if kind.min_length is not None:
            bad |= _mask(pc.less(length, kind.min_length))
        if kind.max_length is not None:
            bad |= _mask(pc.greater(length, kind.max_length))
    elif isinstance(kind, inspect.EnumType):
        names = pa.array([member.value for member in kind.cls], pa.string())
        bad |= ~null & ~_mask(pc.is_in(column, value_set=names))
    elif isinstance(kind, inspect.IntType | inspect.FloatType):
        if isinstance(kind, inspect.FloatType):
            bad |= ~null & ~_mask(pc.is_finite(column))
        if kind.ge is not None:
            bad |= _mask(pc.less(column, kind.ge))
        if kind.le is not None:
            bad |= _mask(pc.greater(column, kind.le))
    return bad & there


def _mask(column: Any) -> NDArray[np.bool_]:
    return cast("NDArray[np.bool_]", pc.fill_null(column, False).to_numpy(zero_copy_only=False))


def row_faults(batch: Any, row: int, where: str, number: int) -> list[Fault]:
    """Return all faults of one row's values.

    Parameters
    ----------
    batch, row
        Where it stands.
    where, number
        File and row that the faults name.
    """
    (values,) = batch.slice(row, 1).to_pylist()
    line = json.dumps({"record": "draw", **values}, ensure_ascii=False).encode()
    return line_faults(line, where, number)
