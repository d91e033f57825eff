"""Signatures and timestamps of a lock: what holds, what does not, and what each is worth."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from verdiv import fixtures
from verdiv.cli.app import run
from verdiv.errors import UsageRefused, VerdivError
from verdiv.preregistration.amend import amend_lock
from verdiv.preregistration.lock import lock_plan
from verdiv.preregistration.lockfile import read_lock
from verdiv.preregistration.proofs import sign_lock, signature_proof, timestamp_proof
from verdiv.preregistration.verify import verify_lock

PLAN = fixtures.read_bytes("preregistrations", "verifiers-dividend")

openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")


def _openssl(folder: Path, *words: str) -> bytes:
    return subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True).stdout


@pytest.fixture
def locked(tmp_path: Path) -> Path:
    """A locked registration, and an ed25519 key pair beside it."""
    (tmp_path / "preregistration.toml").write_bytes(PLAN)
    path = tmp_path / "preregistration.lock.json"
    time = "2026-03-01T12:00:00Z"
    lock_plan(PLAN, "preregistration.toml", path, registration="preregistration.toml", time=time)
    return path


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    """A private and a public ed25519 key, made by openssl."""
    pytest.importorskip("cryptography")
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    _openssl(tmp_path, "genpkey", "-algorithm", "ed25519", "-out", "key.pem")
    _openssl(tmp_path, "pkey", "-in", "key.pem", "-pubout", "-out", "pub.pem")
    return tmp_path / "key.pem", tmp_path / "pub.pem"


def test_a_signature_holds_and_claims_no_time(locked: Path, keys: tuple[Path, Path], tmp_path: Path) -> None:
    """A signed lock is of tier signed; that a signature has no time, and a key no owner, is said."""
    envelope = tmp_path / "e.json"
    envelope.write_bytes(sign_lock(read_lock(locked), keys[0], locked.name))
    report = verify_lock(locked, proofs=[signature_proof(envelope, keys[1])], use_git=False)
    assert not report.broken
    assert report.strength is not None
    assert report.strength.tier.value == "signed"
    assert "no time" in report.strength.text
    assert "no authority of time was checked" in report.strength.text


def test_openssl_verifies_the_signature(locked: Path, keys: tuple[Path, Path], tmp_path: Path) -> None:
    """The signature is over the standard's own encoding: openssl accepts it without anything of this package."""
    import base64

    document = json.loads(sign_lock(read_lock(locked), keys[0], locked.name))
    payload = base64.b64decode(document["payload"])
    kind = document["payloadType"].encode()
    (tmp_path / "m").write_bytes(b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload))
    (tmp_path / "s").write_bytes(base64.b64decode(document["signatures"][0]["sig"]))
    said = _openssl(
        tmp_path, "pkeyutl", "-verify", "-pubin", "-inkey", "pub.pem", "-rawin", "-in", "m", "-sigfile", "s"
    )
    assert b"Successfully" in said


