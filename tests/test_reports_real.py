"""Reports of documents that the main job wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import verdiv
from html_checks import parse
from verdiv.reports import render_html, render_markdown, write_reports
from verdiv.reports.sections.closing import PRINTED

BUNDLED = Path(verdiv.__file__).parent / "fixtures" / "runs" / "simulated-40.runlog.jsonl.zst"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """An exploratory analysis of the bundled run on the grid engine."""
    from verdiv.analysis import analyze

    return analyze([str(BUNDLED)]).document


@pytest.mark.slow
def test_the_main_job_writes_what_the_report_prints(document: dict[str, Any], tmp_path: Path) -> None:
    """Every top-level key of a real document has its place in the report; pages are whole and quick to render."""
    assert set(document) <= PRINTED
    write_reports(document, tmp_path)
    parse(render_html(document))
    text = render_markdown(document)
    assert text.startswith("Exploratory analysis")
    assert "Further values" not in text
    assert "None" not in text
    assert " nan" not in text.lower()
