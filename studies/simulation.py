"""Simulation study: coverage of the intervals, and how often each rule is decided, right or wrong.

Every run is simulated from known parameters, estimated and judged; one JSON line a run is appended to a file, so that
a study can be stopped and taken up again. ``table`` turns the file into the tables of ``docs/simulation-study.md``.

    python studies/simulation.py coverage --tasks 40 --runs 400 --out study.jsonl
    python studies/simulation.py rules --tasks 2000 --runs 60 --out study.jsonl
    python studies/simulation.py nuts --tasks 40 --runs 60 --out study.jsonl
    python studies/simulation.py table study.jsonl
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from verdiv.analysis.estimates import ESTIMATE_IDS
from verdiv.analysis.fit import fit_model
from verdiv.analysis.gather import Gathered, gather
from verdiv.estimators.bootstrap import summarise_draws
from verdiv.estimators.compose import compose
from verdiv.estimators.direct import Direct, estimate_directly
from verdiv.estimators.load import NotEstimable, fit_load_moments
from verdiv.estimators.settings import Settings
from verdiv.falsification.evidence import Evidence
from verdiv.falsification.rules import evaluate_rules
from verdiv.preregistration import Preregistration, read_preregistration
from verdiv.protocol.simulator.design import ConditionDesign, Design
from verdiv.protocol.simulator.rates import Ease, Icc
from verdiv.protocol.simulator.scenarios import named_world
from verdiv.protocol.simulator.table import simulate
from verdiv.protocol.simulator.world import World
from verdiv.runlog.records import Gate, Header
from verdiv.runlog.table import InputFile, RunLog

CELLS = (("A1", 5), ("A2s", 2), ("A3", 2), ("A3", 5), ("A4", 1))
"""Arms at budgets whose quality and bill are covered beside the estimands."""


def coverage_worlds() -> dict[str, World]:
    """Worlds with unequal families, icc from 0 to .8, and hard tasks less detected."""
    base = World.worked().with_rates(lambda1=0.1, lambda2=0.1, fpr=0.01)
    uneven = base.spread(
        q=(0.8, 0.0, -1.2), delta=(0.5, 0.0, -0.6), sigma=(0.3, 0.0, -0.3), s2=(0.4, 0.0, -0.8)
    )
    out = {"icc0": uneven}
    for icc in (0.3, 0.8):
        out[f"icc{icc:g}"] = replace(
            uneven,
            icc=Icc(q=icc, delta=icc / 2, s1=icc / 2, s2=icc, q_t=icc),
            ease=Ease(delta=0.7, s1=0.5, s2=0.5, q_t=0.5),
        )
    return out


RULE_WORLDS = {
    "P1": ("worked", "null", "null+sticky"),
    "P2": ("null", "null+no-headroom"),
    "P3": ("worked", "null", "null+teacher-ahead"),
    "P4": ("null", "null+blind-retries"),
    "P5": ("null", "null+collapse"),
    "P6": ("null", "null+burst"),
    "R1": ("null", "null+seeds"),
    "R2": ("null", "null+odd-family"),
    "R3": ("null", "null+quantized"),
    "R4": ("null", "null+overloaded"),
}


def run_log(world: World, design: Design, seed: int) -> RunLog:
    """Simulate a run as an in-memory log."""
    table = simulate(world, design, seed, digests=True)
    header = Header(schema=1, run_id=f"{world.name}-{seed}", gate=Gate.VERIFIER, harness="simulator")
    source = InputFile("simulated", "0" * 64, len(table), design.tasks, "complete", "verifier")
    return RunLog((header,), table, (source,), ())


def plan_for(world: World) -> Preregistration:
    """The shipped registration with the world's family weights."""
    plan = read_preregistration("verifiers-dividend")
    return plan.model_copy(update={"families": dict(world.weights)}).with_origin(
        source="study", digest="0" * 64
    )


