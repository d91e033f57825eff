"""Grid against NUTS: the same posterior twice, on logs given and on simulated runs small, large and at the boundary.

    python studies/engines.py demo.runlog.jsonl … --simulated 20 -o engines.json

Accepted are means within .05 posterior sd, sds within 5 %, interval ends within .1 sd, each beyond what Monte-Carlo
error explains, and equal verdicts.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from verdiv.analysis.fit import fit_model
from verdiv.analysis.gather import Gathered, gather
from verdiv.analysis.run import analyze_gathered
from verdiv.protocol.simulator.design import Design
from verdiv.protocol.simulator.scenarios import named_world
from verdiv.protocol.simulator.table import simulate
from verdiv.runlog.reader import read_run_logs
from verdiv.runlog.records import Gate, Header
from verdiv.runlog.table import RunLog

MEAN, SD, END = 0.05, 0.05, 0.1
"""Largest accepted distances: of means and ends in posterior sd, of sds as a share."""

SIZES = (12, 40, 200, 1000)
"""Tasks of simulated runs."""

WORLDS = ("plausible", "worked", "null", "null+sticky", "null+collapse")
"""Worlds of simulated runs; the worked one has rates at the boundary."""


def simulated(count: int) -> Iterator[tuple[str, Gathered]]:
    """Simulate runs over all sizes and worlds."""
    for i in range(count):
        world, tasks = WORLDS[i % len(WORLDS)], SIZES[i % len(SIZES)]
        table = simulate(named_world(world), Design(tasks=tasks), i)
        header = Header(schema=1, run_id=f"s{i}", gate=Gate.VERIFIER, harness="study")
        yield f"{world}, {tasks} tasks, seed {i}", gather(RunLog((header,), table, (), ()), None)


def compared(name: str, gathered: Gathered, draws: int) -> dict[str, object]:
    """Fit one run with both engines and judge with both."""
    fit = fit_model(
        gathered, engine="grid", draws=draws, chains=4, cores=2, seed=1, archive=False, check_engine=True
    )
    gap = fit.gap
    assert gap is not None
    noise = gap.monte_carlo
    verdicts = [
        {
            rule: r["verdict"]
            for rule, r in analyze_gathered(gathered, engine=e, draws=draws).document["rules"].items()
        }
        for e in ("grid", "nuts")
    ]
    return {
        "run": name,
        **asdict(gap),
        "verdicts_equal": verdicts[0] == verdicts[1],
        "accepted": gap.mean <= MEAN + 3 * noise and gap.sd <= SD + 3 * noise and gap.end <= END + 6 * noise,
    }


def main() -> None:
    """Compare, print a line a run, and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("logs", nargs="*", help="run logs, each by itself")
    parser.add_argument("--simulated", type=int, default=0, help="simulated runs")
    parser.add_argument("--draws", type=int, default=4000, help="posterior draws a chain")
    parser.add_argument("-o", "--out", type=Path, help="JSON file to write")
    asked = parser.parse_args()
    rows = []
    runs = [(Path(path).name, gather(read_run_logs([path]), None)) for path in asked.logs]
    for name, gathered in (*runs, *simulated(asked.simulated)):
        rows.append(compared(name, gathered, asked.draws))
        print(json.dumps(rows[-1], ensure_ascii=False), flush=True)
    if asked.out is not None:
        asked.out.write_text(json.dumps(rows, indent=1, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
