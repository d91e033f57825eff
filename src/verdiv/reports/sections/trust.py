"""Trust: whether the fit may be believed, what the design could have found, and what the data rule out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verdiv.reports.blocks import (
    Block,
    Bullets,
    Cell,
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
from verdiv.reports.sections.records import interval_words, said, table_of
from verdiv.reports.words import RULES, verdict_cell
from verdiv.rounding import MISSING, count, exact, interval, number, probability, width

__all__ = ["trust_section"]


def _probability(value: float | None) -> Cell | str:
    return Cell(MISSING, "missing") if value is None else probability(value)


def _on_grid(diagnostics: Mapping[str, Any]) -> bool:
    """Tell whether the posterior was integrated on the grid, which has no chains to diagnose."""
    return str(diagnostics.get("engine") or "").lower().startswith("grid")


def _engine(diagnostics: Mapping[str, Any]) -> Facts:
    failed = diagnostics.get("status") == "failed"
    pairs: list[tuple[str, Cell | str]] = [
        ("Engine", said(diagnostics.get("engine"), "not named")),
        ("Status", Cell(said(diagnostics.get("status")), "bad" if failed else "good")),
    ]
    if not _on_grid(diagnostics):
        pairs += [
            ("Largest R-hat (at most 1.01)", _r_hat(diagnostics.get("r_hat_max"))),
            ("Smallest bulk ESS (at least 400)", _rounded(diagnostics.get("ess_bulk_min"))),
            ("Smallest tail ESS (at least 400)", _rounded(diagnostics.get("ess_tail_min"))),
            ("Divergences (none allowed)", count(diagnostics.get("divergences"))),
        ]
    error = diagnostics.get("grid_error_in_sd")
    if error is not None or _on_grid(diagnostics):
        pairs.append(("Error of the grid, in posterior sd", number(error)))
    both = diagnostics.get("engines") or {}
    if both.get("largest_mean_gap_in_sd") is not None:
        pairs += [
            (
                "Largest distance of grid and NUTS means, in posterior sd",
                number(both["largest_mean_gap_in_sd"]),
            ),
            ("Largest relative distance of their sd", number(both.get("largest_sd_gap"))),
        ]
    return Facts(tuple(pairs))


def _stages(diagnostics: Mapping[str, Any]) -> Table:
    """Lay out the stages; a sampled posterior stands beside the grid's, which checks it."""
    columns = [
        Column("Stage"),
        *(
            Column(title, numeric=True)
            for title in ("Families", "Events/draws", "Design effect", "Mean", "sd")
        ),
    ]
    sampled = not _on_grid(diagnostics)
    if sampled:
        columns += [
            Column(title, numeric=True) for title in ("Grid mean", "Grid sd", "R-hat", "Bulk ESS", "Tail ESS")
        ]
    rows: list[Row] = []
    for stage in diagnostics.get("stages") or ():
        cells = (
            clean(stage["stage"]),
            count(stage.get("family_count")),
            f"{_whole(stage.get('K'))}/{_whole(stage.get('N'))}",
            number(stage.get("deff")),
            number(stage.get("mean"), stage.get("sd")),
            width(stage.get("sd")),
        )
        checks = (
            number(stage.get("grid_mean"), stage.get("grid_sd")),
            width(stage.get("grid_sd")),
            _r_hat(stage.get("r_hat")),
            _rounded(stage.get("ess_bulk")),
            _rounded(stage.get("ess_tail")),
        )
        rows.append((*cells, *checks) if sampled else cells)
    return Table(
        "stages",
        "Stages of the model, each beside the grid's independent answer"
        if sampled
        else "Stages of the model",
        tuple(columns),
        tuple(rows),
        empty="no stage was fitted",
    )


def _r_hat(value: float | None) -> str:
    return MISSING if value is None else f"{value:.4f}"


def _fit(diagnostics: Mapping[str, Any]) -> Subsection:
    failed = diagnostics.get("status") == "failed"
    blocks: list[Block] = []
    if failed:
        blocks.append(Notice("The fit failed", "No verdict may come from it.", "bad"))
    reasons = diagnostics.get("reasons") or ()
    warnings = diagnostics.get("warnings") or ()
    blocks.append(_engine(diagnostics))
    if reasons:
        blocks.append(Bullets(tuple(clean(reason) for reason in reasons)))
    if warnings:
        blocks.append(Bullets(tuple(f"warning: {clean(warning)}" for warning in warnings)))
    blocks.append(_stages(diagnostics))
    return Subsection("fit", "Diagnostics of the fit", tuple(blocks))


def _rounded(value: float | None) -> str:
    return MISSING if value is None else exact(float(round(value)))


def _whole(value: float | None) -> str:
    return MISSING if value is None else exact(value)


def _predictive(diagnostics: Mapping[str, Any]) -> Subsection:
    rows = tuple(
        (
            clean(check["stage"]),
            said(check.get("family"), "all"),
            f"{_whole(check.get('k'))}/{_whole(check.get('n'))}",
            _probability(check.get("prior_p")),
            _probability(check.get("posterior_p")),
        )
        for check in diagnostics.get("predictive") or ()
    )
    table = Table(
        "predictive",
        "Prior and posterior predictive checks: the probability of a count at least as large as the one seen",
        (
            Column("Stage"),
            Column("Family"),
            Column("Seen", numeric=True),
            Column("Prior p", numeric=True),
            Column("Posterior p", numeric=True),
        ),
        rows,
        empty="not computed",
        notes=("Values near 0 or 1 mean that the model would hardly produce what was seen.",),
    )
    return Subsection("predictive-part", "Predictive checks", (table,))


