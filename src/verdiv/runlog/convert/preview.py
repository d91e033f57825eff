"""A conversion in words, for a look before anything is written: first rows, counts, and the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from verdiv.runlog.convert.conversion import Conversion
from verdiv.runlog.convert.ledger import Book, Ledger
from verdiv.runlog.records import Draw

__all__ = ["ledger_text", "preview_text"]

MAX_LISTED = 20
"""Names, arms or notes that a list shows; the rest is counted."""

MAX_CELL = 28
"""Characters of one cell of the table of first rows."""


def preview_text(conversion: Conversion, rows: int = 5) -> str:
    """Describe what a conversion would write: header, first draws, counts by arm and attempt, ledger.

    Parameters
    ----------
    conversion
        A finished conversion; nothing of it is written.
    rows
        Number of first draws shown.
    """
    header = conversion.header
    order = "" if header.order_meaningful else ", order of draws without meaning"
    lines = [f"{header.run_id}: gate {header.gate.value}, {len(conversion.draws)} draws{order}"]
    lines += [header.note] if header.note else []
    lines += ["", *_table(_cells(draw) for draw in conversion.draws[:rows])]
    lines += ["", *_counts(conversion.draws), "", ledger_text(conversion.ledger)]
    return "\n".join(_printable(line) for text in lines for line in text.split("\n"))


def ledger_text(ledger: Ledger) -> str:
    """Describe a ledger in lines: files, both books, and everything that deserves a look."""
    lines = [
        f"files     {len(ledger.files)} read, {len(ledger.unmatched)} matched by no template",
        *_listed(ledger.unmatched, "no template matches"),
        *_listed(ledger.idle_templates, "no file matches"),
        *_book("records", ledger.records),
        *_book("draws", ledger.draws),
    ]
    for count, text in (
        (ledger.missing, "draws without outcome"),
        (ledger.copies, "draws that repeat another one by construction"),
        (ledger.copy_clashes, "of them with another outcome"),
        (ledger.nonbinary, "rewards that are neither 0 nor the success value"),
        (ledger.ragged, "records whose arrays have different lengths"),
    ):
        if count:
            lines.append(f"  {count} {text}")
    lines += [f"  {count} rows of {name} that no record asked for" for name, count in ledger.orphans.items()]
    lines += [f"  {example}" for example in (*ledger.examples, *ledger.ragged_examples)]
    lines += [f"  note: {note}" for note in ledger.notes[:MAX_LISTED]]
    lines.append("the sums close" if ledger.closes else "the sums DO NOT close")
    return "\n".join(_printable(line) for line in lines)


def _book(name: str, book: Book) -> list[str]:
    excluded, rejected = sum(book.excluded.values()), sum(book.rejected.values())
    lines = [f"{name:<9} {book.read} read = {book.kept} kept + {excluded} excluded + {rejected} rejected"]
    lines += [f"  excluded {count}: {rule}" for rule, count in book.excluded.items()]
    lines += [f"  rejected {count}: {reason}" for reason, count in book.rejected.items()]
    return lines


def _listed(names: Sequence[str], text: str) -> list[str]:
    lines = [f"  {text}: {name}" for name in names[:MAX_LISTED]]
    if len(names) > MAX_LISTED:
        lines.append(f"  … and {len(names) - MAX_LISTED} more")
    return lines


def _cells(draw: Draw) -> Mapping[str, str]:
    static = draw.static
    verdict = "" if static is None else ("flagged" if static.flagged else "passed")
    if static is not None and static.error_class is not None:
        verdict = static.error_class.value
    return {
        "task": draw.task_id,
        "family": draw.family,
        "arm": draw.arm,
        "replicate": str(draw.replicate),
        "attempt": str(draw.attempt),
        "prompt": draw.prompt_kind.value,
        "correct": "missing" if draw.correct is None else str(draw.correct).lower(),
        "verifier": verdict,
    }


def _table(rows: Iterable[Mapping[str, str]]) -> list[str]:
    cells = [{name: _short(text) for name, text in row.items()} for row in rows]
    if not cells:
        return []
    widths = {name: max(len(name), *(len(row[name]) for row in cells)) for name in cells[0]}
    head = "  ".join(name.ljust(width) for name, width in widths.items())
    body = ["  ".join(row[name].ljust(width) for name, width in widths.items()) for row in cells]
    return [line.rstrip() for line in (head, *body)]


def _counts(draws: Sequence[Draw]) -> list[str]:
    total: Counter[tuple[str, int]] = Counter()
    right: Counter[tuple[str, int]] = Counter()
    for draw in draws:
        if draw.correct is not None:
            total[draw.arm, draw.attempt] += 1
            right[draw.arm, draw.attempt] += draw.correct
    lines = [f"{arm} attempt {attempt}: {right[arm, attempt]}/{n}" for (arm, attempt), n in total.items()]
    more = [f"… and {len(lines) - MAX_LISTED} more"] if len(lines) > MAX_LISTED else []
    return ["correct of scored draws", *(f"  {line}" for line in (*lines[:MAX_LISTED], *more))]


def _short(text: str) -> str:
    return text if len(text) <= MAX_CELL else text[: MAX_CELL - 1] + "…"


def _printable(text: str) -> str:
    """A log's text must not steer a terminal."""
    return "".join(ch if ch.isprintable() else "\N{REPLACEMENT CHARACTER}" for ch in text)
