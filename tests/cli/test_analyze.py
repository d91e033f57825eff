"""analyze, demo and report around a stand-in for the main job: folders, exit codes, what the terminal shows."""

from __future__ import annotations

import copy
import io
import types
from pathlib import Path
from typing import Any

import pytest

import verdiv.analysis
from verdiv.cli.app import run
from verdiv.cli.options import ExitOnName, Severity
from verdiv.cli.run_analysis import exit_code
from verdiv.cli.summary import print_summary
from verdiv.errors import FitFailed
from verdiv.estimators.settings import Settings
from verdiv.reports.words import RULES

DOCUMENT: dict[str, Any] = {
    "schema": 1,
    "title": "A run",
    "mode": "registered",
    "preregistration": {"digest": "ab" * 32, "status": "read"},
    "estimates": {
        "q0": {
            "status": "estimated",
            "mean": 0.8012345,
            "low": 0.71,
            "high": 0.88,
            "interval": {"kind": "eti", "probability": 0.95},
            "k": 96,
            "n": 120,
        },
        "sigma": {"status": "not_estimable", "reason": "no draw has an error class"},
    },
    "break_even": {"B_star": {"2": 0.97, "3": 0.0, "none": 0.03}, "B_max": 5},
    "rules": {
        name: {"verdict": "untestable", "reason": f"arm of {name} is missing", "probability_claim": None}
        for name in RULES
    },
    "findings": [],
    "diagnostics": {"status": "passed", "reasons": []},
}
DOCUMENT["rules"]["P1"] = {"verdict": "supported", "reason": "inside", "probability_claim": 0.991}
DOCUMENT["rules"]["P3"] = {"verdict": "falsified", "reason": "beyond", "probability_claim": 0.004}


def changed(**parts: Any) -> dict[str, Any]:
    """Return the document with some parts replaced."""
    return {**copy.deepcopy(DOCUMENT), **parts}


class MainJob:
    """Stands in for the main job: notes what it was asked, and writes one file."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.calls: list[dict[str, Any]] = []

    def analyze(self, logs: list[str], **settings: Any) -> types.SimpleNamespace:
        """Note the call."""
        settings["progress"]("estimating", 1, 2)
        self.calls.append({"logs": logs, **settings})
        return types.SimpleNamespace(document=self.document, idata=None)

    def write_outputs(self, result: Any, folder: Path, force: bool) -> None:
        """Write one file."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "results.json").write_text("{}")


@pytest.fixture
def main_job(monkeypatch: pytest.MonkeyPatch) -> MainJob:
    """Put a stand-in into the place of the main job."""
    job = MainJob(copy.deepcopy(DOCUMENT))
    monkeypatch.setattr(verdiv.analysis, "analyze", job.analyze, raising=False)
    monkeypatch.setattr(verdiv.analysis, "write_outputs", job.write_outputs, raising=False)
    return job


def test_options_reach_the_main_job(main_job: MainJob, tmp_path: Path) -> None:
    """Every option of the command line is handed on as it was given."""
    words = "a.jsonl - --prereg verifiers-dividend --engine nuts --check-engine"
    words += " --draws 500 --chains 2 --cores 1 --seed 7"
    assert run(["analyze", *words.split(), "-o", str(tmp_path / "out")]) == 0
    call = main_job.calls[0]
    assert call["logs"] == ["a.jsonl", "-"]
    assert call["preregistration"].digest is not None
    assert call["settings"] == Settings("nuts", check_engine=True, draws=500, chains=2, cores=1, seed=7)
    assert run(["analyze", "a.jsonl", "-o", str(tmp_path / "other")]) == 0
    assert main_job.calls[1]["preregistration"] is None
    others = main_job.calls[1]["settings"]
    assert others.cores >= 1
    assert others == Settings(cores=others.cores)


