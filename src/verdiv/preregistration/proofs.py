"""Proofs of a lock that stand outside it: a DSSE signature (ed25519) and an RFC 3161 timestamp.

A signature is a DSSE envelope over an in-toto statement whose subject is the lock file. A timestamp is a token over a
record's digest: the SHA-256 that the lock itself states is the imprint, so that any authority's tool makes one::

    openssl ts -query -digest HEAD -sha256 -cert -out head.tsq
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from verdiv.errors import Fault, InputRefused, MissingExtra, UsageRefused, VerdivError
from verdiv.preregistration.canonical import canonical_bytes, strict_json
from verdiv.preregistration.lockfile import Lock
from verdiv.preregistration.strength import Proof, Tier

__all__ = ["pre_authentication", "sign_lock", "signature_proof", "statement_of", "timestamp_proof"]

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:verdiv:lock:1"

MAX_BYTES = 2**20
"""Largest envelope, key or token."""

SECONDS = 30
"""How long openssl may take."""

_TIME = re.compile(r"Time stamp: ([A-Z][a-z]{2}) +([0-9]{1,2}) ([0-9:]{8})(?:\.[0-9]+)? ([0-9]{4}) GMT")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _read(path: Path, what: str) -> bytes:
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        fault = Fault(str(path), what, error.strerror or str(error), "check the path")
        raise InputRefused(f"cannot read {path}", [fault]) from error
    if len(data) > MAX_BYTES:
        raise InputRefused(f"{path} refused", [Fault(str(path), what, "a larger file", "check the path")])
    return data


def _ed25519() -> tuple[Any, Any]:
    """Import what signs; never before it is needed."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        fault = Fault("cryptography", "the package", "not installed", "pip install 'verdiv[sign]'")
        raise MissingExtra("signatures need the extra 'sign'", [fault]) from error
    return serialization, ed25519


def statement_of(lock: Lock, name: str) -> dict[str, Any]:
    """Return the in-toto statement about a lock: its bytes as subject, head and time as predicate."""
    return {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": hashlib.sha256(lock.data).hexdigest()}}],
        "predicateType": PREDICATE,
        "predicate": {"head": lock.head, "locked_at": lock.locked_at, "records": len(lock.records)},
    }


def pre_authentication(payload: bytes, kind: str = PAYLOAD_TYPE) -> bytes:
    """Return what a DSSE signature is made over: version, type and payload, each with its length.

    Examples
    --------
    >>> pre_authentication(b"hello world", "http://example.com/HelloWorld")
    b'DSSEv1 29 http://example.com/HelloWorld 11 hello world'
    """
    return b"DSSEv1 %d %s %d %s" % (len(kind.encode()), kind.encode(), len(payload), payload)


def sign_lock(lock: Lock, key: Path, name: str) -> bytes:
    """Sign a lock.

    Parameters
    ----------
    lock
        The lock.
    key
        Private ed25519 key, PEM (PKCS 8), without a password.
    name
        File name of the lock, for the statement.

    Returns
    -------
    bytes
        A DSSE envelope, canonical JSON.

    Raises
    ------
    MissingExtra
        The extra ``sign`` is not installed.
    UsageRefused
        The key is not a private ed25519 key without a password.
    """
    serialization, ed25519 = _ed25519()
    data = _read(key, "a private key")
    try:
        private = serialization.load_pem_private_key(data, password=None)
    except (ValueError, TypeError) as error:
        private = None
        cause: Exception | None = error
    else:
        cause = None
    if not isinstance(private, ed25519.Ed25519PrivateKey):
        fault = Fault(
            str(key), "a private ed25519 key in PEM without a password", "something else", "make one"
        )
        raise UsageRefused("the key cannot sign", [fault]) from cause
    payload = canonical_bytes(statement_of(lock, name))
    public = private.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    envelope = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [
            {
                "keyid": hashlib.sha256(public).hexdigest(),
                "sig": base64.b64encode(private.sign(pre_authentication(payload))).decode(),
            }
        ],
    }
    return canonical_bytes(envelope) + b"\n"


