"""``verdiv amend``: change a locked plan in the open."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from verdiv.cli import options

__all__ = ["app"]

app = options.command()

EXAMPLES = """\b
Examples:
  verdiv amend preregistration.lock.json --prereg preregistration.toml --author "A. Author" \\
    --reason "the server cannot serve 32 in flight" --seen "no outcome; ten timed requests"

Records are only appended: what was locked before stays in the file, byte for byte."""


@app.command(epilog=EXAMPLES)
def amend(
    lock: Annotated[Path, typer.Argument(metavar="LOCK", help="Lock to append to.")],
    prereg: Annotated[str, typer.Option("--prereg", help="Registration as it shall hold from now on.")],
    author: Annotated[str, typer.Option("--author", help="Who amends.")],
    reason: Annotated[str, typer.Option("--reason", help="Why.")],
    seen: Annotated[str, typer.Option("--seen", help="What of the data had been seen by then.")],
    key: Annotated[
        Path | None,
        typer.Option(
            "--key", help="Private ed25519 key (PEM): sign the lock into a file ….dsse.json beside it."
        ),
    ] = None,
    file: Annotated[
        list[str] | None,
        typer.Option("--file", help="Files to cover from now on; those covered so far if absent."),
    ] = None,
) -> int:
    """Append an amendment: the plan from now on, what changed, who, when, why, and what had been seen."""
    from verdiv.cli.failures import keep
    from verdiv.cli.lock_work import amendment_lines, sign, source_of
    from verdiv.preregistration.amend import amend_lock

    data, name, inside = source_of(prereg, lock)
    record = amend_lock(
        lock, data, name, author=author, reason=reason, seen=seen, registration=inside, extra=file
    )
    keep(f"{lock} is complete")
    lines = amendment_lines(record, lock)
    if key is not None:
        lines.append(f"Signed in {sign(lock, key)}")
    typer.echo("\n".join(lines))
    return 0
