"""What a design can decide, by simulation: verdicts in worlds where each claim holds, and where it fails.

A design that would hardly ever falsify a false claim tests nothing when it supports one. The worlds are simulated:
``null``, in which every claim holds with room, and ``null`` with the one break that a rule is meant to catch. Tasks,
families, arms, budgets, seeds, decoding, conditions, prices and every number of the rules are the registration's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from verdiv import __version__
from verdiv.analysis.fit import Progress, fit_correlations
from verdiv.analysis.gather import gather
from verdiv.errors import Fault, UsageRefused
from verdiv.estimators.account import PRIMARY
from verdiv.estimators.direct import Direct
from verdiv.estimators.load import NotEstimable, fit_load_moments
from verdiv.falsification.evidence import Evidence
from verdiv.falsification.rules import evaluate_rules
from verdiv.preregistration import Preregistration
from verdiv.preregistration.rules import RULE_IDS
from verdiv.preregistration.severity import LETTERS
from verdiv.protocol.simulator.design import ARM_ORDER, ConditionDesign, Design
from verdiv.protocol.simulator.scenarios import named_world
from verdiv.protocol.simulator.table import simulate
from verdiv.protocol.simulator.world import Family, World
from verdiv.runlog.records import Gate, Header
from verdiv.runlog.table import InputFile, RunLog

__all__ = ["BREAKS_OF", "STEADY", "planned_design", "planned_world", "simulate_severity"]

DRAWS = 2000
"""Posterior draws of the direct estimates in each simulated run."""

STEADY = "null, steady decoder"
"""The world ``null`` with a greedy decoder that never flips: the claim of P1 is that none does."""

BREAKS_OF: Mapping[str, str] = {
    "P1": "sticky",
    "P2": "no-headroom",
    "P3": "teacher-ahead",
    "P4": "blind-retries",
    "P5": "collapse",
    "P6": "burst",
    "R1": "seeds",
    "R2": "odd-family",
    "R3": "quantized",
    "R4": "overloaded",
}
"""Rule to the break of ``null`` in which its claim fails."""


def planned_design(plan: Preregistration) -> Design:
    """Return the simulator's design of a registration.

    Raises
    ------
    UsageRefused
        The registration has arms that the simulator does not know, or another gate than the verifier.
    """
    faults = [
        Fault("registration", f"arms among {', '.join(ARM_ORDER)}", repr(name), "lock without --severity")
        for name in plan.arms
        if name not in ARM_ORDER
    ]
    if plan.gate is not Gate.VERIFIER:
        faults.append(
            Fault("registration", "gate verifier", str(plan.gate), "lock without --severity", field="gate")
        )
    if faults:
        raise UsageRefused("this design cannot be simulated", faults)
    warm = {name: arm.temperature != 0.0 for name, arm in plan.arms.items()}
    return Design(
        tasks=plan.suite.tasks,
        seeds=plan.seeds,
        budgets={name: arm.budget for name, arm in plan.arms.items()},
        greedy_reruns=plan.greedy_reruns,
        a3_stochastic=warm.get("A3", False),
        a5_stochastic=warm.get("A5", True),
        conditions=tuple(
            ConditionDesign(name=name, arms=part.arms or tuple(plan.arms))
            for name, part in sorted(plan.conditions.items())
        ),
    )


def planned_world(plan: Preregistration, name: str) -> World:
    """Return a named world with the families, prices and condition names of a registration.

    Families take the rates of the world's families in turn, by name, and as many tasks as are registered. Nothing
    depends on the order in which a registration names them, which a lock does not keep.
    """
    world = named_world("null" if name == STEADY else name)
    if name == STEADY:
        world = replace(world, name=name, greedy=replace(world.greedy, flip=0.0))
    sizes: Mapping[str, float] = plan.suite.tasks_by_family or plan.families
    # The last family is the odd one of R2; it stays the last one.
    rates = [family.rates for family in world.families]
    count = len(plan.families)
    families = tuple(
        Family(name=family, weight=max(float(sizes[family]), 1e-9), rates=rates[(i - count) % len(rates)])
        for i, family in enumerate(sorted(plan.families))
    )
    names = {"nvfp4": plan.rules.R3.condition, "heavy-load": plan.rules.R4.condition}
    effects = tuple(replace(e, name=names.get(e.name, e.name)) for e in world.conditions)
    if len(set(names.values())) < len(names):
        effects = effects[-1:]
    return replace(world, families=families, conditions=effects, rho=plan.rate_card.rho)


def _verdicts(plan: Preregistration, world: World, design: Design, seed: int) -> dict[str, str]:
    """Simulate one run and judge it; rule to the letter of its verdict."""
    table = simulate(world, design, seed)
    header = Header(schema=1, run_id=f"{world.name}-{seed}", gate=Gate.VERIFIER, harness="simulator")
    source = InputFile("simulated", "0" * 64, len(table), design.tasks, "complete", "verifier")
    gathered = gather(RunLog((header,), table, (source,), ()), plan)
    direct = Direct(gathered.tally, gathered.weights, draws=DRAWS, seed=seed)
    icc = fit_correlations(gathered, draws=DRAWS, seed=seed)
    heavy = plan.rules.R4.condition
    loaded = (
        fit_load_moments(gathered.load[heavy]) if heavy in gathered.conditions else NotEstimable("absent")
    )
    load = fit_load_moments(gathered.load[PRIMARY])
    evidence = Evidence(plan, direct, gathered.conditions, load, loaded, icc, seed=seed)
    return {name: LETTERS[r.verdict.value] for name, r in evaluate_rules(evidence).items()}


def _worlds(plan: Preregistration) -> dict[str, tuple[str, str | None]]:
    """Rule to the world in which its claim holds and to the one in which it fails, where the design has one."""
    out: dict[str, tuple[str, str | None]] = {}
    for rule in RULE_IDS:
        false: str | None = f"null+{BREAKS_OF[rule]}"
        if rule == "R1" and not planned_design(plan).a3_stochastic:
            false = None  # seeds act on sampled draws only
        if rule == "R2" and len(plan.families) < 2:
            false = None
        out[rule] = (STEADY if rule == "P1" else "null", false)
    return out


def simulate_severity(
    plan: Preregistration, runs: int, seed: int = 1, *, progress: Progress | None = None
) -> dict[str, Any]:
    """Simulate runs of a registered design and judge each by the registered rules.

    Parameters
    ----------
    plan
        The registration.
    runs
        Simulated runs a world.
    seed
        Seed of the first run; the others follow.
    progress
        Called with a stage, and runs done and to do.

    Returns
    -------
    dict
        ``runs``, ``seed``, ``draws``, versions, and per rule ``true`` and ``false``: the world and one letter a run
        (:data:`~verdiv.preregistration.severity.LETTERS`). ``false`` is null where no world breaks the claim under this
        design. Equal arguments and versions give an equal record.

    Raises
    ------
    UsageRefused
        The simulator does not know the design.
    """
    if runs < 1:
        raise UsageRefused(
            "no run", [Fault("--severity", "at least one run a world", str(runs), "ask for more")]
        )
    design = planned_design(plan)
    chosen = _worlds(plan)
    wanted = list(dict.fromkeys(w for pair in chosen.values() for w in pair if w is not None))
    letters: dict[str, list[dict[str, str]]] = {}
    for at, name in enumerate(wanted):
        world = planned_world(plan, name)
        letters[name] = []
        for run in range(runs):
            letters[name].append(_verdicts(plan, world, design, seed + run))
            if progress is not None:
                progress("simulating the design", at * runs + run + 1, len(wanted) * runs)

    def told(rule: str, name: str | None) -> dict[str, str] | None:
        if name is None:
            return None
        return {"world": name, "verdicts": "".join(found[rule] for found in letters[name])}

    return {
        "runs": runs,
        "seed": seed,
        "draws": DRAWS,
        "versions": {"verdiv": __version__, "numpy": np.__version__},
        "rules": {
            rule: {"true": told(rule, true), "false": told(rule, false)}
            for rule, (true, false) in chosen.items()
        },
    }
