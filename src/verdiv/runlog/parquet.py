"""Run logs as Parquet: the same records as columns, the header and footer in the file's metadata.

The footer's head is the head of the chain over the lines that the same records make as JSONL, so that a
Parquet log can be checked against its JSONL twin; :func:`chain_head` computes it again. Links between single
records are not stored: they follow from the records.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import inspect

from verdiv.errors import Fault, InputRefused, WriteFailed
from verdiv.runlog.chain import line_digest
from verdiv.runlog.faults import line_faults
from verdiv.runlog.records import Draw, Footer, Header
from verdiv.runlog.storage import atomic_file

__all__ = ["PARQUET_SCHEMA", "ParquetLog", "ParquetSink"]

PARQUET_SCHEMA = 1
"""Integer version of the Parquet form; a newer one is refused."""

KEYS = {
    "version": b"verdiv.runlog.parquet",
    "header": b"verdiv.runlog.header",
    "footer": b"verdiv.runlog.footer",
}
"""Names in the file's metadata."""

GROUP = 65_536
"""Draws in a row group."""

GROUP_BYTES = 1 << 28
"""Bytes of lines after which a row group ends early."""

ROWS = 16_384
"""Draws read at once."""

_encode = msgspec.json.Encoder().encode


def _draw_type() -> inspect.StructType:
    return cast(inspect.StructType, inspect.type_info(Draw))


def _bare(kind: inspect.Type) -> inspect.Type:
    """Return what a field holds when it holds something."""
    if isinstance(kind, inspect.UnionType):
        kind = next(one for one in kind.types if not isinstance(one, inspect.NoneType))
    return kind.type if isinstance(kind, inspect.Metadata) else kind


def _arrow(kind: inspect.Type) -> Any:
    """Return the column type of a field."""
    kind = _bare(kind)
    if isinstance(kind, inspect.StructType):
        return pa.struct([pa.field(one.encode_name, _arrow(one.type)) for one in kind.fields])
    plain = {
        inspect.BoolType: pa.bool_(),
        inspect.IntType: pa.int64(),
        inspect.FloatType: pa.float64(),
        inspect.StrType: pa.string(),
        inspect.EnumType: pa.string(),
    }
    return plain[type(kind)]


def _fields() -> list[inspect.Field]:
    return [one for one in _draw_type().fields if one.name != "prev"]


ARROW_SCHEMA = pa.schema([pa.field(one.encode_name, _arrow(one.type)) for one in _fields()])
"""Column names and types: the draw's fields, nested ones as structs."""


class ParquetSink:
    """Takes a run log's records and writes them as one Parquet file, which appears when it is whole.

    Parameters
    ----------
    path
        Where it is to stand.
    overwrite
        Replace a file that stands there.
    """

    def __init__(self, path: Path, *, overwrite: bool) -> None:
        self._stack = contextlib.ExitStack()
        file = self._stack.enter_context(atomic_file(path, overwrite=overwrite))
        self._writer = pq.ParquetWriter(file, ARROW_SCHEMA, compression="zstd")
        self._waiting: list[Draw] = []
        self._bytes = 0
        self._metadata = {KEYS["version"]: str(PARQUET_SCHEMA).encode()}

    def put(self, record: Header | Draw | Footer, line: bytes) -> None:
        """Take the next record and the line it would make."""
        if isinstance(record, Draw):
            self._waiting.append(record)
            self._bytes += len(line)
            if len(self._waiting) == GROUP or self._bytes > GROUP_BYTES:
                self._flush()
        else:
            self._metadata[KEYS["header" if isinstance(record, Header) else "footer"]] = line

    def finish(self) -> None:
        """Make what was put the file under the name."""
        self._flush()
        self._writer.add_key_value_metadata(self._metadata)
        self._writer.close()
        self._stack.close()

    def abandon(self) -> None:
        """Leave nothing half-written."""
        with contextlib.suppress(WriteFailed, OSError, pa.ArrowException):
            self._writer.close()
        with contextlib.suppress(_Abandoned):
            self._stack.__exit__(_Abandoned, _Abandoned(), None)

    def _flush(self) -> None:
        if self._waiting:
            arrays = [_array(one.type, [getattr(d, one.name) for d in self._waiting]) for one in _fields()]
            self._writer.write_table(pa.Table.from_arrays(arrays, schema=ARROW_SCHEMA), row_group_size=GROUP)
            self._waiting = []
            self._bytes = 0


class _Abandoned(Exception):
    """Tells a file that it is not to appear."""


