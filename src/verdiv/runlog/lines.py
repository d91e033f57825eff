"""Bytes of a log from a file, a stream or standard input: unpacked, counted, and cut into lines.

Nothing here trusts its input: unpacking is bounded block by block, and a line longer than :data:`MAX_LINE`
is refused before the rest of it is read, so that neither a giant line nor a decompression bomb is ever held.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Protocol, Self, TypeAlias, cast

import zstandard

from verdiv.errors import Fault, InputRefused
from verdiv.runlog.frames import FrameWalk

__all__ = ["MAX_LINE", "Progress", "Source", "line_blocks", "unreadable"]

MAX_LINE = 16 * 1024 * 1024
"""Longest line in bytes; a longer one is neither written nor read."""

BLOCK = 1 << 18
"""Bytes read at once."""

MAX_WINDOW = 1 << 27
"""Largest window, in bytes, that a packed file may ask for."""

MOST_HELD = 1 << 30
"""Most bytes of a stream that are held at once where it has to be read in several directions."""

GZIP, ZSTD, PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"

Progress: TypeAlias = Callable[[int, int | None], None]
"""Called with the stored bytes read so far and, where it is known, their total."""


class _Unpacker(Protocol):
    """Turns stored bytes into plain ones, a bounded number at a time."""

    @property
    def unfinished(self) -> bool:
        """Whether the stored bytes ended in the middle; known at the end."""
        ...

    def read(self, size: int) -> bytes:
        """Return at most ``size`` plain bytes; none at the end."""
        ...


class _Plain:
    unfinished = False

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self.read = read


class _Gzip:
    """Gzip members one after the other."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self.unfinished = False
        self._read = read
        self._stored = b""
        self._member = zlib.decompressobj(31)
        self._begun = False

    def _ended(self) -> bool:
        return self._member.eof

    def read(self, size: int) -> bytes:
        while stored := self._stored or self._read(BLOCK):
            if self._ended():
                self._stored = stored.lstrip(b"\0")
                self._member = zlib.decompressobj(31)
                self._begun = False
                continue
            self._begun = True
            plain = self._member.decompress(stored, size)
            self._stored = self._member.unconsumed_tail
            if self._ended():
                self._stored = self._member.unused_data
                self._begun = False
            if plain:
                return plain
        self.unfinished = self._begun
        return b""


class _Zstd:
    """Zstandard frames one after the other."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._frames = FrameWalk()
        self._read = read
        unpacker = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
        self._stream = unpacker.stream_reader(
            cast(BinaryIO, _Readable(self._seen)), read_size=BLOCK, read_across_frames=True
        )

    def _seen(self, size: int) -> bytes:
        stored = self._read(size)
        self._frames.take(stored)
        return stored

    @property
    def unfinished(self) -> bool:
        return not self._frames.between

    def read(self, size: int) -> bytes:
        return bytes(self._stream.read(size))


class _Readable:
    """What the unpacker reads from."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self.read = read


