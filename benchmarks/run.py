"""Benchmarks with one command: cost against rows, beside programs that answer part of the same question.

    python benchmarks/run.py                      1,000 to 100,000 rows, every rival that is installed
    python benchmarks/run.py --rows 1000,10000 --limit 60 --no-rivals

Each cell is one whole process, start-up included. Rivals see the initial draws of the same log as a table of rows
(task, family, correct) and fit one stage; verdiv reads the log and reports on all of them. A rival that is not
finished within the limit counts as the limit, and its ratio as "at least".
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from measure import Cost, machine, measure
from picture import picture

DRAWS_A_TASK = 48
"""Draws that a simulated task has, about, over all arms, seeds and conditions."""

HERE = Path(__file__).resolve().parent

Table = dict[str, dict[int, Cost]]


def verdiv(*words: str) -> list[str]:
    """Command line of verdiv under this Python."""
    return [sys.executable, "-m", "verdiv", *words]


def places(rows: int, folder: Path) -> tuple[Path, Path]:
    """Return where the log of a size stands, and the rows that rivals see."""
    return folder / f"{rows}.runlog.parquet", folder / f"{rows}.csv"


def prepare(rows: int, folder: Path) -> None:
    """Simulate a run of about as many draws, and write the rows that rivals see."""
    import pandas as pd

    from verdiv.protocol.simulator.runlog import simulate_to_file
    from verdiv.runlog.reader import read_run_log

    log, table = places(rows, folder)
    if not log.exists():
        simulate_to_file(log, tasks=max(12, rows // DRAWS_A_TASK), seed=1, overwrite=True)
    if not table.exists():
        draws = read_run_log(log).draws
        first = draws[
            (draws["prompt_kind"] == "initial") & draws["correct"].notna() & (draws["tier"] != "teacher")
        ]
        kept = pd.DataFrame(
            {"task": first["task_id"], "family": first["family"], "correct": first["correct"].astype(int)}
        )
        kept.to_csv(table, index=False)


def subjects(rows: int, folder: Path, *, rivals: bool, peer: str | None) -> dict[str, list[list[str]]]:
    """Name to the processes that are timed together, for one number of rows."""
    # In a process of its own: what this one holds would count as memory of those it starts.
    subprocess.run([sys.executable, __file__, "--prepare", str(rows), "--out", str(folder)], check=True)
    log, table = places(rows, folder)
    tally, out = folder / f"{rows}.tally.parquet", folder / f"out-{rows}"
    found = {
        "verdiv analyze, log to report": [verdiv("analyze", str(log), "-o", str(out / "log"), "--force")],
        "verdiv tally": [verdiv("tally", str(log), "-o", str(tally), "--force")],
        "verdiv analyze, tally to report": [
            verdiv("analyze", str(tally), "-o", str(out / "tally"), "--force")
        ],
    }
    if rivals:
        for name, module, script in (
            ("PyMC, a Bernoulli a draw", "pymc", "pymc_glmm.py"),
            ("statsmodels GEE", "statsmodels", "gee.py"),
        ):
            if find_spec(module) is not None:
                found[name] = [[sys.executable, str(HERE / "rivals" / script), str(table)]]
    if peer is not None:
        found["peer"] = [[*peer.split(), str(table)]]
    return found


def growth(costs: dict[int, Cost]) -> float | None:
    """Exponent of wall time in rows, by least squares on logarithms over the finished cells."""
    done = {rows: cost for rows, cost in costs.items() if cost.finished}
    if len(done) < 2:
        return None
    return float(np.polyfit(np.log(list(done)), np.log([c.wall for c in done.values()]), 1)[0])


def markdown(table: Table, about: dict[str, str], limit: float) -> str:
    """Lay the costs out as Markdown, with ratios to verdiv and growth exponents."""
    rows = sorted({r for costs in table.values() for r in costs})
    own = next(iter(table.values()))
    lines = [
        "# Benchmarks",
        "",
        *(f"* {key}: {value}" for key, value in about.items()),
        "",
        "Seconds of wall time / of processor time / megabytes at peak; in brackets the ratio to verdiv's wall time "
        "from log to report.",
        "",
        "| | " + " | ".join(f"{r:,} rows" for r in rows) + " | growth exponent |",
        "|---|" + "---|" * (len(rows) + 1),
    ]
    for name, costs in table.items():
        cells = []
        for r in rows:
            cost = costs.get(r)
            if cost is None:
                cells.append("—")
                continue
            ratio = cost.wall / own[r].wall
            said = f"{cost.wall:.1f} / {cost.cpu:.1f} / {cost.peak:.0f}"
            cells.append(
                f"{said} ({ratio:.1f})" if cost.finished else f"not in {limit:.0f} s (> {ratio:.1f})"
            )
        exponent = growth(costs)
        lines.append(f"| {name} | {' | '.join(cells)} | {'—' if exponent is None else f'{exponent:.2f}'} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the suite and write results.json, results.md and results.svg."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rows", default="1000,10000,100000", help="numbers of draws, with commas between them"
    )
    parser.add_argument("--limit", type=float, default=300.0, help="seconds after which a process is stopped")
    parser.add_argument("--no-rivals", action="store_true", help="verdiv alone")
    parser.add_argument("--peer", help="command of another program; the CSV of rows is its last argument")
    parser.add_argument("--out", type=Path, default=HERE / "out", help="folder for data and results")
    parser.add_argument("--prepare", type=int, help="only write the data of one size")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    if asked.prepare is not None:
        prepare(asked.prepare, asked.out)
        return
    about = machine()
    table: Table = {}
    stopped: set[str] = set()
    for rows in sorted(int(word) for word in asked.rows.split(",")):
        for name, commands in subjects(rows, asked.out, rivals=not asked.no_rivals, peer=asked.peer).items():
            if name in stopped:
                continue
            costs = [measure(c, limit=asked.limit, log=asked.out / "log.txt") for c in commands]
            cost = Cost(
                sum(c.wall for c in costs),
                sum(c.cpu for c in costs),
                max(c.peak for c in costs),
                all(c.finished for c in costs),
            )
            table.setdefault(name, {})[rows] = cost
            if not cost.finished:
                stopped.add(name)
            print(f"{name}, {rows:,} rows: {cost.wall:.1f} s, {cost.peak:.0f} MB", flush=True)
    text = markdown(table, about, asked.limit)
    (asked.out / "results.md").write_text(text, encoding="utf-8")
    (asked.out / "results.json").write_text(
        json.dumps(
            {"machine": about, "costs": {n: {r: asdict(c) for r, c in t.items()} for n, t in table.items()}},
            indent=1,
        ),
        encoding="utf-8",
    )
    walls = {n: {r: c.wall for r, c in t.items() if c.finished} for n, t in table.items()}
    (asked.out / "results.svg").write_text(picture(walls), encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
