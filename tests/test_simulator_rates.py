"""Large simulated runs show the true values within Monte-Carlo error, and would show others otherwise."""

from __future__ import annotations

import functools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from verdiv.protocol.simulator.behaviour import Greedy
from verdiv.protocol.simulator.design import ConditionDesign, Design
from verdiv.protocol.simulator.scenarios import named_world
from verdiv.protocol.simulator.table import simulate
from verdiv.protocol.simulator.truth import TrueValues
from verdiv.protocol.simulator.world import World

TASKS = 5000
Z = 4.5
"""Largest distance, in standard errors, of some 60 comparisons a world; one in 10^5 goes beyond it by chance."""

CASES: dict[str, tuple[World, Design]] = {
    "worked": (World.worked(), Design(tasks=TASKS)),
    "plausible, greedy repairs": (named_world("plausible"), Design(tasks=TASKS)),
    "plausible, sampled repairs": (named_world("plausible"), Design(tasks=TASKS, a3_stochastic=True)),
    "null, hard seeds": (named_world("null+seeds+collapse+lucky"), Design(tasks=TASKS, a3_stochastic=True)),
    "drift": (
        replace(
            named_world("null+sticky+blind-flips+blind-retries+tiring").with_rates(fpr=0.05, s_false=0.6),
            greedy=Greedy(flip=0.1, logit=-0.5),
        ),
        Design(tasks=TASKS, a5_stochastic=False),
    ),
}


@functools.cache
def truth_of(name: str) -> TrueValues:
    """Return the truth of a case."""
    world, design = CASES[name]
    return world.true_values(design)


@functools.cache
def run_of(name: str) -> pd.DataFrame:
    """Return the draws of a large run of a case."""
    world, design = CASES[name]
    return simulate(world, design, seed=99, digests=False)


def ratio(task: pd.Series, event: pd.Series, reach: pd.Series) -> tuple[float, float]:
    """Return a draw-weighted rate and its standard error, tasks being the sampling units."""
    sums = (
        pd.DataFrame({"k": event.astype(float) * reach, "n": reach.astype(float)})
        .groupby(task.to_numpy())
        .sum()
    )
    rate = float(sums["k"].sum() / sums["n"].sum())
    spread = sums["k"] - rate * sums["n"]
    return rate, math.sqrt(float((spread**2).sum())) / float(sums["n"].sum())


