"""Draws as Arrow batches of plain columns: what counting needs of a log, in bounded memory and from either form.

The columns are those of the draws table without outputs and what only a reader of single draws wants. Yes-or-no is 1,
0 and -1 for missing; times are nanoseconds since the epoch.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from verdiv.errors import Fault, InputRefused
from verdiv.runlog.arrow import NESTED, misfits, row_faults
from verdiv.runlog.columns import MISSING, Chunk, Masked
from verdiv.runlog.jsonl import FaultList
from verdiv.runlog.lines import Source
from verdiv.runlog.parquet import ARROW_SCHEMA, ParquetLog
from verdiv.runlog.passes import JsonlPass
from verdiv.runlog.records import STAMP_PATTERN, Header
from verdiv.runlog.stamps import instants, no_times, time_fault
from verdiv.runlog.table import Finding, Status

__all__ = ["FLAT_SCHEMA", "FlatLog", "flatten"]

TEXTS = (
    *("draw_id", "task_id", "family", "arm", "condition", "copy_of", "tier", "model", "precision"),
    *("prompt_kind", "parent", "prompt_sha256", "output_sha256", "error_class", "answered_class"),
    "error_kind",
)
NUMBERS = ("temperature", "billed", "device_seconds")
COUNTS = ("seed", "tokens_out", "in_flight")
WHOLE = ("replicate", "attempt")
FLAGS = ("correct", "flagged", "oracle_flagged", "emitted")
TIMES = ("started_at", "ended_at")

FLAT_SCHEMA: Any = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in TEXTS),
        *(pa.field(name, pa.float64()) for name in NUMBERS),
        *(pa.field(name, pa.int64()) for name in (*COUNTS, *WHOLE)),
        *(pa.field(name, pa.int8()) for name in FLAGS),
        *(pa.field(name, pa.int64()) for name in TIMES),
        pa.field("row", pa.int64()),
    ]
)
"""Names and types of the columns; ``row`` is the draw's 0-based place in its log."""

ROWS = 131_072
"""Draws read at once from Parquet."""

NEEDED = [
    name
    for name in ARROW_SCHEMA.names
    if name
    in {*TEXTS, *NUMBERS, *COUNTS, *WHOLE, *FLAGS, *TIMES} | {p.partition(".")[0] for p in NESTED.values()}
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


class FlatLog:
    """One log, read once, batch by batch.

    Parameters
    ----------
    source
        The log's bytes, opened.

    Raises
    ------
    InputRefused
        It is no log, or another version; :meth:`finish` raises what its draws did wrong.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.rows = 0
        self._jsonl: JsonlPass | None = None
        self._parquet: ParquetLog | None = None
        self._faults = FaultList(source.path)
        self._findings: list[Finding] = []
        if source.parquet:
            whole = Path(source.path).is_file()
            self._file: str | BinaryIO = (
                source.path if whole else cast(BinaryIO, io.BytesIO(source.everything()))
            )
            self._parquet = ParquetLog(self._file, source.path)
        else:
            self._jsonl = JsonlPass(source)

    @property
    def header(self) -> Header:
        """The log's header."""
        found = self._jsonl or self._parquet
        assert found is not None
        return found.header

    @property
    def status(self) -> Status:
        """Whether the log was ended by its footer; known at the end."""
        if self._jsonl is not None:
            return self._jsonl.status
        return "complete" if self._parquet is not None and self._parquet.footer is not None else "incomplete"

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was noticed of the log as a whole."""
        return (*(self._jsonl.findings if self._jsonl is not None else ()), *self._findings)

    def batches(self) -> Iterator[Any]:
        """Yield record batches of :data:`FLAT_SCHEMA`, in the order of the log."""
        made = self._from_jsonl() if self._jsonl is not None else self._from_parquet()
        for batch in made:
            self.rows += batch.num_rows
            yield batch

    def finish(self) -> None:
        """Raise with all faults of the draws, if there is any."""
        if self._jsonl is not None:
            self._jsonl.finish()
            return
        log, where = self._parquet, self.source.path
        assert log is not None
        if log.footer is None:
            message = f"{where} is incomplete: it has no footer; {log.rows} draws were read"
            self._findings.append(Finding("medium", "log.incomplete", message))
        elif log.footer.draws != log.rows:
            got, remedy = (
                str(log.footer.draws),
                "rows were changed, dropped or added: go back to the log as written",
            )
            fault = Fault(
                f"{where} (footer)", f"{log.rows}, the draws that stand here", got, remedy, field="draws"
            )
            raise InputRefused(f"{where} refused", [fault])
        self._faults.refuse()

    def _from_jsonl(self) -> Iterator[Any]:
        assert self._jsonl is not None
        for chunk in self._jsonl.chunks({}):
            yield _chunk_batch(chunk, self.rows)

    def _from_parquet(self) -> Iterator[Any]:
        file = pq.ParquetFile(self._file)
        where = self.source.path
        try:
            for batch in file.iter_batches(batch_size=ROWS, columns=LEAVES):
                wrong = misfits(batch)
                for row in map(int, wrong):
                    for fault in row_faults(batch, row, where, self.rows + row + 1):
                        self._faults.add(fault)
                flat, stamps = flatten(batch, self.rows)
                for name, values in stamps.items():
                    for row in map(int, np.flatnonzero(values)):
                        said = str(batch.column(name)[row].as_py())
                        self._faults.add(time_fault(where, said, self.rows + row + 1, name))
                if len(wrong):
                    self.rows += batch.num_rows
                    continue
                yield flat
        except (OSError, pa.ArrowException) as error:
            fault = Fault(where, "columns that can be read", str(error), "write it again")
            raise InputRefused(f"{where} refused", [fault]) from error


def _chunk_batch(chunk: Chunk, first: int) -> Any:
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
        else:
            arrays.append(pa.array(column, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=FLAT_SCHEMA)


def _leaf(batch: Any, name: str) -> Any:
    if name not in NESTED:
        return batch.column(name)
    outer, _, inner = NESTED[name].partition(".")
    struct = batch.column(outer)
    return struct.flatten()[struct.type.get_field_index(inner)]


def flatten(batch: Any, first: int) -> tuple[Any, dict[str, NDArray[np.bool_]]]:
    """Turn a batch of a Parquet log into plain columns.

    Parameters
    ----------
    batch
        With the columns of the log's Parquet form; messages may be absent.
    first
        Place of its first draw in the log.

    Returns
    -------
    tuple
        The flat batch, and for each time where its text is none.
    """
    arrays: list[Any] = []
    bad: dict[str, NDArray[np.bool_]] = {}
    for field in FLAT_SCHEMA:
        name = field.name
        if name == "row":
            arrays.append(pa.array(np.arange(first, first + batch.num_rows, dtype=np.int64)))
        elif name in TIMES:
            times, bad[name] = _times(batch.column(name))
            arrays.append(pa.array(times))
        elif name in FLAGS:
            arrays.append(pc.fill_null(_leaf(batch, name).cast(pa.int8()), MISSING))
        elif name in NUMBERS:
            arrays.append(pc.fill_null(_leaf(batch, name), float("nan")))
        else:
            arrays.append(_leaf(batch, name))
    return pa.RecordBatch.from_arrays(arrays, schema=FLAT_SCHEMA), bad


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
