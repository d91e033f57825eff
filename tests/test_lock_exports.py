"""Exports of a lock: PRML manifests that the reference command accepts, a statement, a crate."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verdiv.cli.app import run
from verdiv.errors import UsageRefused
from verdiv.preregistration import RULE_IDS
from verdiv.preregistration.lock import lock_plan
from verdiv.preregistration.lockfile import read_lock
from verdiv.preregistration.prml import canonical_yaml, manifest_of, manifests

yaml = pytest.importorskip("yaml")

TAMPERED, FAILED = 3, 10


def _command() -> list[str]:
    beside = Path(sys.executable).with_name("falsify")
    found = str(beside) if beside.exists() else shutil.which("falsify")
    if found is None:
        pytest.skip("the reference command falsify is not installed")
    return [found]


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """The exports of a lock that covers a suite."""
    from verdiv.audit.mutations.clean import make_clean_run

    clean = make_clean_run(tmp_path)
    assert run(["verify", str(clean.lock_path), "--export", str(tmp_path / "out")]) == 0
    return tmp_path / "out"


@pytest.mark.parametrize("rule", RULE_IDS)
def test_the_reference_command_agrees(exported: Path, rule: str) -> None:
    """Hash equal, sidecar accepted, P(claim) of .97 passes gamma .95, .5 fails, an edited threshold is tampering."""
    command = _command()
    path = exported / f"{rule}.prml.yaml"
    ours = (exported / f"{rule}.prml.prml.sha256").read_text().strip()
    said = subprocess.run([*command, "hash", str(path)], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == ours
    assert subprocess.run([*command, "verify", str(path), "--observed", "0.97"], check=False).returncode == 0
    assert (
        subprocess.run([*command, "verify", str(path), "--observed", "0.5"], check=False).returncode == FAILED
    )
    path.write_text(path.read_text("utf-8").replace("threshold: 0.95", "threshold: 0.55"), "utf-8")
    assert (
        subprocess.run([*command, "verify", str(path), "--observed", "0.97"], check=False).returncode
        == TAMPERED
    )


texts = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=24
).filter(lambda text: "\ufeff" not in text and all(ord(ch) < 0xFFFE for ch in text))
soup = st.text(alphabet="yesnotrufal0123456789.eE+-:_ #'\"~=<>&*!|%@`,[]{}?xob", max_size=12)
floats = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | st.integers(-(10**18), 10**18) | floats | texts | soup
tables = st.recursive(
    st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), scalars, max_size=5),
    lambda inner: st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), scalars | inner, max_size=4),
    max_leaves=6,
)


@given(tables)
@settings(max_examples=600, deadline=None)
def test_canonical_form_is_the_references(value: dict[str, Any]) -> None:
    """Whatever our canonicaliser spells is what the reference's rule spells, and reads back as the same values."""
    theirs = yaml.safe_dump(
        value, default_flow_style=False, sort_keys=True, width=float("inf"), allow_unicode=True
    )
    ours = canonical_yaml(value)
    if value:
        assert ours == theirs
        assert yaml.safe_load(ours) == value


def test_what_has_no_canonical_form_is_refused() -> None:
    """Control characters, lists and NaN are refused rather than spelled somehow."""
    for value in ({"a": "x\ny"}, {"a": [1]}, {"a": float("nan")}, {"a": "\u2028"}):
        with pytest.raises(UsageRefused):
            canonical_yaml(value)


def test_a_manifest_binds_lock_and_suite(exported: Path) -> None:
    """The manifest names the lock's head, the suite's digest and the registered gamma."""
    lock = read_lock(exported.parent / "preregistration.lock.json")
    manifest = manifest_of(lock, "P3")
    assert manifest["metric_args"]["lock"] == lock.head
    assert manifest["dataset"]["hash"] == lock.current["suite_sha256"]
    assert manifest["threshold"] == 0.95
    assert len({digest for _, digest in manifests(lock).values()}) == len(RULE_IDS)


def test_without_a_suite_there_is_no_manifest(tmp_path: Path) -> None:
    """A manifest without a data set would bind nothing."""
    from verdiv import fixtures

    data = fixtures.read_bytes("preregistrations", "verifiers-dividend")
    lock_plan(data, "p", tmp_path / "l.json", registration=None)
    with pytest.raises(UsageRefused, match="data set"):
        manifests(read_lock(tmp_path / "l.json"))


def test_statement_and_crate(exported: Path) -> None:
    """The statement's subject is the lock's bytes; the crate lists registration, lock and suite."""
    import hashlib

    lock = exported.parent / "preregistration.lock.json"
    statement = json.loads((exported / "statement.intoto.json").read_text())
    assert statement["subject"][0]["digest"]["sha256"] == hashlib.sha256(lock.read_bytes()).hexdigest()
    graph = json.loads((exported / "ro-crate-metadata.json").read_text())["@graph"]
    parts = {part["@id"] for part in next(item for item in graph if item["@id"] == "./")["hasPart"]}
    assert parts == {"preregistration.lock.json", "preregistration.toml", "suite.json"}
