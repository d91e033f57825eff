"""From a results document to pages on disk."""

from __future__ import annotations

import os
from pathlib import Path

from verdiv.errors import Fault, UsageRefused
from verdiv.reports.html import html_page
from verdiv.reports.markdown import markdown_page
from verdiv.reports.page import build_report
from verdiv.reports.schema import Document, validate_document

__all__ = ["render_html", "render_markdown", "write_reports"]


def render_html(document: Document) -> str:
    """Render a results document as one HTML page that works offline.

    Parameters
    ----------
    document
        The parsed ``results.json``; every text in it is treated as hostile.

    Returns
    -------
    str
        The page. The same document gives the same bytes.

    Raises
    ------
    InputRefused
        If the document breaks its schema.
    """
    validate_document(document)
    return html_page(build_report(document))


def render_markdown(document: Document) -> str:
    """Render a results document as Markdown (GitHub's flavour) with the same content as the HTML page.

    Parameters
    ----------
    document
        The parsed ``results.json``; every text in it is treated as hostile.

    Returns
    -------
    str
        The page; figures appear as their tables. The same document gives the same bytes.

    Raises
    ------
    InputRefused
        If the document breaks its schema.
    """
    validate_document(document)
    return markdown_page(build_report(document))


def _replace(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with draft.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def write_reports(document: Document, folder: Path, *, checked: bool = False) -> tuple[Path, Path]:
    """Write ``report.html`` and ``report.md`` into an existing folder, each whole or not at all.

    Parameters
    ----------
    document
        The parsed ``results.json``.
    folder
        Where the pages go; pages that are there already are replaced.
    checked
        True where the document was held against its schema a moment ago.

    Returns
    -------
    tuple of Path
        The HTML page and the Markdown page.

    Raises
    ------
    InputRefused
        If the document breaks its schema; nothing is written.
    UsageRefused
        If the folder is missing or cannot be written to.
    """
    if not checked:
        validate_document(document)
    report = build_report(document)
    pages = {folder / "report.html": html_page(report), folder / "report.md": markdown_page(report)}
    try:
        for path, text in pages.items():
            _replace(path, text)
    except OSError as error:
        fault = Fault(
            str(folder),
            "a folder that can be written to",
            error.strerror or type(error).__name__,
            "name an existing folder with room for the report",
        )
        raise UsageRefused("cannot write the report", [fault]) from error
    first, second = pages
    return first, second
