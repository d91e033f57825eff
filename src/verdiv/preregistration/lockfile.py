"""Reading a lock: strict, canonical, every digest and link recomputed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verdiv.errors import ChainBroken, Fault, InputRefused
from verdiv.preregistration.canonical import canonical_bytes, digest_of, strict_json
from verdiv.preregistration.lock import LOCK_FORMAT, LOCK_SCHEMA, stated_plan
from verdiv.preregistration.plan import Preregistration
from verdiv.preregistration.reader import parse_preregistration
from verdiv.runlog.stamps import instants, is_time

__all__ = ["Lock", "read_lock", "read_lock_bytes"]

MAX_BYTES = 64 * 2**20

_TEXTS = {"time": str, "kind": str, "plan_sha256": str}
_TABLES = ("registration", "plan", "outlook", "tool")
_AMENDMENT = ("author", "reason", "seen")


@dataclass(frozen=True)
class Lock:
    """A lock whose digests and links hold."""

    path: str
    """What messages call it."""
    records: tuple[Mapping[str, Any], ...]
    """The lock record, then the amendments in order."""
    data: bytes
    """The file's bytes."""

    @property
    def first(self) -> Mapping[str, Any]:
        """Body of the lock record."""
        body: Mapping[str, Any] = self.records[0]["body"]
        return body

    @property
    def current(self) -> Mapping[str, Any]:
        """Body of the newest record: the plan that holds now."""
        body: Mapping[str, Any] = self.records[-1]["body"]
        return body

    @property
    def head(self) -> str:
        """Digest of the newest record; it covers every record before it."""
        return str(self.records[-1]["digest"])

    @property
    def locked_at(self) -> str:
        """Time of the lock record, by the clock of the machine that locked."""
        return str(self.first["time"])

    @property
    def amendments(self) -> tuple[Mapping[str, Any], ...]:
        """Bodies of the amendments, in order."""
        return tuple(record["body"] for record in self.records[1:])

    def registration_digests(self) -> tuple[str, ...]:
        """SHA-256 of the registration's bytes in each record, in order."""
        return tuple(str(record["body"]["registration"]["sha256"]) for record in self.records)


def read_lock(path: str | Path) -> Lock:
    """Read a lock file.

    Raises
    ------
    InputRefused
        It cannot be read, or is no lock of a version known here.
    ChainBroken
        A digest, a link, a time or the canonical form does not hold.
    """
    file = Path(path)
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        fault = Fault(str(path), "a lock that can be read", reason, "check the path")
        raise InputRefused("the lock cannot be read", [fault]) from error
    return read_lock_bytes(data, str(path))


def read_lock_bytes(data: bytes, where: str) -> Lock:
    """Read a lock from its bytes; see :func:`read_lock`."""
    document = strict_json(data, where)
    if not isinstance(document, dict) or document.get("format") != LOCK_FORMAT:
        fault = Fault(
            where, f'"format": "{LOCK_FORMAT}"', "another document", "name a lock file", field="format"
        )
        raise InputRefused("this is no lock", [fault])
    version = document.get("schema")
    if version != LOCK_SCHEMA or isinstance(version, bool):
        newer = isinstance(version, int) and version > LOCK_SCHEMA
        remedy = "upgrade verdiv to read it" if newer else "restore the file as it was written"
        fault = Fault(where, f"schema {LOCK_SCHEMA}", repr(version), remedy, field="schema")
        raise InputRefused("the lock has another format version", [fault])
    faults = list(_faults(document, where))
    if not faults and canonical_bytes(document, where) + b"\n" != data:
        faults.append(Fault(where, "canonical JSON (RFC 8785) and one line's end", "other bytes", _RESTORE))
    if faults:
        raise ChainBroken("the lock is broken", faults)
    return Lock(where, tuple(document["records"]), data)


_RESTORE = "restore the file as it was written: from version control, a copy, or its author"


def _faults(document: Mapping[str, Any], where: str) -> Iterator[Fault]:
    """Yield what is wrong with the records, in order."""
    if set(document) != {"format", "schema", "records"}:
        yield Fault(where, "format, schema and records", ", ".join(sorted(document))[:80], _RESTORE)
    records = document.get("records")
    if not isinstance(records, list) or not records:
        yield Fault(where, "at least one record", "none", _RESTORE, field="records")
        return
    parent: str | None = None
    before: str | None = None
    for at, record in enumerate(records):
        field = f"records[{at}]"
        if (
            not isinstance(record, dict)
            or set(record) != {"body", "digest"}
            or not isinstance(record["body"], dict)
        ):
            yield Fault(where, "a body and its digest", "something else", _RESTORE, field=field)
            return
        body = record["body"]
        digest = digest_of(body, where)
        if record["digest"] != digest:
            yield Fault(
                where,
                f"the digest of its body, {digest}",
                str(record["digest"])[:80],
                _RESTORE,
                field=f"{field}.digest",
            )
        if body.get("parent") != parent:
            expected = (
                "null, as nothing stands before it" if parent is None else f"the digest before it, {parent}"
            )
            yield Fault(where, expected, str(body.get("parent"))[:80], _RESTORE, field=f"{field}.parent")
        shape = list(_shape_faults(body, at, where))
        yield from shape
        if shape:
            return
        time = str(body["time"])
        if before is not None and instants([time])[0] < instants([before])[0]:
            yield Fault(
                where,
                f"a time from {before}",
                time,
                "amend with a clock that is right",
                field=f"{field}.time",
            )
        parent, before = digest, time


def _shape_faults(body: Mapping[str, Any], at: int, where: str) -> Iterator[Fault]:
    """Yield what a record's body lacks."""
    kind = "lock" if at == 0 else "amendment"
    for name, expected in (
        *((name, "text") for name in _TEXTS if not isinstance(body.get(name), str)),
        *((name, "a table") for name in _TABLES if not isinstance(body.get(name), dict)),
        *((name, "words") for name in _AMENDMENT if at and not _words(body.get(name))),
    ):
        yield Fault(where, expected, repr(body.get(name))[:60], _RESTORE, field=f"records[{at}].body.{name}")
    if body.get("kind") != kind:
        yield Fault(where, kind, repr(body.get("kind"))[:60], _RESTORE, field=f"records[{at}].body.kind")
    if isinstance(body.get("time"), str) and not is_time(body["time"]):
        yield Fault(
            where,
            "an RFC 3339 time with offset",
            body["time"][:60],
            _RESTORE,
            field=f"records[{at}].body.time",
        )
    if isinstance(body.get("plan"), dict) and body.get("plan_sha256") != digest_of(body["plan"], where):
        yield Fault(
            where,
            "the digest of the plan",
            str(body.get("plan_sha256"))[:80],
            _RESTORE,
            field=f"records[{at}].body.plan_sha256",
        )
    files = body.get("files")
    if not isinstance(files, list) or not all(
        isinstance(f, dict) and isinstance(f.get("path"), str) and isinstance(f.get("sha256"), str)
        for f in files
    ):
        yield Fault(where, "a list of files", "something else", _RESTORE, field=f"records[{at}].body.files")
    registration = body.get("registration")
    if isinstance(registration, dict) and not isinstance(registration.get("sha256"), str):
        yield Fault(
            where, "the registration's digest", "none", _RESTORE, field=f"records[{at}].body.registration"
        )


def _words(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def same_plan(lock: Lock, data: bytes, name: str) -> tuple[Preregistration, bool]:
    """Read a registration and tell whether it states the plan that the lock holds now."""
    plan = parse_preregistration(data, name)
    return plan, digest_of(stated_plan(plan), name) == lock.current["plan_sha256"]