def design_for(tasks: int, conditions: bool) -> Design:
    """Three seeds, A3 stochastic so that replicates carry information; both further conditions for R3 and R4."""
    extra = (ConditionDesign(name="nvfp4"), ConditionDesign(name="heavy-load")) if conditions else ()
    return Design(tasks=tasks, a3_stochastic=True, a5_stochastic=True, conditions=extra)


def cover(draws: np.ndarray[Any, Any], truth: float) -> list[float]:
    """Mean, ends and whether the truth lies inside."""
    s = summarise_draws(draws[np.isfinite(draws)])
    return [s.mean, s.low, s.high, float(s.low <= truth <= s.high)]


def estimate(gathered: Gathered, truth: Any, engine: str, seed: int, draws: int) -> dict[str, Any]:
    """Cover every estimand by both columns."""
    fit = fit_model(gathered, Settings(engine, draws=500, cores=1, seed=seed, archive=False))
    plan = gathered.plan
    model = compose(
        fit.posterior.m,
        gathered.tally,
        gathered.weights,
        fit.icc,
        rho=plan.rate_card.rho,
        b_max=5,
        majority_k=5,
    )
    direct = Direct(gathered.tally, gathered.weights, draws=draws, seed=seed)
    found = estimate_directly(direct)
    out: dict[str, Any] = {}
    for name, value in truth.estimates.items():
        if name not in ESTIMATE_IDS or not math.isfinite(value):
            continue
        row: dict[str, Any] = {"truth": value}
        if name in found and np.isfinite(found[name].draws).all():
            row["direct"] = cover(found[name].draws, value)
            row["n"] = found[name].n
        if name in model.estimates and np.isfinite(model.estimates[name]).all():
            row["model"] = cover(model.estimates[name], value)
        if len(row) > 1:
            out[name] = row
    for arm, budget in CELLS:
        cell = gathered.tally.at_budget.get((arm, budget))
        if cell is None:
            continue
        for what, draws_of in (("Q", direct.quality), ("bill", direct.bill)):
            value = truth.quality(arm, budget) if what == "Q" else truth.bill(arm, budget)
            out[f"{what} {arm}@{budget}"] = {"truth": value, "direct": cover(draws_of(arm, budget), value)}
    return {"estimates": out, "fit": fit, "direct": direct}


def judge(gathered: Gathered, direct: Direct, icc: Any, seed: int) -> dict[str, str]:
    """Verdict of each rule."""
    heavy = gathered.plan.rules.R4.condition
    load_heavy = (
        fit_load_moments(gathered.load[heavy]) if heavy in gathered.conditions else NotEstimable("absent")
    )
    evidence = Evidence(
        gathered.plan,
        direct,
        gathered.conditions,
        fit_load_moments(gathered.load["primary"]),
        load_heavy,
        icc,
        seed=seed,
    )
    return {name: r.verdict.value for name, r in evaluate_rules(evidence).items()}


def _done(path: Path) -> set[tuple[str, str, int, int]]:
    if not path.exists():
        return set()
    rows = (json.loads(line) for line in path.read_text().splitlines() if line)
    return {(r["study"], r["world"], r["tasks"], r["seed"]) for r in rows}


