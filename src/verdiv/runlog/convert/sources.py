"""Which files the sources hold, in an order that reads numbers in names as numbers.

Standard input is one of them: it is copied to a temporary file, under the name that templates are to see, so that it
is read, digested and looked up like any other file and never held in memory as a whole.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from verdiv.errors import Fault, InputRefused

__all__ = ["STANDARD_INPUT", "SourceFile", "collect", "natural_key", "standard_input", "unpacked_name"]

STANDARD_INPUT = "-"
"""How standard input is named among the sources."""

MAX_STREAM = 8 << 30
"""Stored bytes that are taken from standard input."""

MAX_FILES = 100_000
"""Files under all sources together."""

MAX_FOLDERS = 32
"""Levels of folders below a source."""

_DIGITS = re.compile(r"(\d{1,18})", re.ASCII)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file under a source."""

    path: Path
    """Where it lies."""
    label: str
    """How messages name it: from the source on, with ``/``."""
    components: tuple[str, ...]
    """Components of its path, outermost first, for the templates."""
    skipped: str = ""
    """Why the file is listed and never read; empty where it may be read."""

    @property
    def name(self) -> str:
        """Name of the file, which may tell its format."""
        return self.components[-1] if self.label == STANDARD_INPUT else self.path.name


def unpacked_name(name: str) -> str:
    """Drop the ending of a packed file.

    Examples
    --------
    >>> unpacked_name("a.csv.gz"), unpacked_name("b.jsonl.zst"), unpacked_name("c.json")
    ('a.csv', 'b.jsonl', 'c.json')
    """
    return name.removesuffix(".gz").removesuffix(".zst")


@contextlib.contextmanager
def standard_input(name: str) -> Iterator[SourceFile]:
    """Give standard input as a file for as long as the context is open.

    Parameters
    ----------
    name
        Path under which the templates of a mapping see it.

    Raises
    ------
    InputRefused
        It holds more than :data:`MAX_STREAM` bytes.
    """
    components = tuple(part for part in name.split("/") if part)
    with tempfile.NamedTemporaryFile(prefix="verdiv-") as copy:
        while block := sys.stdin.buffer.read(1 << 20):
            copy.write(block)
            if copy.tell() > MAX_STREAM:
                fault = Fault(STANDARD_INPUT, f"at most {MAX_STREAM} bytes", "more", "name the file instead")
                raise InputRefused("A source cannot be read.", [fault])
        copy.flush()
        yield SourceFile(Path(copy.name), STANDARD_INPUT, components)


def natural_key(text: str) -> tuple[tuple[tuple[int, int, str], ...], ...]:
    """Key under which numbers within a text sort as numbers, and folders before what they hold.

    Examples
    --------
    >>> sorted(["t10", "t2", "t1"], key=natural_key)
    ['t1', 't2', 't10']
    """
    return tuple(
        tuple((1, int(p), "") if i % 2 else (0, 0, p) for i, p in enumerate(_DIGITS.split(component)))
        for component in text.split("/")
    )


def collect(sources: Iterable[Path]) -> Sequence[SourceFile]:
    """List the files of all sources, each file once.

    Folders are entered to a bounded depth; links that leave a folder are listed and never followed.

    Raises
    ------
    InputRefused
        A source does not exist or cannot be listed, or the sources hold too many files; all at once.
    """
    faults: list[Fault] = []
    files: dict[Path, SourceFile] = {}
    for source in sources:
        try:
            for found in _files_of(source):
                files.setdefault(found.path.absolute() if found.skipped else found.path.resolve(), found)
                if len(files) > MAX_FILES:
                    fault = Fault(str(source), f"at most {MAX_FILES} files", "more", "name a smaller folder")
                    raise InputRefused("The sources hold too many files.", [fault])
        except OSError as error:
            got = error.strerror or str(error)
            faults.append(Fault(str(error.filename or source), "a readable file or folder", got, "check it"))
    if faults:
        raise InputRefused("A source cannot be read.", faults)
    return list(files.values())


def _files_of(source: Path) -> Iterable[SourceFile]:
    if source.is_file():
        yield SourceFile(source, source.name, source.resolve(strict=True).parts)
        return
    if source.exists() and not source.is_dir():
        fault = Fault(
            str(source), "a file or a folder", "a pipe or a device", "hand it over as standard input, -"
        )
        raise InputRefused("A source cannot be read.", [fault])
    root = source.resolve(strict=True)
    base = source.name or root.name
    for folder, names, leaves in os.walk(root, onerror=_raise):
        here = Path(folder)
        inside = here.relative_to(root).parts
        if len(inside) > MAX_FOLDERS:
            expected = f"at most {MAX_FOLDERS} levels of folders"
            fault = Fault(str(here), expected, "more", "name a folder below")
            raise InputRefused("The source is too deep.", [fault])
        names.sort(key=natural_key)
        linked = [name for name in names if (here / name).is_symlink()]
        for name in sorted([*leaves, *linked], key=natural_key):
            path = here / name
            label = "/".join((base, *inside, name))
            yield SourceFile(path, label, (*root.parts, *inside, name), _skipped(path, root))


def _skipped(path: Path, root: Path) -> str:
    if path.is_symlink() and (path.is_dir() or not _stays(path, root)):
        return "a link, not followed"
    return "" if path.is_file() else "no regular file"


def _stays(path: Path, root: Path) -> bool:
    try:
        return path.resolve(strict=True).is_relative_to(root)
    except OSError:
        return False


def _raise(error: OSError) -> None:
    raise error
