"""results.json: what was measured, kept cell by cell so that a run can be broken off and taken up again."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from benchmarks.measure import Cost

__all__ = ["SCHEMA", "Record", "Results", "read_results", "record_of", "unmeasured", "write_results"]

SCHEMA = 1
"""Version of the form of results.json."""

COMPARED = ("processor", "cores", "memory", "system")
"""Facts of a machine that must agree before its numbers stand beside others."""


@dataclass(frozen=True)
class Record:
    """What one cell cost; of several runs, the one whose wall time is the median."""

    wall: float
    """Seconds from start to end; the time limit where it was stopped there."""
    cpu: float
    """Seconds of processor time."""
    peak: float
    """Megabytes at peak."""
    ending: str
    """``finished``, ``limit`` or ``failed``."""
    walls: tuple[float, ...] = ()
    """Wall times of all runs."""
    load: float = 0.0
    """The machine's load just before."""
    ess: float | None = None
    """Smallest bulk effective sample size of what a sampler estimates."""


@dataclass
class Results:
    """Everything that tables and pictures are made of."""

    machine: dict[str, str]
    limit: float
    """Seconds after which a program is stopped."""
    versions: dict[str, str] = field(default_factory=dict)
    logs: dict[str, dict[str, int]] = field(default_factory=dict)
    """Log to its numbers of draws, tasks, families, patterns and rows shown to rivals."""
    cells: dict[str, Record] = field(default_factory=dict)
    """``log/program`` to what it cost."""


def record_of(costs: Iterable[Cost], *, load: float, ess: float | None) -> Record:
    """Condense the runs of a cell; one that did not finish decides."""
    runs = sorted(costs, key=lambda cost: (cost.ending == "finished", cost.wall))
    chosen = runs[0] if runs[0].ending != "finished" else runs[(len(runs) - 1) // 2]
    walls = tuple(round(cost.wall, 3) for cost in runs)
    return Record(
        round(chosen.wall, 3), round(chosen.cpu, 3), round(chosen.peak, 1), chosen.ending, walls, load, ess
    )


def unmeasured(
    keys: Iterable[str], results: Results, *, only: str = "*", again: str | None = None
) -> list[str]:
    """Return the cells that are still to be measured, in their order.

    A cell that finished, or was stopped at this time limit, is kept; one that failed is tried again.

    Parameters
    ----------
    keys
        Names of all cells.
    results
        What was measured before.
    only
        Pattern of names to measure, as in a shell.
    again
        Pattern of names to measure even if they are there.
    """
    wanted = []
    for key in keys:
        known = results.cells.get(key)
        kept = known is not None and (
            known.ending == "finished" or (known.ending == "limit" and known.wall >= results.limit)
        )
        if fnmatch(key, only) and (not kept or (again is not None and fnmatch(key, again))):
            wanted.append(key)
    return wanted


def write_results(path: Path, results: Results) -> None:
    """Write results.json whole or not at all."""
    document = {
        "schema": SCHEMA,
        "machine": results.machine,
        "limit": results.limit,
        "versions": results.versions,
        "logs": results.logs,
        "cells": {key: vars(record) for key, record in results.cells.items()},
    }
    beside = path.with_suffix(".part")
    beside.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    os.replace(beside, path)


def read_results(path: Path, *, machine: Mapping[str, str] | None = None) -> Results | None:
    """Read results.json, or return None where there is none.

    Parameters
    ----------
    path
        The file.
    machine
        This machine, where measurements are to be added to those in the file.

    Raises
    ------
    SystemExit
        The file has another form, or was measured on another machine.
    """
    if not path.exists():
        return None
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if found.get("schema") != SCHEMA:
        raise SystemExit(
            f"{path}: expected schema {SCHEMA}, got {found.get('schema')!r}: choose another --out"
        )
    if machine is not None:
        for name in COMPARED:
            if found["machine"].get(name) != machine.get(name):
                raise SystemExit(
                    f"{path} was measured on another machine ({name}: {found['machine'].get(name)!r}, here "
                    f"{machine.get(name)!r}): choose another --out"
                )
    cells = {key: Record(**{**one, "walls": tuple(one["walls"])}) for key, one in found["cells"].items()}
    return Results(found["machine"], found["limit"], found["versions"], found["logs"], cells)
