"""Logs read once as flat batches, whole or in stretches: what counting takes in."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from verdiv.errors import Fault, InputRefused
from verdiv.runlog.arrow import misfits, row_faults
from verdiv.runlog.checks import draw_faults
from verdiv.runlog.flat import DICTIONARIES, LEAVES, ROWS, chunk_batch, faulty, flatten
from verdiv.runlog.jsonl import FaultList
from verdiv.runlog.lines import Source
from verdiv.runlog.names import NameHashes
from verdiv.runlog.parquet import ParquetLog
from verdiv.runlog.passes import JsonlPass, ParquetPass
from verdiv.runlog.records import Draw, Header
from verdiv.runlog.table import Finding, Status

__all__ = ["FlatLog", "ParquetSpan"]


class ParquetSpan:
    """Row groups of a Parquet log that stand together, read once.

    Parameters
    ----------
    file
        Path, or bytes that can be read at any place.
    where
        File that faults name.
    groups
        First row group, and the one after the last; all if None.
    """

    def __init__(self, file: str | BinaryIO, where: str, groups: tuple[int, int] | None = None) -> None:
        self.where = where
        self.faults = FaultList(where)
        self.names = NameHashes()
        self._file = pq.ParquetFile(file, read_dictionary=DICTIONARIES)
        metadata = self._file.metadata
        self._groups = range(*groups) if groups else range(metadata.num_row_groups)
        self.row = sum(metadata.row_group(i).num_rows for i in range(self._groups.start))
        """Place in the log of the next draw."""

    def batches(self) -> Iterator[Any]:
        """Yield record batches of :data:`FLAT_SCHEMA`; of one with faulty draws only the faults are gathered."""
        try:
            for group in self._groups:
                table = self._file.read_row_group(group, columns=LEAVES)
                for batch in table.to_batches(max_chunksize=ROWS):
                    yield from self._checked(batch)
        except (OSError, pa.ArrowException) as error:
            fault = Fault(self.where, "columns that can be read", str(error), "write it again")
            raise InputRefused(f"{self.where} refused", [fault]) from error

    def _checked(self, batch: Any) -> Iterator[Any]:
        batch.validate(full=True)
        first, self.row = self.row, self.row + batch.num_rows
        wrong = misfits(batch)
        for row in map(int, wrong):
            for fault in row_faults(batch, row, self.where, first + row + 1):
                self.faults.add(fault)
        if len(wrong):
            return
        flat, bad = flatten(batch, first)
        for row in map(int, np.flatnonzero(bad | faulty(flat))):
            (values,) = batch.slice(row, 1).to_pylist()
            draw = msgspec.convert({"record": "draw", **values}, Draw)
            for fault in draw_faults(draw, self.where, first + row + 1):
                self.faults.add(fault)
        self.names.add(flat)
        yield flat


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
        self._names = NameHashes()
        self._apart = False
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
            return "complete" if self._apart else self._jsonl.status
        return "complete" if self._parquet is not None and self._parquet.footer is not None else "incomplete"

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was noticed of the log as a whole."""
        return (*(self._jsonl.findings if self._jsonl is not None else ()), *self._findings)

    @property
    def draws(self) -> int | None:
        """How many draws the log holds, where that can be told before it is read."""
        return None if self._parquet is None else self._parquet.rows

    def spans(self, count: int) -> tuple[tuple[int, int], ...]:
        """Ranges of row groups for :class:`ParquetSpan`, about as long as each other; none for a log from a stream."""
        if self._parquet is None or not isinstance(self._file, str):
            return ()
        groups = self._parquet.groups
        ends = [groups * i // count for i in range(count + 1)]
        return tuple((a, b) for a, b in itertools.pairwise(ends) if b > a)

    def read_apart(self, rows: int, names: NameHashes) -> None:
        """Take note that all draws were read apart from each other, and what they are called."""
        self.rows = rows
        self._names = names
        self._apart = True

    def batches(self) -> Iterator[Any]:
        """Yield record batches of :data:`FLAT_SCHEMA`, in the order of the log."""
        made = self._from_jsonl() if self._jsonl is not None else self._from_parquet()
        for batch in made:
            self.rows += batch.num_rows
            yield batch

    def finish(self) -> None:
        """Raise with all faults of the draws, if there is any."""
        if self._jsonl is not None:
            if not self._apart:
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
        if not self._names.hold():
            self._look_names_up()

    def _look_names_up(self) -> None:
        """Read the log draw by draw, which tells the names that stand twice or are missing."""
        slow = ParquetPass(self.source, self._file)
        for _ in slow.chunks({}):
            pass
        slow.finish()

    def _from_jsonl(self) -> Iterator[Any]:
        assert self._jsonl is not None
        for chunk in self._jsonl.chunks({}):
            yield chunk_batch(chunk, self.rows)

    def _from_parquet(self) -> Iterator[Any]:
        span = ParquetSpan(self._file, self.source.path)
        yield from span.batches()
        self._faults, self._names = span.faults, span.names
