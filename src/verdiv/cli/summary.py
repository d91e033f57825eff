"""What the terminal shows of a results document: verdicts first, then the figures behind them."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from verdiv import rounding
from verdiv.reports.blocks import clean
from verdiv.reports.words import ESTIMANDS, RULES, VERDICTS

__all__ = ["print_summary"]

_STYLES = {
    "supported": "bold green",
    "falsified": "bold red",
    "inconclusive": "yellow",
    "untestable": "dim",
    "void": "bold magenta",
}
_ASCII_SIGNS = {"supported": "+", "falsified": "x", "inconclusive": "?", "untestable": "-", "void": "!"}
HEADLINES = (
    "q0_greedy",
    "q0",
    "delta",
    "sigma",
    "s1",
    "s2",
    "phi",
    "sticky_ratio",
    "fpr",
    "q_t",
    "h",
)
"""Estimates shown in the terminal; the report holds all."""

PLAIN_WIDTH = 100
"""Columns of the plain table."""

Row = tuple[str, str, str, str]


def _encodable(stream: TextIO, text: str) -> bool:
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _verdict(rule: Mapping[str, Any], fancy: bool) -> str:
    name = str(rule.get("verdict", "void"))
    known = VERDICTS.get(name)
    sign = (known.sign if known and fancy else None) or _ASCII_SIGNS.get(name, "!")
    return f"{sign} {known.word if known else clean(name)}"


def _claim_probability(rule: Mapping[str, Any]) -> str:
    value = rule.get("probability_claim") if rule.get("verdict") != "untestable" else None
    return rounding.probability(value) if value is not None else "–"


def _why(rule: Mapping[str, Any]) -> str:
    return clean(rule.get("reason") or rule.get("sentence") or "")


def _rule_rows(document: Mapping[str, Any], fancy: bool) -> list[tuple[str, Row]]:
    rules: Mapping[str, Any] = document.get("rules", {})
    return [
        (
            str(rules[name].get("verdict", "void")),
            (
                f"{name} {words.name}",
                _verdict(rules[name], fancy),
                _claim_probability(rules[name]),
                _why(rules[name]),
            ),
        )
        for name, words in RULES.items()
        if name in rules
    ]


def _estimate_rows(document: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    rows = []
    for name in HEADLINES:
        item = document.get("estimates", {}).get(name)
        if item is None:
            continue
        words = ESTIMANDS.get(name)
        title = f"{words.symbol} {words.name}" if words else name
        if item.get("status") != "estimated":
            rows.append((title, "not estimable", "", clean(item.get("reason") or "")))
            continue
        low, high = item.get("low"), item.get("high")
        half = None if low is None or high is None else (high - low) / 2
        kind = item.get("interval") or {}
        span = f"{rounding.number(low, half)} to {rounding.number(high, half)}"
        counts = f"{item['k']}/{item['n']} {item.get('unit') or 'draws'}" if item.get("k") is not None else ""
        rows.append((title, rounding.number(item.get("mean"), half), f"{span} {_kind(kind)}".strip(), counts))
    return rows


def _kind(interval: Mapping[str, Any]) -> str:
    kind = {"eti": "equal-tailed", "hdi": "highest-density"}.get(str(interval.get("kind")), "")
    probability = interval.get("probability")
    return f"({kind} {probability:.0%})" if kind and probability is not None else ""


def _break_even(document: Mapping[str, Any]) -> str | None:
    block = document.get("break_even") or {}
    table = block.get("B_star")
    if not table:
        return None
    parts = [
        f"{'none by ' + str(block.get('B_max', 'B_max')) if budget == 'none' else budget}: "
        f"{rounding.probability(value)}"
        for budget, value in table.items()
        if value
    ]
    return f"Break-even budget B*, probability of each: {'; '.join(parts)}"


def _engines(document: Mapping[str, Any]) -> list[str]:
    """Say how far two engines lie apart, where both ran."""
    found = (document.get("diagnostics") or {}).get("engines")
    if not found or found.get("largest_mean_gap_in_sd") is None:
        return []
    place = f"stage {clean(found.get('stage', ''))}, family {clean(found.get('family', ''))}"
    return [
        f"Grid and NUTS differ by at most {found['largest_mean_gap_in_sd']:.3f} posterior sd in a mean ({place}), "
        f"{found['largest_sd_gap']:.1%} in an sd and {found['largest_end_gap_in_sd']:.3f} sd at an interval's end."
    ]


def _trouble(document: Mapping[str, Any]) -> list[str]:
    lines = _engines(document)
    diagnostics = document.get("diagnostics") or {}
    if diagnostics.get("status") == "failed":
        reasons = "; ".join(clean(reason) for reason in diagnostics.get("reasons") or [])
        lines.append(f"The fit failed its diagnostics, no verdict comes from it: {reasons}")
    if (document.get("preregistration") or {}).get("status") == "broken":
        lines.append("The lock of the registration is broken: every verdict is void.")
    findings: Sequence[Mapping[str, Any]] = document.get("findings") or ()
    lines += [
        f"{clean(item.get('severity', '')).upper()}: {clean(item.get('message', ''))}"
        for item in findings[:3]
    ]
    if len(findings) > 3:
        lines.append(f"… and {len(findings) - 3} more findings, all in the report")
    return lines


def _heading(document: Mapping[str, Any]) -> str:
    title = clean(document.get("title") or "Results")
    if document.get("mode") == "exploratory":
        what = "" if title.startswith("Exploratory") else f"{title} — "
        return f"{what}EXPLORATORY analysis: no registration was given, so nothing here was predicted"
    digest = (document.get("preregistration") or {}).get("digest") or ""
    return f"{title} — registered, digest {digest[:12]}" if digest else title


def _plain(document: Mapping[str, Any], fancy: bool) -> str:
    lines = [_heading(document), ""]
    rows = _rule_rows(document, fancy)
    if rows:
        first = max(len(row[0]) for _, row in rows)
        second = max(len(row[1]) for _, row in rows)
        lines.append(f"{'rule':<{first}}  {'verdict':<{second}}  P(claim)")
    for _, (name, verdict, probability, why) in rows:
        lines.append(f"{name:<{first}}  {verdict:<{second}}  {probability}")
        lines += textwrap.wrap(why, PLAIN_WIDTH, initial_indent="    ", subsequent_indent="    ")
    estimates = _estimate_rows(document)
    if estimates:
        lines.append("")
        width = max(len(row[0]) for row in estimates)
        lines += [
            f"{title:<{width}}  {value:<13}  {span}{'  ' if span else ''}{counts}".rstrip()
            for title, value, span, counts in estimates
        ]
    return "\n".join(lines)


def _rich(document: Mapping[str, Any], fancy: bool, stream: TextIO) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=stream, highlight=False)
    console.print(Text(_heading(document), style="bold"))
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for column in ("rule", "verdict", "P(claim)", "why"):
        table.add_column(column, no_wrap=column == "verdict")
    for verdict, row in _rule_rows(document, fancy):
        cells = [Text(cell) for cell in row]
        cells[1].stylize(_STYLES.get(verdict, "bold magenta"))
        table.add_row(*cells)
    console.print(table)
    estimates = _estimate_rows(document)
    if estimates:
        figures = Table(box=None, padding=(0, 1), header_style="bold")
        for column in ("estimate", "mean", "interval", "counts"):
            figures.add_column(column)
        for line in estimates:
            figures.add_row(*(Text(cell) for cell in line))
        console.print(figures)


def print_summary(
    document: Mapping[str, Any], folder: Path | None = None, stream: TextIO | None = None
) -> None:
    """Print verdicts, headline estimates, trouble and where the report is.

    A verdict is always a word; the sign before it and its colour only repeat the word. On a terminal the
    tables are drawn by Rich; otherwise plain lines are written, with ASCII signs where the
    encoding has no others.

    Parameters
    ----------
    document
        A results document.
    folder
        Where the report lies, if it was written.
    stream
        Standard output by default.
    """
    out = sys.stdout if stream is None else stream
    fancy = _encodable(out, "".join(verdict.sign for verdict in VERDICTS.values()))
    if out.isatty():
        _rich(document, fancy, out)
    else:
        _write(out, _plain(document, fancy))
    notes = [line for line in (_break_even(document), *_trouble(document)) if line]
    if folder is not None:
        notes.append(f"Report: {folder / 'report.html'} (the same in report.md; numbers in results.json)")
    if notes:
        _write(out, "\n" + "\n".join(notes))


def _write(out: TextIO, text: str) -> None:
    encoding = getattr(out, "encoding", None) or "utf-8"
    out.write(text.encode(encoding, "replace").decode(encoding) + "\n")
