"""What ``verdiv tally`` does once its arguments stand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from verdiv.cli.progress import ProgressBar
from verdiv.cli.run_analysis import available_cores
from verdiv.runlog.storage import refuse_taken

__all__ = ["run_tally"]


def run_tally(
    logs: Sequence[str],
    out: Path,
    *,
    prereg: str | None,
    max_budget: int | None,
    cores: int | None,
    spark: bool,
    force: bool,
) -> int:
    """Tally logs from the command line and return the exit code."""
    refuse_taken(out, overwrite=force)
    from verdiv.analysis.tallyfile import write_tally
    from verdiv.analysis.tallying import tally_logs
    from verdiv.preregistration import read_preregistration

    plan = None if prereg is None else read_preregistration(prereg)
    with ProgressBar() as progress:
        if spark:
            from verdiv.analysis.sparktally import tally_on_spark

            counts = tally_on_spark(logs, preregistration=plan, max_budget=max_budget, progress=progress)
        else:
            counts = tally_logs(
                logs,
                preregistration=plan,
                max_budget=max_budget,
                workers=available_cores(cores),
                progress=progress,
            )
        progress("writing")
        write_tally(out, counts, overwrite=force)
    draws = sum(one.draws for one in counts.inputs)
    typer.echo(
        f"Wrote {out}: {draws} draws of {len(counts.tasks.tasks)} tasks, budgets up to {counts.b_max}."
    )
    typer.echo(f"Next: verdiv analyze {out} -o out")
    return 0
