"""Benchmarks with one command: cost against draws, tasks, families and patterns, and beside other programs.

    python -m benchmarks                        everything that is not measured yet
    python -m benchmarks --only '*/report'      cells by name: log/program
    python -m benchmarks --again '1e5/*'        measure these once more
    python -m benchmarks --publish              measure nothing: write docs/benchmarks.md and its pictures

What is measured stands in results.json, cell by cell, so that a run can be broken off and taken up again.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from benchmarks.data import Recipe, facts_of
from benchmarks.measure import Cost, last_record, machine, measure
from benchmarks.picture import axes_picture, rows_picture
from benchmarks.plan import Cell, Tools, cells
from benchmarks.store import Record, Results, read_results, record_of, unmeasured, write_results
from benchmarks.tables import document

__all__ = ["main"]

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

RIVALS_PYTHON = HERE / ".venv" / "bin" / "python"
"""Where ``make bench`` puts the rivals."""

RUNS = 3
"""Times a short cell is run at most."""

WORTH = 6.0
"""Seconds after which a cell is not run once more."""


def prepare(recipe: Recipe, folder: Path) -> dict[str, int]:
    """Return a log's facts; make it first, in a process of its own, where it is not there."""
    found = facts_of(recipe, folder)
    if found is None or not recipe.log(folder).exists():
        print(f"making the log {recipe.name}", flush=True)
        numbers = (recipe.tasks, recipe.replicates, recipe.families, recipe.copies)
        words = [recipe.name, str(folder), *map(str, numbers)]
        subprocess.run(
            [sys.executable, "-m", "benchmarks.data", *words],
            check=True,
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
        )
        found = facts_of(recipe, folder)
    if found is None:
        raise SystemExit(f"the log {recipe.name} could not be made in {folder}")
    return found


def measured(cell: Cell, *, limit: float, logs: Path) -> Record:
    """Run a cell, a short one several times, and return what it cost."""
    load = round(os.getloadavg()[0], 2)
    log = logs / f"{cell.key.replace('/', '-')}.txt"
    costs: list[Cost] = []
    while len(costs) < RUNS and sum(cost.wall for cost in costs) < WORTH:
        costs.append(measure(cell.command, limit=limit, log=log, accepted=cell.accepted))
        if costs[-1].ending != "finished":
            break
    ess = None
    if costs[-1].ending == "finished":
        ess = effective(cell, log)
    return record_of(costs, load=load, ess=ess)


def effective(cell: Cell, log: Path) -> float | None:
    """Return the smallest bulk effective sample size that a cell's program reports, if it samples."""
    if cell.subject == "nuts":
        diagnostics = json.loads((cell.out / "results.json").read_text(encoding="utf-8"))["diagnostics"]
        found = diagnostics["ess_bulk_min"]
    else:
        found = last_record(log).get("ess")
    return float(found) if isinstance(found, (int, float)) else None


def versions(tools: Tools) -> dict[str, str]:
    """Return the versions of all programs."""
    found = {name: version(name) for name in ("verdiv", "numpy", "pymc")}
    found = {"verdiv": found["verdiv"], "its NumPy": found["numpy"], "its PyMC": found["pymc"]}
    ask = "import importlib.metadata as m, json, sys; print(json.dumps({n: m.version(n) for n in sys.argv[1:]}))"
    for python, names in (
        (tools.rivals, ("pymc", "statsmodels")),
        (tools.peer, ("hibayes", "numpyro", "jax")),
    ):
        if python is not None:
            said = subprocess.run([python, "-c", ask, *names], capture_output=True, text=True, check=False)
            if said.returncode != 0:
                raise SystemExit(
                    f"{python} lacks one of {', '.join(names)}: {said.stderr.strip().splitlines()[-1]}"
                )
            found |= json.loads(said.stdout)
    return found


def publish(results: Results, page: Path, *, write: Callable[[Path, str], None]) -> None:
    """Write the page and its two pictures beside it."""
    first, second = page.with_suffix(".svg"), page.with_name(f"{page.stem}-axes.svg")
    write(page, document(results, picture=first.name, axes=second.name))
    write(first, rows_picture(results))
    write(second, axes_picture(results))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="*", help="measure cells of this pattern, e.g. 'demo/*'")
    parser.add_argument("--again", help="measure cells of this pattern even if they are there")
    parser.add_argument("--limit", type=float, default=240.0, help="seconds after which a program is stopped")
    parser.add_argument("--rivals-python", help="Python that holds PyMC and statsmodels, or 'none'")
    parser.add_argument("--peer-python", help="Python that holds HiBayES; absent: left out")
    parser.add_argument("--out", type=Path, default=HERE / "out", help="folder for logs and results.json")
    parser.add_argument("--list", action="store_true", help="name the cells that would be measured, and end")
    parser.add_argument("--publish", action="store_true", help="write docs/benchmarks.md from results.json")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder that --publish writes to")
    return parser.parse_args()


def main() -> None:
    """Measure what is not measured yet, then write results.md and pictures; or publish what there is."""
    asked = _asked()
    stored = asked.out / "results.json"
    if asked.publish:
        results = read_results(stored)
        if results is None:
            raise SystemExit(f"no {stored}: measure first")
        publish(results, asked.docs / "benchmarks.md", write=_write)
        return
    rivals = asked.rivals_python or (str(RIVALS_PYTHON) if RIVALS_PYTHON.exists() else None)
    folder = asked.out.resolve()
    tools = Tools(folder, None if rivals == "none" else rivals, asked.peer_python)
    about = machine()
    results = read_results(stored, machine=about) or Results(about, asked.limit)
    results.limit = asked.limit
    planned = {cell.key: cell for cell in cells(tools)}
    names = unmeasured(planned, results, only=asked.only, again=asked.again)
    if asked.list:
        print("\n".join(names))
        return
    for part in (folder, folder / "made", folder / "said"):
        part.mkdir(parents=True, exist_ok=True)
    results.versions |= versions(tools)
    # A process that is timed has a session of its own, and is ended with this one only by an exception here.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    for number, name in enumerate(names, 1):
        cell = planned[name]
        results.logs[cell.recipe.name] = prepare(cell.recipe, folder)
        found = measured(cell, limit=asked.limit, logs=folder / "said")
        results.cells[name] = found
        write_results(stored, results)
        print(
            f"{number}/{len(names)} {name}: {found.ending}, {found.wall:.1f} s wall, {found.cpu:.1f} s processor, "
            f"{found.peak:.0f} MB",
            flush=True,
        )
    publish(results, folder / "results.md", write=_write)
    print((folder / "results.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
