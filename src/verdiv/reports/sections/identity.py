"""Who planned what and when: the plan's identity, the files and the order of lock and data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verdiv.reports.blocks import Block, Bullets, Cell, Code, Facts, Section, Subsection, clean
from verdiv.reports.sections.records import moment, said, table_of, text_of
from verdiv.rounding import count

__all__ = ["identity_section"]

STATUS = {
    "none": "no registration: the analysis is exploratory",
    "read": "read from a file, not locked",
    "locked": "locked; the digest recomputes",
    "broken": "the lock does not hold",
}

GATES = {
    "verifier": "the verifier's flag sent a draw to retry",
    "truth": "the ground truth sent a draw to retry",
    "none": "nothing sent a draw to retry",
}


def _totals(document: Mapping[str, Any]) -> str:
    inputs = document["inputs"]
    draws = [item["draws"] for item in inputs if item["draws"] is not None]
    files = "1 file" if len(inputs) == 1 else f"{count(len(inputs))} files"
    return f"{files}, {count(sum(draws))} draws"


def identity_section(document: Mapping[str, Any]) -> Section:
    """Build the section: title, authors, digest and how to recompute it, files, times, amendments."""
    plan = document["preregistration"]
    registered = plan["status"] != "none"
    absent = "not recorded" if registered else "none: nothing was registered"
    gate = document.get("gate")
    pairs: list[tuple[str, Cell | str]] = [
        ("Title", clean(plan.get("title") or document["title"])),
        ("Authors", text_of(plan.get("authors"), absent)),
        ("Standing of the plan", Cell(STATUS[plan["status"]], "bad" if plan["status"] == "broken" else "")),
        ("Digest of the plan", said(plan.get("digest"), absent)),
        (
            "Locked at",
            moment(plan.get("locked_at"), "never" if plan["status"] != "locked" else "not recorded"),
        ),
        (
            "Strength of the lock",
            said(plan.get("strength"), "none" if plan["status"] != "locked" else "not recorded"),
        ),
        ("First draw at", moment(plan.get("first_draw_at"), "not recorded")),
        ("Order of lock and data", said(plan.get("order"), "not established")),
        ("What had been seen before", text_of(plan.get("seen_before"), absent)),
        ("Gate", GATES.get(str(gate), said(gate, "not recorded"))),
        ("Data", _totals(document)),
    ]
    blocks: list[Block] = [Facts(tuple(pairs))]
    if plan.get("digest"):
        command = clean(plan.get("verify_command") or "verdiv verify preregistration.lock.json")
        blocks.append(Subsection("verify", "Recompute the digest", (Code(command),)))
    blocks.append(
        Subsection(
            "amendments",
            "Amendments",
            (
                table_of("amendment-table", "Amendments in order", plan["amendments"])
                if plan.get("amendments")
                else Bullets((), empty="none"),
            ),
        )
    )
    return Section("identity", "Identity", "Identity", tuple(blocks))
