"""Simulated runs as run logs: header, draw records, files, and the run that ships with the package.

The shipped run is made anew, byte for byte, by ``python -m verdiv.protocol.simulator.runlog PATH``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from verdiv import __version__
from verdiv.protocol.simulator.design import ConditionDesign, Design
from verdiv.protocol.simulator.scenarios import named_world
from verdiv.protocol.simulator.table import (
    PRECISION,
    SMALL_MODEL,
    START_MS,
    TEACHER_MODEL,
    TEACHER_PRECISION,
    simulate,
)
from verdiv.protocol.simulator.world import World
from verdiv.protocol.simulator.worldfile import load_world
from verdiv.runlog.records import (
    RUNLOG_SCHEMA,
    AnsweredClass,
    Decoding,
    Draw,
    DrawError,
    ErrorClass,
    Gate,
    Header,
    ModelCard,
    Oracle,
    PromptKind,
    Serving,
    Static,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "SHIPPED_RUN",
    "SimulatedLog",
    "draw_records",
    "simulate_run_log",
    "simulate_to_file",
    "write_shipped_run",
]

HARNESS = "verdiv.protocol.simulator"
SHIPPED_RUN = "simulated-40.runlog.jsonl.zst"
SHIPPED_WORLD, SHIPPED_TASKS, SHIPPED_SEED = "plausible", 40, 20260302


@dataclass(frozen=True, slots=True)
class SimulatedLog:
    """What was written."""

    path: Path
    world: World
    design: Design
    draws: int
    """Number of draw records."""


def simulate_run_log(world: World, design: Design, seed: int) -> tuple[Header, Iterator[Draw]]:
    """Simulate a run as the records of a run log.

    Parameters
    ----------
    world, design, seed
        As for :func:`verdiv.protocol.simulator.table.simulate`.

    Returns
    -------
    tuple
        Header (its note says that the run is simulated) and the draws, in the order of time.

    Examples
    --------
    >>> header, draws = simulate_run_log(World.worked(), Design(tasks=3), 1)
    >>> header.gate.value, next(draws).arm
    ('verifier', 'A0')
    """
    table = simulate(world, design, seed)
    return simulated_header(world, design, seed), draw_records(table)


def simulated_header(world: World, design: Design, seed: int) -> Header:
    """Return the header of a simulated run."""
    note = (
        f"Simulated: no model was asked. World {world.name!r}, seed {seed}; "
        "outcomes, tokens and times are random numbers, digests stand in for texts. "
        "The seed of a draw is that of its replicate; the draws of a replicate are a stream from it."
    )
    return Header(
        schema=RUNLOG_SCHEMA,
        run_id=f"simulated-{design.tasks}-{seed}",
        gate=Gate.VERIFIER,
        harness=HARNESS,
        harness_version=__version__,
        models={
            "small": ModelCard(name=SMALL_MODEL, precision=PRECISION),
            "teacher": ModelCard(name=TEACHER_MODEL, precision=TEACHER_PRECISION),
        },
        serving=Serving(engine="simulated"),
        started_at=_stamps(np.array([START_MS]))[0],
        note=note,
    )


def draw_records(table: pd.DataFrame) -> Iterator[Draw]:
    """Turn a draws table into the records of a run log, row by row.

    Parameters
    ----------
    table
        Columns of ``DRAW_COLUMNS``; times at a resolution of milliseconds.

    Yields
    ------
    Draw
        The same draws; ``prev`` is left to the writer.
    """
    columns: dict[str, Sequence[Any]] = {}
    for name in table.columns:
        column = table[name]
        if name in ("started_at", "ended_at"):
            columns[name] = _stamps(column.to_numpy(dtype="datetime64[ms]").astype(np.int64))
        else:
            columns[name] = column.astype(object).where(column.notna(), None).tolist()
    names = list(columns)
    for values in zip(*columns.values(), strict=True):
        yield _record(dict(zip(names, values, strict=True)))


def _stamps(milliseconds: np.ndarray[Any, Any]) -> list[str]:
    texts = np.datetime_as_string(milliseconds.astype("datetime64[ms]"), unit="ms")
    return [f"{text}Z" for text in texts.tolist()]


def _record(row: dict[str, Any]) -> Draw:
    flagged, answered, oracle = row["flagged"], row["answered_class"], row["oracle_flagged"]
    found = row["error_class"]
    static = None
    if flagged is not None:
        error_class = None if found is None else ErrorClass(found)
        static = Static(flagged=flagged, error_class=error_class, code=row["code"])
    same = (
        "draw_id task_id family arm condition copy_of tier model precision replicate attempt parent "
        "prompt_sha256 output_sha256 correct billed tokens_in tokens_out started_at ended_at in_flight "
        "device_seconds emitted"
    )
    return Draw(
        **{name: row[name] for name in same.split()},
        decoding=Decoding(
            temperature=row["temperature"], top_p=row["top_p"], seed=row["seed"], max_tokens=row["max_tokens"]
        ),
        prompt_kind=PromptKind(row["prompt_kind"]),
        static=static,
        answered_class=None if answered is None else AnsweredClass(answered),
        oracle=None if oracle is None else Oracle(flagged=oracle),
        error=None if row["error_kind"] is None else DrawError(kind=row["error_kind"]),
    )


def simulate_to_file(
    path: str | Path,
    *,
    tasks: int = 40,
    seed: int = 1,
    replicates: int = 3,
    world: str | Path | World = "plausible",
    a3_stochastic: bool = False,
    overwrite: bool = False,
) -> SimulatedLog:
    """Simulate a protocol run and write it as a run log: the body of ``verdiv simulate``.

    The seven arms run under the seeds 1, 2, …; A0 and A3 run under each condition of the world too.

    Parameters
    ----------
    path
        Run log to write; its ending says how it is stored.
    tasks
        Number of tasks, split over the families by their weights.
    seed
        Seed of the simulation.
    replicates
        Number of seeds of the protocol.
    world
        A world, its name, or a TOML file.
    a3_stochastic
        Sample the feedback arm, so that its replicates carry information.
    overwrite
        Replace a file that stands there.

    Returns
    -------
    SimulatedLog
        What was written.

    Raises
    ------
    UsageRefused
        A value out of range, an unknown name, or an unknown ending.
    InputRefused
        A world file that does not hold.
    """
    from verdiv.runlog.writer import write_run_log

    chosen = world if isinstance(world, World) else load_world(world)
    design = Design(
        tasks=tasks,
        seeds=tuple(range(1, replicates + 1)),
        a3_stochastic=a3_stochastic,
        conditions=tuple(ConditionDesign(name=effect.name) for effect in chosen.conditions),
    )
    table = simulate(chosen, design, seed)
    header = simulated_header(chosen, design, seed)
    write_run_log(path, header, draw_records(table), overwrite=overwrite)
    return SimulatedLog(Path(path), chosen, design, len(table))


def write_shipped_run(path: str | Path) -> SimulatedLog:
    """Write the simulated run that ships with the package; the same bytes every time.

    Parameters
    ----------
    path
        File to write, or replace.
    """
    world = named_world(SHIPPED_WORLD)
    return simulate_to_file(path, tasks=SHIPPED_TASKS, seed=SHIPPED_SEED, world=world, overwrite=True)


if __name__ == "__main__":
    write_shipped_run(sys.argv[1])
