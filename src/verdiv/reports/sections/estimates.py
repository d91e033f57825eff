"""The estimands: the seven registered ones, and all estimates with direct, model and frequentist columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verdiv.reports.blocks import Block, Cell, Column, Figure, Notice, Row, Subsection, Table, clean, slug
from verdiv.reports.figures.breakeven import most_probable
from verdiv.reports.figures.densities import density_legend, density_panel
from verdiv.reports.sections.records import interval_words, said, spaced
from verdiv.reports.words import ESTIMANDS, SEVEN, estimand
from verdiv.rounding import MISSING, count, estimate, exact, interval, number, probability, share, width

__all__ = ["densities_part", "estimates_parts", "ordered"]

TARGETS = {"new_tasks": "new tasks", "these_tasks": "these tasks"}


def ordered(estimates: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the ids of a document's estimates in the order of the report, unknown ones last."""
    by_lower = {name.lower(): name for name in estimates}
    known = [by_lower[name] for name in ESTIMANDS if name in by_lower]
    return (*known, *(name for name in estimates if name.lower() not in ESTIMANDS))


def _find(estimates: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    return next((value for key, value in estimates.items() if key.lower() == name), None)


def _reason(record: Mapping[str, Any]) -> str:
    return "not estimable: " + said(record.get("reason"), "the reason was not recorded")


def _reported(record: Mapping[str, Any] | None) -> Cell:
    if record is None:
        return Cell("not in this document", "missing")
    if record["status"] != "estimated":
        return Cell(_reason(record), "missing")
    return Cell(
        estimate(record.get("mean"), record.get("low"), record.get("high")),
        note=said(record.get("source"), ""),
    )


def _counts(record: Mapping[str, Any]) -> Cell | str:
    k, n = record.get("k"), record.get("n")
    unit = said(record.get("unit"), "")
    if k is not None or n is not None:
        whole = all(value is None or value == int(value) for value in (k, n))
        words = (
            share(None if k is None else int(k), None if n is None else int(n))
            if whole
            else f"{said(k)}/{said(n)}"
        )
        return Cell(words, note=unit)
    parts = record.get("components")
    if isinstance(parts, Mapping):
        listed = [
            f"{estimand(str(name)).symbol} {share(part.get('k'), part.get('n'))}"
            if isinstance(part, Mapping) and isinstance(part.get("n"), int)
            else f"{spaced(str(name))} {number(part) if isinstance(part, float) else said(part)}"
            for name, part in parts.items()
        ]
        return Cell("; ".join(listed), note=unit) if listed else Cell(MISSING, "missing")
    if isinstance(parts, list | tuple) and parts:
        return Cell("from " + ", ".join(estimand(str(part)).symbol for part in parts), note=unit)
    return Cell(MISSING, "missing")


def _side(record: Mapping[str, Any], key: str) -> Cell | str:
    band = record.get(key)
    if band is None or band.get("mean") is None:
        return Cell(MISSING, "missing")
    return estimate(band["mean"], band.get("low"), band.get("high"))


def _agreement(record: Mapping[str, Any]) -> Cell | str:
    agreement = record.get("agreement")
    if not agreement or agreement.get("agrees") is None:
        return Cell(MISSING, "missing")
    gap = agreement.get("gap_in_sd")
    note = "" if gap is None else f"{number(gap, 1.0)} sd apart"
    return Cell("yes", note=note) if agreement["agrees"] else Cell("no", "bad", note=note)


def _cross(record: Mapping[str, Any]) -> Cell | str:
    cross = record.get("cross_check")
    if not cross or (cross.get("estimate") is None and cross.get("low") is None):
        return Cell(MISSING, "missing")
    robust = cross.get("cluster_robust") or {}
    note = clean(cross.get("method") or "")
    if robust.get("estimate") is not None:
        shown = estimate(robust["estimate"], robust.get("low"), robust.get("high"))
        note += f"; clustered {shown}"
    tasks = cross.get("by_tasks") or {}
    if tasks.get("tasks") is not None:
        bound = interval(tasks.get("low"), tasks.get("high"))
        note += (
            f"; {exact(record.get('k'))} of {exact(record.get('n'))} draws in {count(tasks['tasks'])} tasks: "
        )
        note += f"the bound by tasks is {bound}"
    if cross.get("estimate") is None:
        return Cell(interval(cross.get("low"), cross.get("high")), note=note)
    return Cell(estimate(cross["estimate"], cross.get("low"), cross.get("high")), note=note)


def _registered(record: Mapping[str, Any]) -> str:
    value = record.get("registered")
    return "none" if value is None else said(value)


def _break_even(document: Mapping[str, Any]) -> Cell:
    record = _find(document["estimates"], "break_even")
    best = most_probable((document.get("break_even") or {}).get("B_star") or {})
    if best is None:
        return _reported(record)
    budget, p = best
    return Cell(
        "none by the largest budget" if budget == "none" else budget, note=f"probability {probability(p)}"
    )


def _seven(document: Mapping[str, Any]) -> Table:
    estimates = document["estimates"]
    rows: list[Row] = []
    for place, names in enumerate(SEVEN, start=1):
        for name in names:
            words = ESTIMANDS[name]
            record = _find(estimates, name)
            shown = _break_even(document) if name == "break_even" else _reported(record)
            known = record or {}
            rows.append(
                (
                    str(place),
                    Cell(words.symbol, note=words.name),
                    shown,
                    _counts(known),
                    count(known.get("tasks")),
                    _registered(known),
                )
            )
    return Table(
        "seven",
        "The seven registered estimands",
        (
            Column("No."),
            Column("Estimand"),
            Column("Estimate", numeric=True),
            Column("Counts", numeric=True),
            Column("Tasks", numeric=True),
            Column("Registered value", numeric=True),
        ),
        tuple(rows),
        notes=("A missing value is named with its reason; it is never filled by its prior and never 0.",),
    )


def _named(name: str) -> Cell:
    words = estimand(name)
    return Cell(words.symbol, note=words.name if words.name != words.symbol else "")


def _all(document: Mapping[str, Any]) -> Table:
    estimates = document["estimates"]
    rows: list[Row] = []
    kinds: dict[str, None] = {}
    parted = False
    for name in ordered(estimates):
        record = estimates[name]
        kinds.setdefault(interval_words(record.get("interval")))
        parted |= any(isinstance(record.get(key), float) and record[key] % 1 for key in ("k", "n"))
        these = record.get("these_tasks") or {}
        target = TARGETS.get(str(record.get("target")), said(record.get("target")))
        rows.append(
            (
                _named(name),
                _break_even(document) if name == "break_even" else _reported(record),
                _counts(record),
                count(record.get("tasks")),
                number(these.get("value")) if these.get("value") is not None else Cell(MISSING, "missing"),
                _registered(record),
                Cell(
                    estimand(name).meaning or MISSING,
                    note=f"{target}; {said(record.get('population'), 'population not named')}",
                ),
            )
        )
    named = [kind for kind in kinds if kind != "interval"]
    notes = [f"In brackets: {', '.join(named)}."] if named else []
    if parted:
        notes.append(
            "A count with a fraction: a prompt answered several times at temperature 0 is one observation, at its mean."
        )
    return Table(
        "estimates",
        "Every estimate, as reported",
        (
            Column("Estimand"),
            Column("Reported", numeric=True),
            Column("Counts", numeric=True),
            Column("Tasks", numeric=True),
            Column("These tasks", numeric=True),
            Column("Registered", numeric=True),
            Column("Meaning and population"),
        ),
        tuple(rows),
        notes=tuple(notes),
    )


def _ways(document: Mapping[str, Any]) -> Table:
    estimates = document["estimates"]
    rows = tuple(
        (
            _named(name),
            _side(estimates[name], "direct"),
            _side(estimates[name], "model"),
            _agreement(estimates[name]),
            _cross(estimates[name]),
        )
        for name in ordered(estimates)
        if any(estimates[name].get(key) for key in ("direct", "model", "agreement", "cross_check"))
    )
    return Table(
        "ways",
        "Every estimate: direct, model and frequentist",
        (
            Column("Estimand"),
            Column("Direct", numeric=True),
            Column("Model", numeric=True),
            Column("Do they agree?"),
            Column("Cross-check", numeric=True),
        ),
        rows,
        empty="no estimate has more than one form",
        notes=(
            "Direct: Bayesian bootstrap over tasks. Model: hierarchical model. Where the two disagree, rules use "
            "the direct estimate.",
        ),
    )


def _families(document: Mapping[str, Any]) -> Table | None:
    estimates = document["estimates"]
    names = [name for name in ordered(estimates) if estimates[name].get("by_family")]
    families = list(dict.fromkeys(family for name in names for family in estimates[name]["by_family"]))
    if not families:
        return None
    rows: list[Row] = []
    for name in names:
        cells: list[Cell | str] = [_named(name)]
        for family in families:
            item = estimates[name]["by_family"].get(family)
            if item is None or item.get("mean") is None:
                cells.append(Cell(MISSING, "missing"))
            else:
                shown = estimate(item["mean"], item.get("low"), item.get("high"))
                note = "" if item.get("n") is None else f"{exact(item.get('k'))}/{exact(item['n'])}"
                cells.append(Cell(shown, note=note))
        rows.append(tuple(cells))
    return Table(
        "families",
        "Estimates by family",
        (Column("Estimand"), *(Column(clean(family), numeric=True) for family in families)),
        tuple(rows),
    )


def estimates_parts(document: Mapping[str, Any]) -> tuple[Subsection, ...]:
    """Build the parts: the seven registered estimands, every estimate, and estimates by family."""
    disagree = [
        estimand(name).symbol
        for name in ordered(document["estimates"])
        if (document["estimates"][name].get("agreement") or {}).get("agrees") is False
    ]
    blocks: list[Block] = []
    if disagree:
        blocks.append(
            Notice(
                "Direct and model estimates disagree",
                f"For {', '.join(disagree)} they differ by more than their uncertainty; rules use the direct one.",
            )
        )
    blocks += [_all(document), _ways(document)]
    families = _families(document)
    if families is not None:
        blocks.append(families)
    return (
        Subsection("seven-part", "The seven estimands", (_seven(document),)),
        Subsection("estimates-part", "All estimates", tuple(blocks)),
    )


def _density_rows(document: Mapping[str, Any], names: list[str]) -> tuple[Row, ...]:
    rows: list[Row] = []
    for name in names:
        record = document["estimates"].get(name) or {}
        model = record.get("model") or (record if record.get("source") == "model" else {})
        rows.append(
            (
                _named(name),
                number(model.get("mean"), _half(model)),
                number(model.get("median"), _half(model)),
                width(model.get("sd")),
                interval(model.get("low"), model.get("high")),
                _side(record, "direct"),
            )
        )
    return tuple(rows)


def _half(band: Mapping[str, Any]) -> float | None:
    low, high = band.get("low"), band.get("high")
    return None if low is None or high is None else abs(high - low) / 2


def densities_part(document: Mapping[str, Any]) -> Subsection | None:
    """Build the posterior densities with prior and direct interval; None where the document has none."""
    densities = {name: value for name, value in (document.get("densities") or {}).items() if value}
    if not densities:
        return None
    names = list(ordered(densities))
    panels = tuple(
        density_panel(f"density-{slug(name)}", name, densities[name], document["estimates"].get(name) or {})
        for name in names
    )
    table = Table(
        "density-numbers",
        "Posterior and direct estimates of the drawn quantities",
        (
            Column("Estimand"),
            Column("Posterior mean", numeric=True),
            Column("Median", numeric=True),
            Column("sd", numeric=True),
            Column("Interval", numeric=True),
            Column("Direct", numeric=True),
        ),
        _density_rows(document, names),
    )
    figure = Figure(
        "densities",
        "Posterior densities over their priors, each on its own scale",
        panels,
        table,
        layout="grid",
        legend=density_legend(),
    )
    return Subsection("densities-part", "Posterior densities", (figure,))
