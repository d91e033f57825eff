"""Locking, amending and verifying a plan."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from verdiv import fixtures
from verdiv.cli.app import run
from verdiv.errors import ChainBroken, InputRefused, UsageRefused, VerdivError
from verdiv.preregistration import read_preregistration
from verdiv.preregistration.amend import amend_lock
from verdiv.preregistration.cells import planned_arms
from verdiv.preregistration.lock import lock_bytes, lock_plan, record_of
from verdiv.preregistration.lockfile import read_lock, read_lock_bytes
from verdiv.preregistration.outlook import outlook
from verdiv.preregistration.verify import CheckOutcome, verify_lock

PLAN = fixtures.read_bytes("preregistrations", "verifiers-dividend")
TIME = "2026-03-01T12:00:00Z"


@pytest.fixture
def locked(tmp_path: Path) -> Path:
    """A registration and its lock in a folder of their own."""
    (tmp_path / "preregistration.toml").write_bytes(PLAN)
    path = tmp_path / "preregistration.lock.json"
    lock_plan(PLAN, "preregistration.toml", path, registration="preregistration.toml", time=TIME)
    return path


def outcomes(path: Path) -> dict[str, str]:
    """Check to outcome, for a lock."""
    return {check.check: check.outcome.value for check in verify_lock(path).checks}


def amend(path: Path, data: bytes, **words: str) -> None:
    """Put a registration in place and append its amendment."""
    (path.parent / "preregistration.toml").write_bytes(data)
    said = {"author": "A", "reason": "r", "seen": "nothing", "time": "2026-03-02T00:00:00Z"} | words
    amend_lock(path, data, "preregistration.toml", registration="preregistration.toml", **said)


def test_a_lock_holds(locked: Path) -> None:
    """A fresh lock verifies, and claims no more than a clock of its own."""
    report = verify_lock(locked, use_git=False)
    assert not report.broken
    assert report.strength is not None
    assert report.strength.tier.value == "self-recorded"
    assert "nothing outside the file vouches" in report.strength.text


def test_locking_twice_is_refused(locked: Path) -> None:
    """A second lock under the same name is refused, and the first stays byte for byte."""
    before = locked.read_bytes()
    with pytest.raises(UsageRefused, match="twice"):
        lock_plan(PLAN, "p", locked, registration="preregistration.toml")
    assert locked.read_bytes() == before


@pytest.mark.skipif(
    shutil.which("jq") is None or shutil.which("openssl") is None, reason="needs jq and openssl"
)
def test_independent_tools_recompute_the_digest(locked: Path) -> None:
    """Jq spells the body, openssl digests it: the lock's digest, with nothing of this package involved."""
    body = subprocess.run(
        ["jq", "-cjS", ".records[0].body", str(locked)], capture_output=True, check=True
    ).stdout
    digest = subprocess.run(["openssl", "dgst", "-sha256", "-r"], input=body, capture_output=True, check=True)
    assert digest.stdout.split()[0].decode() == read_lock(locked).head


def test_outlook_counts_by_hand() -> None:
    """Forty tasks: 2 + 5 x 3 + ... chains; the expected bill is the paper's 15.33, the worst case 28.5."""
    plan = read_preregistration("verifiers-dividend")
    said = outlook(plan)
    assert said["units_per_task"]["expected"] == pytest.approx(15.333036, abs=1e-6)
    assert said["units_per_task"]["worst"] == 28.5
    # primary: A0 2, A1 15, A2 A2s A3 3 each at least, A4 3, A5 3; two more conditions of A0 2 and A3 3 chains.
    assert said["draw_records"]["least"] == 40 * (2 + 15 + 9 + 3 + 3 + 2 * (2 + 3))
    assert said["draw_records"]["most"] == 40 * (2 + 15 + 45 + 3 + 6 + 2 * (2 + 15))
    # A0's two draws serve A2 and A3; in the third replicate A3 copies A2's. Elsewhere A3 copies A0's two.
    assert said["made_draws"]["least"] == said["draw_records"]["least"] - 40 * (2 * 2 + 1 + 2 * 2)


