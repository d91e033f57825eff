"""``verdiv demo``: the bundled run, end to end."""

from __future__ import annotations

from pathlib import Path

import typer

from verdiv.cli import options

__all__ = ["DEMO_PREREGISTRATION", "DEMO_RUN", "app"]

DEMO_RUN = "smollm2-135m"
"""Shipped run that the demo analyses."""
DEMO_PREREGISTRATION = "smollm2-135m"
"""Shipped registration that the demo's run followed."""

app = options.command()

EXAMPLES = """\b
Examples:
  verdiv demo
  verdiv demo -o somewhere --engine nuts
  verdiv demo --force --seed 7"""


@app.command(epilog=EXAMPLES)
def demo(
    out: options.OutFolder = Path("verdiv-demo"),
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
    """Analyse the bundled run with the registration it followed, and write its report."""
    from verdiv import fixtures
    from verdiv.cli.run_analysis import Job, available_cores, run_job
    from verdiv.estimators.settings import Settings

    with fixtures.as_path("runs", DEMO_RUN) as log:
        code = run_job(
            Job(
                logs=[str(log)],
                prereg=DEMO_PREREGISTRATION,
                lock=None,
                out=out,
                force=force,
                settings=Settings(engine.value, check_engine, draws, chains, available_cores(cores), seed),
                fail_on=fail_on,
                exit_on=exit_on,
            )
        )
    typer.echo(
        f"Next: open {out / 'report.html'} in a browser; then `verdiv analyze --help` for your own logs."
    )
    return code
