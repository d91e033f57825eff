"""Holding a lock against the files it covers, the registration it locks, and its history."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

from verdiv import __version__, fixtures
from verdiv.errors import Fault, VerdivError
from verdiv.preregistration.canonical import digest_of
from verdiv.preregistration.lock import locked_plan, stated_plan
from verdiv.preregistration.lockfile import Lock, read_lock
from verdiv.preregistration.outlook import outlook
from verdiv.preregistration.plan import Preregistration
from verdiv.preregistration.reader import MAX_BYTES, parse_preregistration
from verdiv.preregistration.severity import severity_faults
from verdiv.preregistration.strength import Proof, Strength, git_history, git_proof, strength_of

__all__ = ["Again", "CheckOutcome", "LockCheck", "LockReport", "verify_lock"]

Again: TypeAlias = Callable[[Preregistration, int, int], Mapping[str, Any]]
"""Simulates the severity of a plan, given runs a world and seed."""


class CheckOutcome(StrEnum):
    """What came of a check."""

    PASS = "pass"
    FINDING = "finding"
    NOT_APPLICABLE = "not applicable"
    COULD_NOT_RUN = "could not run"
    """For want of something; never counts as a pass."""


@dataclass(frozen=True, slots=True)
class LockCheck:
    """One check of a lock."""

    check: str
    outcome: CheckOutcome
    message: str


@dataclass(frozen=True)
class LockReport:
    """Everything that was checked of a lock."""

    path: str
    lock: Lock | None
    """None where the lock cannot be read or does not hold."""
    checks: tuple[LockCheck, ...]
    strength: Strength | None
    """None for a broken lock, which has none."""
    faults: tuple[Fault, ...] = ()

    @property
    def broken(self) -> bool:
        """Whether some check found the lock, its files or its registration other than locked."""
        return any(check.outcome is CheckOutcome.FINDING for check in self.checks)


def _finding(check: str, message: str) -> LockCheck:
    return LockCheck(check, CheckOutcome.FINDING, message)


def _passed(check: str, message: str) -> LockCheck:
    return LockCheck(check, CheckOutcome.PASS, message)


def _inside(base: Path, name: str) -> Path | None:
    """Return a covered file's path; None where it would lie outside the lock's folder."""
    pure = PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts or "\\" in name or "\0" in name:
        return None
    real = (base / pure).resolve()
    return real if real.is_relative_to(base.resolve()) else None


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _registration(lock: Lock, base: Path, given: Path | None) -> tuple[bytes, str] | LockCheck:
    """Find the registration that the lock names, or the one given."""
    stated = lock.current["registration"]
    check = "lock.registration"
    try:
        if given is not None:
            with given.open("rb") as stream:
                return stream.read(MAX_BYTES + 1), str(given)
        if isinstance(stated.get("path"), str):
            path = _inside(base, stated["path"])
            if path is None:
                return _finding(
                    check, f"the registration's path leaves the lock's folder: {stated['path'][:80]!r}"
                )
            with path.open("rb") as stream:
                return stream.read(MAX_BYTES + 1), stated["path"]
        if isinstance(stated.get("name"), str) and stated["name"] in fixtures.names("preregistrations"):
            return fixtures.read_bytes("preregistrations", stated["name"]), stated["name"]
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        return LockCheck(check, CheckOutcome.COULD_NOT_RUN, f"the registration cannot be read: {reason}")
    return LockCheck(
        check, CheckOutcome.COULD_NOT_RUN, "the lock names no registration that can be found here"
    )


def _check_registration(lock: Lock, base: Path, given: Path | None) -> Iterator[LockCheck]:
    found = _registration(lock, base, given)
    if isinstance(found, LockCheck):
        yield found
        return
    data, name = found
    digest, locked = hashlib.sha256(data).hexdigest(), lock.current["registration"]["sha256"]
    if digest == locked:
        yield _passed("lock.registration", f"{name} has the locked bytes, sha256 {digest}")
        return
    try:
        same = digest_of(stated_plan(parse_preregistration(data, name)), name) == lock.current["plan_sha256"]
    except VerdivError as error:
        yield _finding("lock.registration", f"{name} is not what was locked, and is refused: {error.message}")
        return
    tail = "its plan is the same, its words or comments are not" if same else "its plan is another one"
    yield _finding(
        "lock.registration",
        f"{name} is not what was locked: sha256 {digest[:12]}…, locked {locked[:12]}…; {tail}",
    )


def _check_files(lock: Lock, base: Path) -> Iterator[LockCheck]:
    files = lock.current["files"]
    if not files:
        yield LockCheck(
            "lock.files", CheckOutcome.NOT_APPLICABLE, "the lock covers no file beside the registration"
        )
    for file in files:
        path = _inside(base, file["path"])
        if path is None:
            yield _finding("lock.files", f"{file['path'][:80]!r} leaves the lock's folder")
            continue
        try:
            digest = _digest(path)
        except OSError as error:
            yield LockCheck(
                "lock.files", CheckOutcome.COULD_NOT_RUN, f"{file['path']}: {error.strerror or error}"
            )
            continue
        if digest == file["sha256"]:
            yield _passed("lock.files", f"{file['path']} is unchanged")
        else:
            yield _finding(
                "lock.files",
                f"{file['path']} has changed: sha256 {digest[:12]}…, locked {file['sha256'][:12]}…",
            )


def _check_outlook(lock: Lock) -> LockCheck:
    """Work the design's outlook out again from the locked plan."""
    tool = lock.current["tool"].get("version")
    if tool != __version__:
        message = f"made by version {str(tool)[:20]}, this is {__version__}: the closed forms may differ"
        return LockCheck("lock.outlook", CheckOutcome.COULD_NOT_RUN, message)
    try:
        plan = locked_plan(lock.current)
    except ValueError:
        return _finding("lock.outlook", "the locked plan is no plan that this version reads")
    if digest_of(outlook(plan)) != digest_of(lock.current["outlook"]):
        return _finding("lock.outlook", "draws and bills do not follow from the locked plan")
    return _passed("lock.outlook", "draws and bills follow from the locked plan")


