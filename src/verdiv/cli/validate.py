"""``verdiv validate``: everything that can be checked of one file by itself, all faults at once."""

from __future__ import annotations

from typing import Annotated

import typer

from verdiv.cli import options

__all__ = ["app"]

app = options.command()

EXAMPLES = """\b
Examples:
  verdiv validate run.runlog.jsonl
  verdiv validate a.runlog.jsonl.zst b.runlog.parquet preregistration.toml
  cat run.runlog.jsonl | verdiv validate -

Run logs are told apart by their bytes, a tally by its Parquet columns; a .toml file is a registration or a
mapping, a .json file a suite, a lock or the results of an analysis. A log without a footer is incomplete, which
is a finding and no fault."""


@app.command(epilog=EXAMPLES)
def validate(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Files; - is a run log on standard input.")
    ],
    fail_on: options.FailOn = options.Severity.HIGH,
) -> int:
    """Check run logs, tallies, registrations, locks, suites, mappings and results: what each is, or all its faults."""
    from verdiv.cli import checks
    from verdiv.cli.failures import FINDINGS, REFUSED
    from verdiv.cli.progress import ProgressBar

    worst: list[str] = []
    refused = 0
    for name in files:
        with ProgressBar() as progress:
            outcome = checks.check(name, progress)
        typer.echo(outcome.text)
        refused += outcome.refused
        worst += outcome.severities
    if len(files) > 1:
        typer.echo(f"{len(files) - refused} of {len(files)} files are sound")
    if refused:
        return REFUSED
    return FINDINGS if options.reaches(worst, fail_on) else 0
