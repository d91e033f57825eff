"""Draws as they were made and paid for: flow by arm and condition, ledger, and what the findings need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from verdiv.estimators.observations import KINDS, DrawColumns
from verdiv.estimators.shard import Facts, Key

__all__ = ["PRIMARY", "ArmFlow", "ArmLedger", "RunAccount", "account_facts", "run_account"]

PRIMARY = "primary"
"""Condition that the estimands use."""


@dataclass(frozen=True)
class ArmFlow:
    """Draws of one arm under one condition."""

    arm: str
    condition: str
    initial: int
    attempted: int
    errored: int
    unscored: int
    copies: int
    """Measured records of draws that stand elsewhere."""
    analysed: int


@dataclass(frozen=True)
class ArmLedger:
    """What one arm cost, in units of one small draw."""

    arm: str
    draws: int
    """Draws made by it."""
    units: float
    """Their price."""
    primary_units: float
    """The price of those under the primary condition."""
    as_registered: float
    """Under the primary condition, with draws that it shares with other arms."""


@dataclass(frozen=True)
class RunAccount:
    """All draws of a run, by arm and condition."""

    conditions: tuple[str, ...]
    """Primary first."""
    flow: tuple[ArmFlow, ...]
    ledger: Mapping[str, ArmLedger]
    cells: int
    """Pairs of task and replicate under the primary condition."""
    worst_cell: float | None
    """Largest price of a pair of task and replicate; None without one."""
    first_start: float | None
    """Start of the first draw in seconds since the epoch, None where unknown."""
    attempts: Mapping[str, int]
    """Arm to its largest attempt."""
    votes: int
    """Most initial draws of the majority arm in a pair of task and replicate."""
    greedy_redraws: int
    """Greedy blind redraws whose output and whose parent's output are hashed."""
    greedy_bytes: int
    """Those among them whose output differs from their parent's."""
    excluded: Mapping[str, int] = field(default_factory=dict)
    """Exclusion rule to the draws it took out."""


def account_facts(draws: DrawColumns) -> Facts:
    """Count some tasks' draws by arm and condition."""
    facts = Facts()
    own = draws.source == np.arange(len(draws))
    arms, arm = draws.arm.ranked()
    conditions, condition = draws.condition.ranked()
    primary = draws.condition.equals(PRIMARY)
    group = arm * len(conditions) + condition
    size = len(arms) * len(conditions)

    def by_group(mask: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> list[int]:
        return [int(n) for n in np.bincount(group[mask], minlength=size)]

    flows = {
        "initial": by_group(draws.kind == KINDS["initial"]),
        "attempted": by_group(np.ones(len(draws), dtype=bool)),
        "errored": by_group(draws.errored),
        "unscored": by_group(~draws.errored & (draws.correct < 0)),
        "copies": by_group(~own & draws.measured),
        "analysed": by_group(draws.measured & own),
    }
    for name, counts in flows.items():
        for g in np.unique(group).tolist():
            facts.add(
                ("flow", conditions[g % len(conditions)], arms[g // len(conditions)], name),
                counts[g],
            )
    for name, mask, weights in (
        ("draws", own, np.ones(len(draws))),
        ("units", own, draws.billed),
        ("primary", own & primary, draws.billed),
        ("registered", primary, draws.billed),
    ):
        sums = np.bincount(arm[mask], weights=weights[mask], minlength=len(arms))
        for a, value in zip(arms, sums.tolist(), strict=True):
            facts.add(("ledger", a, name), value)
    rows = np.flatnonzero(primary)
    span = int(draws.replicate.max(initial=0)) + 1
    if len(rows):
        cell = np.unique(draws.task[rows] * span + draws.replicate[rows], return_inverse=True)[1]
        sums = np.bincount(cell, weights=draws.billed[rows])
        facts.add(("cells",), len(sums))
        facts.most["worst_cell",] = float(sums.max())
    known = np.isfinite(draws.started)
    if known.any():
        facts.least["start",] = float(draws.started[known].min())
    attempts = np.zeros(len(arms))
    np.maximum.at(attempts, arm, draws.attempt)
    for a, most in zip(arms, attempts.tolist(), strict=True):
        facts.most["attempt", a] = most
    votes = np.flatnonzero(draws.arm.equals("A1") & (draws.kind == KINDS["initial"]))
    if len(votes):
        cell = np.unique(draws.task[votes] * span + draws.replicate[votes], return_inverse=True)[1]
        facts.most["votes",] = float(np.bincount(cell).max())
    redraw = (draws.kind == KINDS["blind"]) & (draws.temperature == 0.0) & (draws.parent >= 0)
    rows = np.flatnonzero(redraw & (draws.output >= 0))
    facts.add(("redraws",), len(rows))
    facts.add(("bytes",), int((draws.output[rows] != draws.output[draws.parent[rows]]).sum()))
    return facts


def _named(sums: Mapping[Key, float], kind: str) -> dict[Key, float]:
    return {key[1:]: value for key, value in sums.items() if key[0] == kind}


def run_account(parts: Sequence[Facts]) -> RunAccount:
    """Add up the account of a whole run."""
    facts = Facts()
    for part in parts:
        facts.take(part)
    flow = _named(facts.sums, "flow")
    ledger = _named(facts.sums, "ledger")
    conditions = sorted({str(key[0]) for key in flow}, key=lambda c: (c != PRIMARY, c))
    names = ("initial", "attempted", "errored", "unscored", "copies", "analysed")
    rows = dict.fromkeys((str(key[0]), str(key[1])) for key in flow)
    return RunAccount(
        conditions=tuple(conditions),
        flow=tuple(
            ArmFlow(arm, condition, *(round(flow[condition, arm, name]) for name in names))
            for condition, arm in rows
        ),
        ledger={
            arm: ArmLedger(
                arm,
                round(ledger[arm, "draws"]),
                ledger[arm, "units"],
                ledger[arm, "primary"],
                ledger[arm, "registered"],
            )
            for arm in dict.fromkeys(str(key[0]) for key in ledger)
        },
        cells=round(facts.sums.get(("cells",), 0.0)),
        worst_cell=facts.most.get(("worst_cell",)),
        first_start=facts.least.get(("start",)),
        attempts={str(key[1]): int(value) for key, value in facts.most.items() if key[0] == "attempt"},
        votes=int(facts.most.get(("votes",), 0.0)),
        greedy_redraws=round(facts.sums.get(("redraws",), 0.0)),
        greedy_bytes=round(facts.sums.get(("bytes",), 0.0)),
        excluded={str(key[0]): round(n) for key, n in _named(facts.sums, "excluded").items()},
    )
