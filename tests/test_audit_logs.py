"""Audits of real and simulated logs: what passes, what is found, and what could not run."""

from __future__ import annotations

import json
import random
from pathlib import Path

import msgspec
import pytest

from verdiv import fixtures
from verdiv.audit.deviations import read_deviations
from verdiv.audit.evidence import Evidence, ReadLogs, evidence_of, read_logs
from verdiv.audit.mutations.clean import CleanRun, make_clean_run
from verdiv.audit.mutations.edits import change, drop, where
from verdiv.audit.mutations.table import audit_run
from verdiv.audit.page import audit_html
from verdiv.audit.run import AuditReport, audit_evidence, audit_for_analysis
from verdiv.cli.app import run as command
from verdiv.errors import InputRefused, VerdivError
from verdiv.preregistration import read_preregistration
from verdiv.preregistration.verify import verify_lock
from verdiv.protocol.simulator.runlog import simulate_to_file
from verdiv.runlog.reader import read_run_log
from verdiv.runlog.writer import write_run_log

BROKEN = 3


@pytest.fixture
def clean(tmp_path: Path) -> CleanRun:
    """A clean run of its own for each test."""
    return make_clean_run(tmp_path)


def simulated(path: Path) -> AuditReport:
    """Audit a log against the shipped registration."""
    return audit_evidence(Evidence(read_logs([path]), read_preregistration("verifiers-dividend")))


def test_the_shipped_run_has_no_finding() -> None:
    """The simulated run that ships follows the shipped registration; that no model was asked is said."""
    with fixtures.as_path("runs", "simulated-40") as path:
        report = simulated(path)
    assert report.findings() == []
    assert report.outcomes()["drift.models"] == "could not run"
    assert report.outcomes()["scoring.correct"] == "could not run"
    assert report.outcomes()["grid.missing"] == "pass"


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("world", ["plausible", "null"])
def test_clean_simulated_runs_have_no_finding(tmp_path: Path, world: str, seed: int) -> None:
    """Chance alone makes no finding: other seeds, other worlds, outcomes however they fall."""
    simulate_to_file(tmp_path / "s.runlog.jsonl", tasks=40, seed=seed, world=world)
    findings = [
        (check, finding.message) for check, finding in simulated(tmp_path / "s.runlog.jsonl").findings()
    ]
    conditions = [f for f in findings if f[0] not in ("grid.missing",)]
    assert conditions == []
    assert findings == []


def test_a_read_log_is_audited_like_a_file(clean: CleanRun) -> None:
    """The audit of an analysis, which has read its log already, comes to the same."""
    log = read_run_log(clean.log_path)
    lock = verify_lock(clean.lock_path, use_git=False)
    one = audit_evidence(Evidence(read_logs([clean.log_path]), clean.plan, lock))
    two = audit_evidence(Evidence(evidence_of(log), clean.plan, lock))
    assert one.as_json() == two.as_json()


