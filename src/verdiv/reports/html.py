"""Rendering of a report as one HTML file that works offline.

Everything that is not a drawing of our own is escaped. The page carries a content security policy that
allows its one style sheet (by digest) and nothing else: no script, no request, no form.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

from jinja2 import Environment
from markupsafe import Markup, escape

from verdiv.reports.blocks import Cell, Report
from verdiv.reports.templating import environment
from verdiv.reports.words import VERDICTS
from verdiv.rounding import MISSING

__all__ = ["html_page"]


def _cell(value: Cell | str) -> Cell:
    if isinstance(value, Cell):
        return value
    return Cell(value, "missing" if value == MISSING else "")


def _one_line(text: str) -> Markup:
    """Escape a text that must keep its line breaks when the page is tidied."""
    return Markup(escape(text).replace("\n", Markup("&#10;")))


def _tidy(text: str) -> str:
    """Drop empty lines and trailing blanks."""
    return "\n".join(line.rstrip() for line in text.split("\n") if line.strip())


@cache
def _style() -> tuple[Markup, str]:
    """Return the style sheet and its policy source expression."""
    css = (files("verdiv.reports") / "templates" / "report.css").read_text(encoding="utf-8")
    if "</" in css:
        raise ValueError("the style sheet must not close its own element")
    css = _tidy(css)
    digest = base64.b64encode(hashlib.sha256(css.encode("utf-8")).digest()).decode("ascii")
    return Markup(css), f"sha256-{digest}"


@cache
def _environment() -> Environment:
    return environment(cell=_cell, one_line=_one_line)


def html_page(report: Report) -> str:
    """Render a report as a whole HTML page."""
    css, source = _style()
    template = _environment().get_template("report.html.j2")
    page = template.render(report=report, css=css, style_source=source, verdicts=VERDICTS)
    return _tidy(page) + "\n"
