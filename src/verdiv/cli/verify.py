"""``verdiv verify``: recompute a lock and say what it is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from verdiv.cli import options

__all__ = ["app"]

app = options.command()

EXAMPLES = """\b
Examples:
  verdiv verify preregistration.lock.json
  verdiv verify preregistration.lock.json --prereg elsewhere/preregistration.toml --json

Any JCS program recomputes the digests, e.g. jq and openssl:
  jq -cjS '.records[0].body' preregistration.lock.json | openssl dgst -sha256"""


@app.command(epilog=EXAMPLES)
def verify(
    lock: Annotated[Path, typer.Argument(metavar="LOCK", help="Lock to check.")],
    prereg: Annotated[
        Path | None,
        typer.Option("--prereg", help="Registration, where it lies elsewhere than the lock says."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> int:
    """Recompute digests, links, registration and files; state the strength that was checked, and no more."""
    import json

    from verdiv.cli.lock_work import report_json, report_lines
    from verdiv.cli.run_analysis import VOID
    from verdiv.errors import Fault, InputRefused
    from verdiv.preregistration.verify import verify_lock

    if not lock.is_file():
        fault = Fault(str(lock), "a lock file", "nothing that can be read", "check the path")
        raise InputRefused("the lock cannot be read", [fault])
    report = verify_lock(lock, registration=prereg)
    typer.echo(json.dumps(report_json(report), indent=2) if as_json else "\n".join(report_lines(report)))
    return VOID if report.broken else 0
