"""``verdiv convert``: foreign logs into a run log, by a mapping, with a ledger of every row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from verdiv.cli import options

if TYPE_CHECKING:
    from verdiv.runlog.convert import Conversion, Ledger

__all__ = ["app"]

app = options.command()

EXAMPLES = """\b
Examples:
  verdiv convert --mapping reflexion-alfworld runs/ -o alfworld.runlog.jsonl
  verdiv convert --mapping cruxeval scored.json -o crux.runlog.jsonl.zst
  verdiv convert --mapping mine.toml --dry-run logs/
  verdiv convert --mapping mine.toml --strict a.csv b.csv.gz -o run.runlog.parquet
  curl -s https://example.org/log.jsonl.zst | verdiv convert --mapping mine.toml - -o run.runlog.jsonl

Shipped mappings are named without a path: bfcl, cruxeval, intercode-sql, llmperf, lm-eval, reflexion-alfworld,
reflexion-programming, structured-output. `verdiv init mapping` writes an annotated mapping for logs of your own."""


def _check(conversion: Conversion, strict: bool) -> bool:
    """Say on standard error why a strict conversion does not count; return whether it counts."""
    if conversion.ledger.clean or not strict:
        return True
    typer.echo("verdiv: --strict: rows were rejected, clash, or are left over; nothing was written", err=True)
    return False


@app.command(epilog=EXAMPLES)
def convert(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="SOURCE...", help="Files, folders to search; - is standard input."),
    ],
    mapping: Annotated[str, typer.Option("--mapping", help="Name of a shipped mapping, or a mapping file.")],
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="Run log to write: .jsonl, .jsonl.gz, .jsonl.zst, .parquet, or -."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write nothing; show first rows and counts.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="End with 1, and write nothing, if a row is rejected.")
    ] = False,
    stdin_name: Annotated[
        str | None,
        typer.Option("--stdin-name", help="Path under which the mapping's templates see standard input."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the ledger as JSON.")] = False,
    force: options.Force = False,
) -> int:
    """Turn logs of another program into a run log; each row is kept, excluded by a rule, or rejected."""
    from verdiv.cli import ledger_text
    from verdiv.cli.failures import FINDINGS, keep
    from verdiv.cli.progress import ProgressBar
    from verdiv.errors import Fault, UsageRefused
    from verdiv.runlog import convert as conversions
    from verdiv.runlog.storage import is_stream, refuse_taken
    from verdiv.runlog.writer import write_run_log

    piped = out is not None and str(out) == "-"
    if out is None and not dry_run:
        raise UsageRefused(
            "There is nowhere to write to.",
            [Fault("convert", "-o FILE or --dry-run", "neither", "add -o run.runlog.jsonl")],
        )
    if out is not None and not dry_run and not piped and not is_stream(out):
        refuse_taken(out, overwrite=force)
    with ProgressBar() as progress:
        conversion = conversions.convert(mapping, sources, stdin_name=stdin_name, progress=progress)
    if dry_run:
        typer.echo(ledger_text.preview(conversion), nl=False)
    shown = _ledger_json(conversion.ledger) if as_json else ledger_text.ledger(conversion)
    if not _check(conversion, strict):
        typer.echo(shown, nl=False, err=piped)
        return FINDINGS
    if out is not None and not dry_run:
        write_run_log(out, conversion.header, conversion.draws, overwrite=force)
        keep(f"{out} is complete")
    typer.echo(shown, nl=False, err=piped)
    if out is not None and not dry_run and not piped and not as_json:
        typer.echo(f"Wrote {out}: {len(conversion.draws)} draws. Next: verdiv analyze {out} -o out")
    return 0


def _ledger_json(ledger: Ledger) -> str:
    import json

    return json.dumps(ledger.as_dict(), ensure_ascii=False, indent=2) + "\n"
