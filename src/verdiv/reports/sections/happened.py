"""What happened: the flow of draws, deviations declared and found, and the audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from verdiv.reports.blocks import (
    Block,
    Cell,
    Column,
    Facts,
    Paragraph,
    Row,
    Section,
    Subsection,
    Table,
    clean,
)
from verdiv.reports.sections.records import said, spaced, table_of, text_of
from verdiv.reports.sections.summary import serious_findings
from verdiv.rounding import MISSING, count

__all__ = ["happened_section"]

FLOW = ("planned", "initial", "attempted", "errored", "retried", "unscored", "copies", "excluded", "analysed")
"""Steps of the flow that are printed where a document holds them."""


def _flow(document: Mapping[str, Any]) -> Table:
    flow = document["flow"]
    steps = [step for step in FLOW if any(step in row for row in flow)]
    rows: list[Row] = []
    for row in flow:
        counts = tuple(
            count(row[step]) if isinstance(row.get(step), int) else Cell(MISSING, "missing") for step in steps
        )
        rows.append((clean(row["arm"]), said(row.get("condition"), "primary"), *counts))
    if len(flow) > 1:
        sums = []
        for step in steps:
            values = [row.get(step) for row in flow]
            known = [value for value in values if isinstance(value, int)]
            sums.append(count(sum(known)) if len(known) == len(values) else Cell(MISSING, "missing"))
        rows.append((Cell("all"), "", *sums))
    return Table(
        "flow",
        "Draws of every arm and condition, from plan to analysis",
        (Column("Arm"), Column("Condition"), *(Column(step.capitalize(), numeric=True) for step in steps)),
        tuple(rows),
        empty="no draw was recorded",
        notes=(
            "Errored draws are failures of the serving stack and no measurements. Copies are shared first draws, "
            "listed in each arm, counted and billed once.",
        ),
    )


def _findings(document: Mapping[str, Any]) -> Table:
    rows: list[Row] = []
    for finding in serious_findings(document["findings"]):
        severity = clean(finding["severity"])
        grave = severity.lower() in ("critical", "high")
        rows.append(
            (
                Cell(severity, "bad" if grave else ""),
                said(finding.get("check")),
                clean(finding["message"]),
                text_of(finding.get("rules"), "none"),
            )
        )
    return Table(
        "findings",
        "Findings, most serious first",
        (Column("Severity"), Column("Check"), Column("Finding"), Column("Rules touched")),
        tuple(rows),
        empty="no finding was made",
    )


CHECK_KEYS = frozenset({"check", "title", "section", "outcome", "severity", "message", "findings"})
"""Keys of a check of the audit that have a place in its table; further ones are printed as they stand."""


def _checked(check: Mapping[str, Any]) -> Row:
    """Write one check of the audit: what it asks, how it came out, and why."""
    severity, message = said(check.get("severity"), ""), said(check.get("message"))
    further = [said(finding.get("message"), "") for finding in check.get("findings") or ()]
    further = [text for text in further if text not in message]
    further += [f"{spaced(key)}: {text_of(check[key])}" for key in check if key not in CHECK_KEYS]
    name = said(check.get("check"))
    return (
        Cell(said(check.get("title"), name), note=name if check.get("title") else ""),
        said(check.get("section"), ""),
        Cell(said(check.get("outcome")), "bad" if severity in ("critical", "high") else "", note=severity),
        Cell(message, note="; ".join(further)),
    )


def _checks(checks: Sequence[Mapping[str, Any]]) -> Table:
    return Table(
        "audit-checks",
        "Checks of the audit",
        (Column("Check"), Column("Of"), Column("Outcome"), Column("What was seen")),
        tuple(_checked(check) for check in checks),
        notes=("A check that could not run never counts as passed.",),
    )


def happened_section(document: Mapping[str, Any]) -> Section:
    """Build the section: flow, deviations, deviations found but not declared and the reverse, findings."""
    audit = document.get("audit") or {}
    first = ("registered", "done", "found", "timing", "rules", "effect")
    declared = table_of(
        "deviation-table",
        "Deviations from the plan, as declared",
        document["deviations"],
        first=first,
        empty="none",
    )
    undeclared = table_of(
        "undeclared", "Found by the audit, not declared", audit.get("undeclared"), first=first, empty="none"
    )
    reverse = table_of(
        "not-found", "Declared, not found by the audit", audit.get("not_found"), first=first, empty="none"
    )
    standing = said(audit.get("status"), "no audit was run")
    if audit.get("counts"):
        standing += "; checks: " + ", ".join(f"{said(n)} {name}" for name, n in audit["counts"].items())
    audited: list[Block] = [Facts((("Audit", standing),))]
    if audit.get("status") in (None, "none", "not_run", "not run"):
        audited.append(
            Paragraph("Without an audit, an empty table of undeclared deviations shows nothing.", "quiet")
        )
    if audit.get("checks"):
        audited.append(_checks(audit["checks"]))
    excluded = table_of(
        "exclusions",
        "Excluded by the registered rules",
        document.get("exclusions"),
        first=("rule", "draws", "tasks"),
        empty="nothing was excluded",
    )
    blocks: tuple[Block, ...] = (
        Subsection("flow-part", "Flow", (_flow(document), excluded)),
        Subsection("deviations", "Deviations", (declared, undeclared, reverse)),
        Subsection("findings-part", "Findings", (_findings(document),)),
        Subsection("audit", "Audit", tuple(audited)),
    )
    return Section("happened", "What happened", "What happened", blocks)
