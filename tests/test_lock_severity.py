"""Severity by simulation in a lock: what it holds, that it can be made again, and that the report shows it."""

from __future__ import annotations

import copy
import html
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sample_document import sample_document
from verdiv import fixtures
from verdiv.analysis import analyze_log, severity
from verdiv.analysis.severity import STEADY, planned_design, planned_world, simulate_severity
from verdiv.cli.app import run
from verdiv.errors import UsageRefused
from verdiv.estimators.settings import Settings
from verdiv.preregistration.lock import lock_bytes, locked_plan, record_of
from verdiv.preregistration.lockfile import read_lock
from verdiv.preregistration.plan import Preregistration
from verdiv.preregistration.reader import parse_preregistration
from verdiv.preregistration.rules import RULE_IDS
from verdiv.preregistration.severity import LETTERS, severity_faults, severity_shares
from verdiv.preregistration.verify import CheckOutcome, verify_lock
from verdiv.protocol.simulator.scenarios import named_world
from verdiv.protocol.simulator.table import simulate
from verdiv.reports import render_html, render_markdown, validate_document
from verdiv.runlog.records import Gate, Header
from verdiv.runlog.table import InputFile, RunLog

EDITS = (
    (b"tasks = 40\n", b"tasks = 9\n"),
    (b"{ arithmetic = 14, date = 13, filter = 13 }", b"{ arithmetic = 4, date = 3, filter = 2 }"),
)


def small(*edits: tuple[bytes, bytes]) -> bytes:
    """The shipped registration with nine tasks."""
    data = fixtures.read_bytes("preregistrations", "verifiers-dividend")
    for old, new in (*EDITS, *edits):
        assert old in data
        data = data.replace(old, new)
    return data


def plan(*edits: tuple[bytes, bytes]) -> Preregistration:
    """It, read."""
    return parse_preregistration(small(*edits), "plan")


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lock with one simulated run a world."""
    folder = tmp_path_factory.mktemp("lock")
    (folder / "preregistration.toml").write_bytes(small())
    assert run(["lock", str(folder / "preregistration.toml"), "--severity", "1", "--seed", "4"]) == 0
    return folder / "preregistration.lock.json"


def severity_check(path: Path, **options: Any) -> tuple[CheckOutcome, str]:
    """Outcome and words of the check."""
    report = verify_lock(path, use_git=False, **options)
    found = next(c for c in report.checks if c.check == "lock.severity")
    assert report.broken == (found.outcome is CheckOutcome.FINDING)
    return found.outcome, found.message


def test_simulated_verdicts_are_those_of_an_analysis_of_the_same_run(
    locked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each letter is the verdict that the whole analysis gives a simulated run of the registered design."""
    monkeypatch.setattr(severity, "DRAWS", 4000)
    registered = plan().with_origin(source="nowhere", digest="0" * 64)
    record = simulate_severity(registered, 1, 4)
    design = planned_design(registered)
    for name in ("null+teacher-ahead", "null+burst"):
        table = simulate(planned_world(registered, name), design, 4)
        header = Header(schema=1, run_id="x", gate=Gate.VERIFIER, harness="simulator")
        source = InputFile("simulated", "0" * 64, len(table), 9, "complete", "verifier")
        document = analyze_log(
            RunLog((header,), table, (source,), ()),
            preregistration=registered,
            settings=Settings(draws=500, seed=4, archive=False),
        ).document
        for rule in RULE_IDS:
            told = record["rules"][rule]["false"]
            if told is not None and told["world"] == name:
                assert LETTERS[document["rules"][rule]["verdict"]] == told["verdicts"]
    stored = read_lock(locked).first["severity"]
    assert stored["rules"].keys() == record["rules"].keys()
    assert (stored["runs"], stored["seed"]) == (1, 4)


def test_the_simulated_design_is_the_registered_one() -> None:
    """Tasks by family, seeds, budgets, decoding, conditions and prices are the registration's, whatever its order."""
    registered = plan((b"rho = 2.5", b"rho = 3.5"), (b"cost_units = 2.5", b"cost_units = 3.5"))
    design, world = planned_design(registered), planned_world(registered, "null+quantized")
    assert world.task_counts(design.tasks) == {"arithmetic": 4, "date": 3, "filter": 2}
    assert (design.seeds, design.greedy_reruns) == (registered.seeds, registered.greedy_reruns)
    assert design.budgets == {name: arm.budget for name, arm in registered.arms.items()}
    assert design.a3_stochastic == (registered.arms["A3"].temperature != 0)
    assert {c.name for c in design.conditions} == set(registered.conditions)
    assert world.rho == 3.5
    assert world.effect(registered.rules.R3.condition).q_logit == -1.0
    turned = registered.model_copy(update={"families": dict(reversed(registered.families.items()))})
    assert planned_world(turned, "null") == planned_world(registered, "null")
    assert planned_world(registered, STEADY).greedy.flip == 0.0 < named_world("null").greedy.flip


