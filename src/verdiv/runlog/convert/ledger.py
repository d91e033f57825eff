"""What became of every file, record and draw of a conversion; the sums close.

Two books are kept. A *record* is what the file holds: a line, a CSV row, an element of an array. A *draw* is
what a record holds: one where nothing is expanded, else one for each attempt. For both books

    read = kept + excluded + rejected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Book", "Books", "Example", "FileEntry", "Ledger"]

MAX_EXAMPLES = 10
"""Rows shown for each kind of finding; all are counted."""


@dataclass(frozen=True, slots=True)
class Example:
    """One row that the ledger points at."""

    file: str
    """Path of the file, from the source it was found under."""
    row: int
    """1-based line, row or record number."""
    place: str
    """Where in the document, for nested ones."""
    text: str
    """What was noticed."""

    def __str__(self) -> str:
        """Render as one line."""
        place = f" ({self.place})" if self.place else ""
        return f"{self.file}:{self.row}{place}: {self.text}"


@dataclass(frozen=True, slots=True)
class Book:
    """Counts of one kind of thing."""

    read: int
    """All there were."""
    kept: int
    """Those that went on."""
    excluded: Mapping[str, int]
    """Left out, by the rule that left them out."""
    rejected: Mapping[str, int]
    """Unusable, by reason."""

    @property
    def closes(self) -> bool:
        """Whether read = kept + excluded + rejected."""
        return self.read == self.kept + sum(self.excluded.values()) + sum(self.rejected.values())


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file that was read."""

    path: str
    """Path, from the source it was found under."""
    rule: str
    """Template that matched it."""
    sha256: str
    records: int
    """Records read from it; for a looked-up table its rows."""
    draws: int
    """Draws kept from it."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """The whole account of a conversion."""

    files: tuple[FileEntry, ...]
    """Files read, looked-up tables included."""
    unmatched: tuple[str, ...]
    """Files that no template matched."""
    idle_templates: tuple[str, ...]
    """Templates that matched no file."""
    records: Book
    draws: Book
    examples: tuple[Example, ...]
    """The first rejected rows."""
    ragged: int
    """Records whose parallel arrays have different lengths."""
    ragged_examples: tuple[Example, ...]
    nonbinary: int
    """Rewards that are neither 0 nor the success value."""
    missing: int
    """Draws whose outcome is missing."""
    copies: int
    """Draws kept that repeat another one by construction."""
    copy_clashes: int
    """Copies whose outcome differs from the draw they repeat."""
    orphans: Mapping[str, int]
    """Looked-up rows that no record asked for, by lookup."""
    notes: tuple[str, ...]
    """What else deserves a look, in words."""

    @property
    def closes(self) -> bool:
        """Whether both books close and each kept draw is counted at its file."""
        return (
            self.records.closes
            and self.draws.closes
            and sum(entry.draws for entry in self.files) == self.draws.kept
        )

    @property
    def clean(self) -> bool:
        """Whether nothing was rejected, no copy clashes and no looked-up row was left over."""
        rejected = (*self.records.rejected.values(), *self.draws.rejected.values())
        return not any((*rejected, *self.orphans.values(), self.copy_clashes))

    def as_dict(self) -> dict[str, Any]:
        """Return the ledger as plain dictionaries and lists, ready for JSON."""
        return {**asdict(self), "closes": self.closes, "clean": self.clean}


@dataclass(slots=True)
class BookCounter:
    """A book being written."""

    read: int = 0
    kept: int = 0
    excluded: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)

    def close(self) -> Book:
        """Return the finished book."""
        return Book(self.read, self.kept, dict(self.excluded), dict(self.rejected))


@dataclass(slots=True)
class Books:
    """A ledger being written."""

    records: BookCounter = field(default_factory=BookCounter)
    draws: BookCounter = field(default_factory=BookCounter)
    examples: list[Example] = field(default_factory=list)
    ragged: int = 0
    ragged_examples: list[Example] = field(default_factory=list)
    nonbinary: int = 0
    missing: int = 0
    copies: int = 0
    copy_clashes: int = 0
    orphans: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    def reject(self, book: BookCounter, reason: str, example: Example) -> None:
        """Count a rejection and keep the first few rows."""
        book.rejected[reason] += 1
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(example)

    def note_ragged(self, example: Example) -> None:
        """Count a record whose arrays differ in length and keep the first few."""
        self.ragged += 1
        if len(self.ragged_examples) < MAX_EXAMPLES:
            self.ragged_examples.append(example)

    def close(
        self, files: tuple[FileEntry, ...], unmatched: tuple[str, ...], idle: tuple[str, ...]
    ) -> Ledger:
        """Return the finished ledger."""
        return Ledger(
            files=files,
            unmatched=unmatched,
            idle_templates=idle,
            records=self.records.close(),
            draws=self.draws.close(),
            examples=tuple(self.examples),
            ragged=self.ragged,
            ragged_examples=tuple(self.ragged_examples),
            nonbinary=self.nonbinary,
            missing=self.missing,
            copies=self.copies,
            copy_clashes=self.copy_clashes,
            orphans=dict(self.orphans),
            notes=tuple(self.notes),
        )
