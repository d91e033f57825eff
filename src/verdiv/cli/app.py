"""The frame of the command: a table of subcommands, loaded on demand, and what its exit codes mean.

A subcommand is one line of :data:`COMMANDS`: its name, the module that holds its Typer ``app``, and the line
that ``verdiv --help`` shows. The module is imported when the subcommand is called, and not before.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from verdiv import __version__
from verdiv.cli import failures

__all__ = ["COMMANDS", "run"]

COMMANDS: Mapping[str, tuple[str, str]] = {
    "demo": ("verdiv.cli.demo", "Analyse the bundled run and write its report."),
    "analyze": (
        "verdiv.cli.analyze",
        "From run logs (and a registration) to estimates, verdicts and a report.",
    ),
    "tally": ("verdiv.cli.tally", "Count logs of any length into one small file that analyze takes."),
    "convert": ("verdiv.cli.convert", "Turn foreign logs into a run log, by a mapping."),
    "price": ("verdiv.cli.price", "Price every arm and find the break-even, from parameters or a fit."),
    "lock": ("verdiv.cli.lock", "Lock a registration before the run: digests, bills, the number of draws."),
    "verify": ("verdiv.cli.verify", "Recompute a lock, its amendments and files; say how strong it is."),
    "amend": ("verdiv.cli.amend", "Append an amendment to a lock: who, why, and what had been seen."),
    "audit": ("verdiv.cli.audit", "Check a run against its plan, and printed figures against their forms."),
    "policy": ("verdiv.cli.policy", "Recommend the deployment rule, from a fit and a rate card."),
    "init": ("verdiv.cli.init", "Write an annotated registration or mapping to start from."),
    "validate": ("verdiv.cli.validate", "Check run logs and registrations, all faults at once."),
    "suite": ("verdiv.cli.suite", "Generate a suite of tool-call tasks with exact ground truth."),
    "run": ("verdiv.cli.run", "Run a registered protocol against real servers, resumable at any point."),
    "simulate": ("verdiv.cli.simulate", "Write the run log of a simulated protocol run."),
    "report": ("verdiv.cli.report", "Render the reports again from results.json."),
    "doctor": ("verdiv.cli.doctor", "Say what this installation has, and test it."),
    "version": ("verdiv.cli.version", "Print the versions of verdiv and of what it computes with."),
}
"""Subcommand to its module and its line in the help."""

EPILOG = """\b
Start here:
  verdiv demo                                     the bundled run, end to end
  verdiv analyze run.runlog.jsonl -o out          your own log, exploratory
  verdiv analyze run.runlog.jsonl --prereg preregistration.toml -o out
  verdiv convert --mapping cruxeval scored.json -o run.runlog.jsonl

\b
Exit codes:
  0  done                         3    lock or chain broken, verdicts void
  1  findings at or above a bar   4    the fit failed its diagnostics
  2  refused input or arguments   130  interrupted"""


class LazyGroup(TyperGroup):
    """A group whose subcommands are imported when they are called."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import and return a subcommand, or None."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(COMMANDS[cmd_name][0])
        command = get_command(module.app)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the subcommands from the table, without importing one."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the subcommand, or name the ones that are spelled like it."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=2) or list(COMMANDS)
            ctx.fail(f"There is no subcommand {args[0]!r}. Did you mean: {', '.join(near)}?")
        return super().resolve_command(ctx, args)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"verdiv {__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=LazyGroup,
    name="verdiv",
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(epilog=EPILOG)
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end."),
    ] = False,
) -> None:
    """Put retry claims on trial: run logs in, preregistered verdicts out."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; never raises on purpose.

    Parameters
    ----------
    arguments
        Words after the command's name; those of the process if None.

    Returns
    -------
    int
        0 done, 1 findings, 2 refused, 3 lock or chain broken, 4 fit failed, 130 interrupted; 70 for a
        fault of verdiv itself, whose traceback is shown.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    command = get_command(app)
    failures.keep(failures.NOTHING_KEPT)
    try:
        with command.make_context("verdiv", words) as context:
            code = command.invoke(context)
        sys.stdout.flush()
    except BaseException as error:
        return failures.exit_code_of(error)
    return code if isinstance(code, int) else 0
