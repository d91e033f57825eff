"""From a run log and a registration to the counts that everything else reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from verdiv.errors import Fault, InputRefused
from verdiv.estimators.observations import KINDS, DrawColumns, FloatArray, draw_columns
from verdiv.estimators.tally import Tally, tally_draws
from verdiv.preregistration import Preregistration, check_coverage, default_preregistration
from verdiv.runlog.table import Finding, RunLog

__all__ = ["Gathered", "gather"]

PRIMARY = "primary"


@dataclass(frozen=True)
class Gathered:
    """One run, counted, with the plan it is judged by."""

    log: RunLog
    plan: Preregistration
    mode: str
    """``registered`` or ``exploratory``."""
    gate: str
    draws: DrawColumns
    tally: Tally
    """Counts under the primary condition."""
    conditions: Mapping[str, Tally]
    """Counts under every other condition."""
    weights: FloatArray
    """Family weights in the order of the tally's families, shape ``(families,)``."""
    excluded: Mapping[str, int]
    """Exclusion rule to the number of draws it took out."""
    findings: tuple[Finding, ...]


def _gate(log: RunLog) -> str:
    gates = sorted({str(h.gate) for h in log.headers})
    if len(gates) > 1 and "none" in gates:  # a log without retries joins either kind
        gates.remove("none")
    if len(gates) > 1:
        fault = Fault(
            "logs", "one gate in all of them", ", ".join(gates), "analyse logs with different gates apart"
        )
        raise InputRefused("The logs cannot be analysed together.", [fault])
    return gates[0]


def _excluded(table: pd.DataFrame, plan: Preregistration) -> tuple[pd.DataFrame, dict[str, int]]:
    """Replay the registered exclusion rules; each counts what it takes out of what was left."""
    counts: dict[str, int] = {}
    for rule in plan.exclusions:
        if rule.when == "error":
            hit = table["error_kind"].notna()
        elif rule.when == "unscored":
            hit = table["correct"].isna()
        else:
            hit = table[rule.when].isin(rule.values)
        if rule.scope == "task":
            hit = table["task_id"].isin(set(table.loc[hit, "task_id"]))
        counts[rule.id] = int(hit.sum())
        table = table[~hit]
    return table, counts


def _default_plan(table: pd.DataFrame, gate: str) -> Preregistration:
    sizes = table.groupby("family")["task_id"].nunique()
    attempts = {str(k): int(v) for k, v in table.groupby("arm")["attempt"].max().items()}
    votes = table[(table["arm"] == "A1") & (table["prompt_kind"] == "initial")]
    if len(votes):
        per_chain = int(votes.groupby(["task_id", "replicate"]).size().max())
        attempts["A1"] = per_chain if per_chain % 2 else per_chain - 1
    return default_preregistration(
        {str(k): int(v) for k, v in sizes.items()}, sorted(set(table["arm"])), attempts, gate
    )


def _noticed(draws: DrawColumns, tally: Tally, plan: Preregistration, mode: str) -> list[Finding]:
    out: list[Finding] = []
    if tally.disagreeing_copies:
        out.append(
            Finding(
                "medium",
                "log.greedy_disagrees",
                f"{tally.disagreeing_copies} of {tally.greedy_observations} prompts decoded at temperature 0 more than "
                "once came out both right and wrong: the decoder is not deterministic; each counts as one observation, "
                "at its mean.",
                ("P1",),
            )
        )
    lost = [f for f in plan.families if f not in tally.families]
    if lost and mode == "registered":
        out.append(
            Finding(
                "high",
                "grid.missing_family",
                f"Registered families without a draw: {', '.join(lost)}; weights are renormalised to the others.",
                ("P2", "P3", "R2"),
            )
        )
    redraw = (draws.kind == KINDS["blind"]) & (draws.temperature == 0.0) & (draws.parent >= 0)
    rows = np.flatnonzero(redraw & (draws.output >= 0))
    differ = int((draws.output[rows] != draws.output[draws.parent[rows]]).sum())
    if differ:
        out.append(
            Finding(
                "low",
                "log.greedy_bytes",
                f"{differ} of {len(rows)} greedy blind redraws differ in their bytes from the draw they repeat.",
                ("P1",),
            )
        )
    return out


def gather(log: RunLog, registration: Preregistration | None) -> Gathered:
    """Count a run under its registration, or under the default plan.

    Parameters
    ----------
    log
        The run log or the joined logs.
    registration
        The plan, or None for an exploratory analysis: families, weights and arms then come from the log, rules and
        margins from the defaults.

    Returns
    -------
    Gathered
        Counts, plan and weights.

    Raises
    ------
    InputRefused
        No draw at all, logs with different gates, a family or arm that the registration does not know, or a
        registered gate that is not the log's.
    """
    gate = _gate(log)
    if len(log.draws) == 0:
        fault = Fault(
            log.inputs[0].path if log.inputs else "log", "at least one draw", "none", "run the protocol first"
        )
        raise InputRefused("The log holds no draws.", [fault])
    table = log.draws
    mode = "exploratory" if registration is None else "registered"
    plan = registration if registration is not None else _default_plan(table, gate)
    if registration is not None:
        check_coverage(plan, set(table["family"]), set(table["arm"]))
        if str(plan.gate) != gate:
            fault = Fault(
                "log",
                f"gate {plan.gate} as registered",
                gate,
                "analyse with the registration of this run",
                field="gate",
            )
            raise InputRefused("The log does not follow the registration.", [fault])
    table, excluded = _excluded(table, plan)
    if len(table) == 0:
        raise InputRefused(
            "No draw is left.",
            [Fault("registration", "exclusion rules that leave draws", "none left", "amend the rules")],
        )
    try:
        draws = draw_columns(table)
    except ValueError as error:
        fault = Fault("log", "one family a task", str(error), "give each task one family", field="family")
        raise InputRefused("The log contradicts itself.", [fault]) from error
    k = plan.rules.P2.k
    tally = tally_draws(draws, gate=gate, b_max=plan.max_budget, majority_k=k)
    others = sorted({str(c) for c in draws.condition} - {PRIMARY})
    conditions = {
        c: tally_draws(draws, gate=gate, b_max=plan.max_budget, majority_k=k, condition=c) for c in others
    }
    weights = np.array([plan.families[f] for f in tally.families], dtype=np.float64)
    return Gathered(
        log=log,
        plan=plan,
        mode=mode,
        gate=gate,
        draws=draws,
        tally=tally,
        conditions=conditions,
        weights=weights / weights.sum(),
        excluded=excluded,
        findings=(*log.findings, *_noticed(draws, tally, plan, mode)),
    )
