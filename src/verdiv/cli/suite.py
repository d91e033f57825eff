"""``verdiv suite``: tasks with exact ground truth, and how each tier is asked, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from verdiv.cli import options

__all__ = ["app"]

app = options.command()

EXAMPLES = """\b
Examples:
  verdiv suite --seed 1 -o suite.json
  verdiv suite --seed 1 --tasks arithmetic=14,date=13,filter=13 --shots small=5 --shots teacher=8 -o suite.json
  verdiv suite --seed 7 --tasks arithmetic=35000,date=32500,filter=32500 -o big.json

Its digest, printed at the end, belongs into the registration ([suite] sha256) before the run."""


@app.command(epilog=EXAMPLES)
def suite(
    out: Annotated[Path, typer.Option("-o", "--out", help="Suite file to write.")],
    seed: options.Seed = 1,
    tasks: Annotated[
        str, typer.Option("--tasks", help="Tasks by family, as family=number,…")
    ] = "arithmetic=14,date=13,filter=13",
    levels: Annotated[
        list[str] | None,
        typer.Option(
            "--levels", help="Levels of difficulty in turn, as family=1,2,3; all of them if absent."
        ),
    ] = None,
    shots: Annotated[
        list[str] | None,
        typer.Option("--shots", help="Worked examples a family in a tier's prompt, as tier=number."),
    ] = None,
    shot_levels: Annotated[
        list[str] | None,
        typer.Option(
            "--shot-levels",
            help="Levels of a tier's examples, as tier:family=1,2; those of --levels if absent.",
        ),
    ] = None,
    json_reply: Annotated[
        list[str] | None,
        typer.Option("--json-reply", help="Tier whose server is asked to constrain replies to JSON objects."),
    ] = None,
    family: Annotated[
        list[str] | None,
        typer.Option("--family", help="A family of your own, as module:name; it is imported."),
    ] = None,
    force: options.Force = False,
) -> int:
    """Generate a suite of distinct single-shot tool calls from a fixed seed."""
    from verdiv.errors import Fault, WriteFailed
    from verdiv.protocol.prompts import tier_prompt
    from verdiv.protocol.suite.generate import generate_suite
    from verdiv.protocol.suite.generate import shots as examples
    from verdiv.protocol.suite.plugins import families_with

    counts = {name: _whole(number, "--tasks") for name, number in _pairs(tasks.split(","), "--tasks")}
    chosen = _levels(levels, "--levels")
    shown = _levels(shot_levels, "--shot-levels")
    wanted = {"small": 0, "teacher": 0}
    wanted |= {tier: _whole(number, "--shots") for tier, number in _pairs(shots or [], "--shots")}
    known = families_with(family or [])
    families = {name: known[name] for name in counts if name in known}
    prompts = {
        tier: tier_prompt(
            families,
            {
                name: examples(one, number, shown.get(f"{tier}:{name}", chosen.get(name)))
                for name, one in families.items()
            },
            reply="json" if tier in (json_reply or []) else "text",
        )
        for tier, number in wanted.items()
    }
    made = generate_suite(seed, counts, families=known, levels=chosen, prompts=prompts)
    if out.exists() and not force:
        raise WriteFailed(
            "the suite cannot be written",
            [Fault(str(out), "a free name", "a file", "use --force or another name")],
        )
    out.write_bytes(made.canonical)
    typer.echo(f"Wrote {out}: {len(made)} tasks, SHA-256 {made.digest}.")
    return 0


def _levels(words: list[str] | None, option: str) -> dict[str, list[int]]:
    """Read words of the form name=1,2,3."""
    return {
        name: [_whole(level, option) for level in text.split(",")]
        for name, text in _pairs(words or [], option)
    }


def _pairs(words: list[str], option: str) -> list[tuple[str, str]]:
    """Split words of the form name=value."""
    from verdiv.errors import Fault, UsageRefused

    split = []
    for word in words:
        name, equals, value = word.partition("=")
        if not (name and equals and value):
            fault = Fault(option, "name=value", word, "write it so")
            raise UsageRefused(f"{option} cannot be read", [fault])
        split.append((name, value))
    return split


def _whole(text: str, option: str) -> int:
    """Read a number that is not negative."""
    from verdiv.errors import Fault, UsageRefused

    if not (text.isascii() and text.isdigit() and len(text) < 8):
        raise UsageRefused(
            f"{option} cannot be read", [Fault(option, "a whole number", text, "write digits")]
        )
    return int(text)
