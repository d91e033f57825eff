"""``verdiv run``: a registered protocol against real servers, resumable at any point."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from verdiv.cli import options

if TYPE_CHECKING:
    from verdiv.protocol.runner.client import Endpoint
    from verdiv.protocol.runner.engine import Tally
    from verdiv.protocol.runner.ledger import Ledger
    from verdiv.protocol.runner.sitting import Outcome

__all__ = ["app"]

app = options.command()

EXAMPLES = """\b
Examples:
  verdiv run --prereg plan.toml --suite suite.json --small http://127.0.0.1:8321 \\
      --teacher http://127.0.0.1:8321 -o run.runlog.jsonl
  verdiv run … -o run.runlog.jsonl --resume            after a kill, or to be safe always
  verdiv run … --key-env MY_KEY                        the key is read from the environment only
  verdiv run … --at nvfp4:small=http://127.0.0.1:8322  a condition with a server of its own"""


@app.command(epilog=EXAMPLES)
def run(
    prereg: Annotated[str, typer.Option("--prereg", help="Registration: a file or a shipped name.")],
    suite: Annotated[Path, typer.Option("--suite", help="Suite file from verdiv suite.")],
    small: Annotated[str, typer.Option("--small", help="Address of the small tier's server.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Run log to grow: a name that ends in .jsonl.")],
    teacher: Annotated[
        str | None,
        typer.Option("--teacher", help="Address of the teacher's server; the small one's if absent."),
    ] = None,
    at: Annotated[
        list[str] | None, typer.Option("--at", help="Server of a tier under a condition: condition:tier=URL.")
    ] = None,
    small_model: Annotated[
        str | None, typer.Option("--small-model", help="Model name to ask for; the registered one if absent.")
    ] = None,
    teacher_model: Annotated[
        str | None,
        typer.Option("--teacher-model", help="Model name to ask for; the registered one if absent."),
    ] = None,
    key_env: Annotated[
        str | None, typer.Option("--key-env", help="Environment variable that holds the key.")
    ] = None,
    cacert: Annotated[
        str | None, typer.Option("--cacert", help="File with further certificates to trust.")
    ] = None,
    concurrency: Annotated[
        int, typer.Option("--concurrency", min=1, max=1024, help="Requests kept in flight.")
    ] = 1,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, help="Seconds that a response may take.")
    ] = 120.0,
    max_tokens: Annotated[
        int, typer.Option("--max-tokens", min=1, help="Most tokens of a reply, where an arm registers none.")
    ] = 96,
    engine: Annotated[
        str | None, typer.Option("--engine", help="Serving engine, as name or name@version, for the header.")
    ] = None,
    family: Annotated[
        list[str] | None,
        typer.Option("--family", help="A family of your own, as module:name; it is imported."),
    ] = None,
    note: Annotated[str | None, typer.Option("--note", help="A sentence for the header.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the log that stands there.")] = False,
) -> int:
    """Run the arms of a registration against OpenAI-compatible servers, draw by draw into a run log."""
    from verdiv.preregistration import read_preregistration
    from verdiv.protocol.runner.sitting import RunRequest, run_protocol
    from verdiv.protocol.suite.plugins import families_with
    from verdiv.protocol.suite.suitefile import read_suite
    from verdiv.runlog.records import Serving

    plan = read_preregistration(prereg)
    names = {"small": small_model, "teacher": teacher_model}
    addresses = {("primary", "small"): small, ("primary", "teacher"): teacher or small}
    addresses |= _conditions(at or [])
    endpoints = {
        place: _endpoint(url, names.get(place[1]) or plan.tiers[place[1]].model, key_env, cacert)
        for place, url in addresses.items()
        if place[1] in plan.tiers
    }
    name, _, version = (engine or "").partition("@")
    request = RunRequest(
        plan=plan,
        suite=read_suite(suite),
        log=out,
        endpoints=endpoints,
        concurrency=concurrency,
        max_tokens=max_tokens,
        timeout=timeout,
        families=families_with(family or []),
        serving=Serving(engine=name, version=version or None, max_concurrency=concurrency) if name else None,
        note=note,
    )
    outcome = run_protocol(request, resume=resume, progress=_Line())
    _summary(outcome, out)
    return 0 if outcome.complete else 130


def _endpoint(url: str, model: str, key_env: str | None, cacert: str | None) -> Endpoint:
    """Describe a server."""
    from verdiv.protocol.runner.client import Endpoint

    return Endpoint(url, model, key_env, cacert)


def _conditions(words: list[str]) -> dict[tuple[str, str], str]:
    """Read condition:tier=URL."""
    from verdiv.errors import Fault, UsageRefused

    places = {}
    for word in words:
        place, equals, url = word.partition("=")
        condition, colon, tier = place.partition(":")
        if not (condition and colon and tier and equals and url):
            fault = Fault("--at", "condition:tier=URL", word, "write it so")
            raise UsageRefused("--at cannot be read", [fault])
        places[condition, tier] = url
    return places


class _Line:
    """A line on standard error now and then: draws, spend, and an estimate of the time left."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.spoke = 0.0
        self.first: int | None = None

    def __call__(self, tally: Tally, ledger: Ledger) -> None:
        """Say how far the run is, at most twice a second on a terminal and every 15 seconds elsewhere."""
        if self.first is None:
            self.first = tally.chains_done
        moment = time.monotonic()
        terminal = sys.stderr.isatty()
        if moment - self.spoke < (0.5 if terminal else 15.0):
            return
        self.spoke = moment
        done = tally.chains_done - self.first
        left = ""
        if done:
            seconds = (moment - self.begun) * (tally.chains - tally.chains_done) / done
            left = (
                f", about {seconds / 60:.0f} min left" if seconds >= 90 else f", about {seconds:.0f} s left"
            )
        bound = "" if ledger.bound is None else f" of at most {ledger.bound:g}"
        words = (
            f"{tally.chains_done}/{tally.chains} chains, {tally.draws} draws, "
            f"{ledger.spent:g} units{bound}, {tally.retries} retries{left}"
        )
        end = "\r" if terminal else "\n"
        sys.stderr.write(("\x1b[2K" if terminal else "") + words + end)
        sys.stderr.flush()


def _summary(outcome: Outcome, out: Path) -> None:
    """Print what was run and what it cost."""
    from verdiv.protocol.determinism import judge_determinism
    from verdiv.runlog.reader import iter_draws

    tally, ledger = outcome.tally, outcome.ledger
    state = "complete" if outcome.complete else "interrupted; go on with --resume"
    typer.echo(f"{out}: {tally.draws} draws, {tally.errors} not served, {state}.")
    bound = "" if ledger.bound is None else f", declared bound {ledger.bound:g}"
    registered = sum(ledger.as_registered.values())
    typer.echo(
        f"Bill as run {ledger.spent:g} units (shared draws once), as registered {registered:g}{bound}."
    )
    for arm, units in sorted(ledger.as_registered.items()):
        typer.echo(f"  {arm:<4} {units:g} units")
    typer.echo(str(judge_determinism(iter_draws(out))))
    if tally.retries:
        typer.echo(f"{tally.retries} infrastructure retries, apart from the protocol's draws.")
    if outcome.lost:
        typer.echo(
            f"{len(outcome.lost)} draws in flight were lost to kills and asked for again (≤ {ledger.lost:g} units):"
        )
        for intent in outcome.lost[:20]:
            typer.echo(f"  {intent.draw_id} at {intent.at}")
