"""Stretches of a JSONL log read apart from each other, as long as nothing is wrong with it.

A log's lines are chained by digests, so a stretch of whole lines can be checked by itself but for its first link, and
the links between stretches by whoever put them together. Anything out of order ends the attempt: only the reader of the
whole log can tell what is wrong and where.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from verdiv.runlog.chain import line_digest
from verdiv.runlog.checks import suspects
from verdiv.runlog.columns import Chunk, draw_chunk
from verdiv.runlog.jsonl import decode_record
from verdiv.runlog.lines import MAX_LINE
from verdiv.runlog.records import Draw, Footer

__all__ = ["Frame", "JsonlSpan", "Uneven", "framed", "line_spans"]

TAIL = 1 << 20
"""Bytes at the end of a log that its footer is looked for in."""

BLOCK = 1 << 20
"""Bytes read at once."""


class Uneven(Exception):
    """The stretch holds something else than draws in good order."""


@dataclass(frozen=True)
class Frame:
    """What stands around the draws of a log."""

    start: int
    """Byte behind the header's line."""
    end: int
    """Byte at which the footer's line begins."""
    header: str
    """Digest of the header's line."""
    footer: Footer


def framed(path: str) -> Frame | None:
    """Find header and footer of a plain JSONL log; None where it has no such frame."""
    if not Path(path).is_file():
        return None
    with Path(path).open("rb") as stream:
        header = stream.readline(TAIL)
        size = stream.seek(0, 2)
        stream.seek(max(len(header), size - TAIL))
        lines = stream.read().split(b"\n")
    if not header.endswith(b"\n") or len(lines) < 3 or lines[-1]:
        return None
    try:
        footer = decode_record(lines[-2])
    except msgspec.DecodeError:
        return None
    if not isinstance(footer, Footer):
        return None
    return Frame(len(header), size - len(lines[-2]) - 1, line_digest(header[:-1]), footer)


def line_spans(path: str, frame: Frame, count: int) -> list[tuple[int, int]]:
    """Cut the draws of a log into stretches of whole lines, about as long as each other, as ranges of bytes."""
    ends = [frame.start]
    with Path(path).open("rb") as stream:
        for i in range(1, count):
            stream.seek(frame.start + (frame.end - frame.start) * i // count - 1)
            stream.readline()
            ends.append(min(max(stream.tell(), ends[-1]), frame.end))
    return [(a, b) for a, b in itertools.pairwise([*ends, frame.end]) if b > a]


class JsonlSpan:
    """One stretch of a JSONL log.

    Parameters
    ----------
    path
        The log.
    span
        First byte, and the one after the last; whole lines.
    """

    def __init__(self, path: str, span: tuple[int, int]) -> None:
        self.path = path
        self.span = span
        self.rows = 0
        self.first: str | None = None
        """Link of the first line to what stands before it."""
        self.head: str | None = None
        """Digest of the last line."""

    def chunks(self) -> Iterator[Chunk]:
        """Yield the draws as columns.

        Raises
        ------
        Uneven
            A line that is no draw, a link that does not hold, or a draw that contradicts itself.
        """
        for lines in self._blocks():
            chunk = draw_chunk(self._decoded(lines), range(self.rows + 1, self.rows + len(lines) + 1), {})
            if np.any(suspects(chunk)):
                raise Uneven
            self.rows += len(lines)
            yield chunk

    def _decoded(self, lines: Sequence[bytes]) -> list[Draw]:
        try:
            records: list[Any] = list(map(decode_record, lines))
        except msgspec.DecodeError as error:
            raise Uneven from error
        if set(map(type, records)) != {Draw}:
            raise Uneven
        digests = [line_digest(line) for line in lines]
        if self.head is None:
            self.first = self.head = records[0].prev
        if [record.prev for record in records] != [self.head, *digests[:-1]]:
            raise Uneven
        self.head = digests[-1]
        return records

    def _blocks(self) -> Iterator[list[bytes]]:
        start, end = self.span
        rest = b""
        with Path(self.path).open("rb") as stream:
            stream.seek(start)
            while start < end:
                block = stream.read(min(BLOCK, end - start))
                start += len(block)
                lines = (rest + block).split(b"\n")
                rest = lines.pop()
                if not block or len(rest) > MAX_LINE:
                    raise Uneven
                if lines:
                    yield lines
        if rest:
            raise Uneven
