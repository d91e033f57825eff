"""The last sections: exploratory results, how to reproduce the analysis, and what it does not show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verdiv.reports.blocks import (
    Block,
    Bullets,
    Cell,
    Code,
    Column,
    Facts,
    Paragraph,
    Section,
    Subsection,
    Table,
    clean,
)
from verdiv.reports.sections.records import moment, said, titled, tree
from verdiv.rounding import count

__all__ = ["exploratory_section", "limits_section", "reproduce_section"]


PRINTED = frozenset(
    (
        *(
            "schema",
            "title",
            "mode",
            "gate",
            "inputs",
            "preregistration",
            "estimates",
            "frontier",
            "break_even",
        ),
        *(
            "hazards",
            "floors",
            "rules",
            "conjunction",
            "expected_wrong_verdicts",
            "sensitivity",
            "diagnostics",
        ),
        *("densities", "flow", "exclusions", "ledger", "per_seed", "exploratory", "findings", "deviations"),
        *("audit", "limits", "meta", "settings"),
    )
)
"""Keys of a document that other parts of the report print."""


def exploratory_section(document: Mapping[str, Any]) -> Section:
    """Build the section: what was looked at without a registered rule, without verdicts."""
    results = document.get("exploratory") or {}
    blocks: tuple[Block, ...] = (
        Paragraph("Nothing in this section was registered; it raises questions and decides none.", "quiet"),
    )
    blocks += tree("exploratory", results) if results else (Paragraph("Nothing was explored."),)
    return Section("exploratory", "Exploratory results", "Exploratory", blocks)


def reproduce_section(document: Mapping[str, Any]) -> Section:
    """Build the section: inputs with digests, environment, seed, one command."""
    meta: Mapping[str, Any] = document["meta"]
    rows = tuple(
        (
            clean(item["path"]),
            said(item["sha256"]),
            count(item["draws"]),
            count(item["tasks"]),
            said(item.get("status"), "not recorded"),
        )
        for item in document["inputs"]
    )
    inputs = Table(
        "inputs",
        "Inputs with their digests",
        (
            Column("File"),
            Column("SHA-256"),
            Column("Draws", numeric=True),
            Column("Tasks", numeric=True),
            Column("State"),
        ),
        rows,
        empty="no input was recorded",
    )
    versions = meta.get("versions")
    settings: Mapping[str, Any] = document.get("settings") or {}
    facts: list[tuple[str, Cell | str]] = [
        (titled(str(key)), moment(value))
        for key, value in {**meta, **settings}.items()
        if key not in ("versions", "command")
    ]
    blocks: list[Block] = [
        Subsection(
            "command",
            "One command",
            (Code(said(meta.get("command"), "verdiv analyze (arguments not recorded)")),),
        ),
        Subsection("inputs-part", "Inputs", (inputs,)),
        Subsection("run", "Run", (Facts(tuple(facts)) if facts else Paragraph("Not recorded.", "missing"),)),
    ]
    if isinstance(versions, Mapping) and versions:
        pairs: tuple[tuple[str, Cell | str], ...] = tuple((clean(k), said(v)) for k, v in versions.items())
        blocks.append(Subsection("environment", "Environment", (Facts(pairs),)))
    else:
        blocks.append(Subsection("environment", "Environment", (Paragraph("Not recorded.", "missing"),)))
    rest = {
        key: value for key, value in document.items() if key not in PRINTED and value not in (None, [], {})
    }
    if rest:
        blocks.append(Subsection("further", "Further values of the document", tree("further", rest, level=4)))
    return Section("reproduce", "Reproduce", "Reproduce", tuple(blocks))


def _lock_limit(document: Mapping[str, Any]) -> str:
    plan = document["preregistration"]
    strength = clean(plan.get("strength") or "")
    match plan["status"]:
        case "locked":
            named = f" ({strength})" if strength else ""
            return (
                f"The lock{named} shows that the plan did not change after it was locked. It shows no more about "
                "when that was, or who did it, than its strength says."
            )
        case "read":
            return "The plan was not locked: it may have been written or changed after the data were seen."
        case "broken":
            return (
                "The lock does not hold: what was planned before the data cannot be told from what was not."
            )
        case _:
            return "Nothing was registered: rules, margins and arms were chosen with the data at hand."


def limits_section(document: Mapping[str, Any]) -> Section:
    """Build the section: limits of the lock, the suite, the power and the verifier.

    Where the document words the limits of its own lock and verifier, those stand in place of the general ones.
    """
    undecided = [rule for rule, outcome in document["rules"].items() if outcome["verdict"] == "inconclusive"]
    untestable = [rule for rule, outcome in document["rules"].items() if outcome["verdict"] == "untestable"]
    tasks = [item["tasks"] for item in document["inputs"] if item["tasks"] is not None]
    size = f"at most {count(sum(tasks))} tasks" if tasks else "an unknown number of tasks"
    power = f"With {size}, an inconclusive rule is not a refuted one and not a confirmed one"
    power += (
        f" ({', '.join(undecided)}); where a number of tasks would decide, it is named."
        if undecided
        else "; none is inconclusive here."
    )
    if untestable:
        power += (
            f" Nothing is said about {', '.join(untestable)}, whose data were not produced or not recorded."
        )
    single_shot = (
        "The tasks are single-shot tool calls of the families named here; other families, multi-turn tasks and "
        "other models may behave differently."
    )
    blind = (
        "The static verifier is blind to silent errors: it cannot flag them, and only a check that knows the truth, "
        "never deployed, measures how many there are."
    )
    written = tuple(clean(limit) for limit in document.get("limits") or ())
    items = (*written, single_shot, power) if written else (_lock_limit(document), single_shot, power, blind)
    return Section("limits", "What this does not show", "Limits", (Bullets(tuple(dict.fromkeys(items))),))
