"""``verdiv audit``: hold a run against its plan, and printed figures against what they should be."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from verdiv.cli import options

__all__ = ["app"]

app = options.command()

EXAMPLES = """\b
Examples:
  verdiv audit run.runlog.jsonl --prereg preregistration.toml
  verdiv audit run.runlog.jsonl --prereg preregistration.toml --lock preregistration.lock.json -o audit
  verdiv audit run.runlog.jsonl --prereg preregistration.toml --deviations deviations.toml --json
  verdiv audit --claims paper
  verdiv audit --claims claims.toml --results out/results.json --json
  verdiv audit --self-test

A check passes, makes findings, does not apply, or could not run; the last never counts as a pass. With
--claims alone, --json gives each claim's id with its outcome and recomputed value."""


@app.command(epilog=EXAMPLES)
def audit(
    logs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[LOG...]", help="Run logs; none audits claims, a lock or results alone."),
    ] = None,
    prereg: options.Prereg = None,
    lock: Annotated[
        Path | None, typer.Option("--lock", help="Lock of the registration; its neighbour file if absent.")
    ] = None,
    results: Annotated[
        Path | None, typer.Option("--results", help="results.json whose figures and rules are checked.")
    ] = None,
    claims: Annotated[
        str | None, typer.Option("--claims", help="Claims file, or the name of a shipped one (paper).")
    ] = None,
    deviations: Annotated[
        Path | None, typer.Option("--deviations", help="Deviations as declared, a TOML file.")
    ] = None,
    suite: Annotated[
        Path | None, typer.Option("--suite", help="Suite file, for scoring every output again.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Folder for audit.json and audit.html.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    verdicts: Annotated[
        bool,
        typer.Option("--verdicts", help="Judge every rule with and without the draws that findings touch."),
    ] = False,
    self_test: Annotated[
        bool,
        typer.Option(
            "--self-test",
            help="Break a clean run in every known way and print what caught it; reads nothing.",
        ),
    ] = False,
    force: options.Force = False,
    fail_on: options.FailOn = options.Severity.HIGH,
) -> int:
    """Check lock, log, grid, scoring, bill and printed figures; derive deviations and hold them to the declared."""
    from verdiv.cli.audit_work import Request, run_audit

    if self_test:
        from verdiv.cli.audit_table import print_table

        return print_table(as_json=as_json)
    return run_audit(
        Request(
            logs=tuple(logs or ()),
            prereg=prereg,
            lock=lock,
            results=results,
            claims=claims,
            deviations=deviations,
            suite=suite,
            out=out,
            as_json=as_json,
            verdicts=verdicts,
            force=force,
            fail_on=fail_on,
        )
    )
