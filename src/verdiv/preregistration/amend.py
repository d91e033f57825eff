"""Appending an amendment: who, when, why, what had been seen, and what changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from verdiv import __version__
from verdiv.errors import Fault, UsageRefused, WriteFailed
from verdiv.preregistration.lock import lock_bytes, now, plan_body, record_of
from verdiv.preregistration.lockfile import read_lock, read_lock_bytes
from verdiv.runlog.stamps import instants
from verdiv.runlog.storage import atomic_file

__all__ = ["amend_lock", "changed_fields"]

MAX_WORDS = 20_000

_ABSENT = object()


def changed_fields(old: object, new: object, path: str = "") -> Iterator[dict[str, Any]]:
    """Yield every field in which two plans differ, as ``field``, ``from`` and ``to``; null stands for absent.

    Examples
    --------
    >>> list(changed_fields({"rules": {"P3": {"quality_margin": 0.05}}}, {"rules": {"P3": {"quality_margin": 0.1}}}))
    [{'field': 'rules.P3.quality_margin', 'from': 0.05, 'to': 0.1}]
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            inner = f"{path}.{key}" if path else str(key)
            yield from changed_fields(old.get(key, _ABSENT), new.get(key, _ABSENT), inner)
    elif old is not new and old != new:
        yield {"field": path, "from": None if old is _ABSENT else old, "to": None if new is _ABSENT else new}


def _words(**said: str) -> None:
    faults = [
        Fault(f"--{name}", f"1 to {MAX_WORDS} characters", f"{len(text)}", "say it in words")
        for name, text in said.items()
        if not text.strip() or len(text) > MAX_WORDS
    ]
    if faults:
        raise UsageRefused("an amendment names author, reason and what had been seen", faults)


def amend_lock(
    path: Path,
    data: bytes,
    name: str,
    *,
    author: str,
    reason: str,
    seen: str,
    registration: str | None,
    extra: Sequence[str] | None = None,
    time: str | None = None,
) -> dict[str, Any]:
    """Append an amendment to a lock; every record before it stays byte for byte.

    Parameters
    ----------
    path
        The lock file.
    data, name, registration
        The registration as it shall hold from now on, as for :func:`~verdiv.preregistration.lock.lock_plan`.
    author, reason, seen
        Who amends, why, and what of the data had been seen.
    extra
        Further files to cover from now on; those of the newest record if None.
    time
        RFC 3339; this machine's clock if absent.

    Returns
    -------
    dict
        The amendment's record.

    Raises
    ------
    ChainBroken
        The lock does not hold: nothing is appended to it.
    InputRefused
        The lock, the registration or a file cannot be read.
    UsageRefused
        Words are missing, or the clock stands before the newest record.
    """
    _words(author=author, reason=reason, seen=seen)
    lock = read_lock(path)
    moment = time or now()
    if instants([moment])[0] < instants([str(lock.current["time"])])[0]:
        fault = Fault("clock", f"a time from {lock.current['time']}", moment, "set this machine's clock")
        raise UsageRefused("the amendment would precede what it amends", [fault])
    kept = [str(f["path"]) for f in lock.current["files"] if f.get("role") == "named"]
    described = plan_body(
        data, name, path.parent, kept if extra is None else extra, registration=registration
    )
    body = {
        "kind": "amendment",
        "parent": lock.head,
        "time": moment,
        "author": author,
        "reason": reason,
        "seen": seen,
        "tool": {"name": "verdiv", "version": __version__},
        "changes": list(changed_fields(lock.current["plan"], described["plan"])),
        **described,
    }
    record = record_of(body)
    whole = lock_bytes([*lock.records, record])
    again = read_lock_bytes(whole, str(path))
    if again.records[:-1] != lock.records or path.read_bytes() != lock.data:
        fault = Fault(str(path), "the lock as it was read", "another one", "amend again")
        raise WriteFailed("the lock changed while it was being amended", [fault])
    with atomic_file(path, overwrite=True) as stream:
        stream.write(whole)
    return record
