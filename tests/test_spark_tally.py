"""Counting on Spark: the same bytes as on one machine, however the draws lie in their files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_session import SUBMIT
from verdiv.analysis import dealing, sparktally, tallying
from verdiv.analysis.sparktally import tally_on_spark
from verdiv.analysis.tallyfile import write_tally
from verdiv.analysis.tallying import tally_logs
from verdiv.cli.app import run
from verdiv.errors import InputRefused, MissingExtra
from verdiv.preregistration import Preregistration, read_preregistration
from verdiv.preregistration.parts import ExclusionRule
from verdiv.protocol.simulator.design import ConditionDesign, Design
from verdiv.protocol.simulator.runlog import simulate_run_log
from verdiv.protocol.simulator.scenarios import named_world
from verdiv.runlog.records import Draw, Header
from verdiv.runlog.writer import write_run_log


def simulated(tasks: int, seed: int) -> tuple[Header, list[Draw]]:
    """Return a run with three conditions, lost draws, and prices that do not add up exactly."""
    conditions = (ConditionDesign(name="heavy-load"), ConditionDesign(name="nvfp4"))
    design = Design(tasks=tasks, conditions=conditions)
    header, draws = simulate_run_log(named_world("plausible"), design, seed)
    prices = (0.1, 0.7, 1.3)
    return header, [
        msgspec.structs.replace(draw, billed=draw.billed * prices[i % 3]) for i, draw in enumerate(draws)
    ]


def written(path: Path, header: Header, draws: list[Draw], group: int | None = None) -> str:
    """Write a Parquet log, in small row groups if told so."""
    write_run_log(path, header, draws)
    if group is not None:
        rewritten(path, pq.read_table(path), row_group_size=group)
    return str(path)


def rewritten(path: Path | str, table: pa.Table, **options: Any) -> None:
    """Write other draws, or other row groups, under the header and footer of a log."""
    around = {k: v for k, v in pq.read_metadata(path).metadata.items() if k != b"ARROW:schema"}
    pq.write_table(table.replace_schema_metadata(around), path, **options)


def both(
    folder: Path, paths: list[str], plan: Preregistration | None = None, **options: Any
) -> tuple[bytes, bytes]:
    """Return the tally files of some logs as one machine and as Spark writes them."""
    local, far = folder / "local.parquet", folder / "spark.parquet"
    write_tally(local, tally_logs(paths, preregistration=plan, **options))
    write_tally(far, tally_on_spark(paths, preregistration=plan, **options))
    return local.read_bytes(), far.read_bytes()


def spread(draws: list[Draw]) -> list[Draw]:
    """Lay the first draws of all tasks first, then the second ones, and so on."""
    place: dict[str, int] = {}
    keyed = []
    for draw in draws:
        place[draw.task_id] = place.get(draw.task_id, 0) + 1
        keyed.append((place[draw.task_id], draw))
    return [draw for _, draw in sorted(keyed, key=lambda one: one[0])]


@pytest.mark.slow
def test_spark_writes_the_bytes_of_one_machine(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of three conditions, counted in several parts, has one tally file; a price changed gives another."""
    for module in (dealing, tallying, sparktally):
        monkeypatch.setattr(module, "BUCKET_ROWS", 1_500)
    header, draws = simulated(200, 5)
    paths = [written(tmp_path / "run.parquet", header, draws)]
    local, far = both(tmp_path, paths)
    assert local == far
    draws[-1] = msgspec.structs.replace(draws[-1], billed=draws[-1].billed + 1)
    written(tmp_path / "other.parquet", header, draws)
    write_tally(tmp_path / "moved.parquet", tally_on_spark([str(tmp_path / "other.parquet")]))
    assert (tmp_path / "moved.parquet").read_bytes() != local


def test_draws_of_a_task_may_lie_anywhere_in_the_file(spark: Any, tmp_path: Path) -> None:
    """Tasks are brought together whole and in the order of their log, though every row group holds a piece of each."""
    header, draws = simulated(100, 6)
    laid = spread(draws)
    assert laid[0].task_id != laid[1].task_id
    path = written(tmp_path / "run.parquet", header, laid, group=100)
    assert pq.read_metadata(path).num_row_groups > 10
    local, far = both(tmp_path, [path])
    assert local == far


def test_two_logs_are_counted_together(spark: Any, tmp_path: Path) -> None:
    """Logs that share tasks and hold others of their own give one tally file, whichever engine counts them."""
    header, draws = simulated(80, 7)
    first = [d for d in draws if d.condition != "nvfp4"]
    second = [d for d in draws if d.condition == "nvfp4"]
    other, more = simulated(40, 8)
    second += [
        msgspec.structs.replace(
            d,
            draw_id=f"x{d.draw_id}",
            task_id=f"x{d.task_id}",
            copy_of=d.copy_of and f"x{d.copy_of}",
            parent=d.parent and f"x{d.parent}",
        )
        for d in more
    ]
    paths = [
        written(tmp_path / "a.parquet", header, first),
        written(tmp_path / "b.parquet", msgspec.structs.replace(other, run_id="other"), second),
    ]
    local, far = both(tmp_path, paths, max_budget=4)
    assert local == far


