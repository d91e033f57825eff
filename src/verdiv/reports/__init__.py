"""Reports: HTML and Markdown pages as pure functions of a results document.

The functions load on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from verdiv.reports.schema import RESULTS_SCHEMA, load_document, validate_document
    from verdiv.reports.write import render_html, render_markdown, write_reports

__all__ = [
    "RESULTS_SCHEMA",
    "load_document",
    "render_html",
    "render_markdown",
    "validate_document",
    "write_reports",
]

_HOMES = {
    "RESULTS_SCHEMA": "verdiv.reports.schema",
    "load_document": "verdiv.reports.schema",
    "validate_document": "verdiv.reports.schema",
    "render_html": "verdiv.reports.write",
    "render_markdown": "verdiv.reports.write",
    "write_reports": "verdiv.reports.write",
}


def __getattr__(name: str) -> object:
    """Import the module that holds ``name`` when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
