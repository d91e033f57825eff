"""One pass over a run log in JSONL: records decoded by the block, links checked, faults gathered."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, cast

import msgspec

from verdiv.errors import Fault, InputRefused
from verdiv.runlog.chain import chain_breaks
from verdiv.runlog.faults import REMEDY, line_faults, parsed_line, says_twice, unknown_version
from verdiv.runlog.lines import Source, line_blocks
from verdiv.runlog.records import Draw, Footer, Header
from verdiv.runlog.stamps import is_time, time_fault
from verdiv.runlog.table import Finding, Status

__all__ = ["Batch", "FaultList", "JsonlStream", "decode_record"]

KEPT_FAULTS = 100
"""Faults kept in full; the rest are counted."""

MOST_FAULTS = 100_000
"""Faults after which a log is not read on."""

FOOTER_REMEDY = "draws were dropped or added: go back to the log as it was written"

decode_record = msgspec.json.Decoder(Header | Draw | Footer).decode
"""Return the record of one line; raises for a line that holds none."""


class FaultList:
    """Gathers the faults of one input: the first in full, the rest counted."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.kept: list[Fault] = []
        self.total = 0

    def add(self, fault: Fault) -> None:
        """Count a fault, and keep it while there are few."""
        self.total += 1
        if len(self.kept) < KEPT_FAULTS:
            self.kept.append(fault)
        if self.total >= MOST_FAULTS:
            self.refuse()

    def refuse(self) -> None:
        """Raise :class:`~verdiv.errors.InputRefused` if there is any fault."""
        if self.total:
            raise InputRefused(f"{self.where} refused", self.kept, total=self.total)


@dataclass(frozen=True, slots=True)
class Batch:
    """Draws that stand one after the other in a log."""

    draws: list[Draw]
    lines: Sequence[int]
    """1-based line of each."""


