"""validate and simulate on the command line."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from verdiv import fixtures
from verdiv.cli.app import run
from verdiv.preregistration import check_coverage, read_preregistration
from verdiv.runlog.reader import read_run_log


@pytest.fixture
def log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A small simulated run log."""
    out = tmp_path / "run.runlog.jsonl"
    assert run(["simulate", "--tasks", "6", "--seed", "3", "--world", "worked", "-o", str(out)]) == 0
    assert "Wrote" in capsys.readouterr().out
    return out


def test_a_simulated_run_is_complete_and_fits_the_protocol(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What simulate writes validates, and holds no family or arm that the shipped registration lacks."""
    assert run(["validate", str(log)]) == 0
    assert "complete" in capsys.readouterr().out
    draws = read_run_log(log).draws
    check_coverage(read_preregistration("verifiers-dividend"), set(draws["family"]), set(draws["arm"]))
    assert set(draws["arm"]) == {"A0", "A1", "A2", "A2s", "A3", "A4", "A5"}


def test_every_file_of_the_program_is_told_for_what_it_is(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tallies, locks and suites are read by their own readers, and not refused as logs or results."""
    made = {
        "a sound tally": ("run.tally.parquet", ["tally", str(log)]),
        "a sound lock": ("plan.lock.json", ["lock", "verifiers-dividend"]),
        "a sound suite": ("suite.json", ["suite", "--tasks", "date=3"]),
    }
    for words, (name, command) in made.items():
        assert run([*command, "-o", str(tmp_path / name)]) == 0
        capsys.readouterr()
        assert run(["validate", str(tmp_path / name)]) == 0
        assert words in capsys.readouterr().out
    (tmp_path / "plan.lock.json").write_bytes(
        (tmp_path / "plan.lock.json").read_bytes().replace(b"1", b"2", 1)
    )
    assert run(["validate", str(tmp_path / "plan.lock.json")]) == 2


def test_the_same_seed_gives_the_same_bytes(log: Path, tmp_path: Path) -> None:
    """A simulation is a function of its arguments; another seed gives another run."""
    for seed, same in (("3", True), ("4", False)):
        other = tmp_path / f"{seed}.runlog.jsonl"
        assert run(["simulate", "--tasks", "6", "--seed", seed, "--world", "worked", "-o", str(other)]) == 0
        assert (other.read_bytes() == log.read_bytes()) == same


def test_simulate_spares_files_and_knows_its_worlds(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file in the way and an unknown world are refused."""
    before = log.read_bytes()
    assert run(["simulate", "--tasks", "6", "-o", str(log)]) == 2
    assert log.read_bytes() == before
    assert run(["simulate", "--world", "flat-earth", "-o", str(log), "--force"]) == 2
    assert "plausible" in capsys.readouterr().err
    assert log.read_bytes() == before


def test_all_faults_of_all_files_come_at_once(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every file is looked at, each fault with its line and field, and the command ends with 2."""
    lines = log.read_text().splitlines()
    for number in (3, 5):
        draw = json.loads(lines[number])
        draw["billed"] = -1.0
        lines[number] = json.dumps(draw)
    bad = log.with_name("bad.runlog.jsonl")
    bad.write_text("\n".join(lines) + "\n")
    assert run(["validate", str(bad), str(log), str(log.with_name("none.jsonl"))]) == 2
    shown = capsys.readouterr().out
    assert f"{bad}:4: billed" in shown
    assert f"{bad}:6: billed" in shown
    assert f"{log}: complete" in shown
    assert "none.jsonl: REFUSED, 1 fault\n" in shown
    assert "1 of 3 files are sound" in shown


def test_a_log_without_footer_is_incomplete_and_no_error(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing footer is a finding: 0 by default, 1 where the bar is low enough."""
    cut = log.with_name("cut.runlog.jsonl")
    cut.write_text("\n".join(log.read_text().splitlines()[:-1]) + "\n")
    assert run(["validate", str(cut)]) == 0
    assert "incomplete" in capsys.readouterr().out
    assert run(["validate", "--fail-on", "low", str(cut)]) == 1


def test_an_edited_line_is_refused(log: Path) -> None:
    """A changed outcome breaks the chain, whatever it says."""
    text = log.read_text()
    assert text.count('"correct":true') > 1
    log.write_text(text.replace('"correct":true', '"correct":false', 1))
    assert run(["validate", str(log)]) == 2


def test_standard_input_is_validated(
    log: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A dash is a run log on standard input."""

    class Stdin:
        buffer = io.BytesIO(log.read_bytes())

    monkeypatch.setattr(sys, "stdin", Stdin())
    assert run(["validate", "-"]) == 0
    assert "-: complete" in capsys.readouterr().out


def test_registrations_and_mappings_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A .toml file is judged as what it is, and a damaged one is refused with its line."""
    for kind in ("preregistration", "mapping"):
        (tmp_path / f"{kind}.toml").write_bytes(fixtures.read_bytes("templates", kind))
    assert run(["validate", str(tmp_path / "preregistration.toml"), str(tmp_path / "mapping.toml")]) == 0
    shown = capsys.readouterr().out
    assert "a sound registration" in shown
    assert "a sound mapping" in shown
    text = (tmp_path / "preregistration.toml").read_text().replace("gamma = 0.95", "gamma = 2")
    (tmp_path / "preregistration.toml").write_text(text)
    assert run(["validate", str(tmp_path / "preregistration.toml")]) == 2
    line = text[: text.index("gamma = 2")].count("\n") + 1
    assert f"preregistration.toml:{line}: decision.gamma" in capsys.readouterr().out


def test_a_bound_below_the_worst_case_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The paper's own 27.5 cannot hold the worst case of its arms, 28.5: said, and not refused."""
    text = fixtures.read_bytes("preregistrations", "verifiers-dividend").decode()
    (tmp_path / "plan.toml").write_text(
        text.replace("declared_bound_units = 28.5", "declared_bound_units = 27.5")
    )
    assert run(["validate", str(tmp_path / "plan.toml")]) == 0
    assert "27.5 units, is below the worst case" in capsys.readouterr().out
