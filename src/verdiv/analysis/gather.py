"""From a run log and a registration to the counts that everything else reads."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from verdiv.analysis.counting import Counts, combine, count_piece, exclude
from verdiv.errors import Fault, InputRefused
from verdiv.estimators.account import PRIMARY, RunAccount, run_account
from verdiv.estimators.assemble import assemble
from verdiv.estimators.load import LoadMoments
from verdiv.estimators.observations import FloatArray
from verdiv.estimators.tally import Tally
from verdiv.preregistration import Preregistration, check_coverage, default_preregistration
from verdiv.runlog.records import Header
from verdiv.runlog.table import Finding, InputFile, RunLog

__all__ = [
    "PRIMARY",
    "Gathered",
    "check_gate",
    "common_gate",
    "default_plan",
    "exclusion_rules",
    "gate_and_coverage",
    "gather",
    "gather_counts",
    "table_plan",
]


@dataclass(frozen=True)
class Gathered:
    """One run, counted, with the plan it is judged by."""

    headers: tuple[Header, ...]
    inputs: tuple[InputFile, ...]
    plan: Preregistration
    mode: str
    """``registered`` or ``exploratory``."""
    gate: str
    account: RunAccount
    """Draws as they were made and paid for."""
    tally: Tally
    """Counts under the primary condition."""
    conditions: Mapping[str, Tally]
    """Counts under every other condition."""
    load: Mapping[str, tuple[LoadMoments, LoadMoments]]
    """What the load regression needs, by condition."""
    weights: FloatArray
    """Family weights in the order of the tally's families, shape ``(families,)``."""
    findings: tuple[Finding, ...]


def common_gate(headers: Sequence[Header]) -> str:
    """Gate of several logs; one without retries joins either kind.

    Raises
    ------
    InputRefused
        One log gated by the verifier and another by the truth.
    """
    gates = sorted({str(h.gate) for h in headers})
    if len(gates) > 1 and "none" in gates:  # a log without retries joins either kind
        gates.remove("none")
    if len(gates) > 1:
        fault = Fault(
            "logs", "one gate in all of them", ", ".join(gates), "analyse logs with different gates apart"
        )
        raise InputRefused("The logs cannot be analysed together.", [fault])
    return gates[0]


def default_plan(
    sizes: Mapping[str, int], attempts: Mapping[str, int], votes: int, gate: str
) -> Preregistration:
    """Plan of an exploratory analysis of a run with these families, attempts by arm, and votes of A1."""
    largest = dict(attempts)
    if votes:
        largest["A1"] = votes if votes % 2 else votes - 1
    return default_preregistration(sizes, sorted(attempts), largest, gate)


def table_plan(table: pd.DataFrame, gate: str) -> Preregistration:
    """Plan of an exploratory analysis of a draws table."""
    sizes = table.groupby("family")["task_id"].nunique()
    attempts = {str(k): int(v) for k, v in table.groupby("arm")["attempt"].max().items()}
    votes = table[(table["arm"] == "A1") & (table["prompt_kind"] == "initial")]
    most = int(votes.groupby(["task_id", "replicate"]).size().max()) if len(votes) else 0
    return default_plan({str(k): int(v) for k, v in sizes.items()}, attempts, most, gate)


def _noticed(account: RunAccount, tally: Tally, plan: Preregistration, mode: str) -> list[Finding]:
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
    if account.greedy_bytes:
        out.append(
            Finding(
                "low",
                "log.greedy_bytes",
                f"{account.greedy_bytes} of {account.greedy_redraws} greedy blind redraws differ in their bytes "
                "from the draw they repeat.",
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
    gate = common_gate(log.headers)
    if len(log.draws) == 0:
        fault = Fault(
            log.inputs[0].path if log.inputs else "log", "at least one draw", "none", "run the protocol first"
        )
        raise InputRefused("The log holds no draws.", [fault])
    table = log.draws
    plan = registration if registration is not None else table_plan(table, gate)
    if registration is not None:
        gate_and_coverage(plan, gate, set(table["family"]), set(table["arm"]))
    table, excluded = exclude(table, plan)
    if len(table) == 0:
        raise InputRefused(
            "No draw is left.",
            [Fault("registration", "exclusion rules that leave draws", "none left", "amend the rules")],
        )
    counts = combine(
        [count_piece(table, gate=gate, b_max=plan.max_budget)],
        gate=gate,
        b_max=plan.max_budget,
        excluded=excluded,
        headers=log.headers,
        inputs=log.inputs,
        findings=log.findings,
    )
    return _judged(counts, plan, "exploratory" if registration is None else "registered")


def check_gate(plan: Preregistration, gate: str) -> None:
    """Refuse a run that another gate sent to retry than the registration says."""
    if str(plan.gate) != gate:
        fault = Fault(
            "log",
            f"gate {plan.gate} as registered",
            gate,
            "analyse with the registration of this run",
            field="gate",
        )
        raise InputRefused("The log does not follow the registration.", [fault])


def gate_and_coverage(
    plan: Preregistration, gate: str, families: Collection[str], arms: Collection[str]
) -> None:
    """Refuse a run with a gate, family or arm that the registration does not know."""
    check_coverage(plan, set(families), set(arms))
    check_gate(plan, gate)


def exclusion_rules(plan: Preregistration) -> str:
    """Exclusion rules of a plan as text: the same rules, the same text."""
    rules = [rule.model_dump(mode="json") for rule in plan.exclusions]
    return json.dumps(rules, sort_keys=True, ensure_ascii=True)


def gather_counts(counts: Counts, registration: Preregistration | None) -> Gathered:
    """Put a run that was counted earlier under its registration, or under the default plan.

    Raises
    ------
    InputRefused
        A family, arm or gate that the registration does not know, or counts made for another largest budget or
        without the registered exclusions.
    """
    sizes = np.bincount(counts.tasks.family, minlength=len(counts.tasks.families))
    families = dict(zip(counts.tasks.families, sizes.tolist(), strict=True))
    account = run_account([counts.account])
    plan = registration or default_plan(families, account.attempts, account.votes, counts.gate)
    if registration is not None:
        gate_and_coverage(plan, counts.gate, families, account.attempts)
    where = counts.inputs[0].path if counts.inputs else "tally"
    faults = [
        Fault(where, expected, got, "tally the logs again, with this registration", field=field)
        for field, expected, got in (
            ("max_budget", str(plan.max_budget), str(counts.b_max)),
            ("exclusions", exclusion_rules(plan), counts.exclusions),
        )
        if expected != got
    ]
    if faults:
        raise InputRefused("The tally was not made for this plan.", faults)
    return _judged(counts, plan, "exploratory" if registration is None else "registered")


def _judged(counts: Counts, plan: Preregistration, mode: str) -> Gathered:
    tallies = {
        condition: assemble(
            shard, counts.tasks, gate=counts.gate, b_max=plan.max_budget, majority_k=plan.rules.P2.k
        )
        for condition, shard in counts.shards.items()
    }
    tally = tallies.pop(PRIMARY)
    account = run_account([counts.account])
    weights = np.array([plan.families[f] for f in tally.families], dtype=np.float64)
    return Gathered(
        headers=counts.headers,
        inputs=counts.inputs,
        plan=plan,
        mode=mode,
        gate=counts.gate,
        account=account,
        tally=tally,
        conditions=tallies,
        load=counts.load,
        weights=weights / weights.sum(),
        findings=(*counts.findings, *_noticed(account, tally, plan, mode)),
    )
