"""The plan as registered, quoted in full: what is known is laid out, what is not is printed as it stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from verdiv.reports.blocks import (
    Block,
    Column,
    Facts,
    Notice,
    Paragraph,
    Row,
    Section,
    Subsection,
    Table,
    clean,
)
from verdiv.reports.sections.records import said, spaced, table_of, text_of, titled, tree
from verdiv.reports.words import RULES, estimand

__all__ = ["plan_section"]

QUOTED = {"schema", "schema_version", "title", "authors", "seen_before", "hypotheses", "rules"}
"""Keys that are laid out here or stand under Identity."""

GROUPS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "design",
        "Arms, models, seeds, budgets, decoding",
        ("arms", "tiers", "conditions", "seeds", "greedy_reruns"),
    ),
    ("suite", "Suite and families", ("suite", "families")),
    (
        "prices",
        "Prices and gates",
        ("rate_card", "gate", "deployment_gate", "break_even_budget", "max_budget"),
    ),
    (
        "conduct",
        "Stopping, exclusion, retry and missing-data rules",
        ("stopping", "exclusions", "retries", "missing_data"),
    ),
    ("estimation", "Registered values and priors", ("estimands", "priors")),
    ("decision", "Decision rule", ("decision",)),
)
"""Parts of a plan in the order of the report."""


def _rules(plan: Mapping[str, Any]) -> Table:
    words = plan.get("hypotheses") or {}
    numbers = plan.get("rules") or {}
    rows: list[Row] = []
    for rule, name in RULES.items():
        settings = numbers.get(rule) if isinstance(numbers, Mapping) else None
        listed = (
            "; ".join(f"{spaced(str(key))} {said(value)}" for key, value in settings.items())
            if isinstance(settings, Mapping)
            else said(settings)
        )
        hypothesis = words.get(rule) if isinstance(words, Mapping) else None
        rows.append((rule, name.name, said(hypothesis, "no hypothesis in words"), listed))
    return Table(
        "plan-rules",
        "Hypotheses and rules with their margins, smallest effects and alternatives",
        (Column("Rule"), Column("Name"), Column("Hypothesis"), Column("Numbers")),
        tuple(rows),
    )


def _nested(items: Iterable[object]) -> bool:
    return any(isinstance(item, Mapping | list | tuple) for item in items)


def _named(identifier: str, key: str, value: object) -> Block:
    """Lay out one entry of the plan."""
    title = titled(key)
    match value:
        case Mapping() if value and all(isinstance(item, Mapping) for item in value.values()):
            return table_of(identifier, title, [{"name": k, **v} for k, v in value.items()], first=("name",))
        case Mapping() if key == "families":
            rows = tuple((clean(name), said(weight)) for name, weight in value.items())
            return Table(
                identifier,
                "Families and their weights",
                (Column("Family"), Column("Weight", numeric=True)),
                rows,
            )
        case Mapping() if key == "estimands":
            known = [(estimand(k), v) for k, v in value.items() if v is not None]
            facts = tuple((f"{words.symbol}, {words.name}", said(v)) for words, v in known)
            return Facts(facts) if facts else Paragraph("No value was registered for any estimand.", "quiet")
        case Mapping() if not any(isinstance(item, list) and _nested(item) for item in value.values()):
            pairs = tuple((f"{title}: {spaced(str(k))}", text_of(v)) for k, v in value.items())
            return Facts(pairs or ((title, "none"),))
        case Mapping():
            return Subsection(identifier, title, tree(identifier, value, level=4), level=4)
        case list() | tuple() if _nested(value):
            return table_of(identifier, title, value)
        case _:
            return Facts(((title, text_of(value, "none")),))


def _merged(blocks: list[Block]) -> tuple[Block, ...]:
    """Join neighbouring lists of facts."""
    merged: list[Block] = []
    for block in blocks:
        last = merged[-1] if merged else None
        if isinstance(block, Facts) and isinstance(last, Facts):
            merged[-1] = Facts((*last.pairs, *block.pairs))
        else:
            merged.append(block)
    return tuple(merged)


def plan_section(document: Mapping[str, Any]) -> Section:
    """Build the section from the plan that the document carries."""
    registration = document["preregistration"]
    plan: Mapping[str, Any] = registration.get("plan") or {}
    blocks: list[Block] = []
    title = "Plan as registered" if registration["status"] != "none" else "Plan (defaults, not registered)"
    if registration["status"] == "none":
        blocks.append(
            Notice(
                "Nothing was registered",
                "What follows are the defaults that this exploratory analysis used: families, weights and arms "
                "as found in the log, rules with their default margins.",
            )
        )
    if not plan:
        blocks.append(Paragraph("The document holds no plan.", "missing"))
        return Section("plan", title, "Plan", tuple(blocks))
    blocks.append(_rules(plan))
    for identifier, heading, keys in GROUPS:
        present = [key for key in keys if plan.get(key) is not None]
        inner = _merged([_named(f"plan-{key}", key, plan[key]) for key in present])
        if inner:
            blocks.append(Subsection(f"plan-{identifier}", heading, inner))
    known = QUOTED.union(*(keys for _, _, keys in GROUPS))
    rest = {key: value for key, value in plan.items() if key not in known and value is not None}
    if rest:
        blocks.append(Subsection("plan-rest", "Further entries", tree("plan-rest", rest, level=4)))
    return Section("plan", title, "Plan", tuple(blocks))
