"""Draws as Arrow batches of plain columns: what counting needs of a log, in bounded memory and from either form.

The columns are those of the draws table without outputs and what only a reader of single draws wants. Yes-or-no is 1,
0 and -1 for missing; times are nanoseconds since the epoch; names that repeat are dictionaries; of a digest the first
128 bits stand, which two texts of one run share no more likely than a disk errs.
"""

from __future__ import annotations

import binascii
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from verdiv.runlog.arrow import NESTED
from verdiv.runlog.checks import is_digest
from verdiv.runlog.columns import MISSING, Chunk, Masked
from verdiv.runlog.parquet import ARROW_SCHEMA
from verdiv.runlog.records import STAMP_PATTERN
from verdiv.runlog.stamps import instants, no_times

__all__ = ["FLAT_SCHEMA", "LABELS", "chunk_batch", "faulty", "flatten"]

IDS = ("draw_id", "copy_of", "parent")
LABELS = (
    *("family", "arm", "condition", "tier", "model", "precision", "prompt_kind"),
    *("error_class", "answered_class", "error_kind"),
)
"""Names that few draws have for themselves."""
DIGESTS = ("prompt_sha256", "output_sha256")
NUMBERS = ("temperature", "billed", "device_seconds")
COUNTS = ("seed", "tokens_out", "in_flight")
WHOLE = ("replicate", "attempt")
FLAGS = ("correct", "flagged", "oracle_flagged", "emitted")
TIMES = ("started_at", "ended_at")

CODED = ("task_id", *LABELS)
"""Columns that are dictionaries."""

DIGEST_BYTES = 16
"""Bytes of a digest that are kept."""

FLAT_SCHEMA: Any = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in IDS),
        *(pa.field(name, pa.dictionary(pa.int32(), pa.string())) for name in CODED),
        *(pa.field(name, pa.binary(DIGEST_BYTES)) for name in DIGESTS),
        *(pa.field(name, pa.float64()) for name in NUMBERS),
        *(pa.field(name, pa.int64()) for name in (*COUNTS, *WHOLE)),
        *(pa.field(name, pa.int8()) for name in FLAGS),
        *(pa.field(name, pa.int64()) for name in TIMES),
        pa.field("row", pa.int64()),
    ]
)
"""Names and types of the columns; ``row`` is the draw's 0-based place in its log."""

ROWS = 131_072
"""Most draws in one batch."""

NEEDED = [
    name
    for name in ARROW_SCHEMA.names
    if name in {*FLAT_SCHEMA.names} | {p.partition(".")[0] for p in NESTED.values()}
]
"""Columns of a Parquet log that are read; of ``static`` and ``error`` not the messages."""

LEAVES = [
    leaf
    for name in NEEDED
    for leaf in (
        [f"{name}.{one.name}" for one in ARROW_SCHEMA.field(name).type if one.name != "message"]
        if pa.types.is_struct(ARROW_SCHEMA.field(name).type)
        else [name]
    )
]
"""The same, down to the fields of structs."""

DICTIONARIES = [name for name in (*CODED, "prompt_sha256") if name not in NESTED]
"""Columns that are read as dictionaries; those inside structs cannot be."""


