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


def _components(outcome: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [item for part in outcome["parts"] for item in part.get("components") or ()]


def _estimate_facts(outcome: Mapping[str, Any]) -> list[tuple[str, Cell | str]]:
    """Estimate and floor of a rule that lists no components; elsewhere the table of its parts holds them."""
    ends = outcome.get("interval") or {}
    low, high = ends.get("low"), ends.get("high")
    value, floor = outcome.get("estimate"), outcome.get("floor")
    pairs: list[tuple[str, Cell | str]] = []
    if value is not None:
        pairs.append(("Estimate", number(value, _half(low, high))))
    if ends:
        pairs.append((interval_words(ends).capitalize(), interval(low, high)))
    if outcome.get("n") is not None:
        pairs.append(("n", exact(outcome["n"])))
    if floor is not None:
        behind = outcome.get("floor_n")
        pairs.append(
            ("Noise floor", width(floor) + ("" if behind is None else f", from n = {exact(behind)}"))
        )
    return pairs


def _facts(outcome: Mapping[str, Any]) -> Facts:
    gamma, threshold = outcome.get("gamma"), outcome.get("threshold")
    target = {"new_tasks": "new tasks", "these_tasks": "these tasks"}.get(
        str(outcome.get("target")), said(outcome.get("target"))
    )
    components = _components(outcome)
    weakest = outcome.get("component")
    pairs: list[tuple[str, Cell | str]] = [("Target", target), ("Statistic", said(outcome.get("statistic")))]
    if weakest and (len(components) > 1 or clean(weakest) not in map(_component_name, components)):
        pairs.append(("Weakest component", clean(weakest)))
    if not components:
        pairs += _estimate_facts(outcome)
    pairs.append(("Margin (smallest effect of interest)", _exact(outcome.get("margin"))))
    if components or outcome.get("probability_claim") is not None:
        testable = outcome["verdict"] != "untestable"
        decide = outcome.get("tasks_to_decide")
        pairs += [
            (
                "P(claim)" if testable else "P(claim) of what could be tested",
                _probability(outcome.get("probability_claim"), gamma),
            ),
            ("γ, needed to support", _exact(gamma)),
            ("Largest one-sided exceedance", _probability(outcome.get("exceedance"), threshold)),
            ("Exceedance needed to falsify", _exact(None if threshold is None else round(threshold, 4))),
            ("Severity", _probability(outcome.get("severity"))),
            *([] if decide is None else [("Tasks needed to decide", exact(float(round(decide))))]),
        ]
    return Facts(tuple(pairs))


def _component_name(item: Mapping[str, Any]) -> str:
    return clean(item.get("label") or item["id"])


def _new(text: object, told: str) -> str:
    """Return a text of a part, or nothing where the rule has already said it."""
    words = said(text, "")
    return "" if words in told else words


def _part_note(part: Mapping[str, Any], told: str) -> str:
    """Return a part's reason, or the joint probability of its components where there is no reason."""
    if part.get("reason"):
        return _new(part["reason"], told)
    joint = part.get("probability_claim")
    return "" if joint is None else f"P(part) {probability(joint)}"


def _part_rows(outcome: Mapping[str, Any], told: str) -> Iterator[Row]:
    dash = Cell(MISSING, "missing")
    for part in outcome["parts"]:
        components = part.get("components") or ()
        claim, note = _new(part.get("claim"), told), _part_note(part, told)
        if not components:
            claimed: Cell | str = claim or (Cell("as above", "quiet") if part.get("claim") else dash)
            yield (clean(part["id"]), dash, claimed, dash, verdict_cell(part["verdict"], note), *[dash] * 4)
        for index, item in enumerate(components):
            below, above = item.get("exceedance_low"), item.get("exceedance_high")
            sides = [
                f"{name} {probability(p)}"
                for name, p in (("below", below), ("above", above))
                if p is not None
            ]
            yield (
                Cell(clean(part["id"]), note=_component_name(item)),
                estimate(item.get("estimate"), item.get("low"), item.get("high")),
                Cell(
                    claim_words(item.get("claim_low"), item.get("claim_high")),
                    note=claim if index == 0 else "",
                ),
                _probability(item.get("probability_claim")),
                verdict_cell(part["verdict"], note if index == 0 else ""),
                _exact(item.get("n")),
                width(item.get("floor")),
                Cell(sides[0], note=", ".join(sides[1:])) if sides else dash,
                _probability(item.get("severity")),
            )


def _parts(rule: str, outcome: Mapping[str, Any], told: str) -> Table:
    ends = outcome.get("interval")
    return Table(
        f"parts-{rule}",
        f"{rule}: parts and components" + (f"; in brackets the {interval_words(ends)}" if ends else ""),
        (
            Column("Part"),
            Column("Estimate", numeric=True),
            Column("Claim"),
            Column("P(claim)", numeric=True),
            Column("Verdict of the part"),
            Column("n", numeric=True),
            Column("Floor", numeric=True),
            Column("P(beyond)", numeric=True),
            Column("Severity", numeric=True),
        ),
        tuple(_part_rows(outcome, told)),
        empty="no part could be evaluated",
    )


def _has_parts(outcome: Mapping[str, Any], told: str) -> bool:
    """Tell whether the parts hold anything that the rule itself has not said."""
    return bool(_components(outcome)) or any(
        part["verdict"] != outcome["verdict"] or _new(part.get("claim"), told) or _part_note(part, told)
        for part in outcome["parts"]
    )


def _rule(rule: str, outcome: Mapping[str, Any]) -> Subsection:
    """Build one rule: claim, finding and reason once, then the figures behind them."""
    words = RULES[rule]
    claim = said(outcome.get("claim"), words.question)
    told = clean(outcome.get("sentence") or f"The claim is {VERDICTS[outcome['verdict']].word}.")
    blocks: list[Block] = [Paragraph(f"Claim: {claim}", "quiet"), Paragraph(told)]
    reason = _new(outcome.get("reason"), told)
    if reason:
        blocks.append(Paragraph(f"Reason: {reason}"))
    told = "\n".join((claim, told, reason))
    missing = [words for words in map(clean, outcome.get("missing") or ()) if words not in told]
    if missing:
        blocks.append(Bullets(tuple(f"missing: {words}" for words in missing)))
    blocks.append(_facts(outcome))
    told = "\n".join((told, *missing))
    if _has_parts(outcome, told):
        blocks.append(_parts(rule, outcome, told))
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