def test_registered_exclusions_are_replayed(spark: Any, tmp_path: Path) -> None:
    """A registration takes out the same draws and whole tasks on Spark, and what it takes out shows in the tally."""
    plan = read_preregistration("verifiers-dividend")
    header, draws = simulated(80, 9)
    gone = tuple(sorted({d.task_id for d in draws})[:5])
    rules = (
        *plan.exclusions,
        ExclusionRule(id="tasks", text="Five tasks leave.", scope="task", when="task_id", values=gone),
        ExclusionRule(id="load", text="No heavy load.", when="condition", values=("heavy-load",)),
    )
    plan = plan.model_copy(update={"exclusions": rules})
    paths = [written(tmp_path / "run.parquet", header, draws)]
    local, far = both(tmp_path, paths, plan)
    assert local == far
    assert pq.read_table(tmp_path / "spark.parquet").num_rows == 75


def test_a_draw_against_the_format_is_refused(spark: Any, tmp_path: Path) -> None:
    """What a worker finds wrong comes back as a refusal that says what to do, and not as a stack of Java."""
    header, draws = simulated(5, 10)
    path = written(tmp_path / "run.parquet", header, draws)
    table = pq.read_table(path)
    at = table.schema.get_field_index("billed")
    broken = table.set_column(at, table.schema.field(at), pa.array([-1.0] * len(table)))
    rewritten(path, broken)
    with pytest.raises(InputRefused) as caught:
        tally_on_spark([path])
    assert caught.value.faults[0].remedy == "run verdiv validate"


@pytest.mark.parametrize("column", ["draw_id", "parent"])
def test_names_that_clash_or_miss_are_refused(spark: Any, tmp_path: Path, column: str) -> None:
    """A draw_id that stands twice, or a parent that is not there, is refused with its name, as on one machine."""
    header, draws = simulated(5, 10)
    path = written(tmp_path / "run.parquet", header, draws)
    table = pq.read_table(path)
    values = table[column].to_pylist()
    at = next(i for i in reversed(range(len(values))) if values[i])
    values[at] = values[0] if column == "draw_id" else "nowhere"
    place = table.schema.get_field_index(column)
    rewritten(path, table.set_column(place, table.schema.field(place), pa.array(values, pa.string())))
    for count in (tally_logs, tally_on_spark):
        with pytest.raises(InputRefused, match=values[at]):
            count([path])


@pytest.mark.slow
def test_the_command_prints_its_own_lines_only(spark: Any, tmp_path: Path) -> None:
    """Nothing that Spark or Java say reaches standard output."""
    header, draws = simulated(5, 11)
    path, out = written(tmp_path / "run.parquet", header, draws), tmp_path / "t.parquet"
    command = [sys.executable, "-m", "verdiv", "tally", path, "-o", str(out), "--spark"]
    environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": SUBMIT, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True, timeout=300)
    assert done.stdout.splitlines() == [
        f"Wrote {out}: {len(draws)} draws of 5 tasks, budgets up to 5.",
        f"Next: verdiv analyze {out} -o out",
    ]


def test_a_machine_without_java_is_told_so(spark: Any, tmp_path: Path) -> None:
    """Spark without Java ends in one plain message and not in a traceback."""
    header, draws = simulated(2, 12)
    path = written(tmp_path / "run.parquet", header, draws)
    command = [sys.executable, "-m", "verdiv", "tally", path, "-o", str(tmp_path / "t.parquet"), "--spark"]
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "dirname", "env", "ps", "tr", "basename"):
        found = shutil.which(name)
        if found:
            (tools / name).symlink_to(found)
    environment = {k: v for k, v in os.environ.items() if k not in ("JAVA_HOME", "PYSPARK_SUBMIT_ARGS")}
    environment["PATH"] = str(tools)
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=300)
    assert done.returncode == 2
    assert "Spark needs Java 17 or newer" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_pyspark_the_command_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where PySpark is absent, ``--spark`` ends in one sentence that names the extra, and nothing is written."""
    header, draws = simulated(2, 12)
    path, out = written(tmp_path / "run.parquet", header, draws), tmp_path / "t.parquet"
    for name in ("pyspark", "pyspark.sql"):
        monkeypatch.setitem(sys.modules, name, None)
    assert run(["tally", path, "-o", str(out), "--spark"]) == 2
    assert "pip install 'verdiv[spark]'" in capsys.readouterr().err
    assert not out.exists()


def test_a_gateway_that_dies_is_put_down_to_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark's word for a missing Java becomes a sentence; any other failure stays what it is."""
    said = "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number."

    class Builder:
        def appName(self, name: str) -> Builder:
            return self

        def getOrCreate(self) -> None:
            raise RuntimeError(said)

    fake: Any = types.ModuleType("pyspark.sql")
    fake.SparkSession = types.SimpleNamespace(builder=Builder())
    monkeypatch.setitem(sys.modules, "pyspark", types.ModuleType("pyspark"))
    monkeypatch.setitem(sys.modules, "pyspark.sql", fake)
    with pytest.raises(MissingExtra, match="JAVA_HOME"):
        sparktally._session()
    said = "the cluster is down"
    with pytest.raises(RuntimeError, match="the cluster is down"):
        sparktally._session()


def test_logs_in_another_form_are_refused_before_spark_starts(tmp_path: Path) -> None:
    """Spark reads Parquet logs only; JSONL is refused without a session."""
    header, draws = simulated(2, 12)
    path = tmp_path / "run.runlog.jsonl"
    write_run_log(path, header, draws)
    with pytest.raises(InputRefused, match="Parquet logs only"):
        tally_on_spark([str(path)])