def _simulated(document: Mapping[str, Any]) -> tuple[Table, ...]:
    """Build the table of verdicts simulated before the run; nothing where the lock holds none."""
    locked = (document.get("preregistration") or {}).get("severity")
    if not locked:
        return ()
    runs = locked["runs"]

    def told(row: Mapping[str, Any], verdict: str, side: str) -> Cell:
        hits, world = row.get(f"{verdict}_if_{side}"), row.get(f"world_if_{side}")
        if hits is None:
            return Cell("no such world", "missing")
        return Cell(probability(hits / runs), note=f"{count(hits)} of {count(runs)}, {clean(world)}")

    rows = tuple(
        (
            Cell(rule, note=words.name),
            told(locked["rules"][rule], "supported", "true"),
            told(locked["rules"][rule], "falsified", "true"),
            told(locked["rules"][rule], "falsified", "false"),
        )
        for rule, words in RULES.items()
        if rule in locked["rules"]
    )
    return (
        Table(
            "simulated-severity",
            "Simulated before the run: how often the design decides each rule",
            (
                Column("Rule"),
                Column("Supported where the claim holds", numeric=True),
                Column("Falsified where it holds", numeric=True),
                Column("Falsified where it fails", numeric=True),
            ),
            rows,
            notes=(f"Stored in the lock; {count(runs)} runs a world from seed {locked['seed']}.",),
        ),
    )


def _severity(document: Mapping[str, Any]) -> Subsection:
    supported: list[Row] = []
    others: list[Row] = []
    for rule, words in RULES.items():
        outcome = document["rules"][rule]
        name = Cell(rule, note=words.name)
        if outcome["verdict"] == "supported":
            chance = outcome.get("severity")
            supported.append(
                (name, Cell("not computed", "missing") if chance is None else probability(chance))
            )
            continue
        for part in outcome["parts"]:
            for item in part.get("components") or ():
                if item.get("low") is None and item.get("high") is None:
                    continue
                others.append(
                    (
                        Cell(rule, note=f"{clean(part['id'])}, {clean(item.get('label') or item['id'])}"),
                        verdict_cell(outcome["verdict"]),
                        interval(item.get("low"), item.get("high")),
                    )
                )
    kinds = {interval_words(document["rules"][rule].get("interval")) for rule in RULES}
    named = sorted(kind for kind in kinds if kind != "interval")
    return Subsection(
        "severity",
        "Severity, and effects ruled out",
        (
            Table(
                "severity-table",
                "Supported rules: how likely the design falsifies them under the registered alternative",
                (Column("Rule"), Column("Severity", numeric=True)),
                tuple(supported),
                empty="no rule was supported",
            ),
            Table(
                "ruled-out",
                "Other rules: values outside the interval are ruled out at its probability",
                (Column("Rule"), Column("Verdict"), Column("Values that remain", numeric=True)),
                tuple(others),
                empty="no interval rules anything out",
                notes=(f"Intervals: {', '.join(named)}.",) if named else (),
            ),
            *_simulated(document),
        ),
    )


def trust_section(document: Mapping[str, Any]) -> Section:
    """Build the section: diagnostics, predictive checks, priors, LOO, severity, sensitivity of verdicts."""
    diagnostics = document.get("diagnostics")
    blocks: list[Block] = []
    if diagnostics is None:
        blocks.append(Paragraph("No model was fitted; every estimate is direct.", "missing"))
    else:
        blocks += [
            _fit(diagnostics),
            _predictive(diagnostics),
            Subsection(
                "priors",
                "Prior sensitivity",
                (
                    table_of(
                        "prior-sensitivity",
                        "Estimates and verdicts under other priors",
                        diagnostics.get("prior_sensitivity"),
                        first=("stage", "id", "change", "prior"),
                        empty="not computed",
                    ),
                ),
            ),
            Subsection(
                "icc-part",
                "Correlation within tasks",
                (
                    table_of(
                        "icc",
                        "Within-task correlation of the binary blocks",
                        diagnostics.get("icc"),
                        first=("block", "mean", "sd", "prior_sd", "estimable", "reason"),
                        empty="not estimated",
                    ),
                ),
            ),
            Subsection(
                "loo-part",
                "Leave-one-out comparison",
                (
                    table_of(
                        "loo",
                        "PSIS-LOO of the within-task blocks",
                        diagnostics.get("loo"),
                        first=(
                            "block",
                            "tasks",
                            "model",
                            "elpd",
                            "correlated",
                            "independent",
                            "difference",
                            "se",
                        ),
                        empty="not computed: no within-task block was fitted",
                    ),
                ),
            ),
        ]
    blocks += [
        _severity(document),
        Subsection(
            "verdict-sensitivity",
            "Sensitivity of the verdicts",
            (
                table_of(
                    "sensitivity-table",
                    "Verdicts under another margin, exclusion or prior",
                    document.get("sensitivity"),
                    first=("rule", "change", "verdict", "probability_claim"),
                    empty="not computed",
                ),
            ),
        ),
    ]
    return Section("trust", "Trust", "Trust", tuple(blocks))