def test_a_claim_that_no_world_breaks_under_a_design_says_so() -> None:
    """Seeds move sampled draws only: with a greedy A3 nothing falsifies R1, and one family cannot falsify R2."""
    registered = plan()
    assert not planned_design(registered).a3_stochastic
    worlds = severity._worlds(registered)
    assert worlds["R1"] == ("null", None)
    assert worlds["R2"][1] == "null+odd-family"
    assert worlds["P1"][0] == STEADY


@pytest.mark.parametrize("edit", [(b'gate = "verifier"', b'gate = "truth"')])
def test_a_design_that_the_simulator_does_not_know_is_refused_before_anything_is_written(
    edit: tuple[bytes, bytes], tmp_path: Path
) -> None:
    """The refusal names the way out, and no lock is left behind."""
    with pytest.raises(UsageRefused) as caught:
        planned_design(plan(edit))
    assert "without --severity" in str(caught.value.faults[0])
    (tmp_path / "preregistration.toml").write_bytes(small(edit))
    assert run(["lock", str(tmp_path / "preregistration.toml"), "--severity", "1"]) != 0
    assert not (tmp_path / "preregistration.lock.json").exists()


def test_a_lock_without_severity_is_what_it_was(tmp_path: Path) -> None:
    """Simulation is asked for or not done; the check then does not apply."""
    (tmp_path / "preregistration.toml").write_bytes(small())
    assert run(["lock", str(tmp_path / "preregistration.toml")]) == 0
    path = tmp_path / "preregistration.lock.json"
    assert "severity" not in read_lock(path).first
    assert severity_check(path)[0] is CheckOutcome.NOT_APPLICABLE


def test_verify_simulates_again_where_asked(locked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From the plan as the lock holds it the same verdicts come out; without being asked nothing is simulated."""
    assert severity_check(locked) == (
        CheckOutcome.PASS,
        "verdicts of 1 simulated runs a world, seed 4, not simulated again",
    )
    assert run(["verify", str(locked), "--severity"]) == 0
    assert "the same when simulated again" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("edit", "again", "outcome"),
    [
        (lambda r: r["rules"]["P6"]["false"].update(verdicts="i"), False, CheckOutcome.PASS),
        (lambda r: r["rules"]["P6"]["false"].update(verdicts="i"), True, CheckOutcome.FINDING),
        (lambda r: r["versions"].update(numpy="0.1"), True, CheckOutcome.COULD_NOT_RUN),
        (lambda r: r["rules"]["P6"]["false"].update(verdicts="ss"), False, CheckOutcome.FINDING),
        (lambda r: r["rules"]["P6"]["false"].update(verdicts="x"), False, CheckOutcome.FINDING),
        (lambda r: r["rules"].pop("R4"), False, CheckOutcome.FINDING),
        (lambda r: r["rules"]["P1"].update(true=None), False, CheckOutcome.FINDING),
        (lambda r: r.update(runs=0), False, CheckOutcome.FINDING),
        (lambda r: r.update(seed="x"), False, CheckOutcome.FINDING),
    ],
)
def test_forged_severities_with_new_digests(
    locked: Path, tmp_path: Path, edit: Callable[[dict[str, Any]], None], again: bool, outcome: CheckOutcome
) -> None:
    """What does not hold together is found at once, a changed verdict when it is simulated again."""
    body = copy.deepcopy(dict(read_lock(locked).first))
    honest = copy.deepcopy(body["severity"])
    edit(body["severity"])
    (tmp_path / "preregistration.toml").write_bytes(small())
    path = tmp_path / "preregistration.lock.json"
    path.write_bytes(lock_bytes([record_of(body)]))
    assert severity_check(path, again=(lambda *_: honest) if again else None)[0] is outcome


def test_what_the_lock_holds_is_made_from_the_plan_in_it(locked: Path) -> None:
    """Equal arguments give an equal record, from the lock's plan, whose tables have lost their order."""
    body = read_lock(locked).first
    assert simulate_severity(locked_plan(body), 1, 4) == body["severity"]
    assert not list(severity_faults(body["severity"]))


def test_the_report_shows_what_was_simulated(locked: Path) -> None:
    """The table names worlds and counts; a report without a locked severity has none."""
    document = sample_document()
    assert "Simulated before the run" not in render_markdown(document)
    record = read_lock(locked).first["severity"]
    document["preregistration"]["severity"] = {
        "runs": 1,
        "seed": 4,
        "rules": severity_shares(record),
    }
    validate_document(document)
    for page in (render_markdown(document), html.unescape(render_html(document))):
        assert "Simulated before the run" in page
        assert "of 1, null+burst" in page
        assert "no such world" in page
