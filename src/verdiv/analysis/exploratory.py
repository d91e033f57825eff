"""What is reported apart, without verdicts, and what the run does not show."""

from __future__ import annotations

from typing import Any

import numpy as np

from verdiv.analysis.gather import Gathered
from verdiv.estimators.bootstrap import summarise_draws
from verdiv.estimators.compose import Composition
from verdiv.estimators.direct import Direct

__all__ = ["exploratory_block", "limits_block"]


def exploratory_block(
    gathered: Gathered, direct: Direct, composition: Composition, estimates: dict[str, Any]
) -> dict[str, Any]:
    """Build the results that carry no verdict: cost per correct answer, stickiness by family, silent leak."""
    tally = gathered.tally
    cost = []
    for arm, budget in sorted(tally.at_budget):
        cell = tally.at_budget[arm, budget]
        if cell.n.sum() == 0:
            continue
        ratio = direct.bill(arm, budget) / np.maximum(direct.quality(arm, budget), 1e-12)
        s = summarise_draws(ratio)
        cost.append({"arm": arm, "budget": budget, "units_per_correct": s.mean, "low": s.low, "high": s.high})
    stickiness = []
    if tally.has("s_blind"):
        events = tally.events["s_blind"]
        for f, family in enumerate(tally.families):
            mine = tally.family == f
            n, k = float(events.n[mine].sum()), float(events.k[mine].sum())
            stickiness.append({"family": family, "k": k, "n": n, "s_blind": k / n if n else None})
    leak = [
        {
            "class": cls,
            "estimate": estimates[name].get("mean"),
            "low": estimates[name].get("low"),
            "high": estimates[name].get("high"),
        }
        for cls, name in (("structural", "lambda1"), ("semantic", "lambda2"))
        if estimates[name]["status"] == "estimated"
    ]
    matched = estimates["phi_matched"]
    return {
        "cost_per_correct": cost,
        "stickiness_by_family": stickiness,
        "silent_leak_of_repairs": leak,
        "phi_matched": [{key: matched.get(key) for key in ("mean", "low", "high", "reason")}]
        if matched["status"] == "estimated"
        else [],
    }


def limits_block(gathered: Gathered) -> list[str]:
    """Say what this run cannot show, as far as the run itself tells."""
    tally = gathered.tally
    said = []
    if gathered.mode == "exploratory":
        said.append(
            "Nothing was registered before these data were seen: the verdicts apply default margins after the fact, "
            "and show what a registration could have decided, not that anything was predicted."
        )
    else:
        said.append(
            "No lock was checked: that the registration was fixed before the first draw rests on the file's own word."
        )
    families = "one family" if len(tally.families) == 1 else f"{len(tally.families)} families"
    said.append(
        f"{len(tally.tasks):,} tasks of {families}: what is said of new tasks is said of tasks drawn like these, and "
        "of no other kind of work."
    )
    if gathered.gate == "truth":
        said.append(
            "The ground truth sent draws to retry. A deployed gate sees only what its verifier flags, so quality after "
            "retries is an upper bound for one that misses errors."
        )
    if tally.has_flags:
        said.append("Silent errors stay silent: no arm gated by this verifier can rise above 1 − p_s.")
    if tally.unclassified:
        said.append(
            "Errors carry no class, so repairs of structural and of semantic errors are not told apart."
        )
    return said