def work(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield one record a run."""
    done = _done(args.out)
    if args.study == "rules":
        names = sorted({w for pair in RULE_WORLDS.values() for w in pair})
        worlds = {name: named_world(name) for name in names}
    else:
        worlds = coverage_worlds()
    if args.worlds:
        worlds = {name: worlds[name] for name in args.worlds}
    for name, world in worlds.items():
        design = design_for(args.tasks, args.study == "rules")
        truth = world.true_values(design)
        plan = plan_for(world)
        for seed in range(args.first, args.first + args.runs):
            if (args.study, name, args.tasks, seed) in done:
                continue
            start = time.time()
            gathered = gather(run_log(world, design, seed), plan)
            record: dict[str, Any] = {"study": args.study, "world": name, "tasks": args.tasks, "seed": seed}
            if args.study == "rules":
                direct = Direct(gathered.tally, gathered.weights, draws=args.draws, seed=seed)
                icc = fit_model(gathered, Settings(draws=250, cores=1, seed=seed, archive=False)).icc
                record["verdicts"] = judge(gathered, direct, icc, seed)
            else:
                engine = "nuts" if args.study == "nuts" else "grid"
                record["estimates"] = estimate(gathered, truth, engine, seed, args.draws)["estimates"]
            record["seconds"] = round(time.time() - start, 2)
            yield record


def coverage_table(rows: list[dict[str, Any]]) -> str:
    """Coverage per estimand and column, with a binomial test against .95."""
    hits: dict[tuple[str, int, str, str], list[float]] = defaultdict(list)
    bias: dict[tuple[str, int, str, str], list[float]] = defaultdict(list)
    for row in rows:
        for name, e in row["estimates"].items():
            if not (name in ESTIMATE_IDS or name.startswith(("Q ", "bill "))):
                continue
            for column in ("direct", "model"):
                if column in e:
                    key = (row["study"], row["tasks"], name, column)
                    hits[key].append(e[column][3])
                    bias[key].append(e[column][0] - e["truth"])
    lines = [
        "| engine | tasks | estimand | column | runs | coverage | 95 % interval of it | p (= .95) | bias |"
    ]
    lines.append("|---|---|---|---|---|---|---|---|---|")
    for key in sorted(hits):
        study, tasks, name, column = key
        k, n = int(sum(hits[key])), len(hits[key])
        test = stats.binomtest(k, n, 0.95)
        ends = test.proportion_ci(method="wilson")
        engine = "NUTS" if study == "nuts" else "grid"
        lines.append(
            f"| {engine} | {tasks} | {name} | {column} | {n} | {k / n:.3f} | {ends.low:.3f}–{ends.high:.3f} | "
            f"{test.pvalue:.2g} | {np.mean(bias[key]):+.4f} |"
        )
    return "\n".join(lines)


def rules_table(rows: list[dict[str, Any]]) -> str:
    """Shares of supported, falsified, inconclusive and untestable verdicts of each rule in its two worlds."""
    verdicts: dict[tuple[str, int], list[dict[str, str]]] = defaultdict(list)
    for row in rows:
        verdicts[row["world"], row["tasks"]].append(row["verdicts"])
    lines = [
        "| rule | tasks | world | runs | supported | falsified | inconclusive | untestable |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for rule, pair in RULE_WORLDS.items():
        for tasks in sorted({t for _, t in verdicts}):
            for world in pair:
                found = verdicts.get((world, tasks))
                if not found:
                    continue
                share = [
                    sum(v[rule] == which for v in found) / len(found)
                    for which in ("supported", "falsified", "inconclusive", "untestable")
                ]
                lines.append(
                    f"| {rule} | {tasks} | {world} | {len(found)} | "
                    + " | ".join(f"{s:.2f}" for s in share)
                    + " |"
                )
    return "\n".join(lines)


def main() -> None:
    """Run a study or print its tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="study", required=True)
    for name in ("coverage", "rules", "nuts"):
        sub = commands.add_parser(name)
        sub.add_argument("--tasks", type=int, default=40)
        sub.add_argument("--runs", type=int, default=10)
        sub.add_argument("--first", type=int, default=0)
        sub.add_argument("--draws", type=int, default=2000)
        sub.add_argument("--worlds", nargs="*")
        sub.add_argument("--out", type=Path, required=True)
    table = commands.add_parser("table")
    table.add_argument("files", type=Path, nargs="+")
    args = parser.parse_args()
    if args.study == "table":
        rows = [json.loads(line) for f in args.files for line in f.read_text().splitlines() if line]
        covered = [r for r in rows if "estimates" in r]
        if covered:
            print(coverage_table(covered))
            print()
        judged = [r for r in rows if "verdicts" in r]
        if judged:
            print(rules_table(judged))
        return
    with args.out.open("a") as out:
        for record in work(args):
            out.write(json.dumps(record) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
