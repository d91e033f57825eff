"""Simulated runs are run logs: written, chained, read back the same, and the shipped one can be made again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import zstandard

from verdiv import fixtures
from verdiv.errors import UsageRefused
from verdiv.protocol.simulator.design import ConditionDesign, Design
from verdiv.protocol.simulator.runlog import (
    SHIPPED_RUN,
    simulate_run_log,
    simulate_to_file,
    write_shipped_run,
)
from verdiv.protocol.simulator.scenarios import named_world
from verdiv.protocol.simulator.table import simulate
from verdiv.runlog.reader import read_run_log
from verdiv.runlog.table import draws_frame
from verdiv.runlog.writer import write_run_log

WORLD = named_world("plausible")
DESIGN = Design(tasks=30, conditions=(ConditionDesign(name="nvfp4"), ConditionDesign(name="heavy-load")))


def test_records_and_table_are_the_same_draws() -> None:
    """The draw records, turned into a table again, are the simulated table."""
    header, draws = simulate_run_log(WORLD, DESIGN, 5)
    pd.testing.assert_frame_equal(draws_frame(draws), simulate(WORLD, DESIGN, 5))
    assert header.note is not None
    assert header.note.startswith("Simulated")
    assert header.gate.value == "verifier"
    assert set(header.models) == {"small", "teacher"}


@pytest.mark.parametrize("ending", ["runlog.jsonl", "runlog.jsonl.gz", "runlog.jsonl.zst", "runlog.parquet"])
def test_a_written_run_reads_back_the_same(tmp_path: Path, ending: str) -> None:
    """Writer and reader give the simulated table back, complete and without a finding, in every storage."""
    path = tmp_path / f"run.{ending}"
    write_run_log(path, *simulate_run_log(WORLD, DESIGN, 5))
    log = read_run_log(path)
    pd.testing.assert_frame_equal(log.draws, simulate(WORLD, DESIGN, 5))
    assert log.inputs[0].status == "complete"
    assert log.findings == ()


def test_simulate_to_file_is_the_command(tmp_path: Path) -> None:
    """The command's body writes the named world under its conditions, with as many seeds as asked for."""
    path = tmp_path / "run.runlog.jsonl"
    done = simulate_to_file(path, tasks=12, seed=3, replicates=2, world="null+sticky", a3_stochastic=True)
    log = read_run_log(path)
    assert done.draws == len(log.draws)
    assert log.draws["task_id"].nunique() == 12
    assert set(log.draws["condition"]) == {"primary", "nvfp4", "heavy-load"}
    assert set(log.draws["replicate"]) == {0, 1}
    assert (log.draws["temperature"][log.draws["arm"] == "A3"] > 0).all()
    assert "null+sticky" in (log.headers[0].note or "")
    with pytest.raises(UsageRefused):
        simulate_to_file(tmp_path / "x.runlog.jsonl", world="nowhere")
    assert not (tmp_path / "x.runlog.jsonl").exists()


def _plain(data: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompressobj().decompress(data)


def test_the_shipped_run_can_be_made_again(tmp_path: Path) -> None:
    """The simulated run in the package is what its command writes, byte for byte, and small."""
    path = tmp_path / SHIPPED_RUN
    write_shipped_run(path)
    shipped = fixtures.read_bytes("runs", SHIPPED_RUN.removesuffix(".runlog.jsonl.zst"))
    assert _plain(path.read_bytes()) == _plain(shipped)
    assert len(shipped) < 400_000


def test_the_shipped_run_is_a_whole_protocol() -> None:
    """It has 40 tasks in three families, seven arms, three seeds and both further conditions."""
    with fixtures.as_path("runs", SHIPPED_RUN.removesuffix(".runlog.jsonl.zst")) as path:
        log = read_run_log(path)
    draws = log.draws
    assert log.inputs[0].status == "complete"
    assert draws.groupby("family")["task_id"].nunique().to_dict() == {
        "arithmetic": 14,
        "date": 13,
        "filter": 13,
    }
    assert set(draws["arm"]) == {"A0", "A1", "A2", "A2s", "A3", "A4", "A5"}
    assert set(draws["condition"]) == {"primary", "nvfp4", "heavy-load"}
    assert set(draws["seed"].dropna()) == {1, 2, 3}
    silent = draws["correct"].eq(False) & draws["flagged"].eq(False)
    assert silent.any()
    assert set(draws["error_class"].dropna()) == {"structural", "semantic"}


def test_importing_the_simulator_is_light() -> None:
    """The package imports nothing heavy; its modules are imported where they are used, without statistics."""
    code = (
        "import sys, verdiv.protocol.simulator; assert 'numpy' not in sys.modules;"
        "import verdiv.protocol.simulator.runlog;"
        "assert not {'scipy.stats', 'pymc', 'arviz', 'matplotlib'} & sys.modules.keys()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
