"""The journal beside a growing run log: what was about to be asked, what was answered, what a kill took.

Before a request is sent its intent is written; once the draw stands in the log the intent is settled by it. An
answer that cannot be logged yet (a vote is decided by its last draw) is written to the journal whole. After a
kill, intents without a draw or an answer are the draws that were in flight: each is listed as lost.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from verdiv.errors import Fault, InputRefused, WriteFailed

__all__ = ["Intent", "Journal", "journal_path"]

MAX_LINE = 16 * 2**20
"""Bytes of one entry."""


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """A draw that is about to be asked for."""

    number: int
    """Running number of the intent, over all sittings of the run."""
    draw_id: str
    """The draw."""
    price: float
    """Its price in units of one small draw."""
    in_flight: int
    """Requests in flight, this one included."""
    at: str
    """When it was written, RFC 3339."""


class _Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the journal; exactly one field is set."""

    intent: Intent | None = None
    answer: dict[str, Any] | None = None
    retry: dict[str, Any] | None = None
    lost: Intent | None = None
    settled: int | None = None


def journal_path(log: Path) -> Path:
    """Name the journal of a log.

    Parameters
    ----------
    log
        The run log.

    Returns
    -------
    Path
        Beside it.

    Examples
    --------
    >>> journal_path(Path("a/run.runlog.jsonl")).name
    'run.runlog.journal.jsonl'
    """
    return log.with_name(log.name.removesuffix(".jsonl") + ".journal.jsonl")


@dataclass
class Journal:
    """The open journal of one run."""

    path: Path
    """Where it stands."""
    intents: dict[int, Intent] = field(default_factory=dict)
    """Intents that are neither settled nor lost."""
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Draw to its answer, where the log did not have it at opening."""
    lost: list[Intent] = field(default_factory=list)
    """Draws that kills took, over all sittings."""
    retries: int = 0
    """Infrastructure retries, over all sittings."""
    next_number: int = 0

    @classmethod
    def open(cls, path: Path, logged: Collection[str], *, resume: bool) -> Journal:
        """Open a journal, and list as lost what the last sitting left in flight.

        Parameters
        ----------
        path
            Where it stands.
        logged
            Draws that the log holds.
        resume
            Whether an existing journal is continued; otherwise there must be none.

        Returns
        -------
        Journal
            Ready to be written to.

        Raises
        ------
        WriteFailed
            When the journal is there already, or cannot be opened.
        InputRefused
            When a whole line of it is not an entry.
        """
        journal = cls(path)
        try:
            if resume and path.exists():
                journal._read(logged)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | (0 if resume else os.O_EXCL)
            journal._descriptor = os.open(path, flags, 0o666)
        except OSError as error:
            fault = Fault(
                str(path), "a journal that can be written", str(error), "name another log, or --resume"
            )
            raise WriteFailed("the journal cannot be opened", [fault]) from error
        left = [one for one in journal.intents.values() if one.draw_id not in journal.answers]
        journal.intents.clear()
        for intent in left:
            if intent.draw_id not in logged:
                journal.lost.append(intent)
                journal._write(_Entry(lost=intent))
        return journal

    _descriptor: int = -1

    def _read(self, logged: Collection[str]) -> None:
        """Take in what earlier sittings wrote, and cut a half last line off."""
        end = 0
        decode = msgspec.json.Decoder(_Entry).decode
        with self.path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(MAX_LINE), b""), 1):
                if not line.endswith(b"\n"):
                    break
                try:
                    self._take(decode(line), logged)
                except msgspec.DecodeError as error:
                    fault = Fault(
                        str(self.path), "a journal entry", str(error), "restore the journal", line=number
                    )
                    raise InputRefused("the journal cannot be read", [fault]) from error
                end += len(line)
        os.truncate(self.path, end)

    def _take(self, entry: _Entry, logged: Collection[str]) -> None:
        """Apply one entry."""
        if entry.intent is not None:
            self.intents[entry.intent.number] = entry.intent
            self.next_number = entry.intent.number + 1
        elif entry.answer is not None:
            if entry.answer.get("draw_id") not in logged:
                self.answers[str(entry.answer.get("draw_id"))] = entry.answer
        elif entry.lost is not None:
            self.intents.pop(entry.lost.number, None)
            self.lost.append(entry.lost)
        elif entry.retry is not None:
            self.retries += 1
        elif entry.settled is not None:
            self.intents.pop(entry.settled, None)

    def _write(self, entry: _Entry) -> None:
        """Hand one line to the system in one call."""
        line = msgspec.json.encode(entry) + b"\n"
        try:
            while line:
                line = line[os.write(self._descriptor, line) :]
        except OSError as error:
            fault = Fault(str(self.path), "room for an entry", str(error), "free some space, then --resume")
            raise WriteFailed("the journal cannot be written", [fault]) from error

    def intend(self, draw_id: str, price: float, in_flight: int, at: str) -> Intent:
        """Write that a draw is about to be asked for.

        Parameters
        ----------
        draw_id
            The draw.
        price
            Its price in units of one small draw.
        in_flight
            Requests in flight, this one included.
        at
            The time, RFC 3339.

        Returns
        -------
        Intent
            Already handed to the system.
        """
        intent = Intent(number=self.next_number, draw_id=draw_id, price=price, in_flight=in_flight, at=at)
        self.next_number += 1
        self.intents[intent.number] = intent
        self._write(_Entry(intent=intent))
        return intent

    def answered(self, answer: dict[str, Any]) -> None:
        """Keep an answer that cannot be logged yet.

        Parameters
        ----------
        answer
            Plain JSON values with ``draw_id``.
        """
        self._write(_Entry(answer=answer))

    def retried(self, draw_id: str, kind: str, wait: float) -> None:
        """Write that a request failed and is sent again.

        Parameters
        ----------
        draw_id
            The draw.
        kind
            Kind of failure.
        wait
            Seconds until the next request.
        """
        self.retries += 1
        self._write(_Entry(retry={"draw_id": draw_id, "kind": kind, "wait": wait}))

    def settle(self, intent: Intent) -> None:
        """Strike an intent whose draw was logged, kept or given up.

        Parameters
        ----------
        intent
            The intent.
        """
        if self.intents.pop(intent.number, None) is not None:
            self._write(_Entry(settled=intent.number))

    def close(self) -> None:
        """Sync and close."""
        if self._descriptor >= 0:
            os.fsync(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1
