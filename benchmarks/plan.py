"""What is measured: the logs of each axis, the programs, and the command of every cell."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.data import BUNDLED, Recipe

__all__ = ["AXES", "LABELS", "OWN", "RIVALS", "Cell", "Tools", "cells", "recipes"]

HERE = Path(__file__).resolve().parent

DEMO = Recipe("demo")
BASE = Recipe("1e5", 2083)
"""The log that tasks, families and patterns are varied from: about 100,000 draws."""

AXES: dict[str, tuple[Recipe, ...]] = {
    "same rows": (DEMO, Recipe("1e3", 21), Recipe("1e4", 208), BASE),
    "rows": (
        Recipe("1e3", 21),
        Recipe("1e4", 208),
        BASE,
        Recipe("1e6", 20_750),
        Recipe("1e7", 20_750, copies=10),
    ),
    "tasks": (
        Recipe("tasks-233", 233, replicates=30),
        Recipe("tasks-678", 678, replicates=10),
        BASE,
        Recipe("tasks-5008", 5008, replicates=1),
    ),
    "families": (BASE, *(Recipe(f"families-{n}", 2083, families=n) for n in (10, 30, 100))),
    "patterns": (
        Recipe("patterns-20", 21, copies=99),
        Recipe("patterns-80", 83, copies=25),
        Recipe("patterns-300", 298, copies=7),
        BASE,
    ),
}
"""Axis to its logs, small to large. Along tasks, families and patterns all else is held, draws to within a tenth."""

LABELS = {
    "results": "verdiv, log to results.json",
    "report": "verdiv, log to full report",
    "tally": "verdiv tally, log to counts",
    "from-tally": "verdiv, counts to full report",
    "nuts": "verdiv --engine nuts, log to full report",
    "pymc": "PyMC, a Bernoulli a row",
    "gee": "statsmodels GEE",
    "peer-tasks": "HiBayES, its default model, rows grouped by task",
    "peer-nested": "HiBayES, tasks within families, rows grouped by task",
    "peer-rows": "HiBayES, its default model, a binomial a row",
    "peer-full": "HiBayES, its default model with checks and plots",
}
"""Program to its name in tables and pictures."""

OWN = ("results", "report", "tally", "from-tally", "nuts")
RIVALS = ("gee", "pymc", "peer-tasks", "peer-full", "peer-nested", "peer-rows")

IN_PART = {"peer-rows": ("demo", "1e4"), "peer-full": ("demo",), "peer-nested": ("demo",)}
"""Variants of a program that are timed on some logs only."""

WHOLE_LOG = 2_000_000
"""Draws up to which a log is analysed without a tally: beyond, it would be held in memory."""


@dataclass(frozen=True)
class Tools:
    """Interpreters and folders."""

    folder: Path
    """Where logs, outputs and results go."""
    rivals: str | None
    """Python that holds PyMC and statsmodels; None leaves them out."""
    peer: str | None
    """Python that holds HiBayES; None leaves it out."""


@dataclass(frozen=True)
class Cell:
    """One program on one log."""

    recipe: Recipe
    subject: str
    command: tuple[str, ...]
    accepted: tuple[int, ...]
    """Exit codes of a run that did its work."""
    out: Path
    """What the program writes, if it does."""

    @property
    def key(self) -> str:
        """Name of the cell in results.json."""
        return f"{self.recipe.name}/{self.subject}"


def recipes() -> tuple[Recipe, ...]:
    """Return every log once, in the order in which they are measured."""
    return tuple(dict.fromkeys(recipe for axis in AXES.values() for recipe in axis))


def _subjects(recipe: Recipe) -> tuple[str, ...]:
    compared = recipe in AXES["same rows"]
    whole = recipe.tasks * recipe.replicates * recipe.copies * 16 <= WHOLE_LOG
    found = []
    if compared or (whole and recipe in AXES["rows"]):
        found += ["results", "report"]
    if recipe != DEMO:
        found += ["tally", "from-tally"]
    if compared:
        found += ["nuts", *(one for one in RIVALS if recipe.name in IN_PART.get(one, recipe.name))]
    return tuple(found)


def _cell(recipe: Recipe, subject: str, tools: Tools) -> Cell | None:
    log, rows = str(recipe.log(tools.folder)), str(recipe.rows(tools.folder))
    out = tools.folder / "made" / f"{recipe.name}-{subject}"
    verdiv = (sys.executable, "-m", "verdiv")
    plan = (BUNDLED,) if recipe == DEMO else ()
    named = ("--prereg", *plan) if plan else ()
    tally = f"{tools.folder / 'made' / recipe.name}.tally.parquet"
    # 1: there are findings, which is a result like any.
    own = {
        "results": (sys.executable, str(HERE / "to_results.py"), log, f"{out}.json", *plan),
        "report": (*verdiv, "analyze", log, *named, "-o", str(out), "--force"),
        "tally": (*verdiv, "tally", log, "-o", tally, "--force"),
        "from-tally": (*verdiv, "analyze", tally, "-o", str(out), "--force"),
        "nuts": (*verdiv, "analyze", log, *named, "--engine", "nuts", "-o", str(out), "--force"),
    }
    if subject in own:
        return Cell(recipe, subject, own[subject], (0, 1), out)
    python = tools.peer if subject.startswith("peer") else tools.rivals
    if python is None:
        return None
    scripts = {"pymc": ("pymc_glmm.py",), "gee": ("gee.py",)}
    name, *words = scripts.get(subject, ("hibayes_fit.py", subject.removeprefix("peer-")))
    script = str(HERE / "rivals" / name)
    return Cell(recipe, subject, (python, script, rows, *words), (0,), out)


def cells(tools: Tools) -> list[Cell]:
    """Return all cells: verdiv's log by log, then one rival after the other, each from small logs to large ones."""
    pairs = [(recipe, subject) for recipe in recipes() for subject in OWN]
    pairs += [(recipe, subject) for subject in RIVALS for recipe in AXES["same rows"]]
    found = [_cell(recipe, subject, tools) for recipe, subject in pairs if subject in _subjects(recipe)]
    return [cell for cell in found if cell is not None]
