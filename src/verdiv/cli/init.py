"""``verdiv init``: an annotated file to start from."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from verdiv.cli import options

__all__ = ["app"]

app = options.command()


class Kind(StrEnum):
    """Files that have a template."""

    PREREGISTRATION = "preregistration"
    MAPPING = "mapping"


EXAMPLES = """\b
Examples:
  verdiv init                                     writes preregistration.toml
  verdiv init mapping -o mylogs.mapping.toml
  verdiv init preregistration -o - | less"""


@app.command(epilog=EXAMPLES)
def init(
    kind: Annotated[Kind, typer.Argument(help="What to write.")] = Kind.PREREGISTRATION,
    out: Annotated[
        str | None,
        typer.Option("-o", "--out", help="File to write, - for standard output; KIND.toml if absent."),
    ] = None,
    force: options.Force = False,
) -> int:
    """Write an annotated preregistration or mapping: every field explained, with examples to overwrite."""
    from verdiv import fixtures
    from verdiv.cli.output import write_text

    text = fixtures.read_bytes("templates", kind.value).decode("utf-8")
    if out == "-":
        typer.echo(text, nl=False)
        return 0
    path = Path(out or f"{kind.value}.toml")
    write_text(path, text, force=force)
    check = "verdiv validate" if kind is Kind.PREREGISTRATION else "verdiv convert --dry-run --mapping"
    typer.echo(f"Wrote {path}. Edit it, then check it with: {check} {path}")
    return 0
