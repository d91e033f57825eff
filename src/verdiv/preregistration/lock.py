"""Locking a plan: one record with its digest, and amendments that are only ever appended.

A lock file is the canonical JSON (RFC 8785) of ``{"format", "records", "schema"}`` and one line's end. A record
is ``{"body", "digest"}``, its digest the SHA-256 of the body's canonical JSON, so that any JCS program can
recompute it; each body after the first names the digest of the record before it as ``parent``.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from verdiv import __version__
from verdiv.errors import Fault, InputRefused, UsageRefused
from verdiv.preregistration.canonical import canonical_bytes, digest_of
from verdiv.preregistration.outlook import outlook
from verdiv.preregistration.plan import Preregistration, RegisteredPlan
from verdiv.preregistration.reader import parse_preregistration
from verdiv.runlog.storage import OutputFile, write_failed

__all__ = [
    "LOCK_FORMAT",
    "LOCK_SCHEMA",
    "LockedFile",
    "default_lock_path",
    "lock_bytes",
    "lock_plan",
    "locked_plan",
    "now",
    "plan_body",
    "record_of",
    "stated_plan",
    "write_lock",
]

LOCK_SCHEMA = 1
"""Integer version of the lock format; a newer one is refused."""

LOCK_FORMAT = "verdiv.lock"

MAX_FILE = 8 * 2**30
"""Largest file that a lock covers, bytes."""


@dataclass(frozen=True, slots=True)
class LockedFile:
    """A file that a lock covers."""

    role: str
    path: str
    """Relative to the lock's folder, with slashes."""
    sha256: str
    bytes: int

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {"role": self.role, "path": self.path, "sha256": self.sha256, "bytes": self.bytes}


def now() -> str:
    """Return the time of this machine's clock as RFC 3339, in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def default_lock_path(registration: str | Path) -> Path:
    """Return where the lock of a registration stands: beside it, ``preregistration.lock.json``."""
    path = Path(registration)
    return path.with_name(f"{path.name.removesuffix('.toml')}.lock.json")


def stated_plan(plan: Preregistration) -> dict[str, Any]:
    """Return a plan as plain JSON values, defaults written out, so that a later default changes nothing."""
    said: dict[str, Any] = json.loads(plan.model_dump_json(by_alias=True))
    return said


def _covered(base: Path, name: str, role: str) -> LockedFile:
    """Digest a file under the lock's folder."""
    pure = PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts or "\\" in name or not name.strip():
        fault = Fault(
            name or role, "a file under the lock's folder", "a path that leaves it", "move the file there"
        )
        raise UsageRefused("the file cannot be locked", [fault])
    path = base / pure
    try:
        real = path.resolve(strict=True)
        if not real.is_relative_to(base.resolve()) or not real.is_file():
            fault = Fault(name, "a file under the lock's folder", "another place", "move the file there")
            raise UsageRefused("the file cannot be locked", [fault])
        digest, size = hashlib.sha256(), 0
        with real.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
                size += len(block)
                if size > MAX_FILE:
                    fault = Fault(
                        name, f"at most {MAX_FILE} bytes", "a larger file", "lock its digest instead"
                    )
                    raise UsageRefused("the file cannot be locked", [fault])
    except OSError as error:
        fault = Fault(name, "a file that can be read", error.strerror or str(error), "check the path")
        raise InputRefused("the file cannot be locked", [fault]) from error
    return LockedFile(role, pure.as_posix(), digest.hexdigest(), size)


