"""Tallies: counted bucket by bucket from either form of a log, stored, joined, and analysed to the same numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from verdiv.analysis import tallying
from verdiv.analysis.gather import gather
from verdiv.analysis.run import analyze, analyze_gathered
from verdiv.analysis.tallyfile import CONTENT, VERSION, is_tally, read_tally, write_tally
from verdiv.analysis.tallying import tally_logs
from verdiv.cli.app import run
from verdiv.errors import InputRefused, UsageRefused
from verdiv.estimators.settings import Settings
from verdiv.preregistration import Preregistration, read_preregistration
from verdiv.protocol.simulator.design import Design
from verdiv.protocol.simulator.runlog import simulate_run_log
from verdiv.protocol.simulator.scenarios import named_world
from verdiv.runlog.reader import iter_draws, read_run_log, read_run_logs
from verdiv.runlog.writer import write_run_log

PLAN = "verifiers-dividend"

QUICK = Settings(draws=100)
"""Few draws: what is compared here does not depend on their number."""


def simulated(path: Path, tasks: int = 30, seed: int = 5, **options: Any) -> Path:
    """Write a simulated run."""
    header, draws = simulate_run_log(named_world("plausible"), Design(tasks=tasks, **options), seed)
    write_run_log(path, header, draws)
    return path


def numbers(document: dict[str, Any]) -> dict[str, Any]:
    """Drop what tells of the call and not of the run."""
    return {key: value for key, value in document.items() if key not in ("meta",)}


def assert_alike(first: Any, second: Any, place: str = "") -> None:
    """Compare documents: words exactly, numbers to the rounding of their sums."""
    if isinstance(first, dict):
        assert first.keys() == second.keys(), place
        for key in first:
            assert_alike(first[key], second[key], f"{place}/{key}")
    elif isinstance(first, list):
        assert len(first) == len(second), place
        for i, (a, b) in enumerate(zip(first, second, strict=True)):
            assert_alike(a, b, f"{place}/{i}")
    elif isinstance(first, float):
        assert second == pytest.approx(first, rel=1e-9, abs=1e-12), place
    else:
        assert first == second, place


def from_logs(
    paths: list[str], *, preregistration: Preregistration | None = None, settings: Settings = QUICK
) -> dict[str, Any]:
    """Analyse logs without their audit, which a tally has no draws for."""
    return analyze_gathered(gather(read_run_logs(paths), preregistration), settings=settings).document


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a simulated run of 30 tasks with every arm and condition."""
    return simulated(tmp_path_factory.mktemp("log") / "run.runlog.jsonl")


@pytest.mark.parametrize("plan", [None, PLAN])
def test_a_tally_gives_the_results_of_its_log(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: str | None
) -> None:
    """Counted in many buckets, stored and read again, a run has the same numbers, verdicts and findings."""
    monkeypatch.setattr(tallying, "BUCKET_ROWS", 100)
    registration = None if plan is None else read_preregistration(plan)
    counts = tally_logs([str(log)], preregistration=registration)
    write_tally(tmp_path / "t.parquet", counts)
    assert is_tally(tmp_path / "t.parquet")
    assert not is_tally(log)
    options: dict[str, Any] = {"preregistration": registration, "settings": QUICK}
    expected = from_logs([str(log)], **options)
    found = analyze([str(tmp_path / "t.parquet")], **options).document
    assert_alike(numbers(expected), numbers(found))


def test_both_forms_of_a_log_have_one_tally(log: Path, tmp_path: Path) -> None:
    """JSONL and Parquet of the same draws differ in nothing but the file they name."""
    twin = simulated(tmp_path / "run.runlog.parquet")
    first, second = tally_logs([str(log)]), tally_logs([str(twin)])
    write_tally(tmp_path / "a", first)
    write_tally(tmp_path / "b", second)
    a, b = pq.read_table(tmp_path / "a"), pq.read_table(tmp_path / "b")
    assert a.schema.names == b.schema.names
    assert a.equals(b)
    assert first.account == second.account
    assert first.shards["primary"].facts == second.shards["primary"].facts


