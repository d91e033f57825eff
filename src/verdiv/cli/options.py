"""Options that several subcommands share, declared once."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Chains",
    "CheckEngine",
    "Cores",
    "Draws",
    "Engine",
    "EngineName",
    "ExitOn",
    "ExitOnName",
    "FailOn",
    "Force",
    "OutFolder",
    "Prereg",
    "Seed",
    "Severity",
    "command",
    "reaches",
]


class EngineName(StrEnum):
    """How the hierarchical model is integrated."""

    GRID = "grid"
    NUTS = "nuts"


class Severity(StrEnum):
    """Severity of a finding, most serious first; ``never`` is more serious than any."""

    NEVER = "never"
    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"
    NOTE = "note"


class ExitOnName(StrEnum):
    """Verdicts that may end the command with 1."""

    FALSIFIED = "falsified"


Seed = Annotated[
    int,
    typer.Option(
        "--seed", min=0, max=2**63 - 1, help="Seed of every random number; the same seed, the same results."
    ),
]
Draws = Annotated[int, typer.Option("--draws", min=100, max=100_000, help="Posterior draws a chain.")]
Chains = Annotated[int, typer.Option("--chains", min=1, max=64, help="Chains of the sampler.")]
Cores = Annotated[
    int | None, typer.Option("--cores", min=1, max=1024, help="Cores to use; all of them if absent.")
]
Engine = Annotated[
    EngineName, typer.Option("--engine", help="grid integrates the model to a stated error; nuts samples it.")
]
CheckEngine = Annotated[
    bool,
    typer.Option("--check-engine", help="Run both engines and say how far apart they lie, in posterior sd."),
]
FailOn = Annotated[
    Severity,
    typer.Option("--fail-on", help="End with 1 where a finding is at least this severe; never: do not."),
]
ExitOn = Annotated[
    ExitOnName | None,
    typer.Option(
        "--exit-on", help="End with 1 where a rule has this verdict, which is otherwise a result like any."
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Write into a folder or over a file that is in use.")]
OutFolder = Annotated[
    Path, typer.Option("-o", "--out", help="Folder for results.json, fit.nc and the reports.")
]
Prereg = Annotated[
    str | None,
    typer.Option(
        "--prereg", help="Registration: a file, - for standard input, or a shipped name. Absent: exploratory."
    ),
]


Lock = Annotated[
    Path | None,
    typer.Option(
        "--lock", help="Lock of the registration; the file beside it if absent. A broken one voids verdicts."
    ),
]


def command() -> typer.Typer:
    """Return the Typer application that holds one subcommand."""
    return typer.Typer(
        rich_markup_mode=None, add_completion=False, context_settings={"help_option_names": ["-h", "--help"]}
    )


def reaches(severities: Iterable[str], bar: Severity) -> bool:
    """Tell whether some finding is at least as severe as the bar.

    Examples
    --------
    >>> reaches(["low", "medium"], Severity.MEDIUM), reaches(["high"], Severity.NEVER)
    (True, False)
    """
    if bar is Severity.NEVER:
        return False
    order = [severity.value for severity in Severity]
    return any(name in order and order.index(name) <= order.index(bar.value) for name in severities)