def test_a_signature_of_another_lock_or_key_is_found(
    locked: Path, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    """An amended lock needs a new signature; another key's does not count; both are findings, which void."""
    envelope = tmp_path / "e.json"
    envelope.write_bytes(sign_lock(read_lock(locked), keys[0], locked.name))
    _openssl(tmp_path, "genpkey", "-algorithm", "ed25519", "-out", "other.pem")
    _openssl(tmp_path, "pkey", "-in", "other.pem", "-pubout", "-out", "other.pub.pem")
    stranger = verify_lock(
        locked, proofs=[signature_proof(envelope, tmp_path / "other.pub.pem")], use_git=False
    )
    assert stranger.broken
    assert stranger.strength is not None
    assert stranger.strength.tier.value == "self-recorded"
    amend_lock(locked, PLAN, "p", author="A", reason="r", seen="nothing", registration="preregistration.toml")
    later = verify_lock(locked, proofs=[signature_proof(envelope, keys[1])], use_git=False)
    assert later.broken


def test_every_byte_of_an_envelope_counts(locked: Path, keys: tuple[Path, Path], tmp_path: Path) -> None:
    """Edits of one byte of a signature file are all noticed."""
    lock = read_lock(locked)
    data = sign_lock(lock, keys[0], locked.name)
    envelope = tmp_path / "e.json"
    rng = random.Random(3)
    missed = []
    for _ in range(500):
        at, byte = rng.randrange(len(data)), rng.randrange(256)
        if data[at] == byte:
            continue
        envelope.write_bytes(data[:at] + bytes((byte,)) + data[at + 1 :])
        if signature_proof(envelope, keys[1])(lock).holds:
            missed.append((at, byte))
    assert missed == []


def test_other_keys_are_refused(locked: Path, tmp_path: Path) -> None:
    """Only ed25519 keys sign; anything else is refused with a remedy."""
    pytest.importorskip("cryptography")
    (tmp_path / "k").write_text("no key")
    with pytest.raises(UsageRefused):
        sign_lock(read_lock(locked), tmp_path / "k", "x")
    with pytest.raises(VerdivError):
        signature_proof(locked, tmp_path / "k")


CONFIG = """
[tsa]
default_tsa = t
[t]
serial = serial
signer_digest = sha256
default_policy = 1.2.3.4
digests = sha256
accuracy = secs:1
ess_cert_id_alg = sha256
"""


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """A local authority of time: a root, and a certificate for timestamps under it."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    (tmp_path / "tsa.cnf").write_text(CONFIG)
    (tmp_path / "serial").write_text("01\n")
    (tmp_path / "ext").write_text("extendedKeyUsage=critical,timeStamping\nbasicConstraints=CA:FALSE\n")
    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    _openssl(
        tmp_path,
        "req",
        "-x509",
        *new,
        "-keyout",
        "ca.key",
        "-out",
        "ca.pem",
        "-subj",
        "/CN=root",
        "-days",
        "99",
    )
    _openssl(tmp_path, "req", *new, "-keyout", "tsa.key", "-out", "tsa.csr", "-subj", "/CN=tsa")
    _openssl(
        tmp_path, "x509", "-req", "-in", "tsa.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
        "-days", "99", "-extfile", "ext", "-out", "tsa.pem",
    )  # fmt: skip
    return tmp_path


def _stamped(folder: Path, digest: str) -> Path:
    _openssl(folder, "ts", "-query", "-digest", digest, "-sha256", "-cert", "-out", "q.tsq")
    _openssl(
        folder, "ts", "-reply", "-config", "tsa.cnf", "-section", "t", "-queryfile", "q.tsq", "-signer", "tsa.pem",
        "-inkey", "tsa.key", "-out", "r.tsr",
    )  # fmt: skip
    return folder / "r.tsr"


@openssl
def test_a_timestamp_holds(locked: Path, authority: Path) -> None:
    """A token over the lock's digest gives the strongest tier, and names its time and what it covers."""
    token = _stamped(authority, read_lock(locked).head)
    report = verify_lock(locked, proofs=[timestamp_proof(token, authority / "ca.pem")], use_git=False)
    assert report.strength is not None
    assert report.strength.tier.value == "timestamped"
    assert "the lock record existed at 20" in report.strength.text
    amend_lock(locked, PLAN, "p", author="A", reason="r", seen="n", registration="preregistration.toml")
    later = verify_lock(locked, proofs=[timestamp_proof(token, authority / "ca.pem")], use_git=False)
    assert later.strength is not None
    assert "what was appended later is not covered" in later.strength.text


@openssl
def test_a_timestamp_of_something_else_is_found(locked: Path, authority: Path) -> None:
    """A token over another digest, of another authority, or damaged, does not hold."""
    other = _stamped(authority, "0" * 64)
    assert verify_lock(locked, proofs=[timestamp_proof(other, authority / "ca.pem")], use_git=False).broken
    token = _stamped(authority, read_lock(locked).head)
    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    _openssl(
        authority, "req", "-x509", *new, "-keyout", "x.key", "-out", "x.pem", "-subj", "/CN=x", "-days", "9"
    )
    assert verify_lock(locked, proofs=[timestamp_proof(token, authority / "x.pem")], use_git=False).broken
    data = token.read_bytes()
    token.write_bytes(data[:-20] + bytes((data[-20] ^ 1,)) + data[-19:])
    assert verify_lock(locked, proofs=[timestamp_proof(token, authority / "ca.pem")], use_git=False).broken


def test_command(locked: Path, keys: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """``lock --key`` signs, ``verify`` checks, half a proof is refused."""
    plan = locked.parent / "preregistration.toml"
    locked.unlink()
    assert run(["lock", str(plan), "--key", str(keys[0])]) == 0
    envelope = locked.parent / "preregistration.lock.dsse.json"
    words = ["verify", str(locked), "--signature", str(envelope)]
    assert run([*words, "--public-key", str(keys[1])]) == 0
    assert "Strength: signed" in capsys.readouterr().out
    assert run(words) == 2