def test_a_folder_in_use_is_refused_before_any_work(
    main_job: MainJob, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Results are never mixed with what stands there, unless --force says so."""
    (tmp_path / "note.txt").write_text("mine")
    assert run(["analyze", "a.jsonl", "-o", str(tmp_path)]) == 2
    assert "--force" in capsys.readouterr().err
    assert main_job.calls == []
    assert run(["analyze", "a.jsonl", "-o", str(tmp_path), "--force"]) == 0
    assert run(["analyze", "a.jsonl", "-o", str(tmp_path / "note.txt")]) == 2
    assert (tmp_path / "note.txt").read_text() == "mine"


def test_a_refused_registration_stops_before_any_work(main_job: MainJob, tmp_path: Path) -> None:
    """A registration that does not read ends with 2; nothing was computed and nothing written."""
    plan = tmp_path / "plan.toml"
    plan.write_text("schema = 1\n")
    assert run(["analyze", "a.jsonl", "--prereg", str(plan), "-o", str(tmp_path / "out")]) == 2
    assert main_job.calls == []
    assert not (tmp_path / "out").exists()


def test_a_failing_main_job_leaves_no_folder(
    main_job: MainJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error on the way out of the main job keeps its code, and the output folder is not made."""

    def fails(logs: list[str], **settings: Any) -> None:
        raise FitFailed("The chains disagree.")

    monkeypatch.setattr(verdiv.analysis, "analyze", fails)
    assert run(["analyze", "a.jsonl", "-o", str(tmp_path / "out")]) == 4
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "parts, fail_on, exit_on, code",
    [
        ({}, "high", None, 0),
        ({}, "high", "falsified", 1),
        ({"rules": {"P1": {"verdict": "supported"}}}, "high", "falsified", 0),
        ({"findings": [{"severity": "high", "message": "m"}]}, "high", None, 1),
        ({"findings": [{"severity": "critical", "message": "m"}]}, "high", None, 1),
        ({"findings": [{"severity": "medium", "message": "m"}]}, "high", None, 0),
        ({"findings": [{"severity": "medium", "message": "m"}]}, "low", None, 1),
        ({"findings": [{"severity": "critical", "message": "m"}]}, "never", None, 0),
        ({"diagnostics": {"status": "failed", "reasons": []}}, "never", None, 4),
        ({"preregistration": {"status": "broken"}, "diagnostics": {"status": "failed"}}, "high", None, 3),
    ],
)
def test_the_exit_code_follows_the_document(
    parts: dict[str, Any], fail_on: str, exit_on: str | None, code: int
) -> None:
    """A falsified rule is a result; findings count from the bar on; a failed fit and a broken lock come first."""
    asked = None if exit_on is None else ExitOnName(exit_on)
    assert exit_code(changed(**parts), Severity(fail_on), asked) == code


def shown(document: dict[str, Any], encoding: str = "utf-8") -> str:
    """Return what a stream that is no terminal receives."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    print_summary(document, Path("out"), stream)
    stream.flush()
    return raw.getvalue().decode(encoding)


def test_every_rule_is_shown_with_a_word() -> None:
    """All ten rules are listed in order, each with its sign and its word, its probability and its reason."""
    text = shown(DOCUMENT)
    places = [text.index(f"{name} {words.name}") for name, words in RULES.items()]
    assert places == sorted(places)
    assert "✓ supported" in text
    assert "✗ falsified" in text
    assert text.count("– untestable") == 8
    assert "arm of R4 is missing" in text
    assert "report.html" in text


def test_headline_estimates_keep_missing_ones_missing() -> None:
    """An estimate is rounded by its interval, with its counts; one without draws is named, never a number."""
    lines = {line.split("  ")[0]: line for line in shown(DOCUMENT).splitlines()}
    q0 = next(line for line in lines.values() if line.startswith("q0 "))
    assert "0.801 " in q0
    assert "0.710 to 0.880 (equal-tailed 95%)" in q0
    assert "96/120 draws" in q0
    sigma = next(line for line in lines.values() if line.startswith("σ "))
    assert "not estimable" in sigma
    assert "no draw has an error class" in sigma


def test_trouble_is_said_in_the_terminal() -> None:
    """Exploratory mode, a failed fit and the gravest findings stand in the terminal, too."""
    findings = [{"severity": "high", "message": f"finding {number}"} for number in range(5)]
    text = shown(
        changed(
            mode="exploratory", findings=findings, diagnostics={"status": "failed", "reasons": ["R-hat 1.2"]}
        )
    )
    assert "EXPLORATORY" in text.splitlines()[0]
    assert "HIGH: finding 2" in text
    assert "2 more findings" in text
    assert "R-hat 1.2" in text


def test_a_narrow_encoding_gets_signs_that_it_has() -> None:
    """Where the terminal's encoding has no check mark, ASCII signs stand before the same words."""
    text = shown(DOCUMENT, "ascii")
    assert "+ supported" in text
    assert "x falsified" in text
    assert "- untestable" in text


def test_hostile_titles_cannot_steer_the_terminal() -> None:
    """Control characters of a document never reach the terminal."""
    assert "\x1b" not in shown(changed(title="\x1b[2Jgone"))


def test_a_terminal_gets_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal, Rich draws the table, with the same words."""
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.setenv("TERM", "xterm-256color")

    class Terminal(io.StringIO):
        encoding = "utf-8"

        def isatty(self) -> bool:
            return True

    stream = Terminal()
    print_summary(DOCUMENT, None, stream)
    text = stream.getvalue()
    assert "✓ supported" in text
    assert "arm of R4 is missing" in text
    assert "\x1b[" in text