def measured(table: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """Count every estimand from the draws, by its definition alone."""
    parents = table.set_index("draw_id")[["correct", "error_class"]]
    table = table[table["error_kind"].isna() & table["copy_of"].isna()].reset_index(drop=True)
    small, initial = table["tier"] == "small", table["prompt_kind"] == "initial"
    warm = table["temperature"] > 0
    correct = table["correct"].astype(bool)
    flagged = table["flagged"].astype(bool)
    structural = table["error_class"] == "structural"
    a3 = table["arm"] == "A3"
    a3_warm = bool((warm & a3).any())
    own = small & initial & (warm == a3_warm)
    parent = parents.reindex(table["parent"]).reset_index(drop=True)
    answers_error = parent["correct"].eq(False)
    repair = a3 & (table["attempt"] == 2) & answers_error
    late = a3 & (table["attempt"] >= 3) & answers_error
    redraw = (table["arm"] == "A2s") & (table["attempt"] == 2)
    by_class = {"1": table["answered_class"] == "structural", "2": table["answered_class"] == "semantic"}
    blind_class = {"1": parent["error_class"] == "structural", "2": parent["error_class"] == "semantic"}
    reached: dict[str, tuple[pd.Series, pd.Series]] = {
        "q0": (correct, small & initial & warm),
        "q0_greedy": (correct, small & initial & ~warm),
        "p_d": (~correct & flagged, own),
        "p_s": (~correct & ~flagged, own),
        "delta": (flagged, own & ~correct),
        "eta_ox": (table["oracle_flagged"].fillna(False).astype(bool), own & ~correct & ~flagged),
        "sigma": (structural, own & ~correct & flagged),
        "fpr_initial": (flagged, own & correct),
        "s_blind": (correct, redraw),
        "q_t": (correct, ~small & initial),
        "delta_t": (flagged, ~small & initial & ~correct),
        "s_false": (correct, a3 & (table["attempt"] == 2) & parent["correct"].eq(True)),
    }
    for index in ("1", "2"):
        reached[f"s{index}"] = (correct, repair & by_class[index])
        reached[f"lambda{index}"] = (~flagged, repair & by_class[index] & ~correct)
        reached[f"late{index}"] = (correct, late & by_class[index])
        reached[f"b{index}"] = (correct, redraw & answers_error & blind_class[index])
    return {
        name: ratio(table["task_id"], event, reach)
        for name, (event, reach) in reached.items()
        if reach.sum() >= 30
    }


def z_scores(found: dict[str, tuple[float, float]], truth: TrueValues) -> dict[str, float]:
    """Return distances in standard errors; a rate without spread (all or none) must be exact."""
    out = {}
    for name, (rate, error) in found.items():
        gap = rate - truth.estimates[name]
        out[name] = gap / error if error > 0 else (0.0 if abs(gap) < 2e-3 else math.inf)
    return out


@pytest.mark.parametrize("name", list(CASES))
def test_rates_are_the_true_ones(name: str) -> None:
    """Every estimand counted by its definition lies within Monte-Carlo error of its true value."""
    scores = z_scores(measured(run_of(name)), truth_of(name))
    assert {"q0", "p_d", "sigma", "s2", "s_blind", "q_t", "b1"} <= scores.keys()
    assert {estimand: z for estimand, z in scores.items() if abs(z) > Z} == {}


def test_rates_of_another_world_would_be_noticed() -> None:
    """The comparison is sharp: a world whose s2 and delta differ by five points is far outside the error."""
    name = "plausible, sampled repairs"
    world, design = CASES[name]
    scores = z_scores(measured(run_of(name)), world.with_rates(s2=0.67, delta=0.81).true_values(design))
    assert abs(scores["s2"]) > Z
    assert abs(scores["delta"]) > Z
    assert abs(scores["q_t"]) < Z


def answers(table: pd.DataFrame, arm: str, budget: int, condition: str = "primary") -> pd.DataFrame:
    """Read an arm at a budget off its chains by truncation: one row a chain with outcome and bill."""
    rows = table[(table["arm"] == arm) & (table["condition"] == condition) & (table["attempt"] <= budget)]
    rows = rows.sort_values(["task_id", "replicate", "attempt"])
    chains = rows.groupby(["task_id", "replicate"], sort=False)
    last = chains.tail(1).set_index(["task_id", "replicate"])
    return pd.DataFrame(
        {"correct": last["correct"].astype(float), "bill": chains["billed"].sum()}
    ).reset_index()


@pytest.mark.parametrize("name", list(CASES))
def test_the_frontier_is_the_true_one(name: str) -> None:
    """Quality and bill of every gated arm at every budget, by truncation, lie within Monte-Carlo error."""
    table, truth = run_of(name), truth_of(name)
    table = table[table["error_kind"] != "timeout"]
    gaps = {}
    for (arm, budget), cell in truth.frontier.items():
        if arm == "A1":
            continue
        chains = answers(table, arm, budget)
        for what, value in (("correct", cell.quality), ("bill", cell.bill)):
            task = pd.Series(chains[what].to_numpy()).groupby(chains["task_id"].to_numpy()).mean()
            error = float(task.std(ddof=1)) / math.sqrt(len(task))
            gap = float(task.mean()) - value
            if abs(gap) > Z * error + 1e-9:
                gaps[arm, budget, what] = gap / max(error, 1e-12)
    assert gaps == {}


@pytest.mark.parametrize("name", list(CASES))
def test_the_vote_and_its_flips_are_the_true_ones(name: str) -> None:
    """A1's quality at k, and how often two replicates of a stochastic arm differ, match the exact forms."""
    world = CASES[name][0]
    table, truth = run_of(name), truth_of(name)
    voted = table[(table["arm"] == "A1") & table["emitted"]]
    task = voted.groupby("task_id")["correct"].mean().astype(float)
    error = float(task.std(ddof=1)) / math.sqrt(len(task))
    assert abs(float(task.mean()) - truth.quality("A1", 5)) < Z * error
    if world.seed_logits or world.drift.second_half != 1.0:
        return  # replicates are then not alike
    for arm, budget in (("A0", 1), ("A1", 5), ("A2s", 5), ("A4", 1)):
        rows = table[(table["arm"] == arm) & table["emitted"] & (table["condition"] == "primary")]
        wide = rows.pivot(index="task_id", columns="replicate", values="correct").astype(float)
        c, r = wide.sum(axis=1), wide.shape[1]
        flips = 2.0 * c * (r - c) / (r * (r - 1))
        error = float(flips.std(ddof=1)) / math.sqrt(len(flips))
        assert abs(float(flips.mean()) - truth.frontier[arm, budget].p_flip) <= Z * error, arm


def test_a_condition_shifts_what_it_says() -> None:
    """A3 under a condition has the condition's true quality, which differs from the primary one."""
    world = named_world("null+quantized")
    design = Design(tasks=TASKS, conditions=(ConditionDesign(name="nvfp4"),))
    table = simulate(world, design, seed=31, digests=False)
    truth = world.true_values(design, condition="nvfp4")
    for budget in (1, 2):
        chains = answers(table, "A3", budget, condition="nvfp4")
        task = pd.Series(chains["correct"].to_numpy()).groupby(chains["task_id"].to_numpy()).mean()
        error = float(task.std(ddof=1)) / math.sqrt(len(task))
        assert abs(float(task.mean()) - truth.quality("A3", budget)) < Z * error
        assert world.true_values(design).quality("A3", budget) - truth.quality("A3", budget) > 2 * Z * error


def test_load_follows_its_law() -> None:
    """Device seconds have the registered elasticities to load and tokens within a task."""
    world = replace(World.worked(), load=replace(World.worked().load, h=0.3))
    table = simulate(world, Design(tasks=500, conditions=(ConditionDesign(name="heavy-load"),)), seed=6)
    rows = table[table["copy_of"].isna() & (table["tier"] == "small")]
    logs = rows[["device_seconds", "in_flight", "tokens_out"]].astype(float).apply(np.log)
    centred = logs - logs.groupby(rows["task_id"]).transform("mean")
    x = centred[["in_flight", "tokens_out"]].to_numpy()
    y = centred["device_seconds"].to_numpy()
    slope, residual, _, _ = np.linalg.lstsq(x, y, rcond=None)
    spread = math.sqrt(float(residual[0]) / len(y))
    error = spread * np.sqrt(np.diag(np.linalg.inv(x.T @ x)))
    assert abs(slope[0] - 0.3) < Z * error[0]
    assert abs(slope[1] - world.load.slope) < Z * error[1]
    assert spread == pytest.approx(world.load.noise_sd, rel=0.05)
    assert error[0] < 0.003


def test_failures_come_at_their_rate() -> None:
    """Infrastructure failures and missing outcomes have the rates of the world, whatever the outcome."""
    world = named_world("plausible")
    world = replace(world, losses=replace(world.losses, errors=0.1, unscored=0.05))
    table = simulate(world, Design(tasks=4000), seed=23)
    real = table[(table["error_kind"] != "timeout") & table["copy_of"].isna()]
    for kind, rate in (("timeout", 0.1), ("unscored", 0.05)):
        found = (table["copy_of"].isna() & (table["error_kind"] == kind)).sum() / len(real)
        assert abs(found - rate) < Z * math.sqrt(rate * (1 - rate) / len(real))