def _check_severity(lock: Lock, again: Again | None) -> LockCheck:
    """Read the simulated severity, and simulate it again where asked."""
    name = "lock.severity"
    record = lock.current.get("severity")
    if record is None:
        said = "the lock holds no simulated severity"
        return LockCheck(name, CheckOutcome.NOT_APPLICABLE, said)
    faults = list(severity_faults(record))
    if faults:
        return _finding(name, "the simulated severity does not hold together: " + "; ".join(faults[:3]))
    said = f"verdicts of {record['runs']} simulated runs a world, seed {record['seed']}"
    if again is None:
        return _passed(name, f"{said}, not simulated again")
    try:
        fresh = again(locked_plan(lock.current), record["runs"], record["seed"])
    except (ValueError, VerdivError) as error:
        return LockCheck(
            name, CheckOutcome.COULD_NOT_RUN, f"{said}, cannot be simulated again: {error}"[:300]
        )
    if fresh["versions"] != record.get("versions"):
        versions = ", ".join(f"{k} {v}" for k, v in dict(record.get("versions") or {}).items())
        message = f"{said}, made by {versions[:100] or 'unknown versions'}: others need not agree run by run"
        return LockCheck(name, CheckOutcome.COULD_NOT_RUN, message)
    if digest_of(fresh) != digest_of(record):
        return _finding(name, f"{said}: simulated again, other verdicts come out")
    return _passed(name, f"{said}, the same when simulated again")


def verify_lock(
    path: str | Path,
    *,
    registration: Path | None = None,
    proofs: Sequence[Callable[[Lock], Proof]] = (),
    use_git: bool = True,
    again: Again | None = None,
) -> LockReport:
    """Check a lock: its own digests and links, the registration, every file, and what vouches for its time.

    Parameters
    ----------
    path
        The lock file.
    registration
        The registration, where it lies elsewhere than the lock says.
    proofs
        Further proofs to check: signatures, timestamps.
    use_git
        Ask git about the file's history.
    again
        Simulates the severity of a plan with so many runs and this seed, to compare it with the locked one.

    Returns
    -------
    LockReport
        Never raises for what the files hold; a lock that cannot be read is a finding.
    """
    where = str(path)
    try:
        lock = read_lock(path)
    except VerdivError as error:
        said = "; ".join(map(str, error.faults[:3])) or error.message
        return LockReport(where, None, (_finding("lock.digest", said),), None, tuple(error.faults))
    base = Path(path).resolve().parent
    count = len(lock.amendments)
    checks = [
        _passed("lock.digest", f"every digest recomputes; head {lock.head}"),
        _passed(
            "lock.amendments",
            f"{count} amendment{'' if count == 1 else 's'}, each linked to the record before",
        )
        if count
        else LockCheck("lock.amendments", CheckOutcome.NOT_APPLICABLE, "the plan was never amended"),
        *_check_registration(lock, base, registration),
        *_check_files(lock, base),
        _check_outlook(lock),
        _check_severity(lock, again),
    ]
    found = [prove(lock) for prove in proofs]
    checks += [
        LockCheck(
            f"lock.{proof.tier.value}", CheckOutcome.PASS if proof.holds else CheckOutcome.FINDING, proof.text
        )
        for proof in found
    ]
    history = git_history(Path(path), lock) if use_git else None
    if history is None:
        checks.append(
            LockCheck("lock.replaced", CheckOutcome.COULD_NOT_RUN, "no version history holds the lock")
        )
    else:
        found.append(git_proof(history))
        if history.replaced:
            message = f"another lock stood under this name in commit {history.replaced[0][:12]}"
            checks.append(_finding("lock.replaced", message))
        elif history.commit is None:
            checks.append(LockCheck("lock.replaced", CheckOutcome.COULD_NOT_RUN, "no commit holds the lock"))
        else:
            checks.append(_passed("lock.replaced", "no other lock stood under this name in the history"))
    return LockReport(where, lock, tuple(checks), strength_of(lock, found))
