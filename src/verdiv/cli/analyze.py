"""``verdiv analyze``: from run logs to verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from verdiv.cli import options

__all__ = ["app"]

app = options.command()

EXAMPLES = """\b
Examples:
  verdiv analyze run.runlog.jsonl -o out
  verdiv analyze run.runlog.jsonl --prereg preregistration.toml -o out
  verdiv analyze seed1.runlog.jsonl seed2.runlog.jsonl.zst --prereg verifiers-dividend -o out
  zcat run.runlog.jsonl.gz | verdiv analyze - --engine nuts -o out
  verdiv analyze run.runlog.jsonl --check-engine -o out       both engines, and how far apart they lie
  verdiv analyze run.tally.parquet -o out                     counts made before by verdiv tally
  verdiv analyze run.runlog.jsonl --exit-on falsified -o out

Without a registration the analysis is exploratory: families, weights and arms come from the log, rules and
margins from the defaults, and the report says so in its first line."""


@app.command(epilog=EXAMPLES)
def analyze(
    logs: Annotated[
        list[str],
        typer.Argument(
            metavar="LOG...", help="Run logs (.jsonl, .gz, .zst, .parquet) or tallies; - is standard input."
        ),
    ],
    out: options.OutFolder,
    prereg: options.Prereg = None,
    lock: options.Lock = None,
    engine: options.Engine = options.EngineName.GRID,
    check_engine: options.CheckEngine = False,
    draws: options.Draws = 1000,
    chains: options.Chains = 4,
    cores: options.Cores = None,
    seed: options.Seed = 1,
    fail_on: options.FailOn = options.Severity.HIGH,
    exit_on: options.ExitOn = None,
    force: options.Force = False,
) -> int:
    """Estimate, decide the registered rules, and write results.json, fit.nc, report.html and report.md."""
    from verdiv.cli.run_analysis import Job, available_cores, run_job
    from verdiv.estimators.settings import Settings

    return run_job(
        Job(
            logs=logs,
            prereg=prereg,
            lock=lock,
            out=Path(out),
            force=force,
            settings=Settings(engine.value, check_engine, draws, chains, available_cores(cores), seed),
            fail_on=fail_on,
            exit_on=exit_on,
        )
    )
