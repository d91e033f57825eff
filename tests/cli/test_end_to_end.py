"""The whole command on real work: bundled run to report, and accidents on the way."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from verdiv.cli.app import run
from verdiv.reports import load_document
from verdiv.reports.words import RULES


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Output folder of the demo, on the grid."""
    folder = tmp_path_factory.mktemp("demo") / "out"
    assert run(["demo", "--engine", "grid", "-o", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run log."""
    log = tmp_path_factory.mktemp("log") / "small.runlog.jsonl"
    assert run(["simulate", "--tasks", "9", "--replicates", "2", "-o", str(log)]) == 0
    return log


def without_meta(folder: Path) -> dict[str, Any]:
    """Return results.json without times and versions."""
    document: dict[str, Any] = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    del document["meta"]
    return document


def test_the_demo_reports_every_rule_of_the_registered_protocol(demo: Path) -> None:
    """The demo's results follow their schema, are registered, and hold a verdict or a reason for all ten."""
    document = load_document(demo / "results.json")
    assert document["mode"] == "registered"
    assert list(document["rules"]) == list(RULES)
    for rule in document["rules"].values():
        assert rule["verdict"] in ("supported", "falsified", "inconclusive", "untestable", "void")
        assert rule["reason"]
    page = (demo / "report.md").read_text(encoding="utf-8")
    assert all(f"{name} " in page and words.name in page for name, words in RULES.items())


def test_reports_are_rendered_again_to_the_byte(demo: Path, tmp_path: Path) -> None:
    """`verdiv report` gives the pages that the analysis wrote, from results.json alone."""
    shutil.copy(demo / "results.json", tmp_path / "results.json")
    assert run(["report", str(tmp_path)]) == 0
    for name in ("report.html", "report.md"):
        assert (tmp_path / name).read_bytes() == (demo / name).read_bytes()
    assert run(["report", str(tmp_path / "results.json"), "-o", str(tmp_path / "new")]) == 0
    assert (tmp_path / "new" / "report.md").read_bytes() == (demo / "report.md").read_bytes()


def test_the_same_seed_gives_the_same_results(small: Path, tmp_path: Path) -> None:
    """Inputs and seed determine results.json, times and versions aside; another seed changes it."""
    for name, seed in (("a", "5"), ("b", "5"), ("c", "6")):
        words = ["analyze", str(small), "--engine", "grid", "--seed", seed, "-o", str(tmp_path / name)]
        assert run(words) == 0
    first, second, other = (without_meta(tmp_path / name) for name in "abc")
    assert first == second
    assert first["estimates"] != other["estimates"]


def test_an_exploratory_report_says_so_in_its_first_line(small: Path, tmp_path: Path) -> None:
    """Without a registration, the first line of the page is the warning."""
    assert run(["analyze", str(small), "--engine", "grid", "-o", str(tmp_path / "out")]) == 0
    first = (tmp_path / "out" / "report.md").read_text(encoding="utf-8").strip().splitlines()[0]
    assert "exploratory" in first.lower()


def test_a_family_that_the_registration_does_not_know_is_refused(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A family without a weight ends the analysis with its name; nothing is written."""
    plan = tmp_path / "plan.toml"
    assert run(["init", "-o", str(plan)]) == 0
    text = plan.read_text().replace("filter = 13", "poems = 13").replace("filter = 0.325", "poems = 0.325")
    plan.write_text(text)
    words = ["analyze", str(small), "--engine", "grid", "--prereg", str(plan), "-o", str(tmp_path / "out")]
    assert run(words) == 2
    assert "filter" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("place", ["/proc/verdiv-out", "/dev/null/out"])
def test_a_place_that_cannot_be_written_is_said(
    place: str, small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the system makes no folder, the command ends with 2 and the place, without a traceback."""
    assert run(["analyze", str(small), "--engine", "grid", "-o", place]) == 2
    shown = capsys.readouterr().err
    assert place in shown
    assert "Traceback" not in shown


def test_a_disk_that_fills_up_leaves_nothing_by_halves(small: Path, tmp_path: Path) -> None:
    """When writing fails on the way, the command ends with 2 and no file is there."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    out = tmp_path / "out"
    done = subprocess.run(
        [sys.executable, "-m", "verdiv", "analyze", str(small), "--engine", "grid", "-o", str(out)],
        preexec_fn=limit,
        env={"PYTHONDONTWRITEBYTECODE": "1", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert [path for path in tmp_path.rglob("*") if not path.is_dir()] == []