def test_planned_arms_do_not_depend_on_order() -> None:
    """Copies are counted alike whichever arm a registration names first."""
    plan = read_preregistration("verifiers-dividend")
    turned = plan.model_copy(update={"arms": dict(reversed(plan.arms.items()))})
    assert outlook(turned)["made_draws"] == outlook(plan)["made_draws"]
    assert sum(arm.copies for arm in planned_arms(turned)) == sum(arm.copies for arm in planned_arms(plan))


def test_an_edited_registration_is_found(locked: Path) -> None:
    """A moved margin after the lock is a finding that says that the plan is another one."""
    text = PLAN.replace(b"quality_margin = 0.05", b"quality_margin = 0.15", 1)
    (locked.parent / "preregistration.toml").write_bytes(text)
    report = verify_lock(locked, use_git=False)
    assert report.broken
    assert any("its plan is another one" in check.message for check in report.checks)


def test_an_edited_comment_is_found_and_told_apart(locked: Path) -> None:
    """The bytes are locked too; a changed comment is named as one."""
    (locked.parent / "preregistration.toml").write_bytes(PLAN + b"# later\n")
    report = verify_lock(locked, use_git=False)
    assert report.broken
    assert any("its plan is the same" in check.message for check in report.checks)


def test_a_covered_file_is_watched(tmp_path: Path) -> None:
    """Files named at the lock are digested; a change is a finding, a missing one could not run, never a pass."""
    (tmp_path / "p.toml").write_bytes(PLAN)
    (tmp_path / "prompts.json").write_text("{}")
    path = tmp_path / "p.lock.json"
    lock_plan(PLAN, "p.toml", path, registration="p.toml", extra=["prompts.json"])
    assert outcomes(path)["lock.files"] == "pass"
    (tmp_path / "prompts.json").write_text("{ }")
    assert outcomes(path)["lock.files"] == "finding"
    (tmp_path / "prompts.json").unlink()
    assert outcomes(path)["lock.files"] == "could not run"