class Source:
    """A log's bytes, opened once and read once.

    Parameters
    ----------
    origin
        Path, ``-`` for standard input, or an open binary stream.
    progress
        Told after every block.

    Raises
    ------
    InputRefused
        Nothing there, a folder, or no permission; on reading, a packed file that is damaged.
    """

    def __init__(self, origin: str | Path | BinaryIO, *, progress: Progress | None = None) -> None:
        self.path: str
        """What errors and inputs call it."""
        self.total: int | None = None
        """Stored bytes, where known."""
        self.stored = 0
        """Stored bytes read so far."""
        self._progress = progress
        self._hash = sha256()
        self._close = contextlib.ExitStack()
        if isinstance(origin, str | Path) and str(origin) != "-":
            self.path = str(origin)
            self._file = self._opened(Path(origin))
        else:
            self._file = sys.stdin.buffer if isinstance(origin, str | Path) else origin
            self.path = "-" if isinstance(origin, str | Path) else str(getattr(origin, "name", "stream"))
        self._ahead = b""
        while len(self._ahead) < 4 and (more := self._take(4 - len(self._ahead))):
            self._ahead += more
        self.magic = self._ahead
        """First four stored bytes."""
        self._unpacker = self._unpacking()

    def _opened(self, path: Path) -> BinaryIO:
        try:
            kind = path.stat()
            if stat.S_ISDIR(kind.st_mode):
                raise IsADirectoryError(21, "a folder")
            if stat.S_ISREG(kind.st_mode):
                self.total = kind.st_size
            return self._close.enter_context(path.open("rb", buffering=0))
        except (OSError, ValueError) as error:
            raise unreadable(self.path, error) from error

    def _unpacking(self) -> _Unpacker:
        if self.magic.startswith(GZIP):
            return _Gzip(self._stored_bytes)
        if self.magic == ZSTD:
            return _Zstd(self._stored_bytes)
        return _Plain(self._stored_bytes)

    def _take(self, size: int) -> bytes:
        try:
            data = self._file.read(size) or b""
        except OSError as error:
            raise unreadable(self.path, error) from error
        self._hash.update(data)
        self.stored += len(data)
        return data

    def _stored_bytes(self, size: int) -> bytes:
        data, self._ahead = self._ahead, b""
        data = data or self._take(size)
        if self._progress is not None:
            self._progress(self.stored, self.total)
        return data

    @property
    def packed(self) -> bool:
        """Whether it is compressed as a whole."""
        return not isinstance(self._unpacker, _Plain)

    @property
    def parquet(self) -> bool:
        """Whether it is a Parquet file."""
        return self.magic == PARQUET

    @property
    def cut(self) -> bool:
        """Whether a packed file ended in the middle."""
        return self._unpacker.unfinished

    def read(self, size: int = BLOCK) -> bytes:
        """Return at most ``size`` plain bytes; none at the end."""
        try:
            return self._unpacker.read(size)
        except (zlib.error, zstandard.ZstdError) as error:
            fault = Fault(
                self.path,
                "a packed file that is whole",
                f"damage before stored byte {self.stored}: {error}",
                "fetch or pack it again",
            )
            raise InputRefused(f"cannot unpack {self.path}", [fault]) from error

    def everything(self) -> bytes:
        """Return all stored bytes that were not read yet; for forms that cannot be read in one direction.

        Raises
        ------
        InputRefused
            More than :data:`MOST_HELD` bytes.
        """
        held = io.BytesIO()
        while block := self._stored_bytes(BLOCK):
            held.write(block)
            if held.tell() > MOST_HELD:
                fault = Fault(self.path, f"at most {MOST_HELD} bytes", "more", "name the file instead")
                raise InputRefused(f"{self.path} refused", [fault])
        return held.getvalue()

    def digest(self) -> str:
        """Read what is left and return the SHA-256 of all stored bytes."""
        while self._stored_bytes(BLOCK):
            pass
        return self._hash.hexdigest()

    def close(self) -> None:
        """Close what was opened here; a stream that was handed in stays open."""
        self._close.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def unreadable(path: str, error: OSError | ValueError) -> InputRefused:
    """Return the error for an input that the system does not give."""
    if isinstance(error, FileNotFoundError):
        got, remedy = "nothing of that name", "check the path"
    elif isinstance(error, IsADirectoryError):
        got, remedy = "a folder", "name the log in it"
    elif isinstance(error, PermissionError):
        got, remedy = "no permission to read it", "ask its owner for the right to read it"
    else:
        got, remedy = (getattr(error, "strerror", None) or str(error)), "check the path and the disk"
    fault = Fault(path or os.curdir, "a run log that can be read", got, remedy)
    return InputRefused(f"cannot read {path or 'the log'}", [fault])


def line_blocks(source: Source) -> Iterator[tuple[list[bytes], bool]]:
    r"""Yield whole lines by the block, then what stands after the last line's end.

    Parameters
    ----------
    source
        Where to read.

    Yields
    ------
    tuple of (list of bytes, bool)
        Lines without their end (``\n``), and True; in the end, where bytes without an end are left, those,
        and False.

    Raises
    ------
    InputRefused
        A line longer than :data:`MAX_LINE`.
    """
    rest: list[bytes] = []
    held = 0
    number = 1
    while block := source.read():
        first, end, more = block.partition(b"\n")
        held += len(first)
        rest.append(first)
        if held > MAX_LINE:
            raise _too_long(source.path, number)
        if not end:
            continue
        lines = [b"".join(rest), *more.split(b"\n")]
        rest = [lines.pop()]
        held = len(rest[0])
        yield lines, True
        number += len(lines)
    if held:
        yield [b"".join(rest)], False


def _too_long(path: str, number: int) -> InputRefused:
    fault = Fault(
        path,
        f"a line of at most {MAX_LINE} bytes",
        "a longer one",
        "write one record a line; leave large outputs out and keep their digest",
        line=number,
    )
    return InputRefused(f"{path} refused", [fault])
