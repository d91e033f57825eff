r"""Rendering of a report as Markdown (GitHub's flavour), with the same content as the HTML page.

Every expression of the template passes through :func:`escaped`, so no text of a document can open a tag, a
link, a table cell, code, mathematics or a mention: characters that Markdown gives a meaning are written with
a backslash or as a character reference.
"""

from __future__ import annotations

import re
from functools import cache

from jinja2 import Environment
from markupsafe import Markup

from verdiv.reports.blocks import Cell, Column, Report
from verdiv.reports.templating import environment
from verdiv.reports.words import VERDICTS
from verdiv.rounding import MISSING

__all__ = ["escaped", "markdown_page"]

_REFERENCES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;", "$": "&#36;"}
_BACKSLASHED = frozenset("\\`*_[]|~#")
_LINE_START = re.compile(r"^(\d{1,9})([.)])(?=\s|$)|^([-+=])(?=[-=\s]|$)")


def escaped(value: object) -> Markup:
    r"""Escape any text for use inside one line of Markdown, table cells included.

    Examples
    --------
    >>> print(escaped("<b>|`a`|</b> http://x www.y"))
    &lt;b&gt;\|\`a\`\|&lt;/b&gt; http&#58;//x www&#46;y
    >>> print(escaped("1. not a list"), escaped("- nor this"))
    1\. not a list \- nor this
    >>> print(escaped("0.802"), escaped("-0.1"), escaped("---"))
    0.802 -0.1 \---
    """
    if isinstance(value, Markup):
        return value
    line = " ".join(str(value).split())
    text = "".join(_REFERENCES.get(ch, f"\\{ch}" if ch in _BACKSLASHED else ch) for ch in line)
    text = text.replace("://", "&#58;//")
    text = re.sub(r"(?i)\b(www)\.", r"\1&#46;", text)
    text = _LINE_START.sub(lambda m: f"\\{m[3]}" if m[3] else f"{m[1]}\\{m[2]}", text)
    return Markup(text)


def _fenced(text: object) -> Markup:
    """Write a text as a code block whose fence the text cannot close."""
    body = str(text)
    longest = max((len(run) for run in re.findall(r"`+", body)), default=0)
    fence = "`" * max(3, longest + 1)
    return Markup(f"{fence}text\n{body}\n{fence}")


def _written(value: Cell | str) -> Markup:
    """Write a cell: a verdict with its sign, a second line after a dash."""
    cell = value if isinstance(value, Cell) else Cell(value)
    text = escaped(cell.text)
    if cell.tone in VERDICTS:
        text = Markup(f"{VERDICTS[cell.tone].sign} **") + text + Markup("**")
    elif cell.text and (cell.tone == "missing" or cell.text == MISSING):
        text = Markup("*") + text + Markup("*")
    if not cell.note:
        return text
    note = escaped(cell.note)
    return text + Markup(" — ") + note if cell.text else note


def _rule(column: Column) -> Markup:
    return Markup("---:" if column.numeric else "---")


@cache
def _environment() -> Environment:
    return environment(finalize=escaped, written=_written, fenced=_fenced, ruled=_rule)


def markdown_page(report: Report) -> str:
    """Render a report as a whole Markdown page."""
    text = _environment().get_template("report.md.j2").render(report=report)
    lines = [line.rstrip() for line in text.splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"