@pytest.mark.parametrize("name", ["../x", "/etc/hostname", "a\\b", "", "missing", "."])
def test_files_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    """A lock covers files of its own folder and no others."""
    with pytest.raises(VerdivError):
        lock_plan(PLAN, "p", tmp_path / "l.json", registration=None, extra=[name])
    assert not (tmp_path / "l.json").exists()


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    """A symbolic link does not lead a lock out of its folder."""
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "secret").write_text("s")
    (inner / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(UsageRefused):
        lock_plan(PLAN, "p", inner / "l.json", registration=None, extra=["link"])


def test_amendments_are_appended(locked: Path) -> None:
    """An amendment names its parent, who, why, what had been seen and what changes; the lock record stays."""
    first = read_lock(locked).records[0]
    amend(locked, PLAN.replace(b"gamma = 0.95", b"gamma = 0.9"))
    amend(
        locked, PLAN.replace(b"gamma = 0.95", b"gamma = 0.99"), seen="ten draws", time="2026-03-03T00:00:00Z"
    )
    lock = read_lock(locked)
    assert lock.records[0] == first
    assert [body["parent"] for body in lock.amendments] == [first["digest"], lock.records[1]["digest"]]
    assert lock.amendments[1]["changes"] == [{"field": "decision.gamma", "from": 0.9, "to": 0.99}]
    assert not verify_lock(locked, use_git=False).broken


@pytest.mark.parametrize("word", ["author", "reason", "seen"])
def test_an_amendment_says_everything(locked: Path, word: str) -> None:
    """Author, reason and what had been seen are required; nothing is appended without them."""
    before = locked.read_bytes()
    with pytest.raises(UsageRefused):
        amend(locked, PLAN, **{word: " "})
    assert locked.read_bytes() == before


def test_an_amendment_may_not_precede(locked: Path) -> None:
    """A clock before the lock is refused."""
    with pytest.raises(UsageRefused):
        amend(locked, PLAN, time="2026-02-28T00:00:00Z")


def test_nothing_is_appended_to_a_broken_lock(locked: Path) -> None:
    """An amendment would give a broken lock a new head that recomputes."""
    locked.write_bytes(locked.read_bytes().replace(b'"gamma":0.95', b'"gamma":0.55'))
    with pytest.raises(ChainBroken):
        amend(locked, PLAN)


def test_a_dropped_or_edited_amendment_is_found(locked: Path) -> None:
    """A record taken out of the middle breaks the link; one rewritten with a fresh digest breaks the next."""
    for at, gamma in enumerate((b"0.9", b"0.8"), start=2):
        amend(locked, PLAN.replace(b"gamma = 0.95", b"gamma = " + gamma), time=f"2026-03-0{at}T00:00:00Z")
    records = [dict(record) for record in read_lock(locked).records]
    with pytest.raises(ChainBroken):
        read_lock_bytes(lock_bytes([records[0], records[2]]), "x")
    softened = record_of(records[1]["body"] | {"seen": "nothing at all"})
    with pytest.raises(ChainBroken):
        read_lock_bytes(lock_bytes([records[0], softened, records[2]]), "x")


def test_other_spellings_of_the_same_values_are_found(locked: Path) -> None:
    """A lock is its canonical bytes: whitespace, key order or number spelling must not vary unnoticed."""
    document = json.loads(locked.read_bytes())
    for text in (json.dumps(document), json.dumps(document, separators=(",", ":")) + "\n\n"):
        with pytest.raises((ChainBroken, InputRefused)):
            read_lock_bytes(text.encode(), "x")


@pytest.mark.parametrize("change", [{"schema": 2}, {"schema": True}, {"format": "other"}, {"records": []}])
def test_other_documents_are_refused(locked: Path, change: dict[str, object]) -> None:
    """A newer version, another format or no record is refused."""
    document = json.loads(locked.read_bytes()) | change
    with pytest.raises((ChainBroken, InputRefused)):
        read_lock_bytes(json.dumps(document, separators=(",", ":"), sort_keys=True).encode() + b"\n", "x")


@pytest.mark.slow
def test_every_random_byte_edit_is_noticed(locked: Path) -> None:
    """Ten thousand edits of one byte, anywhere: each is refused or breaks the lock."""
    amend(locked, PLAN.replace(b"gamma = 0.95", b"gamma = 0.9"))
    data = locked.read_bytes()
    rng = random.Random(7)
    missed = []
    for _ in range(10_000):
        at, byte = rng.randrange(len(data)), rng.randrange(256)
        if data[at] == byte:
            continue
        try:
            read_lock_bytes(data[:at] + bytes((byte,)) + data[at + 1 :], "x")
        except VerdivError:
            continue
        missed.append((at, byte))
    assert missed == []


def _git(folder: Path, *words: str) -> None:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.invalid", "-C", str(folder), *words]
    subprocess.run(command, check=True, capture_output=True)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_replaced_lock_is_found_in_history(locked: Path) -> None:
    """A commit raises the strength by what it shows; another lock under the name in an older commit is found."""
    _git(locked.parent, "init", "-q")
    _git(locked.parent, "add", ".")
    _git(locked.parent, "commit", "-qm", "lock")
    report = verify_lock(locked)
    assert report.strength is not None
    assert report.strength.tier.value == "git"
    assert "set by whoever commits" in report.strength.text
    assert outcomes(locked)["lock.replaced"] == "pass"
    locked.unlink()
    lock_plan(PLAN, "p", locked, registration="preregistration.toml", time="2026-03-01T13:00:00Z")
    _git(locked.parent, "commit", "-qam", "again")
    assert outcomes(locked)["lock.replaced"] == CheckOutcome.FINDING.value


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Lock 0, again 2, verify 0, edited 3, amended 0; verify --json states status and strength."""
    plan, lock = tmp_path / "preregistration.toml", tmp_path / "preregistration.lock.json"
    plan.write_bytes(PLAN)
    assert run(["lock", str(plan)]) == 0
    assert run(["lock", str(plan)]) == 2
    assert run(["verify", str(lock)]) == 0
    plan.write_bytes(PLAN.replace(b"fraction = 0.25", b"fraction = 0.5"))
    assert run(["verify", str(lock)]) == 3
    words = ["--author", "A", "--reason", "r", "--seen", "nothing"]
    assert run(["amend", str(lock), "--prereg", str(plan), *words]) == 0
    capsys.readouterr()
    assert run(["verify", str(lock), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["status"] == "locked"
    assert said["amendments"][0]["changes"] == [{"field": "rules.P1.fraction", "from": 0.25, "to": 0.5}]
    assert run(["verify", str(tmp_path / "none.json")]) == 2
