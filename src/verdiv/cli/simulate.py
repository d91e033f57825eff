"""``verdiv simulate``: a protocol run whose truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from verdiv.cli import options

__all__ = ["app"]

app = options.command()

EXAMPLES = """\b
Examples:
  verdiv simulate --tasks 40 --seed 1 -o sim.runlog.jsonl
  verdiv simulate --tasks 2000 --world null+collapse -o collapse.runlog.jsonl.zst
  verdiv simulate --world myworld.toml --replicates 6 -o - | verdiv validate -

Worlds: worked (the paper's parameters), null (every claim holds), plausible; breaks are added with +, e.g.
null+sticky, null+collapse, null+burst. A TOML file describes a world of your own."""


@app.command(epilog=EXAMPLES)
def simulate(
    out: Annotated[
        Path, typer.Option("-o", "--out", help="Run log to write: .jsonl, .gz, .zst, .parquet, or -.")
    ],
    tasks: Annotated[
        int, typer.Option("--tasks", min=1, max=10_000_000, help="Tasks, over three families.")
    ] = 40,
    seed: options.Seed = 1,
    replicates: Annotated[
        int, typer.Option("--replicates", min=1, max=1000, help="Seeds of the protocol.")
    ] = 3,
    world: Annotated[
        str, typer.Option("--world", help="A named world, with breaks, or a TOML file.")
    ] = "plausible",
    a3_stochastic: Annotated[
        bool, typer.Option("--a3-stochastic", help="Sample the feedback arm, so that its seeds differ.")
    ] = False,
    force: options.Force = False,
) -> int:
    """Simulate the seven arms on tasks of a known world and write the draws as a run log."""
    from verdiv.cli.failures import keep
    from verdiv.protocol.simulator.runlog import simulate_to_file

    log = simulate_to_file(
        out,
        tasks=tasks,
        seed=seed,
        replicates=replicates,
        world=world,
        a3_stochastic=a3_stochastic,
        overwrite=force,
    )
    keep(f"{out} is complete")
    if str(out) != "-":
        typer.echo(f"Wrote {out}: {log.draws} draws of {tasks} tasks, world {log.world.name!r}, seed {seed}.")
        typer.echo(f"Next: verdiv analyze {out} --prereg verifiers-dividend -o out")
    return 0
