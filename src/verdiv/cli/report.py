"""``verdiv report``: the reports again, from results.json alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from verdiv.cli import options

__all__ = ["app"]

app = options.command()

EXAMPLES = """\b
Examples:
  verdiv report out                    renders out/report.html and out/report.md again
  verdiv report out/results.json -o elsewhere"""


@app.command(epilog=EXAMPLES)
def report(
    results: Annotated[Path, typer.Argument(help="An output folder, or a results.json.")],
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="Folder for the reports; beside results.json if absent."),
    ] = None,
) -> int:
    """Render report.html and report.md again; they are functions of results.json and of nothing else."""
    from verdiv.cli.failures import keep
    from verdiv.cli.summary import print_summary
    from verdiv.reports import load_document, write_reports

    source = results / "results.json" if results.is_dir() else results
    document = load_document(source)
    folder = out or source.parent
    folder.mkdir(parents=True, exist_ok=True)
    write_reports(document, folder)
    keep(f"the reports are complete in {folder}")
    print_summary(document, folder)
    return 0
