"""Writing run logs: whole files at once, or draw by draw so that a crash loses nothing that was written."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar, cast

import msgspec

from verdiv.errors import Fault, InputRefused, UsageRefused
from verdiv.runlog.chain import line_digest
from verdiv.runlog.checks import draw_faults
from verdiv.runlog.faults import line_faults
from verdiv.runlog.jsonl import JsonlStream
from verdiv.runlog.lines import MAX_LINE, Source
from verdiv.runlog.records import Draw, Footer, Header
from verdiv.runlog.sinks import GrowingFile, Sink, sink_for
from verdiv.runlog.storage import refuse_taken

__all__ = ["RunLogWriter", "write_run_log"]

_Any = TypeVar("_Any", Header, Draw, Footer)

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Header | Draw | Footer).decode


class RunLogWriter:
    """Writes one run log, record by record, and links the records into the hash chain.

    Parameters
    ----------
    path
        ``*.jsonl``, ``*.jsonl.gz``, ``*.jsonl.zst``, ``*.parquet``, or ``-`` for standard output.
    header
        First record.
    durable
        Write in place (plain JSONL only): every draw reaches the system before ``append`` returns and the
        disk within a second, so that a killed program loses no draw; an unfinished log stays, without a
        footer, and :meth:`resume` continues it. Otherwise the file appears when it is closed, or never.
    overwrite
        Replace a file that stands there; never in a durable log.

    Raises
    ------
    WriteFailed
        The name is taken, or the system refused to write.
    InputRefused
        A record that no reader would take; it is not written.
    UsageRefused
        An unknown ending, or a durable log that is not plain JSONL.

    Notes
    -----
    Threads may share a writer. Used as a context manager it closes the log with a footer, and on an error
    without one.
    """

    def __init__(
        self, path: str | Path, header: Header, *, durable: bool = False, overwrite: bool = False
    ) -> None:
        self._begin(Path(path), header)
        header, line = self._line(header)
        if durable:
            _plain_only(self.path)
            refuse_taken(self.path, overwrite=False)
            self._sink: Sink = GrowingFile(self.path)
        else:
            self._sink = sink_for(self.path, overwrite=overwrite)
        self._put(header, line)

    def _begin(self, path: Path, header: Header) -> None:
        self.path = path
        self.header = header
        self.draws = 0
        """Draws written so far."""
        self.draw_ids: set[str] = set()
        self._wanted: dict[str, str] = {}
        self._head = ""
        self._lock = threading.Lock()
        self._open = True

    @classmethod
    def resume(cls, path: str | Path) -> Self:
        """Continue a durable log that has no footer yet.

        Parameters
        ----------
        path
            Plain JSONL log.

        Returns
        -------
        RunLogWriter
            Durable writer behind the last whole line; a half last line is dropped. ``draw_ids`` names the
            draws that stand.

        Raises
        ------
        InputRefused
            The log cannot be read, its chain does not hold, or not even its header is whole.
        UsageRefused
            The log has its footer.
        WriteFailed
            Another program is writing it, or it cannot be written.
        """
        target = Path(path)
        _plain_only(target)
        writer = cls.__new__(cls)
        with Source(target) as source:
            stream = JsonlStream(source)
            writer._begin(target, stream.header)
            for batch in stream.batches():
                for draw in batch.draws:
                    writer._note(draw)
            stream.finish()
        if stream.status == "complete":
            raise UsageRefused(
                f"{path} is complete",
                [Fault(str(path), "a log without a footer", "a footer", "begin a new log")],
            )
        writer._head = stream.head
        writer._sink = GrowingFile(target, resume_at=stream.end)
        if stream.unended:
            writer._sink.put(stream.header, b"")
        return writer

    def append(self, draw: Draw) -> None:
        """Write a draw behind the last one; its ``prev`` is filled in.

        Raises
        ------
        InputRefused
            A draw that no reader would take (a value out of range, a draw_id that stands already); nothing
            of it is written, and the writer goes on.
        WriteFailed
            The system refused; in a durable log the draws before it stand.
        """
        with self._lock:
            self._must_be_open()
            if draw.draw_id in self.draw_ids:
                raise self._refused("a draw_id that no other draw has", draw.draw_id, "draw_id")
            linked = msgspec.structs.replace(draw, prev=self._head)
            linked, line = self._line(linked)
            self._put(linked, line)
            self._note(draw)

    def close(self, *, complete: bool = True) -> None:
        """End the log.

        Parameters
        ----------
        complete
            Write the footer; without it the log reads as incomplete.

        Raises
        ------
        InputRefused
            A draw names a parent or an original that was never written; nothing (durable: no footer) stands.
        WriteFailed
            The system refused.
        """
        with self._lock:
            if not self._open:
                return
            self._open = False
            try:
                if self._wanted:
                    name, field = next(iter(self._wanted.items()))
                    raise self._refused("the draw_id of a draw in this log", name, field)
                if complete:
                    footer = Footer(prev=self._head, draws=self.draws, head=self._head)
                    self._put(*self._line(footer))
            except BaseException:
                self._sink.abandon()
                raise
            self._sink.finish()

    def abandon(self) -> None:
        """End the log without a footer (durable), or leave no file at all."""
        with self._lock:
            if self._open:
                self._open = False
                self._sink.abandon()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()

    def _must_be_open(self) -> None:
        if not self._open:
            raise UsageRefused(
                f"{self.path} is closed", [Fault(str(self.path), "an open log", "a closed one", "resume it")]
            )

    def _note(self, draw: Draw) -> None:
        self.draws += 1
        self.draw_ids.add(draw.draw_id)
        self._wanted.pop(draw.draw_id, None)
        for field, name in (("parent", draw.parent), ("copy_of", draw.copy_of)):
            if name is not None and name not in self.draw_ids:
                self._wanted[name] = field

    def _put(self, record: Header | Draw | Footer, line: bytes) -> None:
        try:
            self._sink.put(record, line)
        except BaseException:
            if not isinstance(self._sink, GrowingFile):
                self._open = False
                self._sink.abandon()
            raise
        self._head = line_digest(line)

    def _line(self, record: _Any) -> tuple[_Any, bytes]:
        """Return the record as a reader will find it, and its line."""
        where, number = str(self.path), self.draws + 2
        try:
            line = _encode(record)
        except UnicodeEncodeError as error:
            raise self._refused("text that UTF-8 can hold", str(error), None) from error
        try:
            read = _decode(line)
        except msgspec.DecodeError as error:
            faults = line_faults(line, where, number)
            raise InputRefused(f"record refused by {where}", faults) from error
        if faults := draw_faults(read, where, number) if isinstance(read, Draw) else []:
            raise InputRefused(f"record refused by {where}", faults)
        line = _encode(read)
        if len(line) > MAX_LINE:
            raise self._refused(f"a line of at most {MAX_LINE} bytes", f"{len(line)} bytes", None)
        return cast(_Any, read), line

    def _refused(self, expected: str, got: str, field: str | None) -> InputRefused:
        fault = Fault(str(self.path), expected, got, "correct the draw", line=self.draws + 2, field=field)
        return InputRefused(f"record refused by {self.path}", [fault])


def write_run_log(
    path: str | Path,
    header: Header,
    draws: Iterable[Draw],
    *,
    complete: bool = True,
    overwrite: bool = False,
) -> None:
    """Write a whole run log; it appears under its name only when all of it is written.

    Parameters
    ----------
    path
        ``*.jsonl``, ``*.jsonl.gz``, ``*.jsonl.zst``, ``*.parquet``, or ``-`` for standard output.
    header, draws
        Its records; each draw's ``prev`` is filled in.
    complete
        Write the footer.
    overwrite
        Replace a file that stands there.

    Raises
    ------
    WriteFailed, InputRefused, UsageRefused
        As :class:`RunLogWriter`.
    """
    writer = RunLogWriter(path, header, overwrite=overwrite)
    try:
        for draw in draws:
            writer.append(draw)
        writer.close(complete=complete)
    except BaseException:
        writer.abandon()
        raise


def _plain_only(path: Path) -> None:
    if not path.name.endswith(".jsonl"):
        raise UsageRefused(
            f"{path} cannot grow draw by draw",
            [Fault(str(path), "a name that ends in .jsonl", path.name, "write plain JSONL, pack it later")],
        )