def chunk_batch(chunk: Chunk, first: int) -> Any:
    """Return draws as a batch of :data:`FLAT_SCHEMA`; ``first`` is the place of the first of them in its log."""
    arrays = []
    for field in FLAT_SCHEMA:
        name = field.name
        if name == "row":
            arrays.append(pa.array(np.arange(first, first + len(chunk), dtype=np.int64)))
            continue
        column = chunk.columns[name]
        if isinstance(column, Masked):
            arrays.append(pa.array(column.values, mask=column.missing))
        elif name in TIMES:
            arrays.append(pa.array(column.view(np.int64)))
        elif name in NUMBERS:
            arrays.append(pa.array(column))
        elif name in DIGESTS:
            arrays.append(_digests(pa.array(column, pa.string()))[0])
        elif name in CODED:
            arrays.append(pa.array(column, pa.string()).dictionary_encode())
        else:
            arrays.append(pa.array(column, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=FLAT_SCHEMA)


def _leaf(batch: Any, name: str) -> Any:
    if name not in NESTED:
        return batch.column(name)
    outer, _, inner = NESTED[name].partition(".")
    struct = batch.column(outer)
    return struct.flatten()[struct.type.get_field_index(inner)]


def flatten(batch: Any, first: int) -> tuple[Any, NDArray[np.bool_]]:
    """Turn a batch of a Parquet log into plain columns.

    Parameters
    ----------
    batch
        With the columns of the log's Parquet form; messages may be absent, texts may be dictionaries.
    first
        Place of its first draw in the log.

    Returns
    -------
    tuple
        The flat batch, and the rows where a text is no time or no digest.
    """
    arrays: list[Any] = []
    bad = np.zeros(batch.num_rows, dtype=np.bool_)
    for field in FLAT_SCHEMA:
        name = field.name
        if name == "row":
            arrays.append(pa.array(np.arange(first, first + batch.num_rows, dtype=np.int64)))
            continue
        column = _leaf(batch, name)
        if name in TIMES:
            times, wrong = _times(column)
            arrays.append(pa.array(times))
            bad |= wrong
        elif name in DIGESTS:
            digests, wrong = _digests(column)
            arrays.append(digests)
            bad |= wrong
        elif name in FLAGS:
            arrays.append(pc.fill_null(column.cast(pa.int8()), MISSING))
        elif name in NUMBERS:
            arrays.append(pc.fill_null(column, float("nan")))
        elif name in CODED and not pa.types.is_dictionary(column.type):
            arrays.append(column.dictionary_encode())
        else:
            arrays.append(column)
    return pa.RecordBatch.from_arrays(arrays, schema=FLAT_SCHEMA), bad


def faulty(flat: Any) -> NDArray[np.bool_]:
    """Return which draws of a flat batch contradict themselves, as :func:`verdiv.runlog.checks.suspects` does."""

    def there(name: str) -> NDArray[np.bool_]:
        return cast("NDArray[np.bool_]", flat.column(name).is_valid().to_numpy(zero_copy_only=False))

    def same(first: str, second: str) -> NDArray[np.bool_]:
        if flat.column(first).null_count == flat.num_rows:
            return np.zeros(flat.num_rows, dtype=np.bool_)
        equal = pc.fill_null(pc.equal(flat.column(first), flat.column(second)), False)
        return cast("NDArray[np.bool_]", equal.to_numpy(zero_copy_only=False))

    def kind(name: str) -> NDArray[np.bool_]:
        column = flat.column("prompt_kind")
        known = np.array([text == name for text in column.dictionary.to_pylist()], dtype=np.bool_)
        return cast("NDArray[np.bool_]", known[column.indices.to_numpy()])

    found: NDArray[np.bool_] = there("error_kind") & (flat.column("correct").to_numpy() != MISSING)
    found |= (flat.column("attempt").to_numpy() == 1) & ~kind("initial")
    found |= there("answered_class") & ~kind("feedback")
    found |= there("error_class") & (flat.column("flagged").to_numpy() == 0)
    found |= same("parent", "draw_id") | same("copy_of", "draw_id")
    return found


def _digests(column: Any) -> tuple[Any, NDArray[np.bool_]]:
    """Return the first bytes of SHA-256 digests in lower-case hex, and where text is none; null stays null."""
    if pa.types.is_dictionary(column.type):
        values, wrong = _digests(column.dictionary)
        places = pc.fill_null(column.indices, 0).to_numpy()
        known = column.is_valid().to_numpy(zero_copy_only=False)
        bad = wrong[places] & known if wrong.any() else np.zeros(len(column), dtype=np.bool_)
        return values.take(column.indices), bad
    bad = np.zeros(len(column), dtype=np.bool_)
    said = column.drop_null()
    kept = _unhexed(said)
    if kept is None:
        texts = column.to_pylist()
        bad = np.array([text is not None and not is_digest(text) for text in texts], dtype=np.bool_)
        known = [
            None if text is None or wrong else bytes.fromhex(text)[:DIGEST_BYTES]
            for text, wrong in zip(texts, bad, strict=True)
        ]
        return pa.array(known, pa.binary(DIGEST_BYTES)), bad
    found = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(DIGEST_BYTES), len(said), [None, pa.py_buffer(kept)]
    )
    if column.null_count == 0:
        return found, bad
    here = column.is_valid().to_numpy(zero_copy_only=False)
    return found.take(pa.array(np.cumsum(here) - 1, mask=~here)), bad


def _unhexed(said: Any) -> NDArray[np.uint8] | None:
    """Return the first bytes of digests that are all there, or None where one of the texts is none."""
    lengths = pc.binary_length(said)
    if len(said) == 0:
        return np.zeros((0, DIGEST_BYTES), dtype=np.uint8)
    if pc.any(pc.not_equal(lengths, 64)).as_py():
        return None
    _, offsets, data = said.buffers()
    start = int(np.frombuffer(offsets, dtype=np.int32)[said.offset])
    text = memoryview(data)[start : start + 64 * len(said)]
    capital = np.frombuffer(text, dtype=np.uint8) - ord("A") < 26
    if capital.any():
        return None
    try:
        raw = binascii.unhexlify(text)
    except binascii.Error:
        return None
    return np.ascontiguousarray(np.frombuffer(raw, dtype=np.uint8).reshape(-1, 32)[:, :DIGEST_BYTES])


def _times(column: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Nanoseconds since the epoch, the least integer where unknown, and where text is no time."""
    none = np.iinfo(np.int64).min
    if column.null_count == len(column):
        return np.full(len(column), none), np.zeros(len(column), dtype=bool)
    said = pc.fill_null(pc.match_substring_regex(column, STAMP_PATTERN), True)
    if pc.all(said).as_py():
        try:
            parsed = column.cast(pa.timestamp("ns", tz="UTC")).cast(pa.int64())
            times = pc.fill_null(parsed, none).to_numpy(zero_copy_only=False)
            return times, np.zeros(len(column), dtype=bool)
        except pa.ArrowInvalid:
            pass
    texts = column.to_pylist()
    slow = instants(texts)
    return slow.view(np.int64), no_times(texts, slow)
