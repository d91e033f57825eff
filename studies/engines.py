"""Grid against NUTS: the same posterior twice, on logs given and on simulated runs small, large and at the boundary.

Each run is one line of a file of results, so a study can be stopped and taken up again; ``table`` turns the file into
the tables of ``docs/engine-equality.md``.

    python studies/engines.py compare demo.runlog.jsonl.zst … --simulated 20 --out engines.jsonl
    python studies/engines.py table engines.jsonl

Wanted are means within .05 posterior sd, sds within 5 %, interval ends within .1 sd, and equal verdicts. Every
difference stands beside its Monte-Carlo standard error; no limit is widened by it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from verdiv.analysis.fit import Fit, fit_model
from verdiv.analysis.gather import Gathered, gather
from verdiv.analysis.run import BOOTSTRAP_DRAWS, analyze_gathered
from verdiv.estimators import stack
from verdiv.estimators.compose import compose
from verdiv.estimators.nuts_sampling import fit_nuts
from verdiv.estimators.posterior import IccPosterior, StagePosterior
from verdiv.estimators.settings import ENGINES, Settings
from verdiv.protocol.simulator.design import Design
from verdiv.protocol.simulator.scenarios import named_world
from verdiv.protocol.simulator.table import simulate
from verdiv.runlog.reader import read_run_logs
from verdiv.runlog.records import Gate, Header
from verdiv.runlog.table import RunLog

Floats = npt.NDArray[np.float64]

LIMITS = {"mean": 0.05, "sd": 0.05, "low": 0.1, "high": 0.1}
"""Largest accepted differences: of means and interval ends in posterior sd, of sds as a share."""

ENDS = (0.025, 0.975)
"""Quantiles that are the ends of the reported intervals."""

SIZES = (12, 40, 200, 1000)
"""Tasks of simulated runs."""

WORLDS = ("plausible", "worked", "null", "null+sticky", "null+collapse")
"""Worlds of simulated runs; in the worked one, rates lie at the boundary."""

ATTEMPT = (1, 0.97)
"""Smaller steps than the program's first attempt, and no second one: over 100,000 draws a single divergence is no
reason to draw twice as many. Divergences are counted in the tables."""

CHAINS = 4
"""Chains of the sampler."""

CONSTANT = 1e-9
"""Standard deviation up to which a quantity does not vary and is not compared."""

RESOLUTION = 3.5
"""Monte-Carlo errors that should fit into each limit: a first sampling tells how many draws that takes."""

MORE = 10
"""Largest factor on the draws of the first sampling."""

AT_ONCE = 20
"""Quantities whose effective sample sizes are computed at once."""


@dataclass(frozen=True, slots=True)
class Column:
    """One reported quantity: draws of it, and its moments where they are known without draws."""

    draws: Floats
    """Shape (draws,)."""
    mean: float | None = None
    """By quadrature; None where only the draws tell."""
    sd: float | None = None
    """Likewise."""


def simulated(count: int) -> Iterator[tuple[str, Callable[[], Gathered]]]:
    """Name runs over all sizes and worlds; the second half samples its repairs, so that their correlation is fitted."""
    for i in range(count):
        world, tasks, sampled = WORLDS[i % len(WORLDS)], SIZES[i % len(SIZES)], i >= count / 2
        repairs = "sampled" if sampled else "greedy"

        def made(world: str = world, tasks: int = tasks, sampled: bool = sampled, seed: int = i) -> Gathered:
            table = simulate(named_world(world), Design(tasks=tasks, a3_stochastic=sampled), seed)
            header = Header(schema=1, run_id=f"s{seed}", gate=Gate.VERIFIER, harness="study")
            return gather(RunLog((header,), table, (), ()), None)

        yield f"{world}, {tasks} tasks, repairs {repairs}, seed {i}", made


def columns(
    posterior: StagePosterior, icc: Mapping[str, IccPosterior], fit: Fit, gathered: Gathered
) -> dict[str, Column]:
    """Everything that a report prints of the model, by name.

    Rates of each stage and family with their suite mean and spread, the draw-weighted rate of each stage, correlations
    within tasks, and the estimates pooled from these. The model's frontier is a function of the same rates.
    """
    exact, found = posterior.engine == "grid", dict[str, Column]()
    weights = fit.summary.N / fit.summary.N.sum(axis=1, keepdims=True)
    pooled_mean, pooled_sd = posterior.pooled(weights)
    for row, stage in enumerate(posterior.stages):
        for f, family in enumerate(posterior.families):
            known = (float(posterior.mean[row, f]), float(posterior.sd[row, f])) if exact else (None, None)
            found[f"rate {stage}/{family}"] = Column(posterior.m[stage][:, f], *known)
        known = (float(pooled_mean[row]), float(pooled_sd[row])) if exact else (None, None)
        found[f"stage {stage}"] = Column(posterior.m[stage] @ weights[row], *known)
        found[f"mu {stage}"] = Column(posterior.mu[stage])
        found[f"tau {stage}"] = Column(posterior.tau[stage])
    for name, block in icc.items():
        if "/" not in name:  # those of single families come from the grid in either engine
            known = (block.mean, block.posterior_sd) if exact else (None, None)
            found[f"icc {name}"] = Column(block.icc, *known)
    plan = gathered.plan
    composed = compose(
        posterior.m,
        gathered.tally,
        gathered.weights,
        icc,
        rho=plan.rate_card.rho,
        b_max=1,
        majority_k=1,
    )
    found |= {f"estimate {name}": Column(draws) for name, draws in composed.estimates.items()}
    return found


def numbers(found: Mapping[str, Column], chains: int) -> dict[str, tuple[Floats, Floats]]:
    """Mean, sd and both interval ends of each quantity, with the Monte-Carlo standard error of each.

    Draws of one chain are independent (the grid's); those of several count at their effective sample size, by ArviZ.
    The error of an end is that of the share of draws below it, carried over to the quantile by the draws themselves.
    """
    names, out = list(found), dict[str, tuple[Floats, Floats]]()
    for start in range(0, len(names), AT_ONCE):
        some = names[start : start + AT_ONCE]
        x = np.stack([found[name].draws for name in some], axis=-1)
        varies = x.std(axis=0) > CONSTANT
        some, x = [name for name, it in zip(some, varies, strict=True) if it], x[:, varies]
        if not some:
            continue
        ends = np.quantile(x, ENDS, axis=0)
        below = [(x <= end).astype(np.float64) for end in ends]
        errors = [_error_of_mean(x, chains), _error_of_sd(x, chains)]
        for p, share in zip(ENDS, below, strict=True):
            off = _error_of_mean(share, chains)
            beside = np.stack(
                [np.quantile(x[:, i], np.clip([p - off[i], p + off[i]], 0.0, 1.0)) for i in range(x.shape[1])]
            )
            errors.append((beside[:, 1] - beside[:, 0]) / 2.0)
        for i, name in enumerate(some):
            column = found[name]
            values = np.array([x[:, i].mean(), x[:, i].std(), ends[0, i], ends[1, i]])
            wrong = np.array([error[i] for error in errors])
            if column.mean is not None and column.sd is not None:
                values[:2], wrong[:2] = (column.mean, column.sd), 0.0
            out[name] = values, wrong
    return out


def _error_of_mean(x: Floats, chains: int) -> Floats:
    if chains > 1:
        return stack.mcse_mean(x.reshape(chains, -1, x.shape[1]))
    return np.asarray(x.std(axis=0) / np.sqrt(len(x)))


def _error_of_sd(x: Floats, chains: int) -> Floats:
    if chains > 1:
        return stack.mcse_sd(x.reshape(chains, -1, x.shape[1]))
    square = (x - x.mean(axis=0)) ** 2
    return np.asarray(square.std(axis=0) / np.sqrt(len(x)) / (2.0 * x.std(axis=0)))


def gaps(
    grid: Mapping[str, tuple[Floats, Floats]], nuts: Mapping[str, tuple[Floats, Floats]]
) -> dict[str, Any]:
    """Compare all quantities: largest differences, where, and how they lie to their Monte-Carlo errors."""
    if set(grid) != set(nuts):
        raise ValueError(f"one engine only: {sorted(set(grid) ^ set(nuts))}")
    names = list(grid)
    value, error = (
        np.stack([[side[name][part] for name in names] for side in (grid, nuts)]) for part in (0, 1)
    )
    sd = value[0, :, 1:2]
    gap = (value[1] - value[0]) / sd  # of sds this is the share
    noise = np.sqrt((error**2).sum(axis=0)) / sd
    z = np.abs(gap) / noise
    found: dict[str, Any] = {}
    for i, (kind, at) in enumerate(zip(LIMITS, np.abs(gap).argmax(axis=0), strict=True)):
        found[kind] = {
            "gap": float(gap[at, i]),
            "error": float(noise[at, i]),
            "at": names[at],
            "largest_error": float(noise[:, i].max()),
        }
    row, column = divmod(int(z.argmax()), z.shape[1])
    found["z"] = {
        "largest": float(z.max()),
        "at": f"{list(LIMITS)[column]} of {names[row]}",
        "comparisons": int(z.size),
        "beyond_1.96": int((z > 1.96).sum()),
    }
    return found


def wanted(grid: Mapping[str, tuple[Floats, Floats]], nuts: Mapping[str, tuple[Floats, Floats]]) -> float:
    """By what factor the sampler's draws should grow, so that RESOLUTION errors fit into every limit."""
    sd = np.stack([grid[name][0][1] for name in grid])[:, None]
    own, other = (np.stack([side[name][1] for name in grid]) / sd for side in (nuts, grid))
    room = (np.array(list(LIMITS.values())) / RESOLUTION) ** 2 - other**2
    return float(np.max(own**2 / np.maximum(room, 1e-12)))


def rules(gathered: Gathered) -> dict[str, Any]:
    """Judge a run with either engine at the program's own settings; say what the one rule that may differ rests on."""
    found: dict[str, Any] = {}
    for engine in ENGINES:
        document = analyze_gathered(gathered, settings=Settings(engine, cores=1)).document
        found[engine] = {
            "verdicts": {name: rule["verdict"] for name, rule in document["rules"].items()},
            "P5": document["rules"]["P5"]["probability_claim"],
            "fit": [document["diagnostics"]["status"], *document["diagnostics"]["reasons"]],
            "icc": {
                i["block"]: [i["estimable"], i["sd"] / i["prior_sd"]] for i in document["diagnostics"]["icc"]
            },
        }
    return {**found, "gamma": document["rules"]["P5"]["gamma"]}


def compared(name: str, gathered: Gathered, draws: int, grid_draws: int) -> dict[str, Any]:
    """Fit one run with both engines and judge with both."""
    started = time.perf_counter()
    fit = fit_model(gathered, Settings(draws=grid_draws // 4, cores=1, archive=False))
    used = [block for block in fit.blocks.values() if block.tasks]
    own = {block: found for block, found in fit.icc.items() if "/" in block}
    grid_side = numbers(columns(fit.grid, fit.icc, fit, gathered), 1)
    many = 1.0
    for attempt in range(2):
        nuts = fit_nuts(
            fit.summary,
            used,
            fit.priors,
            draws=int(draws * many),
            chains=CHAINS,
            cores=1,
            seed=2 + attempt,
            loo=False,
            attempts=[ATTEMPT],
        )
        nuts_side = numbers(columns(nuts.posterior, nuts.icc | own, fit, gathered), CHAINS)
        many = min(wanted(grid_side, nuts_side), MORE)
        if many <= 1.0:
            break
    found = gaps(grid_side, nuts_side)
    reached = fit.summary.N > 0
    edge = reached & ((fit.summary.K == 0) | (fit.summary.K == fit.summary.N))
    return {
        "run": name,
        "cells": int(reached.sum()),
        "at_boundary": int(edge.sum()),
        "grid_error": float(fit.grid.error.max()),
        "nuts_draws": nuts.posterior.draws,
        "r_hat": nuts.diagnostics.r_hat_max,
        "ess_bulk": nuts.diagnostics.ess_bulk_min,
        "ess_tail": nuts.diagnostics.ess_tail_min,
        "divergences": nuts.diagnostics.divergences,
        **found,
        "rules": rules(gathered),
        "seconds": round(time.perf_counter() - started, 1),
    }


def compare(logs: list[str], count: int, draws: int, grid_draws: int, out: Path) -> None:
    """Compare all runs that the file does not hold yet."""
    done = {row["run"] for row in _read(out)} if out.exists() else set()
    given = [
        (Path(path).name.split(".")[0], lambda path=path: gather(read_run_logs([path]), None))
        for path in logs
    ]
    for name, made in (*given, *simulated(count)):
        if name in done:
            continue
        row = compared(name, made(), draws, grid_draws)
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
        print(name, {kind: round(row[kind]["gap"], 4) for kind in LIMITS}, row["seconds"], flush=True)


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def gap_table(rows: list[dict[str, Any]]) -> list[str]:
    """One line a run: the largest difference of each kind with its own Monte-Carlo error, and where it was."""
    lines = [
        "| run | rates (at 0 or 1) | NUTS draws | means, sd | sds, % | ends, sd | errors away | verdicts equal |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        mean, sd = row["mean"], row["sd"]
        end = max(row["low"], row["high"], key=lambda found: abs(found["gap"]))
        judged = row["rules"]["grid"]["verdicts"] == row["rules"]["nuts"]["verdicts"]
        lines.append(
            f"| {row['run']} | {row['cells']} ({row['at_boundary']}) | {row['nuts_draws']:,} "
            f"| {abs(mean['gap']):.4f} ± {mean['error']:.4f} "
            f"| {100 * abs(sd['gap']):.2f} ± {100 * sd['error']:.2f} | {abs(end['gap']):.3f} ± {end['error']:.3f} "
            f"| {row['z']['largest']:.1f} of {row['z']['comparisons']} | {'yes' if judged else 'NO'} |"
        )
    return lines


def summary_lines(rows: list[dict[str, Any]]) -> list[str]:
    """All runs together: largest differences against the limits, and whether the errors are as large as they say."""
    total = sum(row["z"]["comparisons"] for row in rows)
    beyond = sum(row["z"]["beyond_1.96"] for row in rows)
    lines = [
        "| | limit | largest difference | its error | run | quantity | largest error |",
        "|---|" + "---|" * 6,
    ]
    for kind, limit in LIMITS.items():
        worst = max(rows, key=lambda row: abs(row[kind]["gap"]))
        found = worst[kind]
        error = max(row[kind]["largest_error"] for row in rows)
        lines.append(
            f"| {kind} | {limit:g} | {abs(found['gap']):.4f} | {found['error']:.4f} | {worst['run']} "
            f"| {found['at']} | {error:.4f} |"
        )
    far = max(rows, key=lambda row: row["z"]["largest"])
    return [
        *lines,
        "",
        f"{total:,} comparisons in {len(rows)} runs; {beyond:,} ({100 * beyond / total:.1f} %) lie beyond 1.96 errors, "
        f"where 5 % would. The farthest is {far['z']['largest']:.1f} errors away ({far['run']}: {far['z']['at']}). "
        f"Divergent transitions: {sum(row['divergences'] for row in rows)}. "
        f"Largest R-hat: {max(row['r_hat'] for row in rows):.4f}; smallest effective sample sizes: bulk "
        f"{min(row['ess_bulk'] for row in rows):,.0f}, tail {min(row['ess_tail'] for row in rows):,.0f}. "
        f"Largest error that the grid states of itself: {max(row['grid_error'] for row in rows):.4f} sd.",
    ]


def verdict_table(rows: list[dict[str, Any]]) -> list[str]:
    """What P5, the one rule that looks at the model, rests on under either engine, where it could be tested."""
    lines = [
        "| run | P5 | P(claim), grid | P(claim), NUTS | error | to γ, errors | icc s2: sd / prior sd, grid | NUTS |",
        "|---|" + "---|" * 7,
    ]
    for row in rows:
        grid, nuts = row["rules"]["grid"], row["rules"]["nuts"]
        a, b = grid["P5"], nuts["P5"]
        if a is None or b is None:
            continue
        error = max((p * (1.0 - p) / BOOTSTRAP_DRAWS) ** 0.5 for p in (a, b))
        away = "–" if error == 0.0 else f"{abs(a - row['rules']['gamma']) / error:.0f}"
        width = [f"{side['icc']['s2'][1]:.3f}" if "s2" in side["icc"] else "–" for side in (grid, nuts)]
        said = " / ".join(dict.fromkeys((grid["verdicts"]["P5"], nuts["verdicts"]["P5"])))
        lines.append(
            f"| {row['run']} | {said} | {a:.4f} | {b:.4f} | {error:.4f} | {away} | {width[0]} | {width[1]} |"
        )
    return lines


def main() -> None:
    """Compare, or print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("compare")
    one.add_argument("logs", nargs="*", help="run logs, each by itself")
    one.add_argument("--simulated", type=int, default=0, help="simulated runs")
    one.add_argument("--draws", type=int, default=10_000, help="draws of each of four chains, at first")
    one.add_argument("--grid-draws", type=int, default=400_000, help="independent draws of the grid")
    one.add_argument("--out", type=Path, required=True, help="file of results, one line a run")
    two = commands.add_parser("table")
    two.add_argument("file", type=Path)
    asked = parser.parse_args()
    if asked.command == "table":
        rows = _read(asked.file)
        parts = (
            ("Together", summary_lines(rows)),
            ("Run by run", gap_table(rows)),
            ("Rule P5", verdict_table(rows)),
        )
        print("\n\n".join("\n".join([f"## {title}", "", *lines]) for title, lines in parts))
        return
    compare(asked.logs, asked.simulated, asked.draws, asked.grid_draws, asked.out)


if __name__ == "__main__":
    main()
