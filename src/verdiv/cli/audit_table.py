"""The audit's test of itself, from the command line: breakage, check, finding."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

from verdiv.cli.failures import FINDINGS
from verdiv.cli.progress import ProgressBar

if TYPE_CHECKING:
    from verdiv.audit.mutations.clean import CleanRun

__all__ = ["analysed", "print_table"]


def analysed(run: CleanRun) -> dict[str, Any]:
    """Analyse a clean run, so that its results can be broken too."""
    from verdiv.analysis import analyze

    result = analyze([str(run.log_path)], preregistration=run.plan)
    return result.document


def print_table(*, as_json: bool) -> int:
    """Print the mutation table; 1 where a breakage went unnoticed, or the clean run did not."""
    from verdiv.audit.mutations.table import clean_report, mutation_table

    findings = [f"{check}: {finding.message}" for check, finding in clean_report(analysed).findings()]
    rows = []
    with ProgressBar() as progress:
        for row in mutation_table(analysed):
            rows.append(row)
            progress("breaking", len(rows), None)
    missed = [row for row in rows if not row.caught]
    if as_json:
        said = [
            {
                "breakage": row.breakage,
                "check": row.check,
                "caught": row.caught,
                "finding": row.finding,
                "others": list(row.others),
            }
            for row in rows
        ]
        typer.echo(json.dumps({"clean_run": findings, "breakages": said}, indent=2))
    else:
        for row in rows:
            typer.echo(f"{'caught' if row.caught else 'MISSED':7} {row.breakage}")
            typer.echo(f"        {row.check}: {row.finding[:200]}")
        typer.echo(f"clean run: {'; '.join(findings) or 'no finding'}")
        typer.echo(f"{len(rows)} breakages, {len(rows) - len(missed)} caught by the check meant for them")
    return FINDINGS if missed or findings else 0
