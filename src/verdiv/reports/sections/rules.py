"""The ten rules in registered order, each with everything its verdict rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from verdiv.reports.blocks import (
    Block,
    Bullets,
    Cell,
    Column,
    Facts,
    Figure,
    Panel,
    Paragraph,
    Row,
    Subsection,
    Table,
    clean,
)
from verdiv.reports.figures.forest import claim_words, component_panel
from verdiv.reports.sections.records import interval_words, said
from verdiv.reports.words import RULES, VERDICTS, verdict_cell
from verdiv.rounding import MISSING, estimate, exact, interval, number, probability, width

__all__ = ["forest_part", "rules_parts"]


def _half(low: float | None, high: float | None) -> float | None:
    return None if low is None or high is None else abs(high - low) / 2


def _probability(value: float | None, threshold: float | None = None) -> Cell | str:
    return Cell(MISSING, "missing") if value is None else probability(value, threshold)


def _exact(value: float | None, absent: str = MISSING) -> Cell | str:
    return Cell(absent, "missing") if value is None else exact(value)


def _facts(outcome: Mapping[str, Any]) -> Facts:
    ends = outcome.get("interval") or {}
    low, high = ends.get("low"), ends.get("high")
    value, floor = outcome.get("estimate"), outcome.get("floor")
    gamma, threshold = outcome.get("gamma"), outcome.get("threshold")
    target = {"new_tasks": "new tasks", "these_tasks": "these tasks"}.get(
        str(outcome.get("target")), said(outcome.get("target"))
    )
    floor_words: Cell | str = Cell("none defined for this statistic", "missing")
    if floor is not None:
        floor_words = width(floor)
        if outcome.get("floor_n") is not None:
            floor_words += f", from n = {exact(outcome['floor_n'])}"
    decide = outcome.get("tasks_to_decide")
    pairs: list[tuple[str, Cell | str]] = [
        ("Target", target),
        ("Statistic", said(outcome.get("statistic"))),
        *([("Component shown", said(outcome["component"]))] if outcome.get("component") else []),
        ("Estimate", number(value, _half(low, high)) if value is not None else Cell(MISSING, "missing")),
        (
            interval_words(ends or None).capitalize(),
            interval(low, high) if ends else Cell(MISSING, "missing"),
        ),
        ("n", _exact(outcome.get("n"))),
        ("Noise floor", floor_words),
        ("Margin (smallest effect of interest)", _exact(outcome.get("margin"))),
        ("P(claim)", _probability(outcome.get("probability_claim"), gamma)),
        ("Largest one-sided exceedance", _probability(outcome.get("exceedance"), threshold)),
        ("γ, needed to support", _exact(gamma)),
        ("Exceedance needed to falsify", _exact(None if threshold is None else round(threshold, 4))),
        ("Severity", _probability(outcome.get("severity"))),
        ("Tasks needed to decide", "n/a" if decide is None else exact(float(round(decide)))),
    ]
    return Facts(tuple(pairs))


def _component_name(item: Mapping[str, Any]) -> str:
    return clean(item.get("label") or item["id"])


def _part_note(part: Mapping[str, Any]) -> str:
    """Return a part's reason, or the joint probability of its components where there is no reason."""
    joint = part.get("probability_claim")
    return said(part.get("reason"), "" if joint is None else f"P(part) {probability(joint)}")


def _part_rows(outcome: Mapping[str, Any]) -> Iterator[Row]:
    for part in outcome["parts"]:
        components = part.get("components") or ()
        if not components:
            dash = Cell(MISSING, "missing")
            claim = said(part.get("claim"))
            yield (
                clean(part["id"]),
                verdict_cell(part["verdict"], _part_note(part)),
                claim,
                dash,
                dash,
                dash,
                dash,
                dash,
                dash,
            )
        for index, item in enumerate(components):
            below, above = item.get("exceedance_low"), item.get("exceedance_high")
            sides = [
                f"{name} {probability(p)}"
                for name, p in (("below", below), ("above", above))
                if p is not None
            ]
            floor = item.get("floor")
            yield (
                Cell(clean(part["id"]), note=_component_name(item)),
                verdict_cell(part["verdict"], _part_note(part) if index == 0 else ""),
                Cell(
                    claim_words(item.get("claim_low"), item.get("claim_high")),
                    note=said(part.get("claim"), "") if index == 0 else "",
                ),
                estimate(item.get("estimate"), item.get("low"), item.get("high")),
                _exact(item.get("n")),
                width(floor),
                _probability(item.get("probability_claim")),
                ", ".join(sides) if sides else Cell(MISSING, "missing"),
                _probability(item.get("severity")),
            )


