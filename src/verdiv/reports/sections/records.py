"""Blocks from free records: whatever a document holds beside the named keys is still printed in full."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from verdiv.reports.blocks import (
    Block,
    Bullets,
    Cell,
    Column,
    Facts,
    Paragraph,
    Subsection,
    Table,
    clean,
    slug,
)
from verdiv.reports.words import ESTIMANDS, VERDICTS, verdict_cell
from verdiv.rounding import MISSING, count, exact, interval, number

__all__ = ["interval_words", "moment", "said", "spaced", "table_of", "text_of", "titled", "tree"]

MAX_COLUMNS = 14
"""Columns of a table made of free records; further keys are gathered in the last one."""

MAX_DEPTH = 3
"""Levels of nesting that get headings of their own; what lies deeper is written as JSON."""

INTERVAL_KINDS = {"eti": "equal-tailed", "hdi": "highest-density", "bound": "one-sided"}


def spaced(name: str) -> str:
    """Turn a key into words.

    Examples
    --------
    >>> spaced("tasks_by_family")
    'tasks by family'
    """
    return " ".join(clean(name).replace("_", " ").split())


def moment(value: object, otherwise: str = MISSING) -> str:
    """Write an ISO 8601 time to the second, in its own offset; any other text as it stands.

    Examples
    --------
    >>> moment("2026-03-02T08:00:00.25+00:00"), moment("2026-03-02T08:00:00+09:00"), moment("soon"), moment(None)
    ('2026-03-02 08:00:00 UTC', '2026-03-02 08:00:00+09:00', 'soon', 'n/a')
    """
    text = said(value, otherwise)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return text
    if found.tzinfo is None:
        return text
    return found.isoformat(" ", "seconds").replace("+00:00", " UTC")


def titled(name: str) -> str:
    """Turn a key into a title.

    Examples
    --------
    >>> titled("rate_card"), titled("n"), titled("s_blind"), titled("γ = 0.9")
    ('Rate card', 'n', 's_blind', 'γ = 0.9')
    """
    known = ESTIMANDS.get(name.lower())
    words = spaced(name)
    if known is not None or len(words) < 3 or not words[0].isascii():
        return words if known is None else known.symbol
    return words[0].upper() + words[1:]


def said(value: object, otherwise: str = MISSING) -> str:
    """Write any scalar of a document; nested values as JSON; a missing value as ``otherwise``.

    Examples
    --------
    >>> said(True), said(None), said(0.05), said(1034), said(""), said({"a": [1]})
    ('yes', 'n/a', '0.05', '1,034', 'n/a', '{"a": [1]}')
    """
    match value:
        case None | "":
            return otherwise
        case bool():
            return "yes" if value else "no"
        case int():
            return count(value)
        case float():
            return exact(value)
        case str():
            return clean(value)
        case _:
            return clean(json.dumps(value, ensure_ascii=False, default=str))


def text_of(value: object, otherwise: str = MISSING) -> str:
    """Write a scalar, or the entries of a flat list or record one after another.

    Examples
    --------
    >>> text_of([1, 2]), text_of({"dates": 13, "filters": 14}), text_of([], "none")
    ('1; 2', 'dates 13; filters 14', 'none')
    """
    if isinstance(value, list | tuple):
        return "; ".join(said(item) for item in value) or otherwise
    if isinstance(value, Mapping) and not any(isinstance(item, Mapping | list) for item in value.values()):
        return "; ".join(f"{clean(key)} {said(item)}" for key, item in value.items()) or otherwise
    return said(value, otherwise)


def interval_words(record: Mapping[str, Any] | None) -> str:
    """Name an interval by its computation.

    Examples
    --------
    >>> interval_words({"kind": "eti", "probability": 0.95}), interval_words(None)
    ('equal-tailed 95 % interval', 'interval')
    >>> interval_words({"kind": "eti (t reference)", "probability": 0.95})
    'equal-tailed (t reference) 95 % interval'
    """
    if record is None:
        return "interval"
    kind = str(record.get("kind") or "")
    level = record.get("probability")
    first, _, rest = kind.partition(" ")
    words = [f"{INTERVAL_KINDS.get(first, clean(first))} {clean(rest)}".strip()] if kind else []
    words += [f"{exact(round(level * 100, 10))} %"] if level is not None else []
    return " ".join([*words, "interval"])


def _cell(value: object) -> Cell | str:
    if value is None or value == "":
        return Cell(MISSING, "missing")
    if isinstance(value, str) and value in VERDICTS:
        return verdict_cell(value)
    if isinstance(value, float):
        return exact(value) if value == round(value, 4) else number(value)
    return text_of(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _numeric(values: Iterable[object]) -> bool:
    present = [value for value in values if value is not None]
    return bool(present) and all(_is_number(value) for value in present)


def _record_cell(row: Mapping[str, Any], key: str, bounded: frozenset[str]) -> Cell | str:
    """Write one value of a record; what its interval bounds is rounded by the interval, as everywhere."""
    low, high = row.get("low"), row.get("high")
    if bounded and key == "low":
        return Cell(MISSING, "missing") if low is None and high is None else interval(low, high)
    value = row.get(key)
    if key in bounded and _is_number(value) and low is not None and high is not None:
        return number(value, abs(high - low) / 2)
    return _cell(value)


def table_of(
    identifier: str,
    caption: str,
    records: Sequence[object] | None,
    *,
    first: Sequence[str] = (),
    empty: str = "none",
    notes: tuple[str, ...] = (),
) -> Table:
    """Make a table of free records: one row each, one column for every key that occurs.

    Parameters
    ----------
    identifier, caption
        Of the table.
    records
        Records or plain texts, as the document holds them; None counts as no record.
    first
        Keys that come first, in this order, where they occur.
    empty
        What is said where there are no records.
    notes
        Lines under the table.
    """
    rows = [record if isinstance(record, Mapping) else {"text": record} for record in records or ()]
    keys = list(dict.fromkeys(key for row in rows for key in row))
    ordered = [key for key in first if key in keys] + [key for key in keys if key not in first]
    bounded: frozenset[str] = frozenset()
    if (
        "low" in ordered
        and "high" in ordered
        and _numeric(row.get(k) for row in rows for k in ("low", "high"))
    ):
        before = ordered[: ordered.index("low")]
        bounded = frozenset({"mean", "median", "estimate", *before[-1:]}) - {"k", "n"}
        ordered.remove("high")
    shown, rest = ordered[:MAX_COLUMNS], ordered[MAX_COLUMNS:]
    columns = [
        Column(
            "Interval" if bounded and key == "low" else titled(key), _numeric(row.get(key) for row in rows)
        )
        for key in shown
    ]
    body = [[_record_cell(row, key, bounded) for key in shown] for row in rows]
    if rest:
        columns.append(Column("More"))
        for cells, row in zip(body, rows, strict=True):
            cells.append(said({key: row[key] for key in rest if key in row}))
    return Table(
        identifier, caption, tuple(columns), tuple(tuple(cells) for cells in body), notes=notes, empty=empty
    )


def tree(identifier: str, record: Mapping[str, Any], *, level: int = 3, depth: int = 0) -> tuple[Block, ...]:
    """Print a whole record: scalars as facts, lists as tables or bullets, nested records under headings."""
    facts: list[tuple[str, Cell | str]] = []
    blocks: list[Block] = []
    for key, value in record.items():
        place = f"{identifier}-{slug(str(key))}"
        if isinstance(value, Mapping) and value and depth < MAX_DEPTH:
            inner: tuple[Block, ...]
            if all(isinstance(item, Mapping) for item in value.values()):
                rows = [{"name": name, **item} for name, item in value.items()]
                inner = (table_of(f"{place}-table", titled(str(key)), rows, first=("name",)),)
            else:
                inner = tree(place, value, level=4, depth=depth + 1)
            blocks.append(Subsection(place, titled(str(key)), inner, level=level))
        elif isinstance(value, list | tuple) and any(isinstance(item, Mapping) for item in value):
            blocks.append(table_of(place, titled(str(key)), value))
        elif isinstance(value, list | tuple) and any(len(str(item)) > 40 for item in value):
            bullets = Bullets(tuple(said(item) for item in value))
            blocks.append(Subsection(place, titled(str(key)), (bullets,), level=level))
        else:
            facts.append((titled(str(key)), _cell(value)))
    if not facts and not blocks:
        return (Paragraph("none", "quiet"),)
    return (Facts(tuple(facts)), *blocks) if facts else tuple(blocks)