def test_frames_do_not_matter(clean: CleanRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws gathered a few at a time, parents in other frames, come to the same."""
    whole = audit_run(clean).as_json()
    monkeypatch.setattr("verdiv.audit.evidence.FRAME_ROWS", 1)
    assert audit_run(clean).as_json() == whole


def test_other_forms_of_a_log_are_audited_alike(clean: CleanRun) -> None:
    """Parquet and zstd come to the same outcomes as plain lines."""
    plain = audit_run(clean).outcomes()
    for ending in ("runlog.jsonl.zst", "runlog.parquet"):
        path = clean.folder / f"other.{ending}"
        write_run_log(path, clean.header, clean.draws)
        lock = verify_lock(clean.lock_path, use_git=False)
        logs = read_logs([path])
        other = audit_evidence(Evidence(logs, clean.plan, lock, clean.suite)).outcomes()
        assert {k: v for k, v in other.items() if not k.startswith("scoring.")} == {
            k: v for k, v in plain.items() if not k.startswith("scoring.")
        }


def test_without_anything_nothing_passes() -> None:
    """A check that lacks what it needs could not run, or does not apply; it never passes."""
    report = audit_evidence(Evidence(ReadLogs((), (), None)))
    assert "pass" not in report.outcomes().values()


@pytest.mark.parametrize(
    ("mapping", "source"),
    [("reflexion-alfworld", "reflexion"), ("intercode-sql", "intercode")],
)
def test_foreign_logs_name_what_could_not_run(
    tmp_path: Path, shared_data: Path, mapping: str, source: str
) -> None:
    """Public logs lack prompts, seeds, times and a plan: most checks could not run, and each says why."""
    files = sorted(p for p in (shared_data / source).rglob("*") if p.suffix in (".json", ".jsonl"))
    if mapping == "reflexion-alfworld":
        files = [p for p in files if "alfworld" in str(p)]
    if not files:
        pytest.skip(f"no {source} logs in {shared_data}")
    out = tmp_path / "log.runlog.jsonl"
    words = ["convert", "--mapping", mapping, *map(str, files), "-o", str(out)]
    if command(words) != 0:
        pytest.skip(f"these {source} logs do not fit the mapping")
    report = audit_evidence(Evidence(read_logs([out])))
    outcomes = list(report.outcomes().values())
    assert outcomes.count("could not run") + outcomes.count("not applicable") > len(outcomes) / 2
    assert all(result.message for _, result in report.results)
    assert report.outcomes()["log.chain"] == "pass"
    assert not [f for _, f in report.findings() if f.severity == "critical"]


@pytest.mark.slow
def test_every_random_byte_edit_of_a_log_is_noticed(clean: CleanRun) -> None:
    """Ten thousand edits of one byte: each is refused, or has no meaning (a line's end before its carriage return)."""
    clean.draws = clean.draws[:4]
    clean.draws = [d for d in clean.draws if d.parent is None and d.copy_of is None]
    clean.header = msgspec.structs.replace(clean.header, expected_draws=len(clean.draws))
    clean.write_log()
    data = clean.log_path.read_bytes()
    path = clean.folder / "edited.runlog.jsonl"
    rng = random.Random(11)
    missed = []
    for _ in range(10_000):
        at, byte = rng.randrange(len(data)), rng.randrange(256)
        if data[at] == byte:
            continue
        path.write_bytes(data[:at] + bytes((byte,)) + data[at + 1 :])
        try:
            logs = read_logs([path])
        except VerdivError:
            continue
        if not logs.faults and logs.inputs[0].status == "complete":
            missed.append((at, byte))
    footer = data.rstrip(b"\n").rfind(b"\n")
    assert [(at, byte) for at, byte in missed if at <= footer] == []
    assert [(at, byte) for at, byte in missed if data[at : at + 1] not in b"\n"] == []


def test_deviations_are_reconciled(clean: CleanRun) -> None:
    """Declared and found: matched by check; found only: undeclared; declared only: not found."""
    drop(clean, lambda draw: draw.replicate == 2)
    path = clean.folder / "deviations.toml"
    path.write_text(
        'schema = 1\n[[deviation]]\ncheck = "grid.missing"\nregistered = "three seeds"\ndone = "two"\nreason = "time"\n'
        'timing = "before outcomes"\nrules = ["R1"]\n[[deviation]]\ncheck = "drift.models"\nregistered = "a"\n'
        'done = "b"\nreason = "c"\ntiming = "before data"\n',
        encoding="utf-8",
    )
    lock = verify_lock(clean.lock_path, use_git=False)
    report = audit_evidence(Evidence(read_logs([clean.log_path]), clean.plan, lock), read_deviations(path))
    assert {row["check"] for row in report.deviations.undeclared} == {"selection.stopping"}
    assert [row["check"] for row in report.deviations.not_found] == ["drift.models"]
    assert len(report.deviations.declared) == 2
    assert {row["timing"] for row in report.deviations.undeclared} == {"after the lock, by both clocks"}


@pytest.mark.parametrize(
    "text",
    [
        "", "schema = 2", 'schema = 1\n[[deviation]]\nregistered = "a"',
        'schema = 1\n[[deviation]]\nregistered = "a"\ndone = "b"\nreason = "c"\ntiming = "whenever"',
    ],
)  # fmt: skip
def test_deviations_that_break_their_format_are_refused(tmp_path: Path, text: str) -> None:
    """A deviation says what was registered, what was done, why and when."""
    (tmp_path / "d.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InputRefused):
        read_deviations(tmp_path / "d.toml")


def test_an_analysis_is_told_that_verdicts_are_void(clean: CleanRun) -> None:
    """A lock that holds gives its time and strength; an edited registration voids every verdict."""
    log = read_run_log(clean.log_path)
    good = audit_for_analysis(log, clean.plan)
    assert good["void"] is None
    assert good["preregistration"]["status"] == "locked"
    assert good["audit"]["status"] == "passed"
    clean.plan_path.write_bytes(clean.plan_path.read_bytes() + b"\n")
    bad = audit_for_analysis(log, read_preregistration(clean.plan_path))
    assert "not what was locked" in bad["void"]
    assert bad["preregistration"]["status"] == "broken"
    assert bad["audit"]["status"] == "broken"


def test_affected_draws_are_named(clean: CleanRun) -> None:
    """The draws behind a finding are handed on, so that a verdict without them can be given."""
    change(clean, where(arm="A4", replicate=2, failed=False), model="another")
    found = audit_for_analysis(read_run_log(clean.log_path), clean.plan)
    assert found["affected"] == ["primary/A4/arithmetic-0001/r2/a1"]
    assert found["void"] is None


def test_command_exit_codes(clean: CleanRun, capsys: pytest.CaptureFixture[str]) -> None:
    """0 clean, 1 findings, 3 broken chain or lock, 2 nothing named; JSON holds every check."""
    words = ["audit", str(clean.log_path), "--prereg", str(clean.plan_path), "--suite", str(clean.suite_path)]
    assert command([*words, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["status"] == "passed"
    assert {check["outcome"] for check in said["checks"]} <= {"pass", "not applicable", "could not run"}
    change(clean, where(arm="A4", failed=False), billed=1.0)
    assert command(words) == 1
    assert command([*words, "--fail-on", "never"]) == 0
    clean.log_path.write_bytes(clean.log_path.read_bytes().replace(b'"correct":true', b'"correct":false', 1))
    assert command(words) == BROKEN
    assert command(["audit"]) == 2


def test_command_writes_a_page(clean: CleanRun) -> None:
    """The folder gets JSON and a page that loads nothing and escapes what logs say."""
    change(clean, where(arm="A4", failed=False), model="<script>alert(1)</script>")
    out = clean.folder / "out"
    words = [
        "audit",
        str(clean.log_path),
        "--prereg",
        str(clean.plan_path),
        "-o",
        str(out),
        "--claims",
        "paper",
    ]
    assert command(words) == 1
    page = (out / "audit.html").read_text("utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "worst-case-per-task" in page
    assert "http" not in page.replace("http-equiv", "")
    document = json.loads((out / "audit.json").read_text("utf-8"))
    assert document["claims"]["D_c"]["outcome"] == "reproduced"
    assert audit_html(document, "Audit") == page


def test_verdicts_with_and_without_the_affected_draws(
    clean: CleanRun, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every rule is judged twice; what leaves are whole chains and whoever copies them, not single draws."""
    changed = change(clean, where(arm="A0", replicate=0, failed=False), model="another")
    report = audit_run(clean)
    gone = {str(name) for name in report.evidence.draws.ids[~report.spared()]}
    kept = [draw for draw in clean.draws if draw.draw_id not in gone]
    assert {draw.copy_of for draw in kept}.isdisjoint(gone)
    assert {draw.parent for draw in kept}.isdisjoint(gone)
    assert {draw.task_id for draw in clean.draws if draw.draw_id in gone} == {changed.task_id}
    words = ["audit", str(clean.log_path), "--prereg", str(clean.plan_path), "--verdicts", "--json"]
    assert command(words) == 1
    verdicts = json.loads(capsys.readouterr().out)["verdicts"]
    assert verdicts["text"].startswith(f"{len(gone)} of {len(clean.draws)} draws")
    assert len(verdicts["rules"]) == 10
    assert all(set(row) == {"with", "without"} for row in verdicts["rules"].values())