def signature_proof(envelope: Path, key: Path) -> Callable[[Lock], Proof]:
    """Return a check of a DSSE envelope against a public ed25519 key (PEM).

    Raises
    ------
    MissingExtra
        The extra ``sign`` is not installed.
    InputRefused
        A file cannot be read, or the key is no public ed25519 key.
    """
    serialization, ed25519 = _ed25519()
    data, pem = _read(envelope, "a DSSE envelope"), _read(key, "a public key")
    try:
        public = serialization.load_pem_public_key(pem)
    except ValueError as error:
        raise InputRefused("the key cannot be read", [_no_key(key)]) from error
    if not isinstance(public, ed25519.Ed25519PublicKey):
        raise InputRefused("the key cannot be read", [_no_key(key)])
    raw = public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    keyid = hashlib.sha256(raw).hexdigest()

    def prove(lock: Lock) -> Proof:
        reason = _signature_fault(data, str(envelope), public, keyid, lock)
        if reason is not None:
            return Proof(Tier.SIGNED, False, f"the signature does not hold: {reason}")
        text = (
            f"a signature by the ed25519 key {keyid[:16]}… covers the whole file; who holds the key was not checked, "
            "and a signature has no time"
        )
        return Proof(Tier.SIGNED, True, text)

    return prove


def _no_key(path: Path) -> Fault:
    return Fault(str(path), "a public ed25519 key in PEM", "something else", "name the signer's public key")


def _signature_fault(data: bytes, where: str, public: Any, keyid: str, lock: Lock) -> str | None:
    """Say why an envelope does not vouch for a lock; None where it does."""
    from cryptography.exceptions import InvalidSignature

    try:
        document = strict_json(data, where)
        if canonical_bytes(document) + b"\n" != data:
            return "the envelope is not in canonical form"
        payload = base64.b64decode(document["payload"], validate=True)
        signatures = [base64.b64decode(item["sig"], validate=True) for item in document["signatures"]]
        kind = document["payloadType"]
        named = [item["keyid"] for item in document["signatures"]]
        statement = strict_json(payload, where)
    except (VerdivError, KeyError, TypeError, binascii.Error, ValueError):
        return "the envelope is not of the DSSE form"
    if kind != PAYLOAD_TYPE or named != [keyid] or set(document) != {"payload", "payloadType", "signatures"}:
        return "the envelope holds another type, or not one signature by this key"
    try:
        public.verify(signatures[0], pre_authentication(payload, kind))
    except InvalidSignature:
        return "it was not made by this key over this statement"
    try:
        digest = statement["subject"][0]["digest"]["sha256"]
    except (KeyError, TypeError, IndexError):
        return "the statement names no subject"
    if digest != hashlib.sha256(lock.data).hexdigest():
        return "the statement is about other bytes than this lock's"
    if canonical_bytes(statement) != payload or statement.get("predicateType") != PREDICATE:
        return "the statement is of another kind"
    return None


def _openssl(*words: str) -> subprocess.CompletedProcess[bytes] | None:
    try:
        return subprocess.run(
            ["openssl", *words], capture_output=True, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None


def timestamp_proof(token: Path, authority: Path) -> Callable[[Lock], Proof]:
    """Return a check of an RFC 3161 response against an authority's certificates (PEM), by openssl.

    The token's imprint must be the digest of a record of the lock; it vouches for that record and those before it.

    Raises
    ------
    InputRefused
        A file cannot be read.
    MissingExtra
        openssl is not installed.
    """
    data, certificates = _read(token, "an RFC 3161 response"), _read(authority, "certificates in PEM")
    if _openssl("version") is None:
        fault = Fault("openssl", "the command", "not installed", "install OpenSSL")
        raise MissingExtra("timestamps are checked by openssl", [fault])

    def prove(lock: Lock) -> Proof:
        with tempfile.TemporaryDirectory(prefix="verdiv-") as folder:
            reply, roots = Path(folder) / "token.tsr", Path(folder) / "ca.pem"
            reply.write_bytes(data)
            roots.write_bytes(certificates)
            for at in range(len(lock.records) - 1, -1, -1):
                digest = str(lock.records[at]["digest"])
                done = _openssl("ts", "-verify", "-digest", digest, "-in", str(reply), "-CAfile", str(roots))
                if done is not None and done.returncode == 0:
                    return _vouched(reply, at, len(lock.records))
        return Proof(
            Tier.TIMESTAMPED, False, "the timestamp is not the authority's, or not of a record of this lock"
        )

    return prove


def _vouched(reply: Path, at: int, records: int) -> Proof:
    done = _openssl("ts", "-reply", "-in", str(reply), "-text")
    found = None if done is None else _TIME.search(done.stdout.decode("ascii", "replace"))
    moment = None
    if found is not None:
        month, day, clock, year = found.groups()
        moment = f"{year}-{_MONTHS.index(month) + 1:02d}-{int(day):02d}T{clock}Z"
    which = "the lock record" if at == 0 else f"amendment {at} and all before it"
    rest = "" if at == records - 1 else "; what was appended later is not covered"
    text = f"an authority given by its certificate vouches that {which} existed at {moment or 'a time it states'}{rest}"
    return Proof(Tier.TIMESTAMPED, True, text, moment)
