"""convert on the command line: the ledger closes in print, nothing is written by halves or unasked."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from verdiv.cli.app import run

ROWS = """task,family,attempt,passed,flagged,error_class,cost
t1,f,1,false,true,structural,1
t1,f,2,true,false,,1
t2,f,1,true,false,,1
t3,f,1,,false,,1
"""


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one foreign log, a file that is none, and the shipped template of a mapping."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "A3.csv").write_text(ROWS)
    (tmp_path / "logs" / "notes.md").write_text("nothing")
    assert run(["init", "mapping"]) == 0
    return tmp_path


def test_the_mapping_template_reads_the_logs_it_describes(
    logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What `verdiv init mapping` writes converts the file that its comments describe, missing outcomes kept."""
    assert run(["convert", "--mapping", "mapping.toml", "logs", "-o", "run.runlog.jsonl"]) == 0
    shown = capsys.readouterr().out
    assert "Draws: 4 read = 4 kept + 0 excluded + 0 rejected" in shown
    assert "Missing outcomes: 1" in shown
    assert re.search(r"Files that match nothing, left alone \(1\):\n  logs/notes.md", shown)
    draws = [json.loads(line) for line in (logs / "run.runlog.jsonl").read_text().splitlines()[1:-1]]
    assert [(d["task_id"], d["attempt"], d["correct"], d["prompt_kind"]) for d in draws] == [
        ("t1", 1, False, "initial"),
        ("t1", 2, True, "feedback"),
        ("t2", 1, True, "initial"),
        ("t3", 1, None, "initial"),
    ]
    assert draws[0]["static"]["class"] == "structural"


def test_a_dry_run_shows_rows_and_counts_and_writes_nothing(
    logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The preview lists draws and counts by attempt; the folder stays as it was."""
    before = sorted(os.listdir(logs))
    assert run(["convert", "--mapping", "mapping.toml", "--dry-run", "logs"]) == 0
    shown = capsys.readouterr().out
    assert "First 4 of 4 draws:" in shown
    assert re.search(r"^  f +A3 +1 +3 +1 +1 +1 +1$", shown, re.MULTILINE)
    assert re.search(r"^  f +A3 +2 +1 +1 +0 +0 +0$", shown, re.MULTILINE)
    assert sorted(os.listdir(logs)) == before


def test_rejected_rows_count_under_strict_only(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A row without a task is rejected: 0 with the ledger, 1 and no file under --strict."""
    with (logs / "logs" / "A3.csv").open("a") as stream:
        stream.write(",f,1,true,false,,1\n")
    words = ["convert", "--mapping", "mapping.toml", "logs", "-o", "run.runlog.jsonl"]
    assert run([*words, "--strict"]) == 1
    assert not (logs / "run.runlog.jsonl").exists()
    capsys.readouterr()
    assert run(words) == 0
    assert "Draws: 5 read = 4 kept + 0 excluded + 1 rejected" in capsys.readouterr().out
    assert (logs / "run.runlog.jsonl").exists()


def test_a_file_in_the_way_is_spared(logs: Path) -> None:
    """An output that stands there already is replaced with --force only."""
    out = logs / "run.runlog.jsonl"
    out.write_text("mine")
    words = ["convert", "--mapping", "mapping.toml", "logs", "-o", str(out)]
    assert run(words) == 2
    assert out.read_text() == "mine"
    assert run([*words, "--force"]) == 0
    assert out.read_text().startswith("{")


def test_an_output_is_asked_for(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without -o and without --dry-run there is nothing to do, which is said."""
    assert run(["convert", "--mapping", "mapping.toml", "logs"]) == 2
    assert "--dry-run" in capsys.readouterr().err


def test_the_ledger_is_given_as_json(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --json, standard output is the ledger as one document."""
    assert run(["convert", "--mapping", "mapping.toml", "logs", "-o", "run.runlog.jsonl", "--json"]) == 0
    out = capsys.readouterr().out
    document = json.loads(out[out.index("{") :])
    assert document["closes"]
    assert document["draws"]["kept"] == 4


def test_an_unknown_mapping_lists_the_shipped_ones(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelt name is refused with the names that exist."""
    assert run(["convert", "--mapping", "cruxevil", "logs", "-o", "x.runlog.jsonl"]) == 2
    assert "cruxeval" in capsys.readouterr().err


@pytest.mark.parametrize(
    "mapping, source, draws",
    [
        ("reflexion-alfworld", "reflexion", 698),
        ("structured-output", "structured_output_retry", 413),
        ("cruxeval", "cruxeval", 16000),
    ],
)
def test_public_logs_convert_by_name(
    mapping: str,
    source: str,
    draws: int,
    shared_data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A shipped mapping turns the folder of a public log into a run log whose ledger closes."""
    out = tmp_path / "x.runlog.jsonl"
    assert run(["convert", "--mapping", mapping, str(shared_data / source), "-o", str(out), "--strict"]) == 0
    shown = capsys.readouterr().out
    assert f" read = {draws} kept" in shown
    assert "DOES NOT CLOSE" not in shown
    with out.open() as stream:
        assert sum(1 for _ in stream) == draws + 2
