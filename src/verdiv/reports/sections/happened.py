"""What happened: the flow of draws, deviations declared and found, and the audit."""

from __future__ import annotations

from collections.abc import Mapping
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
from verdiv.reports.sections.records import said, table_of, text_of
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
    audited: list[Block] = [Facts((("Audit", said(audit.get("status"), "no audit was run")),))]
    if audit.get("status") in (None, "none", "not_run", "not run"):
        audited.append(
            Paragraph("Without an audit, an empty table of undeclared deviations shows nothing.", "quiet")
        )
    if audit.get("checks"):
        audited.append(
            table_of(
                "audit-checks",
                "Checks of the audit",
                audit["checks"],
                first=("check", "outcome", "severity", "message"),
                notes=("A check that could not run never counts as passed.",),
            )
        )
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
