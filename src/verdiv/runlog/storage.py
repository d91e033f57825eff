"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from verdiv.errors import Fault, WriteFailed

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["OutputFile", "atomic_file", "is_stream", "refuse_taken", "told", "write_failed"]


def write_failed(path: str | Path, error: OSError) -> WriteFailed:
    """Return the error for an output that the system refused."""
    reason = error.strerror or str(error)
    return WriteFailed(
        f"cannot write {path}",
        [Fault(str(path), "a place that can be written", reason, "free space, or name another place")],
    )


@contextlib.contextmanager
def told(place: str | Path) -> Iterator[None]:
    """Turn what the system says while writing into an error that names the file."""
    try:
        yield
    except OSError as error:
        raise write_failed(place, error) from error


class OutputFile(io.FileIO):
    """An unbuffered file whose writes are whole and whose failures name it.

    Parameters
    ----------
    descriptor
        Open file descriptor; it is closed with this object.
    place
        Name that errors give.
    """

    def __init__(self, descriptor: int, place: str | Path, *, mode: str = "wb") -> None:
        super().__init__(descriptor, mode)
        self.place = str(place)

    def write(self, data: ReadableBuffer) -> int:
        """Write all bytes and return their number."""
        view = memoryview(data).cast("B")
        done = 0
        while done < len(view):
            with told(self.place):
                done += self.put(view[done:])
        return done

    def put(self, data: memoryview) -> int:
        """Hand bytes to the system once; it may take fewer."""
        return super().write(data) or 0

    def sync(self) -> None:
        """Wait until the bytes are on the disk."""
        with told(self.place):
            os.fsync(self.fileno())


@contextlib.contextmanager
def atomic_file(path: str | Path, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """Open a file that appears under its name only when it is whole.

    The bytes go to a temporary file in the same folder, which is synced and renamed at the end; on any error
    it is removed, and what stood under the name before still stands there. Pipes and devices, which cannot
    be renamed onto, and ``-`` (standard output) are written straight.

    Parameters
    ----------
    path
        Where the file is to stand.
    overwrite
        Replace a file that stands there.

    Yields
    ------
    BinaryIO
        Where to write.

    Raises
    ------
    WriteFailed
        The name is taken, or the system refused to write.
    """
    if str(path) == "-":
        with _standard_output() as stream:
            yield stream
        return
    target = Path(path)
    if is_stream(target):
        with told(target):
            descriptor = os.open(target, os.O_WRONLY)
        with OutputFile(descriptor, target) as straight:
            yield cast(BinaryIO, straight)
        return
    refuse_taken(target, overwrite=overwrite)
    part = target.parent / f".{target.name[:64]}.{secrets.token_hex(6)}.part"
    with told(target):
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with OutputFile(descriptor, target) as raw:
            buffered = io.BufferedWriter(raw, buffer_size=1 << 20)
            try:
                yield cast(BinaryIO, buffered)
                buffered.flush()
                raw.sync()
            finally:
                with contextlib.suppress(ValueError, WriteFailed):
                    buffered.detach()
        with told(target):
            os.replace(part, target)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise


@contextlib.contextmanager
def _standard_output() -> Iterator[BinaryIO]:
    """Yield standard output as bytes, with failures that name it."""
    sys.stdout.flush()
    try:
        descriptor = os.dup(sys.stdout.fileno())
    except OSError:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with OutputFile(descriptor, "standard output") as stream:
        yield cast(BinaryIO, stream)


def refuse_taken(path: Path, *, overwrite: bool) -> None:
    """Raise :class:`~verdiv.errors.WriteFailed` where the name is taken."""
    if path.is_dir():
        got, remedy = "a folder", "name a file in it"
    elif path.exists() and not overwrite:
        got, remedy = "a file that stands there already", "name another file, or ask to overwrite it"
    elif not path.parent.is_dir():
        got, remedy = "a folder that does not exist", f"make {path.parent} first"
    else:
        return
    raise WriteFailed(f"cannot write {path}", [Fault(str(path), "a free file name", got, remedy)])


def is_stream(path: Path) -> bool:
    """Whether a pipe or a device stands under the name."""
    try:
        kind = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(kind) or stat.S_ISDIR(kind))