class JsonlStream:
    """Reads one run log once, batch by batch, in bounded memory.

    Parameters
    ----------
    source
        The log's bytes.
    thorough
        Look at every line for what the fast decoder lets pass: a field given twice.

    Raises
    ------
    InputRefused
        No header to begin with, or of a format version that is not ours to read.

    Notes
    -----
    Take all :meth:`batches`, then :meth:`finish`: only then is the log known to hold. Faults met on the way
    are gathered in ``faults``; a batch leaves faulty lines out.
    """

    def __init__(self, source: Source, *, thorough: bool = False) -> None:
        self.source = source
        self.faults = FaultList(source.path)
        self.findings: list[Finding] = []
        self.lost: set[str | None] = set()
        """draw_id of each faulty line; None for one that does not tell it."""
        self.footer: Footer | None = None
        self.status: Status = "incomplete"
        self.draws = 0
        """Draw records seen, faulty ones not included."""
        self.end = 0
        """Plain bytes up to the end of the last whole record, its line's end included where there is one."""
        self.unended = False
        """The last whole record has no line's end."""
        self._thorough = thorough
        self._blocks = line_blocks(source)
        self._number = 1
        self._behind = False
        self._head: str | None = None
        self._first: list[bytes] = []
        self._first_ended = True
        self.header = self._read_header()

    @property
    def head(self) -> str:
        """SHA-256 of the last whole line."""
        return self._head or ""

    def batches(self) -> Iterator[Batch]:
        """Yield the draws in order.

        Raises
        ------
        InputRefused
            A line too long to read, a damaged packed file, or more faults than anyone would read.
        """
        if self._first:
            yield from self._batch(self._first, self._first_ended)
            self._first = []
        for lines, ended in self._blocks:
            yield from self._batch(lines, ended)

    def finish(self) -> None:
        """Judge the log as a whole.

        Raises
        ------
        InputRefused
            All faults of the log together.
        """
        if self.footer is None:
            self._incomplete("it has no footer")
        if self.source.cut:
            self._incomplete("the packed file ends in the middle")
        self.faults.refuse()

    def _incomplete(self, reason: str) -> None:
        self.status = "incomplete"
        message = f"{self.source.path} is incomplete: {reason}; {self.draws} draws were read"
        self.findings.append(Finding("medium", "log.incomplete", message))

    def _read_header(self) -> Header:
        path = self.source.path
        lines, ended = next(self._blocks, ([], False))
        if not lines:
            self._refuse(Fault(path, "a run log", "an empty file", "check that the program wrote it"))
        line, rest = lines[0], lines[1:]
        header: Any = None
        value, faults = parsed_line(line, path, 1)
        if not ended and faults:
            remedy = "nothing of this log can be used: run again"
            self._refuse(Fault(path, "a whole header", "the beginning of one", remedy, line=1))
        faults = [version] if (version := unknown_version(value, path, 1)) else line_faults(line, path, 1)
        if not faults:
            header = decode_record(line)
            if not isinstance(header, Header):
                got = "a draw" if isinstance(header, Draw) else "a footer"
                remedy = "a run log begins with its header: convert foreign logs first"
                faults = [Fault(path, "a header record", got, remedy, line=1, field="record")]
            elif header.started_at is not None and not is_time(header.started_at):
                faults = [time_fault(path, header.started_at, 1, "started_at")]
        if faults:
            raise InputRefused(f"{path} refused", faults)
        assert isinstance(header, Header)
        self._took([line], ended)
        self._first, self._first_ended = rest, ended
        return header

    def _refuse(self, fault: Fault) -> None:
        raise InputRefused(f"{self.source.path} refused", [fault])

    def _took(self, lines: list[bytes], ended: bool) -> list[str | None]:
        """Step behind whole lines; return the digest of the line before each."""
        digests = [sha256(line).hexdigest() for line in lines]
        before = [self._head, *digests[:-1]]
        self._head = digests[-1]
        self._number += len(lines)
        self.end += sum(map(len, lines)) + len(lines) - (not ended)
        self.unended = not ended
        return before

    def _batch(self, lines: list[bytes], ended: bool) -> Iterator[Batch]:
        """Decode lines, check their links, and pass the draws on."""
        if not ended and self._half(lines[0]):
            return
        start = self._number
        numbers: Sequence[int] = range(start, start + len(lines))
        records = self._decoded(lines, start)
        self._check_links(records, self._took(lines, ended), start)
        if set(map(type, records)) != {Draw} or self.footer is not None:
            kept = list(self._draws_among(records, start))
            draws, numbers = [draw for draw, _ in kept], [number for _, number in kept]
        else:
            draws = cast(list[Draw], records)
        self.draws += len(draws)
        if draws:
            yield Batch(draws, numbers)

    def _half(self, line: bytes) -> bool:
        """Whether what stands behind the last line's end is the beginning of a record."""
        if self.footer is not None or not parsed_line(line, self.source.path, self._number)[1]:
            return False
        self._incomplete(f"its last line ({self._number}) is cut off and left out")
        return True

    def _decoded(self, lines: list[bytes], start: int) -> list[Header | Draw | Footer | None]:
        """Return the records of lines; None and a fault for a line that holds none."""
        with contextlib.suppress(msgspec.DecodeError):
            whole: list[Header | Draw | Footer | None] = list(map(decode_record, lines))
            if not self._thorough or not any(map(says_twice, lines)):
                return whole
        return [self._record(line, number) for number, line in enumerate(lines, start)]

    def _record(self, line: bytes, number: int) -> Header | Draw | Footer | None:
        """Return the record of one line; None, and all its faults, for a line that holds none."""
        path = self.source.path
        try:
            record: Header | Draw | Footer = decode_record(line)
            if not (self._thorough and says_twice(line)):
                return record
            reason = "a field twice"
        except msgspec.DecodeError as error:
            reason = str(error)
        for fault in line_faults(line, path, number) or [
            Fault(path, "a record", reason, REMEDY, line=number)
        ]:
            self.faults.add(fault)
        value, _ = parsed_line(line, path, number)
        name = value.get("draw_id") if isinstance(value, dict) else None
        self.lost.add(name if isinstance(name, str) else None)
        return None

    def _check_links(
        self, records: Sequence[Header | Draw | Footer | None], before: list[str | None], start: int
    ) -> None:
        links = [
            digest if record is None else record.prev for record, digest in zip(records, before, strict=True)
        ]
        if links == before:
            return
        for place in chain_breaks(links, before):
            number, link = start + place, links[place]
            if isinstance(records[place], Header):
                continue
            self.faults.add(
                Fault(
                    self.source.path,
                    f"the SHA-256 of line {number - 1}, {before[place]}",
                    link or "null",
                    f"the chain breaks here: line {number - 1} was changed, dropped or moved after this line "
                    "was written; go back to the log as it was written",
                    line=number,
                    field="prev",
                )
            )

    def _draws_among(
        self, records: Sequence[Header | Draw | Footer | None], start: int
    ) -> Iterator[tuple[Draw, int]]:
        """Yield the draws among records of all kinds, and judge the others."""
        for number, record in enumerate(records, start):
            if self.footer is not None:
                if not self._behind:
                    self._fault(number, "nothing behind the footer", "another line", "remove it")
                self._behind = True
            elif isinstance(record, Draw):
                yield record, number
            elif isinstance(record, Header):
                self._fault(number, "a draw or the footer", "a second header", "join logs by naming both")
            elif isinstance(record, Footer):
                self._end_with(record, number)

    def _end_with(self, footer: Footer, number: int) -> None:
        """Hold the footer against what was read."""
        self.footer = footer
        self.status = "complete"
        seen = number - 2
        if footer.draws != seen:
            self._fault(
                number, f"{seen}, the draws that stand here", str(footer.draws), FOOTER_REMEDY, "draws"
            )
        if footer.head != footer.prev:
            self._fault(number, "the SHA-256 of the line before it", footer.head, FOOTER_REMEDY, "head")

    def _fault(self, number: int, expected: str, got: str, remedy: str, field: str | None = None) -> None:
        self.faults.add(Fault(self.source.path, expected, got, remedy, line=number, field=field))
