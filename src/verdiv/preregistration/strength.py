"""How much a lock's time and origin are worth: only what was checked here, in words that claim no more."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from verdiv.errors import VerdivError
from verdiv.preregistration.lockfile import Lock, read_lock_bytes

__all__ = ["GitHistory", "Proof", "Strength", "Tier", "git_history", "git_proof", "strength_of"]

MAX_COMMITS = 200
"""Commits of a lock file that are looked at, oldest first."""

SECONDS = 20
"""How long git may take for one answer."""


class Tier(StrEnum):
    """What a lock's time rests on, weakest first."""

    SELF = "self-recorded"
    """The clock of the machine that locked, and nothing else."""
    GIT = "git"
    """A commit holds it; commit dates are set by whoever commits."""
    SIGNED = "signed"
    """A key vouches for its content; a signature has no time of its own."""
    TIMESTAMPED = "timestamped"
    """An authority that was checked vouches that it existed at a time."""


@dataclass(frozen=True, slots=True)
class Proof:
    """One thing that was checked beyond the lock itself."""

    tier: Tier
    holds: bool
    text: str
    """What was checked and what it shows."""
    at: str | None = None
    """Time it attests, RFC 3339."""


@dataclass(frozen=True, slots=True)
class Strength:
    """What was reached."""

    tier: Tier
    text: str
    """For the report: every proof that holds, and what is not shown."""
    proofs: tuple[Proof, ...] = ()


@dataclass(frozen=True, slots=True)
class GitHistory:
    """What a repository says of a lock file."""

    commit: str | None
    """Oldest commit that holds this lock's first record; None where none does."""
    committed_at: str | None
    """That commit's date, as its committer set it."""
    replaced: tuple[str, ...]
    """Older commits in which another lock, or none that can be read, stood under the name."""
    current: bool
    """Whether the file's bytes are those of the newest commit."""


def _git(folder: Path, *words: str) -> bytes | None:
    """Ask git, without pager, hooks or prompts; None where it has no answer."""
    command = ["git", "-c", "core.fsmonitor=false", "--no-pager", "-C", str(folder), *words]
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None


def git_history(path: Path, lock: Lock) -> GitHistory | None:
    """Look a lock up in the repository it lies in.

    Returns
    -------
    GitHistory or None
        None without git, without a repository, or where no commit holds the file.
    """
    folder, name = path.resolve().parent, path.name
    log = _git(folder, "log", "--format=%H %cI", "--reverse", "--", name)
    prefix = _git(folder, "rev-parse", "--show-prefix")
    if not log or prefix is None:
        return None
    inside = prefix.decode("utf-8", "replace").strip() + name
    commits = [line.split(" ", 1) for line in log.decode("ascii", "replace").splitlines()][:MAX_COMMITS]
    replaced: list[str] = []
    for commit, date in commits:
        blob = _git(folder, "cat-file", "blob", f"{commit}:{inside}")
        if blob is None:
            continue
        try:
            there = read_lock_bytes(blob, f"{name} at {commit[:12]}")
        except VerdivError:
            replaced.append(commit)
            continue
        if there.records[0]["digest"] == lock.records[0]["digest"]:
            newest = _git(folder, "cat-file", "blob", f"HEAD:{inside}")
            return GitHistory(commit, date, tuple(replaced), newest == lock.data)
        replaced.append(commit)
    return GitHistory(None, None, tuple(replaced), False)


def strength_of(lock: Lock, proofs: Sequence[Proof]) -> Strength:
    """Say how strong a lock is, by the proofs that hold.

    Examples
    --------
    >>> strength_of(Lock("x", ({"body": {"time": "2026-01-01T00:00:00Z"}, "digest": "d"},), b""), ()).tier.value
    'self-recorded'
    """
    order = list(Tier)
    held = sorted((proof for proof in proofs if proof.holds), key=lambda proof: order.index(proof.tier))
    said = [
        f"The lock says it was made at {lock.locked_at}, by the clock of the machine that made it",
        *(proof.text for proof in held),
    ]
    if not held:
        said.append("nothing outside the file vouches for that time")
    elif all(proof.tier is not Tier.TIMESTAMPED for proof in held):
        said.append("no authority of time was checked")
    tier = held[-1].tier if held else Tier.SELF
    return Strength(tier, "; ".join(said) + ".", tuple(proofs))


def git_proof(history: GitHistory) -> Proof:
    """Turn a repository's history into a proof."""
    if history.commit is None:
        return Proof(Tier.GIT, False, "no commit holds this lock")
    text = (
        f"commit {history.commit[:12]} of {history.committed_at} holds its first record; a commit's date is "
        "set by whoever commits, and when it was published was not checked"
    )
    return Proof(Tier.GIT, True, text, history.committed_at)
