"""From a results document to the blocks of a report."""

from __future__ import annotations

from verdiv.reports.blocks import Report, clean
from verdiv.reports.schema import Document
from verdiv.reports.sections.closing import exploratory_section, limits_section, reproduce_section
from verdiv.reports.sections.happened import happened_section
from verdiv.reports.sections.identity import identity_section
from verdiv.reports.sections.plan import plan_section
from verdiv.reports.sections.records import moment, text_of
from verdiv.reports.sections.results import results_section
from verdiv.reports.sections.summary import standing, summary_section
from verdiv.reports.sections.trust import trust_section
from verdiv.rounding import count

__all__ = ["build_report"]


def build_report(document: Document) -> Report:
    """Lay out a valid results document as a report.

    Parameters
    ----------
    document
        A document that :func:`verdiv.reports.schema.validate_document` accepts.

    Returns
    -------
    Report
        Sections in the order of the report: summary, identity, plan, what happened, results, trust,
        exploratory results, reproduce, what this does not show.
    """
    first_line, tone = standing(document)
    draws = [item["draws"] for item in document["inputs"] if item["draws"] is not None]
    authors = text_of(document["preregistration"].get("authors"), "")
    finished = moment(document["meta"].get("finished_at"), "")
    byline = (
        authors,
        f"{count(sum(draws))} draws" if draws else "",
        f"analysed {finished}" if finished else "",
    )
    return Report(
        title=clean(document["title"]),
        standing=first_line,
        standing_tone=tone,
        byline=tuple(line for line in byline if line),
        sections=(
            summary_section(document),
            identity_section(document),
            plan_section(document),
            happened_section(document),
            results_section(document),
            trust_section(document),
            exploratory_section(document),
            reproduce_section(document),
            limits_section(document),
        ),
        footer=(
            "Numbers are rounded to two significant digits of their interval's half width. "
            "This page is a pure function of results.json.",
        ),
    )
