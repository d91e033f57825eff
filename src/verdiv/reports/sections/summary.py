"""The first screen: what a reader in a hurry must know, and the standing of the whole analysis."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from verdiv.pricing.breakeven import decided
from verdiv.reports.blocks import (
    Block,
    Bullets,
    Cell,
    Column,
    Columns,
    Headline,
    Notice,
    Section,
    Subsection,
    Table,
    Tone,
    clean,
)
from verdiv.reports.figures.breakeven import budgets, most_probable
from verdiv.reports.figures.svg import shortened
from verdiv.reports.sections.frontier import frontier_figure
from verdiv.reports.words import RULES, SEVERITIES, verdict_cell
from verdiv.rounding import exact, number, probability, usd

__all__ = ["break_even_headline", "serious_findings", "standing", "summary_section"]

WORST = 3
"""Findings on the first screen."""

REASON_LENGTH = 150
"""Characters of a reason on the first screen; the rule's own section holds it in full."""


def standing(document: Mapping[str, Any]) -> tuple[str, Tone]:
    """Return the report's first line: exploratory or registered, and how firmly."""
    plan = document["preregistration"]
    digest = clean(plan.get("digest") or "")[:12]
    if plan["status"] == "broken":
        return (
            "Broken lock: the registered plan and its lock do not match, so every verdict is void.",
            "void",
        )
    if document["mode"] == "exploratory":
        return (
            "Exploratory analysis: no plan was registered before the data, so no verdict below confirms anything.",
            "inconclusive",
        )
    if plan["status"] == "locked":
        return f"Registered analysis: the plan was locked, digest {digest}….", "good"
    if plan["status"] == "read":
        return (
            f"Registered plan, not locked (digest {digest}…): nothing here proves that it preceded the data.",
            "inconclusive",
        )
    return "Registered analysis whose registration was not found: read it as exploratory.", "inconclusive"


def serious_findings(findings: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Return all findings, most serious first, otherwise in the order of the document."""

    def rank(finding: Mapping[str, Any]) -> int:
        severity = str(finding["severity"]).lower()
        return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)

    return tuple(sorted(findings, key=rank))


def _brief(text: object, limit: int) -> str:
    """Cut a text between words, or inside one that is too long itself."""
    cut = textwrap.shorten(clean(text), limit, placeholder=" …")
    return cut if len(cut) > limit // 2 else shortened(str(text), limit)


def _verdicts(document: Mapping[str, Any]) -> Table:
    rows = []
    for rule, words in RULES.items():
        outcome = document["rules"][rule]
        settled, tested = outcome["verdict"] == "supported", outcome["verdict"] != "untestable"
        reason = "" if settled else outcome.get("reason") or ""
        if not reason and outcome.get("missing"):
            reason = "missing: " + ", ".join(str(item) for item in outcome["missing"])
        rows.append(
            (
                Cell(rule, link=f"rule-{rule}"),
                Cell(words.name, note=_brief(reason, REASON_LENGTH)),
                verdict_cell(outcome["verdict"]),
                probability(outcome.get("probability_claim") if tested else None, outcome.get("gamma")),
            )
        )
    return Table(
        "verdicts",
        "Ten rules, ten verdicts",
        (Column("Rule"), Column("What it claims"), Column("Verdict"), Column("P(claim)", numeric=True)),
        tuple(rows),
    )


def _point(document: Mapping[str, Any], arm: str, budget: int) -> Mapping[str, Any] | None:
    points = (p for p in document["frontier"] if p["arm"] == arm and (p["budget"] or 1) == budget)
    return next(points, None)


def _sentence(result: Mapping[str, Any]) -> tuple[str, ...]:
    return (clean(result["sentence"]),) if result.get("sentence") else ()


def break_even_headline(document: Mapping[str, Any]) -> Headline:
    """Return B* with its probability, and what it costs beside the teacher."""
    result = document.get("break_even") or {}
    best = most_probable(result.get("B_star") or {})
    if best is None:
        reason = (document["estimates"].get("break_even") or {}).get("reason")
        why = clean(reason or result.get("sentence") or "it needs the feedback arm and the teacher")
        return Headline("Break-even budget B*", "not estimable", (why,), "missing")
    budget, details = decided(result["B_star"]), []
    if budget is None:
        shares = "; ".join(f"{name}: {probability(q)}" for name, q in budgets(result["B_star"]) if q > 0)
        details.append(f"no budget has half the probability: {shares}")
        return Headline("Break-even budget B*", "B* undecided", (*details, *_sentence(result)))
    details.append(f"with probability {probability(best[1])}")
    if budget == "none":
        value = f"none up to {exact(result.get('B_max'))}"
    else:
        value = f"B* = {budget}"
        here, teacher = _point(document, "A3", int(budget)), _point(document, "A4", 1)
        if here is not None and teacher is not None:
            details.append(
                f"quality {number(here.get('quality'))} for {number(here.get('bill'))} small draws a task; "
                f"teacher {number(teacher.get('quality'))} for {number(teacher.get('bill'))}"
            )
    return Headline("Break-even budget B*", value, (*details, *_sentence(result)))


def _bill(document: Mapping[str, Any]) -> Headline:
    ledger = document.get("ledger") or {}
    per_task, total = ledger.get("units_per_task"), ledger.get("total_units")
    if per_task is None and total is None:
        return Headline("The bill", "not recorded", ("the log holds no bills",), "missing")
    details = []
    if total is not None:
        money = ledger.get("usd")
        details.append(
            f"{exact(total)} small draws in all" + (f", {usd(money)}" if money is not None else "")
        )
    bound, within = ledger.get("declared_bound"), ledger.get("within_bound")
    tone: Tone = ""
    if bound is None:
        details.append("no upper bound was declared")
    else:
        words = {True: "kept", False: "exceeded", None: "not checked"}[within]
        tone = "bad" if within is False else ""
        details.append(f"declared bound {exact(bound)} a task: {words}")
    value = (
        f"{number(per_task)} small draws a task" if per_task is not None else f"{exact(total)} small draws"
    )
    return Headline("The bill", value, tuple(details), tone)


def _findings(document: Mapping[str, Any]) -> Subsection:
    findings = serious_findings(document["findings"])
    items = tuple(
        Cell(f"{clean(finding['severity'])}: {_brief(finding['message'], 220)}")
        for finding in findings[:WORST]
    )
    more = len(findings) - WORST
    title = "Most serious findings" if findings else "Findings"
    blocks: tuple[Block, ...] = (Bullets(items, empty="no finding was made", ordered=bool(items)),)
    if more > 0:
        blocks += (Bullets((Cell(f"and {more} more", link="findings"),)),)
    return Subsection("worst-findings", title, blocks)


def summary_section(document: Mapping[str, Any]) -> Section:
    """Build the first screen: verdicts, frontier, B*, bill, three most serious findings."""
    blocks: list[Block] = []
    diagnostics = document.get("diagnostics") or {}
    if diagnostics.get("status") == "failed":
        reasons = "; ".join(clean(reason) for reason in diagnostics.get("reasons") or ())
        blocks.append(
            Notice("The fit failed its own diagnostics", reasons or "the reasons were not recorded", "bad")
        )
    blocks.append(
        Columns(
            ((_verdicts(document),), (frontier_figure(document, "summary-frontier", folded=True),)), "halves"
        )
    )
    blocks.append(
        Columns(((break_even_headline(document),), (_bill(document),), (_findings(document),)), "thirds")
    )
    return Section("summary", "In a hurry", "Summary", tuple(blocks))
