"""One pass over one log, in either form: its draws as checked columns, then its judgement."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, Protocol

import numpy as np

from verdiv.errors import Fault
from verdiv.runlog.arrow import batch_chunk, misfits, row_faults
from verdiv.runlog.checks import Links, draw_faults, suspects
from verdiv.runlog.columns import Chunk, draw_chunk
from verdiv.runlog.jsonl import FaultList, JsonlStream
from verdiv.runlog.lines import Source
from verdiv.runlog.parquet import ParquetLog
from verdiv.runlog.records import Draw, Header
from verdiv.runlog.table import Finding, Status

__all__ = ["JsonlPass", "LogPass", "ParquetPass"]


class LogPass(Protocol):
    """Reads a log once."""

    header: Header
    findings: list[Finding]

    @property
    def status(self) -> Status:
        """Whether the log was ended by its footer; known at the end."""
        ...

    def chunks(self, interned: dict[str, str]) -> Iterator[Chunk]:
        """Yield the draws as columns; faults are gathered on the way."""
        ...

    def records(self) -> Iterator[Draw]:
        """Yield the draws as records instead."""
        ...

    def finish(self) -> None:
        """Raise :class:`~verdiv.errors.InputRefused` with all faults, if there is any."""
        ...


class JsonlPass:
    """A pass over JSONL.

    Parameters
    ----------
    source
        The log's bytes.
    outputs
        Load outputs and messages.
    thorough
        As :class:`~verdiv.runlog.jsonl.JsonlStream`.
    """

    def __init__(self, source: Source, *, outputs: bool = False, thorough: bool = False) -> None:
        self._stream = JsonlStream(source, thorough=thorough)
        self._outputs = outputs
        self._links = Links(source.path)
        self.header = self._stream.header
        self.findings = self._stream.findings

    @property
    def status(self) -> Status:
        """Whether the log was ended by its footer."""
        return self._stream.status

    def chunks(self, interned: dict[str, str]) -> Iterator[Chunk]:
        """Yield the draws as columns."""
        faults = self._stream.faults
        for batch in self._stream.batches():
            chunk = draw_chunk(batch.draws, batch.lines, interned, outputs=self._outputs)
            for row in map(int, np.flatnonzero(suspects(chunk))):
                for fault in draw_faults(batch.draws[row], faults.where, batch.lines[row]):
                    faults.add(fault)
            for fault in self._links.add(chunk):
                faults.add(fault)
            yield chunk

    def records(self) -> Iterator[Draw]:
        """Yield the draws as records."""
        for batch in self._stream.batches():
            yield from batch.draws

    def finish(self) -> None:
        """Judge the log as a whole."""
        self._links.excuse(self._stream.lost)
        for fault in self._links.dangling():
            self._stream.faults.add(fault)
        self._stream.finish()


class ParquetPass:
    """A pass over Parquet.

    Parameters
    ----------
    source
        Names the log.
    file
        Path, or bytes that can be read at any place.
    outputs
        Load outputs and messages.
    thorough
        Compute the chain again.
    """

    def __init__(
        self, source: Source, file: str | BinaryIO, *, outputs: bool = False, thorough: bool = False
    ) -> None:
        self._log = ParquetLog(file, source.path)
        self._outputs = outputs
        self._thorough = thorough
        self._faults = FaultList(source.path)
        self._links = Links(source.path)
        self.header = self._log.header
        self.findings: list[Finding] = []
        self.status: Status = "incomplete" if self._log.footer is None else "complete"

    def chunks(self, interned: dict[str, str]) -> Iterator[Chunk]:
        """Yield the draws as columns; a batch with values that no field allows is left out."""
        first = 1
        where = self._faults.where
        for batch in self._log.batches(outputs=self._outputs):
            wrong = misfits(batch)
            for row in map(int, wrong):
                for fault in row_faults(batch, row, where, first + row):
                    self._faults.add(fault)
            if len(wrong):
                self._links.excuse(batch.column("draw_id").to_pylist())
            else:
                chunk = batch_chunk(batch, first, interned, outputs=self._outputs)
                for row in map(int, np.flatnonzero(suspects(chunk))):
                    self._contradicts(batch, row, first + row)
                for fault in self._links.add(chunk):
                    self._faults.add(fault)
                yield chunk
            first += batch.num_rows

    def records(self) -> Iterator[Draw]:
        """Yield the draws as records."""
        yield from self._log.draws()

    def finish(self) -> None:
        """Judge the log as a whole."""
        footer = self._log.footer
        where = self._faults.where
        for fault in self._links.dangling():
            self._faults.add(fault)
        if footer is None:
            message = f"{where} is incomplete: it has no footer; {self._log.rows} draws were read"
            self.findings.append(Finding("medium", "log.incomplete", message))
        elif footer.draws != self._log.rows:
            self._disagrees("draws", f"{self._log.rows}, the draws that stand here", str(footer.draws))
        elif self._thorough and not self._faults.total and (head := self._log.chain_head()) != footer.head:
            self._disagrees("head", f"{head}, the head of the chain over these draws", footer.head)
        self._faults.refuse()

    def _contradicts(self, batch: Any, row: int, number: int) -> None:
        for fault in draw_faults(self._log.draw(batch, row), self._faults.where, number):
            self._faults.add(fault)

    def _disagrees(self, field: str, expected: str, got: str) -> None:
        remedy = "rows were changed, dropped or added: go back to the log as it was written"
        self._faults.add(Fault(f"{self._faults.where} (footer)", expected, got, remedy, field=field))
