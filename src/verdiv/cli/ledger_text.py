"""The account of a conversion, in lines for the terminal."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice

from verdiv.runlog.convert import Book, Conversion
from verdiv.runlog.records import Draw

__all__ = ["ledger", "preview"]

SHOWN_FILES = 20
"""Files listed of each kind; the rest are counted."""
SHOWN_DRAWS = 10
"""Draws that a preview shows."""
WIDEST = 28
"""Characters of one cell of a preview."""


def _safe(text: object) -> str:
    return "".join(ch if ch.isprintable() else "\N{REPLACEMENT CHARACTER}" for ch in str(text))


def _table(head: Sequence[str], rows: Sequence[Sequence[object]], indent: str = "  ") -> Iterator[str]:
    cells = [[_cut(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    for row in cells:
        yield indent + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _cut(cell: object) -> str:
    text = "–" if cell is None else _safe(cell)
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def _listed(title: str, items: Sequence[str]) -> Iterator[str]:
    if not items:
        return
    yield f"{title} ({len(items)}):"
    yield from (f"  {_safe(item)}" for item in items[:SHOWN_FILES])
    if len(items) > SHOWN_FILES:
        yield f"  … and {len(items) - SHOWN_FILES} more"


def _book(name: str, book: Book) -> Iterator[str]:
    excluded, rejected = sum(book.excluded.values()), sum(book.rejected.values())
    closes = "" if book.closes else "  THE SUM DOES NOT CLOSE"
    yield f"{name}: {book.read} read = {book.kept} kept + {excluded} excluded + {rejected} rejected{closes}"
    yield from (f"  excluded by {_safe(rule)}: {count}" for rule, count in book.excluded.items())
    yield from (f"  rejected, {_safe(reason)}: {count}" for reason, count in book.rejected.items())


def _ledger_lines(conversion: Conversion) -> Iterator[str]:
    account = conversion.ledger
    yield f"Ledger of the mapping {conversion.mapping.name} (gate: {conversion.header.gate.value})"
    yield from _book("Records", account.records)
    yield from _book("Draws", account.draws)
    yield f"Missing outcomes: {account.missing}; shared by construction: {account.copies}"
    if account.nonbinary:
        yield f"Rewards that are neither 0 nor success, counted as wrong: {account.nonbinary}"
    if account.copy_clashes:
        yield f"SHARED DRAWS THAT DISAGREE: {account.copy_clashes}"
    yield f"Files read ({len(account.files)}):"
    yield f"  {'records':>7}  {'draws':>7}  file"
    yield from (
        f"  {entry.records:>7}  {entry.draws:>7}  {_safe(entry.path)}"
        for entry in account.files[:SHOWN_FILES]
    )
    if len(account.files) > SHOWN_FILES:
        yield f"  … and {len(account.files) - SHOWN_FILES} more"
    yield from _listed("Files that match nothing, left alone", account.unmatched)
    yield from _listed("Templates that matched no file", account.idle_templates)
    if account.ragged:
        yield f"Records whose arrays differ in length: {account.ragged}"
        yield from (f"  {_safe(example)}" for example in account.ragged_examples)
    yield from (
        f"Rows of {_safe(name)} that no record asked for: {count}" for name, count in account.orphans.items()
    )
    yield from _listed("First rejected rows", [str(example) for example in account.examples])
    yield from (f"Note: {_safe(note)}" for note in account.notes)


def ledger(conversion: Conversion) -> str:
    """Return the ledger as text: what was read, kept, excluded by which rule, and rejected for what."""
    return "\n".join(_ledger_lines(conversion)) + "\n"


def _counts(draws: Sequence[Draw]) -> list[tuple[object, ...]]:
    tallies: dict[tuple[str, str, int], Counter[str]] = defaultdict(Counter)
    for draw in draws:
        tally = tallies[(draw.family, draw.arm, draw.attempt)]
        tally["n"] += 1
        tally["missing" if draw.correct is None else "correct" if draw.correct else "wrong"] += 1
        tally["flagged"] += draw.static is not None and draw.static.flagged
    return [
        (*key, tally["n"], tally["correct"], tally["wrong"], tally["missing"], tally["flagged"])
        for key, tally in sorted(tallies.items())
    ]


def _preview_lines(conversion: Conversion) -> Iterator[str]:
    yield f"First {min(SHOWN_DRAWS, len(conversion.draws))} of {len(conversion.draws)} draws:"
    head = (
        "task",
        "family",
        "arm",
        "replicate",
        "attempt",
        "prompt",
        "correct",
        "flagged",
        "class",
        "answers",
    )
    rows = [
        (
            draw.task_id,
            draw.family,
            draw.arm,
            draw.replicate,
            draw.attempt,
            draw.prompt_kind.value,
            draw.correct,
            None if draw.static is None else draw.static.flagged,
            None if draw.static is None or draw.static.error_class is None else draw.static.error_class.value,
            None if draw.answered_class is None else draw.answered_class.value,
        )
        for draw in islice(conversion.draws, SHOWN_DRAWS)
    ]
    yield from _table(head, rows)
    counts = _counts(conversion.draws)
    yield "Counts:"
    yield from _table(
        ("family", "arm", "attempt", "draws", "correct", "wrong", "missing", "flagged"),
        counts[: 5 * SHOWN_FILES],
    )
    if len(counts) > 5 * SHOWN_FILES:
        yield f"  … and {len(counts) - 5 * SHOWN_FILES} more lines"


def preview(conversion: Conversion) -> str:
    """Return the first draws and the counts by family, arm and attempt as text."""
    return "\n".join(_preview_lines(conversion)) + "\n"
