"""``verdiv tally``: logs of any length to counts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from verdiv.cli import options

__all__ = ["app"]

app = options.command()

EXAMPLES = """\b
Examples:
  verdiv tally run.runlog.jsonl.zst -o run.tally.parquet
  verdiv tally monday.runlog.parquet tuesday.runlog.parquet --prereg plan.toml -o week.tally.parquet
  verdiv analyze run.tally.parquet -o out

A tally holds counts a task, and no draw: it gives the same results as the logs, however long they are. Tallies of
different tasks are analysed together by naming them all; logs of the same tasks are tallied in one call."""


@app.command(epilog=EXAMPLES)
def tally(
    logs: Annotated[
        list[str],
        typer.Argument(metavar="LOG...", help="Run logs (.jsonl, .gz, .zst, .parquet); - is standard input."),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="Tally to write, a Parquet file.")],
    prereg: options.Prereg = None,
    max_budget: Annotated[
        int | None,
        typer.Option(
            "--max-budget", min=1, max=64, help="Largest budget without a registration; the logs' if absent."
        ),
    ] = None,
    cores: options.Cores = None,
    spark: Annotated[
        bool,
        typer.Option("--spark", help="Count on the Spark cluster of this environment; Parquet logs only."),
    ] = False,
    force: options.Force = False,
) -> int:
    """Count logs of any length into one row a task, in bounded memory."""
    from verdiv.cli.tally_work import run_tally

    return run_tally(logs, out, prereg=prereg, max_budget=max_budget, cores=cores, spark=spark, force=force)
