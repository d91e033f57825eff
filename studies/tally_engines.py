"""One run counted three ways: ``verdiv tally`` here, ``verdiv tally --spark``, and group-by expressions on DuckDB.

The two tally files must be equal byte for byte. The relational counts, which share no code with the counter, must equal
the tally: whole numbers exactly, sums of weights and bills to a part in 10¹². Each count is a process of its own on one
core; time is that of the whole process, memory the largest sum over it and all that it started.

    make spark
    python studies/tally_engines.py --draws 1000000

With ``--log`` a Parquet log at hand is counted. The exit code is 1 where anything differs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DRAWS_A_TASK = 49
"""Draws that the design makes of one task, about."""

SEED = 11

SPARK = (
    "--master local[1] --driver-memory 2g --conf spark.ui.enabled=false "
    "--driver-java-options -XX:ActiveProcessorCount=1 pyspark-shell"
)
"""One core, as for the others."""

TESTS = Path(__file__).resolve().parent.parent / "tests"


@dataclass(frozen=True)
class Cost:
    """What a process cost."""

    code: int
    seconds: float
    megabytes: float
    """Largest resident memory of it and its children together."""


def _resident(session: int) -> float:
    """Return the resident memory of all processes of a session, in megabytes."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            total += int(fields[21])
    return total * os.sysconf("SC_PAGE_SIZE") / 2**20


def measured(command: Sequence[str]) -> Cost:
    """Run a command and watch it."""
    spark = {"PYSPARK_SUBMIT_ARGS": SPARK, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment = {**os.environ, **spark, "POLARS_MAX_THREADS": "1"}
    start, most = time.perf_counter(), 0.0
    with subprocess.Popen(command, env=environment, start_new_session=True) as process:
        while process.poll() is None:
            most = max(most, _resident(process.pid))
            time.sleep(0.1)
    return Cost(process.returncode, time.perf_counter() - start, most)


def simulate(path: Path, draws: int) -> None:
    """Write a run of about so many draws."""
    from verdiv.protocol.simulator.runlog import simulate_to_file
    from verdiv.protocol.simulator.scenarios import named_world

    tasks = max(1, round(draws / DRAWS_A_TASK))
    simulate_to_file(path, tasks=tasks, seed=SEED, replicates=3, world=named_world("plausible"))


def compare(engine: str, log: str, tally: str) -> int:
    """Count a log by group-by expressions and print what differs from a tally of it."""
    sys.path.insert(0, str(TESTS))
    from relational_compare import differences, relational, tallied
    from verdiv.analysis.tallyfile import read_tally

    counts = read_tally(tally)
    start = time.perf_counter()
    found = relational(*_opened(engine, log), counts=counts)
    seconds = time.perf_counter() - start
    first = tallied(counts)
    said = differences(first, found)
    values = sum(len(column) for column in first.values())
    print(
        f"{engine}: {len(first)} columns, {values} numbers, {len(said)} columns differ; counted in {seconds:.1f} s"
    )
    for line in said[:20]:
        print(f"  {line}")
    return 1 if said else 0


def _opened(engine: str, log: str) -> tuple[Any, Callable[[Any], Any]]:
    """Return a log's draws on an engine, and how that holds a frame which is asked for many times."""
    import narwhals as nw

    if engine == "polars":
        from relational_compare import on_polars

        return on_polars(log), lambda frame: frame.collect("polars").lazy()
    import duckdb

    base = duckdb.connect(config={"threads": 1})

    def held(frame: Any) -> Any:
        nw.to_native(frame).create("plain")
        return nw.from_native(base.table("plain"))

    from relational_compare import on_duckdb

    return on_duckdb(log, base), held


def main() -> int:
    """Count and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=1_000_000, help="size of the simulated run, about")
    parser.add_argument("--log", help="a Parquet run log to count instead")
    parser.add_argument("--compare", nargs=3, metavar=("ENGINE", "LOG", "TALLY"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.compare:
        return compare(*chosen.compare)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        log = chosen.log
        if log is None:
            log = str(place / "run.runlog.parquet")
            simulate(Path(log), chosen.draws)
        here, far = place / "local.tally.parquet", place / "spark.tally.parquet"
        verdiv = [sys.executable, "-m", "verdiv", "tally", log, "-o"]
        own = [sys.executable, __file__, "--compare"]
        costs = {
            "verdiv tally": measured([*verdiv, str(here), "--cores", "1"]),
            "verdiv tally --spark": measured([*verdiv, str(far), "--spark"]),
            "group-by on DuckDB": measured([*own, "duckdb", log, str(here)]),
            "group-by on Polars": measured([*own, "polars", log, str(here)]),
        }
        for name, cost in costs.items():
            print(f"{name:24} {cost.seconds:7.1f} s {cost.megabytes:7.0f} MB   exit {cost.code}")
        equal = here.exists() and far.exists() and here.read_bytes() == far.read_bytes()
        print(f"tally files of both engines: {'equal, byte for byte' if equal else 'NOT EQUAL'}")
        return 0 if equal and not any(cost.code for cost in costs.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
