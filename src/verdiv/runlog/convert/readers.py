"""From the bytes of a file to documents and rows: JSON, JSON Lines, CSV and Parquet.

What a row holds is never guessed from a file's name alone: a ``.json`` file may hold one document or one
document a line. NaN and Infinity, which many writers put into JSON, are read; a key that stands twice in one
object is refused, since one of the two values would vanish.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from verdiv.errors import Fault, InputRefused
from verdiv.runlog.convert.sources import SourceFile, unpacked_name
from verdiv.runlog.lines import Source

__all__ = ["Bad", "Document", "file_digest", "read_documents"]

MAX_BYTES = 2 << 30
"""Bytes of a file, after decompression."""

MAX_FIELD = 1 << 26
"""Characters of one CSV field, bytes of one line of JSON Lines."""

PARQUET_BATCH = 8192
"""Rows of a Parquet file that are in memory at a time."""


@dataclass(frozen=True, slots=True)
class Document:
    """One JSON document, line or table row."""

    value: Any
    row: int
    """1-based number of the line or row; 1 for a whole document."""
    whole: bool
    """The document is the whole file."""


@dataclass(frozen=True, slots=True)
class Bad:
    """One line or row that cannot be read."""

    row: int
    reason: str
    got: str


class _Twice(ValueError):
    """A key stands twice in one object."""


def file_digest(path: Path) -> str:
    """SHA-256 of the bytes of a file, in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_documents(source: SourceFile, form: str) -> Iterator[Document | Bad]:
    """Read a file as documents.

    Parameters
    ----------
    source
        The file; what begins as gzip or Zstandard does is unpacked, whatever its name.
    form
        ``json``, ``jsonl``, ``csv``, ``tsv``, ``parquet``, or ``auto`` to tell by the name and, for JSON, by
        whether the first line is a document of its own that others follow.

    Raises
    ------
    InputRefused
        The file as a whole cannot be read in that format.
    """
    path, label, name = source.path, source.label, unpacked_name(source.name.lower())
    if form == "auto":
        endings = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl"}
        form = endings.get(Path(name).suffix, "auto")
    if form == "parquet":
        yield from _parquet(path, label)
        return
    text = _text(path, label)
    if form == "auto":
        form = "jsonl" if _is_lines(text) else "json"
    if form == "json":
        yield Document(_document(text, label), 1, True)
    elif form == "jsonl":
        yield from _lines(text)
    else:
        yield from _table(text, label, "\t" if form == "tsv" else ",")


def _text(path: Path, label: str) -> str:
    content = bytearray()
    try:
        with Source(path) as stream:
            while len(content) <= MAX_BYTES and (block := stream.read()):
                content += block
            if stream.cut:
                raise _refused(label, "a packed file that is whole", "one that breaks off", "pack it again")
    except InputRefused as error:
        faults = [replace(fault, where=label) for fault in error.faults]
        raise InputRefused("A source cannot be read.", faults) from error
    if len(content) > MAX_BYTES:
        raise _refused(label, f"at most {MAX_BYTES} bytes, unpacked", "more", "split it")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        got = f"byte {content[error.start]:#04x} at position {error.start}"
        raise _refused(label, "UTF-8 text", got, "convert it to UTF-8", line) from error


def _refused(label: str, expected: str, got: str, remedy: str, line: int | None = None) -> InputRefused:
    return InputRefused("A source cannot be read.", [Fault(label, expected, got, remedy, line=line)])


def _is_lines(text: str) -> bool:
    first, _, rest = text.lstrip().partition("\n")
    if not rest.strip():
        return False
    try:
        _loads(first)
    except (ValueError, RecursionError):
        return False
    return True


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _Twice(f"the key {twice[:60]!r} twice in one object")
    return table


def _loads(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_pairs)


def _document(text: str, label: str) -> Any:
    try:
        return _loads(text)
    except _Twice as error:
        raise _refused(label, "each key once in an object", str(error), "repair the document") from error
    except json.JSONDecodeError as error:
        remedy = "check whether the file is whole"
        raise _refused(label, "a JSON document", error.msg, remedy, error.lineno) from error
    except (ValueError, RecursionError) as error:
        raise _refused(label, "a JSON document", str(error), "flatten or repair it") from error


def _lines(text: str) -> Iterator[Document | Bad]:
    for number, line in enumerate(io.StringIO(text, newline="\n"), start=1):
        if not line.strip():
            continue
        if len(line) > MAX_FIELD:
            yield Bad(number, "a line that is too long", f"{len(line)} characters")
            continue
        try:
            yield Document(_loads(line), number, False)
        except _Twice as error:
            yield Bad(number, "a key that stands twice in one object", str(error))
        except (ValueError, RecursionError) as error:
            yield Bad(number, "a line that is no JSON", str(error))


def _table(text: str, label: str, delimiter: str) -> Iterator[Document | Bad]:
    previous = csv.field_size_limit(MAX_FIELD)
    try:
        rows = list(_numbered(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)))
    except csv.Error as error:
        raise _refused(label, "a table", str(error), "check its quotes") from error
    finally:
        csv.field_size_limit(previous)
    if not rows:
        return
    header = [name.strip() for name in rows[0][1]]
    if len(set(header)) != len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise _refused(label, "each column once", f"{twice!r} twice", "rename one of the columns", 1)
    for line, row in rows[1:]:
        if len(row) != len(header):
            yield Bad(line, "a row with another number of fields than the header", f"{len(row)} fields")
        else:
            yield Document(dict(zip(header, row, strict=True)), line, False)


def _numbered(rows: Any) -> Iterator[tuple[int, list[str]]]:
    start = 1
    for row in rows:
        if row:
            yield start, row
        start = rows.line_num + 1


def _parquet(path: Path, label: str) -> Iterator[Document | Bad]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        with pq.ParquetFile(path) as table:
            for batch in table.iter_batches(batch_size=PARQUET_BATCH):
                for row in batch.to_pylist():
                    number += 1
                    yield Document(_plain(row), number, False)
    except (pa.lib.ArrowException, OSError) as error:
        raise _refused(label, "a Parquet file", str(error), "check the file") from error


def _plain(value: Any) -> Any:
    """Values as JSON would hold them; instants and dates as ISO texts."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, str | int | float):
        return value
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)