def _array(kind: inspect.Type, values: list[Any]) -> Any:
    """Return a field's values as a column."""
    kind = _bare(kind)
    if isinstance(kind, inspect.StructType):
        missing = pa.array([value is None for value in values])
        inner = [
            _array(one.type, [None if value is None else getattr(value, one.name) for value in values])
            for one in kind.fields
        ]
        fields = [pa.field(one.encode_name, _arrow(one.type)) for one in kind.fields]
        return pa.StructArray.from_arrays(inner, fields=fields, mask=missing)
    if isinstance(kind, inspect.EnumType):
        values = [None if value is None else value.value for value in values]
    return pa.array(values, _arrow(kind))


class ParquetLog:
    """An opened Parquet log.

    Parameters
    ----------
    file
        Path or bytes that can be read at any place.
    where
        File that errors name.

    Raises
    ------
    InputRefused
        No Parquet, not one of ours, another version, another set of columns, a header or footer that does
        not hold.
    """

    def __init__(self, file: str | BinaryIO, where: str) -> None:
        self.where = where
        try:
            self._file = pq.ParquetFile(file)
            metadata = self._file.schema_arrow.metadata or {}
            metadata = {**metadata, **(self._file.metadata.metadata or {})}
        except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
            raise self._refused("a whole Parquet file", str(error), "write it again") from error
        self._check_columns()
        self._check_version(metadata.get(KEYS["version"]))
        self.header_line: bytes = metadata.get(KEYS["header"], b"")
        footer_line: bytes | None = metadata.get(KEYS["footer"])
        faults = line_faults(self.header_line, f"{where} (header)", 1, kind="header")
        if footer_line is not None:
            faults += line_faults(footer_line, f"{where} (footer)", 1, kind="footer")
        if faults:
            raise InputRefused(f"{where} refused", faults)
        self.header: Header = msgspec.json.decode(self.header_line, type=Header)
        self.footer: Footer | None = None
        if footer_line is not None:
            self.footer = msgspec.json.decode(footer_line, type=Footer)
        self.rows: int = self._file.metadata.num_rows
        self.groups: int = self._file.metadata.num_row_groups

    def batches(self, *, outputs: bool = True) -> Iterator[Any]:
        """Yield record batches of at most :data:`ROWS` draws, in order.

        Parameters
        ----------
        outputs
            Load the columns ``output`` and ``static.message`` and ``error.message`` too; without, ``output``
            is null.
        """
        columns = [name for name in ARROW_SCHEMA.names if outputs or name != "output"]
        try:
            for batch in self._file.iter_batches(batch_size=ROWS, columns=columns):
                batch.validate(full=True)
                yield batch
        except (OSError, pa.ArrowException) as error:
            raise self._refused("columns that can be read", str(error), "write it again") from error

    def draws(self) -> Iterator[Draw]:
        """Yield the draws as records."""
        row = 1
        for batch in self.batches():
            for values in batch.to_pylist():
                try:
                    yield msgspec.convert({"record": "draw", **values}, Draw)
                except msgspec.ValidationError as error:
                    fault = Fault(self.where, "a draw", str(error), "write the log again", line=row)
                    raise InputRefused(f"{self.where} refused", [fault]) from error
                row += 1

    def draw(self, batch: Any, row: int) -> Draw:
        """Return one draw of a batch as a record; its output where it was loaded."""
        (values,) = batch.slice(row, 1).to_pylist()
        return msgspec.convert({"record": "draw", **values}, Draw)

    def chain_head(self) -> str:
        """Return the head of the chain over the lines that the records make."""
        head = line_digest(self.header_line)
        for draw in self.draws():
            head = line_digest(_encode(msgspec.structs.replace(draw, prev=head)))
        return head

    def _check_columns(self) -> None:
        found = {one.name: one.type for one in self._file.schema_arrow}
        faults = [
            Fault(
                self.where,
                f"a column of type {one.type}",
                str(found.get(one.name, "no such column")),
                "write the log with verdiv, or convert the table with a mapping",
                field=one.name,
            )
            for one in ARROW_SCHEMA
            if found.get(one.name) != one.type
        ]
        faults += [
            Fault(self.where, "a column of the format", "an unknown column", "remove it", field=name[:60])
            for name in found
            if name not in ARROW_SCHEMA.names
        ]
        if faults:
            raise InputRefused(f"{self.where} refused", faults)

    def _check_version(self, said: bytes | None) -> None:
        if said is None:
            raise self._refused(
                "a Parquet run log", "a table without our metadata", "convert the table with a mapping"
            )
        if said != str(PARQUET_SCHEMA).encode():
            got = said[:20].decode("ascii", "replace")
            raise self._refused(f"Parquet run log version {PARQUET_SCHEMA}", got, "update verdiv")

    def _refused(self, expected: str, got: str, remedy: str) -> InputRefused:
        return InputRefused(f"{self.where} refused", [Fault(self.where, expected, got, remedy)])
