"""Where a run log's lines go: a file that appears when it is whole, or one that grows line by line."""

from __future__ import annotations

import contextlib
import gzip
import os
import time
from pathlib import Path
from typing import BinaryIO, Protocol, cast

import zstandard

from verdiv.errors import Fault, UsageRefused, WriteFailed
from verdiv.runlog.records import Draw, Footer, Header
from verdiv.runlog.storage import OutputFile, atomic_file, is_stream, told

__all__ = ["GrowingFile", "Sink", "WholeFile", "sink_for"]

SYNC_EVERY = 1.0
"""Seconds after which a durable log is synced to the disk again."""


class Sink(Protocol):
    """Where finished lines go."""

    def put(self, record: Header | Draw | Footer, line: bytes) -> None:
        """Take the next record and its line."""
        ...

    def finish(self) -> None:
        """Make what was put the file under the name."""
        ...

    def abandon(self) -> None:
        """Leave nothing half-written."""
        ...


class WholeFile:
    """Lines of a file that appears when it is whole; packed as its name says."""

    def __init__(self, path: Path, *, overwrite: bool) -> None:
        self._stack = contextlib.ExitStack()
        file = self._stack.enter_context(atomic_file(path, overwrite=overwrite))
        self._packed: BinaryIO | None = None
        if path.name.endswith(".gz"):
            self._packed = cast(BinaryIO, gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0))
        elif path.name.endswith(".zst"):
            packer = zstandard.ZstdCompressor(level=3, write_checksum=True)
            self._packed = cast(BinaryIO, packer.stream_writer(file, closefd=False))
        self._file = self._packed or file

    def put(self, record: Header | Draw | Footer, line: bytes) -> None:
        """Take the next record and its line."""
        self._file.write(line + b"\n")

    def finish(self) -> None:
        """Make what was put the file under the name."""
        if self._packed is not None:
            self._packed.close()
        self._stack.close()

    def abandon(self) -> None:
        """Leave nothing half-written."""
        stop = _Abandoned()
        with contextlib.suppress(_Abandoned, WriteFailed, ValueError):
            if self._packed is not None:
                with contextlib.suppress(WriteFailed):
                    self._packed.close()
            self._stack.__exit__(_Abandoned, stop, None)


class GrowingFile:
    """Lines of a file that stands from the start and grows line by line."""

    def __init__(self, path: Path, *, resume_at: int | None = None) -> None:
        flags = os.O_RDWR | (os.O_CREAT | os.O_EXCL if resume_at is None else 0)
        with told(path):
            descriptor = os.open(path, flags, 0o666)
        self._file = OutputFile(descriptor, path, mode="rb+")
        try:
            _lock(descriptor, path)
            self._end = resume_at or 0
            with told(path):
                os.ftruncate(descriptor, self._end)
                os.lseek(descriptor, self._end, os.SEEK_SET)
        except BaseException:
            self._file.close()
            raise
        self._synced = time.monotonic()

    def put(self, record: Header | Draw | Footer, line: bytes) -> None:
        """Take the next record and its line; a line that does not fit is taken back."""
        try:
            self._end += self._file.write(line + b"\n")
        except BaseException:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file.fileno(), self._end)
                os.lseek(self._file.fileno(), self._end, os.SEEK_SET)
            raise
        if time.monotonic() - self._synced >= SYNC_EVERY:
            self._file.sync()
            self._synced = time.monotonic()

    def finish(self) -> None:
        """Sync and close."""
        try:
            self._file.sync()
        finally:
            self._file.close()

    def abandon(self) -> None:
        """Keep what stands: a log without a footer, which can be resumed."""
        with contextlib.suppress(WriteFailed):
            self.finish()


class _Abandoned(Exception):
    """Tells a file that it is not to appear."""


def sink_for(path: Path, *, overwrite: bool) -> Sink:
    """Return what writes the kind of file that a name asks for."""
    if path.name.endswith(".parquet"):
        from verdiv.runlog.parquet import ParquetSink

        return ParquetSink(path, overwrite=overwrite)
    if path.name.endswith((".jsonl", ".jsonl.gz", ".jsonl.zst")) or str(path) == "-" or is_stream(path):
        return WholeFile(path, overwrite=overwrite)
    raise UsageRefused(
        f"cannot tell the kind of {path}",
        [
            Fault(
                str(path),
                "a name that ends in .runlog.jsonl, .runlog.jsonl.gz, .runlog.jsonl.zst or .parquet",
                path.suffix or "no ending",
                "give it one of these",
            )
        ],
    )


def _lock(descriptor: int, path: Path) -> None:
    """Keep a second program from writing the same log, where the system can."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        fault = Fault(str(path), "a log that nobody writes", "a log that a program is writing", "wait for it")
        raise WriteFailed(f"cannot write {path}", [fault]) from error