def plan_body(
    data: bytes, name: str, base: Path, extra: Sequence[str] = (), *, registration: str | None = None
) -> dict[str, Any]:
    """Describe a registration and all it names, as the part that lock and amendment records share.

    Parameters
    ----------
    data
        Bytes of the registration.
    name
        What messages call it.
    base
        The lock's folder; files are named relative to it.
    extra
        Further files to cover, relative to ``base``.
    registration
        The registration's path relative to ``base``; None for one that ships with the package.

    Raises
    ------
    InputRefused
        The registration is refused, a file cannot be read, or the suite is not the registered one.
    UsageRefused
        A file outside the lock's folder.
    """
    plan = parse_preregistration(data, name)
    files: list[LockedFile] = []
    suite = plan.suite
    if suite.path is not None and _is_file(base, suite.path):
        files.append(_covered(base, suite.path, "suite"))
        if suite.sha256 is not None and files[0].sha256 != suite.sha256:
            fault = Fault(
                suite.path,
                f"the registered digest {suite.sha256}",
                files[0].sha256,
                "lock the registered suite",
            )
            raise InputRefused("the suite is not the registered one", [fault])
    files += [_covered(base, path, "named") for path in extra]
    stated = stated_plan(plan)
    return {
        "registration": {
            "path": registration,
            "name": name if registration is None else None,
            "sha256": hashlib.sha256(data).hexdigest(),
            "bytes": len(data),
        },
        "plan": stated,
        "plan_sha256": digest_of(stated, name),
        "suite_sha256": suite.sha256 or next((f.sha256 for f in files if f.role == "suite"), None),
        "files": [file.as_json() for file in files],
        "outlook": outlook(plan),
    }


def locked_plan(body: Mapping[str, Any]) -> RegisteredPlan:
    """Read the plan in a record's body.

    Raises
    ------
    ValueError
        It is no plan that this version reads.
    """
    return RegisteredPlan.model_validate_json(canonical_bytes(body["plan"], "plan"))


def _is_file(base: Path, name: str) -> bool:
    """Whether words are the path of a file under the folder; never looks elsewhere."""
    pure = PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts or len(name) > 1024 or "\0" in name:
        return False
    with contextlib.suppress(OSError, ValueError):
        return (base / pure).is_file()
    return False


def record_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record: the body and its digest."""
    return {"body": dict(body), "digest": digest_of(body, "lock record")}


def lock_bytes(records: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the bytes of a lock file with these records."""
    document = {"format": LOCK_FORMAT, "schema": LOCK_SCHEMA, "records": list(records)}
    return canonical_bytes(document, "lock") + b"\n"


def _taken(path: Path) -> UsageRefused:
    fault = Fault(
        str(path),
        "no lock yet",
        "a file of that name",
        "a plan is locked once: append to it with `verdiv amend`, or lock another plan elsewhere",
    )
    return UsageRefused("locking twice is refused", [fault])


def write_lock(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    """Write a new lock file; never over one that stands there.

    Raises
    ------
    UsageRefused
        Something stands under the name.
    WriteFailed
        The system refused to write.
    """
    data = lock_bytes(records)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError as error:
        raise _taken(path) from error
    except OSError as error:
        raise write_failed(path, error) from error
    try:
        with OutputFile(descriptor, path) as stream:
            stream.write(data)
            stream.sync()
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink()
        raise


def lock_plan(
    data: bytes,
    name: str,
    path: Path,
    *,
    registration: str | None = None,
    extra: Sequence[str] = (),
    author: str | None = None,
    time: str | None = None,
    severity: Callable[[Preregistration], Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Lock a registration into a new file.

    Parameters
    ----------
    data, name
        The registration's bytes, and what messages call it.
    path
        Lock file to write; its folder is the base of all paths in it.
    registration
        The registration's path relative to that folder; None for a shipped one.
    extra
        Further files to cover, relative to that folder.
    author
        Who locks, where another than the registration's authors.
    time
        RFC 3339; this machine's clock if absent.
    severity
        Simulates the design; what it returns is stored as ``severity``. It sees the plan as the lock holds it.

    Returns
    -------
    dict
        The lock record.

    Raises
    ------
    InputRefused
        The registration or a file is refused.
    UsageRefused
        A lock stands there already, or a file lies elsewhere.
    """
    if path.exists() or path.is_symlink():
        raise _taken(path)
    body = {
        "kind": "lock",
        "parent": None,
        "time": time or now(),
        "author": author,
        "tool": {"name": "verdiv", "version": __version__},
        **plan_body(data, name, path.parent, extra, registration=registration),
    }
    if severity is not None:
        body["severity"] = dict(severity(locked_plan(body)))
    record = record_of(body)
    write_lock(path, [record])
    return record