def test_bucketing_changes_no_count(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a run is counted at once or task group by task group, every column is the same."""
    whole = tally_logs([str(log)])
    monkeypatch.setattr(tallying, "BUCKET_ROWS", 50)
    parts = tally_logs([str(log)])
    assert whole.tasks.tasks == parts.tasks.tasks
    for condition, shard in whole.shards.items():
        other = parts.shards[condition]
        assert shard.events.keys() == other.events.keys()
        assert shard.cells.keys() == other.cells.keys()
        for stage, events in shard.events.items():
            np.testing.assert_allclose(events.k, other.events[stage].k, rtol=0, atol=1e-12, err_msg=stage)
            np.testing.assert_allclose(events.n, other.events[stage].n, rtol=0, atol=1e-12, err_msg=stage)
        for key, cell in shard.cells.items():
            np.testing.assert_array_equal(cell.k, other.cells[key].k)
            np.testing.assert_array_equal(cell.bill, other.cells[key].bill)
        assert shard.facts.sums == pytest.approx(other.facts.sums)


def renamed(path: Path, out: Path, prefix: str) -> Path:
    """Copy a Parquet log with other task and run names."""
    header = msgspec.structs.replace(read_run_log(path).headers[0], run_id=f"{prefix}run")
    draws = (msgspec.structs.replace(d, task_id=prefix + d.task_id, prev=None) for d in iter_draws(path))
    write_run_log(out, header, draws)
    return out


def test_tallies_of_different_tasks_are_analysed_as_their_logs(log: Path, tmp_path: Path) -> None:
    """Two tallies named together give what the two logs give together."""
    other = renamed(simulated(tmp_path / "x.runlog.jsonl", seed=6), tmp_path / "b.runlog.jsonl", "b-")
    tallies = []
    for i, path in enumerate((log, other)):
        tallies.append(str(tmp_path / f"{i}.parquet"))
        write_tally(tallies[-1], tally_logs([str(path)], max_budget=5))
    expected = from_logs([str(log), str(other)])
    found = analyze(tallies, settings=QUICK).document
    drop = {"findings"}  # the logs say more: which draw ids stand in both
    halves = "P4"  # each log is halved by its own clock
    for document in (expected, found):
        document["rules"].pop(halves)
        for key in ("sensitivity", "conjunction", "expected_wrong_verdicts", *drop):
            document.pop(key)
    assert_alike(numbers(expected), numbers(found))
    counts = tally_logs([str(log), str(other)])
    assert len(counts.tasks.tasks) == 60


def test_the_same_tasks_in_two_tallies_are_refused(log: Path, tmp_path: Path) -> None:
    """Counts of one task made apart cannot be added without losing who copies whom; the logs can be tallied at once."""
    path = tmp_path / "t.parquet"
    write_tally(path, tally_logs([str(log)]))
    with pytest.raises(InputRefused, match="tally the logs together"):
        analyze([str(path), str(path)])
    with pytest.raises(UsageRefused, match="tally the logs first"):
        analyze([str(path), str(log)])


def test_a_tally_made_for_another_plan_is_refused(log: Path, tmp_path: Path) -> None:
    """Late repairs are counted up to one largest budget, and exclusions are taken out before counting."""
    path = tmp_path / "t.parquet"
    write_tally(path, tally_logs([str(log)], max_budget=3))
    with pytest.raises(InputRefused, match="max_budget"):
        analyze([str(path)], preregistration=read_preregistration(PLAN))


def broken(path: Path, out: Path, change: Any) -> Path:
    """Write a tally with changed columns and metadata."""
    table = pq.read_table(path)
    table, metadata = change(table, dict(table.schema.metadata))
    pq.write_table(table.replace_schema_metadata(metadata), out)
    return out


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda t, m: (t, {**m, VERSION: b"99"}), "update verdiv"),
        (lambda t, m: (t, {**m, CONTENT: m[CONTENT][:-5]}), "metadata of a tally"),
        (lambda t, m: (t.drop_columns([t.schema.names[5]]), m), "a column"),
        (lambda t, m: (pa.concat_tables([t, t]), m), "each task once"),
        (
            lambda t, m: (t.set_column(5, t.schema.names[5], pa.array(np.full(len(t), np.nan))), m),
            "finite numbers",
        ),
    ],
)
def test_a_broken_tally_is_refused(log: Path, tmp_path: Path, change: Any, match: str) -> None:
    """A tally is hostile input: what does not belong together is named and refused."""
    path = tmp_path / "t.parquet"
    write_tally(path, tally_logs([str(log)]))
    with pytest.raises(InputRefused, match=match):
        read_tally(broken(path, tmp_path / "broken.parquet", change))


def test_the_command_tallies_and_analyses(log: Path, tmp_path: Path) -> None:
    """``verdiv tally`` writes what ``verdiv analyze`` takes, and touches no file that stands there."""
    out = tmp_path / "t.parquet"
    assert run(["tally", str(log), "-o", str(out)]) == 0
    assert run(["tally", str(log), "-o", str(out)]) == 2
    assert run(["analyze", str(out), "-o", str(tmp_path / "out"), "--draws", "100"]) in (0, 1)
    assert (tmp_path / "out" / "results.json").exists()
