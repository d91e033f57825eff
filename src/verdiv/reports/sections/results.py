"""Results: rules, estimands, frontier, break-even, hazards, bill, seeds and noise floors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verdiv.reports.blocks import (
    Block,
    Cell,
    Column,
    Facts,
    Figure,
    Notice,
    Row,
    Section,
    Subsection,
    Table,
    clean,
)
from verdiv.reports.figures.hazards import hazard_legend, hazard_panels, hazards
from verdiv.reports.sections.estimates import densities_part, estimates_parts
from verdiv.reports.sections.frontier import break_even_part, frontier_part
from verdiv.reports.sections.records import said
from verdiv.reports.sections.rules import rules_parts
from verdiv.reports.words import arm_label
from verdiv.rounding import MISSING, count, estimate, exact, interval, number, usd, width

__all__ = ["results_section"]


def _value(value: float | None) -> Cell | str:
    return Cell(MISSING, "missing") if value is None else exact(round(value, 4))


def _bill(document: Mapping[str, Any]) -> Subsection:
    ledger = document.get("ledger") or {}
    rows: list[Row] = [
        (
            arm_label(row["arm"]),
            count(row.get("draws")),
            _value(row.get("units")),
            _value(row.get("units_per_task")),
            _value(row.get("as_registered")),
        )
        for row in ledger.get("rows") or ()
    ]
    if rows:
        draws = [row.get("draws") for row in ledger["rows"]]
        drawn = count(sum(draws)) if None not in draws else Cell(MISSING, "missing")
        total, per_task = _value(ledger.get("total_units")), _value(ledger.get("units_per_task"))
        rows.append((Cell("all"), drawn, total, per_task, _value(ledger.get("registered_units_per_task"))))
    table = Table(
        "ledger",
        "The bill by arm, in units of one small draw",
        (
            Column("Arm"),
            Column("Draws", numeric=True),
            Column("Units", numeric=True),
            Column("Units a task", numeric=True),
            Column("As registered", numeric=True),
        ),
        tuple(rows),
        empty="no bill was recorded",
    )
    bound, within = ledger.get("declared_bound"), ledger.get("within_bound")
    words = {True: Cell("yes", "good"), False: Cell("no", "bad"), None: Cell("not checked", "missing")}
    money = ledger.get("usd")
    facts = Facts(
        (
            ("Declared upper bound, units a task", "none declared" if bound is None else exact(bound)),
            ("Within the bound", words[within] if bound is not None else Cell(MISSING, "missing")),
            ("Dearest task and replicate, units", _value(ledger.get("worst_cell_units"))),
            ("Tasks and replicates", count(ledger.get("cells"))),
            ("In money", usd(money) if money is not None else Cell("no price was registered", "missing")),
        )
    )
    return Subsection("bill", "Bill ledger", (facts, table))


def _seeds(document: Mapping[str, Any]) -> Subsection:
    rows = tuple(
        (
            clean(row["arm"]),
            exact(row.get("budget")),
            exact(row.get("replicate")),
            number(row.get("quality")),
            count(row.get("tasks")),
        )
        for row in document.get("per_seed") or ()
    )
    table = Table(
        "per-seed",
        "Quality of every replicate (fixed seed)",
        (
            Column("Arm"),
            Column("Budget", numeric=True),
            Column("Replicate", numeric=True),
            Column("Quality", numeric=True),
            Column("Tasks", numeric=True),
        ),
        rows,
        empty="no replicates were run",
    )
    return Subsection("seeds", "Per-seed values", (table,))


def _arm_at_budget(key: str) -> str:
    """Write ``A3@2`` as an arm at a budget."""
    arm, at, budget = key.rpartition("@")
    return f"{clean(arm)} at budget {clean(budget)}" if at and budget.isdigit() else clean(key)


def _floors(document: Mapping[str, Any]) -> Subsection:
    floors = document["floors"]
    flips: list[Row] = []
    for arm, item in (floors.get("p_flip") or {}).items():
        known = item or {}
        flips.append(
            (
                _arm_at_budget(arm),
                estimate(known.get("mean"), known.get("low"), known.get("high")),
                _value(known.get("flips")),
                _value(known.get("pairs")),
                count(known.get("tasks")),
            )
        )
    replicated = any(row.get("replicates") is not None for row in floors.get("contrasts") or ())
    contrasts = tuple(
        (
            clean(row["rule"]),
            said(row.get("component") or f"{said(row.get('arm_a'))} against {said(row.get('arm_b'))}"),
            width(row.get("floor")),
            count(row.get("tasks")),
            *((_value(row.get("replicates")),) if replicated else ()),
        )
        for row in floors.get("contrasts") or ()
    )
    return Subsection(
        "floors",
        "Noise floors",
        (
            Table(
                "p-flip",
                "How often two replicates of the same draw differ in correctness",
                (
                    Column("Arm"),
                    Column("P(flip)", numeric=True),
                    Column("Flips", numeric=True),
                    Column("Pairs", numeric=True),
                    Column("Tasks", numeric=True),
                ),
                tuple(flips),
                empty="no replicates that could show a flip",
            ),
            Table(
                "contrasts",
                "Smallest mean paired difference that flips alone would rarely reach",
                (
                    Column("Rule"),
                    Column("Contrast"),
                    Column("Floor", numeric=True),
                    Column("Tasks", numeric=True),
                    *((Column("Replicates", numeric=True),) if replicated else ()),
                ),
                contrasts,
                empty="no floor could be computed",
            ),
        ),
    )


def _hazards(document: Mapping[str, Any]) -> Subsection:
    found = hazards(document["hazards"])
    rows: list[Row] = []
    for item in found:
        low, high = item.low, item.high
        share = f"{exact(item.k)}/{exact(item.n)}"
        known = low is not None and high is not None
        rows.append(
            (
                clean(item.arm),
                clean(item.kind) or "all",
                str(item.attempt),
                share,
                number(item.k / item.n, (high - low) / 2)
                if known and low is not None and high is not None
                else MISSING,
                interval(low, high),
            )
        )
    table = Table(
        "hazard-numbers",
        "Success of the next draw by attempt",
        (
            Column("Arm"),
            Column("Class of error answered"),
            Column("Attempt", numeric=True),
            Column("k/n", numeric=True),
            Column("Share", numeric=True),
            Column("Wilson 95 % interval", numeric=True),
        ),
        tuple(rows),
        empty="no draw reached a retry",
        notes=("These intervals treat draws as independent; the verdicts' intervals respect tasks.",),
    )
    figure = Figure(
        "hazards",
        "How often the draw at each attempt succeeds, given that the attempt was reached",
        hazard_panels("hazard", found),
        table,
        layout="grid",
        legend=hazard_legend(found),
    )
    return Subsection("hazards-part", "Success by attempt", (figure,))


def results_section(document: Mapping[str, Any]) -> Section:
    """Build the section, in registered order: rules, estimands, frontier, bill, seeds, floors."""
    densities = densities_part(document)
    blocks: list[Block] = []
    if document["mode"] == "exploratory":
        blocks.append(
            Notice(
                "Exploratory",
                "No plan preceded these data: the verdicts show how the rules would have come out, nothing more.",
            )
        )
    blocks += [*rules_parts(document), *estimates_parts(document)]
    if densities is not None:
        blocks.append(densities)
    blocks += [
        frontier_part(document),
        break_even_part(document),
        _hazards(document),
        _bill(document),
        _seeds(document),
        _floors(document),
    ]
    return Section("results", "Results", "Results", tuple(blocks))
