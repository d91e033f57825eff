"""Nothing that a log holds can make reading it take unbounded memory."""

from __future__ import annotations

import gzip
import io
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, cast

import pytest
import zstandard

from runlog_files import draw_line, header_line, log_bytes
from verdiv.errors import InputRefused
from verdiv.runlog.lines import MAX_LINE
from verdiv.runlog.reader import read_run_log
from verdiv.runlog.writer import RunLogWriter

MIB = 1 << 20
GIB = 1 << 30

BEGIN = log_bytes([header_line(), draw_line("d1")], footer=False)


class Endless(io.RawIOBase):
    """A log whose third line is a gigabyte long; bytes are made as they are asked for, and counted."""

    def __init__(self, begin: bytes, byte: bytes = b"x", size: int = GIB) -> None:
        self.name = "endless"
        self.given = 0
        self._begin = begin
        self._byte = byte
        self._left = size

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        if self._begin:
            data, self._begin = self._begin[:size], self._begin[size:]
        else:
            data = self._byte * min(size, self._left)
            self._left -= len(data)
        self.given += len(data)
        return data


def refused_within(origin: Path | BinaryIO, most: int) -> InputRefused:
    """Read what must be refused, holding at most so many bytes at once."""
    tracemalloc.start()
    try:
        with pytest.raises(InputRefused) as caught:
            read_run_log(origin)
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()
    return caught.value


def test_a_gigabyte_line_is_refused_after_sixteen_megabytes() -> None:
    """A line that does not end is refused with its number, most of it unread."""
    stream = Endless(BEGIN)
    refused = refused_within(cast(BinaryIO, stream), 3 * MAX_LINE)
    assert refused.faults[0].line == 3
    assert stream.given < MAX_LINE + 2 * MIB


def _gzip_bomb(path: Path) -> None:
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(BEGIN)
        for _ in range(256):
            file.write(b"x" * MIB)


def _zstd_bomb(path: Path) -> None:
    with path.open("wb") as file, zstandard.ZstdCompressor().stream_writer(file) as packed:
        packed.write(BEGIN)
        for _ in range(1024):
            packed.write(b"x" * MIB)


@pytest.mark.parametrize("make", [_gzip_bomb, _zstd_bomb])
def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """A small packed file that unpacks to a giant line is refused by line, never held whole."""
    path = tmp_path / "bomb.jsonl.packed"
    make(path)
    assert path.stat().st_size < MIB
    refused = refused_within(path, 3 * MAX_LINE)
    assert refused.faults[0].line == 3


def test_a_zstd_window_beyond_bounds_is_refused(tmp_path: Path) -> None:
    """A frame that asks for a window of gigabytes is refused instead of granted."""
    frame = b"\x28\xb5\x2f\xfd" + b"\x00" + bytes([21 << 3]) + b"\x01\x00\x00"
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(frame)
    refused = refused_within(path, 16 * MIB)
    assert "damage" in refused.faults[0].got


def test_a_flood_of_faults_is_counted_not_kept() -> None:
    """A log of nothing but empty lines ends after a bounded number of faults, in bounded memory."""
    stream = Endless(BEGIN, b"\n")
    refused = refused_within(cast(BinaryIO, stream), 64 * MIB)
    assert refused.total == 100_000
    assert len(refused.faults) == 100


def test_a_line_as_long_as_allowed_is_read_and_a_longer_one_is_not_written(tmp_path: Path) -> None:
    """The bound is the same for writer and reader: what is written can be read."""
    from verdiv.runlog.records import Draw, Gate, Header

    header = Header(schema=1, run_id="r", gate=Gate.NONE, harness="h")
    draw = Draw(draw_id="d", task_id="t", arm="A0", correct=None, billed=1.0, output="")
    path = tmp_path / "a.jsonl"
    with RunLogWriter(path, header) as writer:
        writer.append(draw)
    room = MAX_LINE - len(path.read_bytes().splitlines()[1])
    path.unlink()
    with RunLogWriter(path, header) as writer:
        writer.append(Draw(draw_id="d", task_id="t", arm="A0", correct=None, billed=1.0, output="x" * room))
        with pytest.raises(InputRefused):
            writer.append(
                Draw(draw_id="e", task_id="t", arm="A0", correct=None, billed=1.0, output="x" * (room + 1))
            )
    log = read_run_log(path, outputs=True)
    assert log.draws["output"].str.len().tolist() == [room]


def test_a_stream_that_cannot_seek_is_read() -> None:
    """Standard input and sockets only go forward; that is enough."""

    class Forward(io.RawIOBase):
        def __init__(self) -> None:
            self._data = io.BytesIO(log_bytes([header_line(), draw_line("d1")]))

        def readable(self) -> bool:
            return True

        def read(self, size: int = -1) -> bytes:
            return self._data.read(min(size, 7))

    assert read_run_log(cast(BinaryIO, Forward())).inputs[0].draws == 1