def _parts(rule: str, outcome: Mapping[str, Any]) -> Table:
    return Table(
        f"parts-{rule}",
        f"{rule}: parts and components",
        (
            Column("Part"),
            Column("Verdict"),
            Column("Claim"),
            Column("Estimate", numeric=True),
            Column("n", numeric=True),
            Column("Floor", numeric=True),
            Column("P(claim)", numeric=True),
            Column("P(beyond a side)", numeric=True),
            Column("Severity", numeric=True),
        ),
        tuple(_part_rows(outcome)),
        empty="no part could be evaluated",
    )


def _rule(rule: str, outcome: Mapping[str, Any]) -> Subsection:
    words = RULES[rule]
    blocks: list[Block] = [Paragraph(f"Claim: {said(outcome.get('claim'), words.question)}", "quiet")]
    sentence = outcome.get("sentence")
    reason = outcome.get("reason")
    if sentence:
        blocks.append(Paragraph(clean(sentence)))
    elif not reason:
        blocks.append(Paragraph(f"The claim is {VERDICTS[outcome['verdict']].word}."))
    if reason and str(reason) not in str(sentence or ""):
        blocks.append(Paragraph(f"Reason: {clean(reason)}"))
    missing = outcome.get("missing") or ()
    if missing:
        blocks.append(Bullets(tuple(f"missing: {clean(item)}" for item in missing)))
    blocks += [_facts(outcome), _parts(rule, outcome)]
    return Subsection(
        f"rule-{rule}",
        f"{rule} {words.name}",
        tuple(blocks),
        badge=verdict_cell(outcome["verdict"]),
        level=4,
    )


def _forest_rows(document: Mapping[str, Any]) -> Iterator[tuple[Panel, Row]]:
    for rule in RULES:
        for order, part in enumerate(document["rules"][rule]["parts"]):
            for place, item in enumerate(part.get("components") or ()):
                identifier = f"forest-{rule}-{order}-{place}"
                filled = {"estimate": None, "low": None, "high": None, **item}
                row: Row = (
                    Cell(f"{rule} {clean(part['id'])}", note=_component_name(item)),
                    verdict_cell(part["verdict"]),
                    estimate(filled["estimate"], filled["low"], filled["high"]),
                    claim_words(item.get("claim_low"), item.get("claim_high")),
                    width(item.get("floor")),
                )
                yield component_panel(identifier, rule, part, item), row


def forest_part(document: Mapping[str, Any]) -> Subsection:
    """Build the figure of every component's interval against its claim region and floor."""
    drawn = list(_forest_rows(document))
    table = Table(
        "forest-numbers",
        "Components of the rules, as drawn",
        (
            Column("Component"),
            Column("Verdict of its part"),
            Column("Estimate", numeric=True),
            Column("Claim", numeric=True),
            Column("Floor", numeric=True),
        ),
        tuple(row for _, row in drawn),
        empty="no component could be estimated",
    )
    figure = Figure(
        "forest",
        "Each component on its own scale: interval and estimate, claim region (tinted), noise floor (outlined)",
        tuple(panel for panel, _ in drawn),
        table,
        layout="rows",
        folded=True,
    )
    return Subsection("forest-part", "Rules at a glance", (figure,))


def rules_parts(document: Mapping[str, Any]) -> tuple[Subsection, ...]:
    """Build the ten rules, what verdicts mean, and how many of them may be wrong."""
    conjunction = document.get("conjunction") or {}
    wrong = document.get("expected_wrong_verdicts")
    pairs: list[tuple[str, Cell | str]] = [
        ("Expected number of wrong verdicts", "not computed" if wrong is None else number(wrong))
    ]
    if conjunction.get("probability") is not None:
        rules = ", ".join(clean(rule) for rule in conjunction.get("rules") or ()) or "no rule"
        pairs.append((f"P(all of {rules} hold)", probability(conjunction["probability"])))
    else:
        pairs.append(("Conjunction of P1 to P6", "not computed"))
    meanings = Table(
        "meanings",
        "What a verdict means",
        (Column("Verdict"), Column("Meaning")),
        tuple((verdict_cell(kind), words.meaning) for kind, words in VERDICTS.items()),
    )
    ten = tuple(_rule(rule, document["rules"][rule]) for rule in RULES)
    return (
        Subsection("rules", "The ten rules", (Facts(tuple(pairs)), *ten, meanings)),
        forest_part(document),
    )
