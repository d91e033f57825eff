"""``verdiv lock``: fix a plan before its run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from verdiv.cli import options

__all__ = ["app"]

app = options.command()

EXAMPLES = """\b
Examples:
  verdiv lock preregistration.toml
  verdiv lock preregistration.toml --file prompts.json --file runner.py
  verdiv lock verifiers-dividend -o preregistration.lock.json
  verdiv lock preregistration.toml --severity 200

A plan is locked once. The lock's time is this machine's clock, which proves nothing by itself: commit the
lock, publish it, sign it, or have its digest timestamped; verdiv verify says what it is worth."""


@app.command(epilog=EXAMPLES)
def lock(
    registration: Annotated[
        str, typer.Argument(metavar="REGISTRATION", help="Registration: a file, or a shipped name.")
    ],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Lock to write; beside the registration if absent.")
    ] = None,
    file: Annotated[
        list[str] | None,
        typer.Option("--file", help="Further file to cover, relative to the lock's folder; repeatable."),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(
            "--key", help="Private ed25519 key (PEM): sign the lock into a file ….dsse.json beside it."
        ),
    ] = None,
    author: Annotated[
        str | None, typer.Option("--author", help="Who locks, if not the registration's authors.")
    ] = None,
    severity: Annotated[
        int | None,
        typer.Option(
            "--severity",
            min=1,
            max=1_000_000,
            help="Simulated runs a world: how often each rule is decided where its claim holds, and where it fails.",
        ),
    ] = None,
    seed: options.Seed = 1,
) -> int:
    """Write the lock of a registration: canonical JSON, digests of every file named, draws and bills."""
    from verdiv.cli.failures import keep
    from verdiv.cli.lock_work import lock_lines, sign, simulating, source_of
    from verdiv.preregistration.lock import default_lock_path, lock_plan

    target = default_lock_path(registration) if out is None else out
    data, name, inside = source_of(registration, target)
    runs = severity or 0
    with simulating() as simulate:
        record = lock_plan(
            data,
            name,
            target,
            registration=inside,
            extra=file or (),
            author=author,
            severity=(lambda plan: simulate(plan, runs, seed)) if runs else None,
        )
    keep(f"{target} is complete")
    lines = lock_lines(record, target)
    if key is not None:
        lines.append(f"Signed in {sign(target, key)}")
    typer.echo("\n".join(lines))
    return 0
