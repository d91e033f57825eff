"""Checks of single files, each told in a few lines."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verdiv.cli.progress import ProgressBar
from verdiv.errors import Fault, InputRefused, VerdivError

__all__ = ["Outcome", "check"]

SNIFFED = 1 << 20
"""Bytes of a TOML file that are looked at to tell a mapping from a registration."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one file is."""

    text: str
    """Lines for the terminal."""
    refused: bool
    severities: tuple[str, ...] = ()
    """Severity of each finding."""


def check(name: str, progress: ProgressBar) -> Outcome:
    """Check one file by what its name says it is; a run log by its bytes.

    Parameters
    ----------
    name
        Path, or ``-`` for a run log on standard input.
    progress
        Shows how far a long log is.

    Returns
    -------
    Outcome
        Never raises for what the file holds.
    """
    suffix = "" if name == "-" else Path(name).suffix.lower()
    try:
        if suffix == ".toml":
            return Outcome(
                _mapping(name) if _looks_like_mapping(name) else _registration(name), refused=False
            )
        if suffix == ".json":
            keys = _keys(name)
            tell = _lock if "records" in keys else _suite if {"tasks", "prompts"} <= keys else _results
            return Outcome(tell(name), refused=False)
        if suffix == ".parquet" and (counted := _tally(name)) is not None:
            return Outcome(counted, refused=False)
    except VerdivError as error:
        return Outcome(f"{name}: REFUSED\n{error}", refused=True)
    return _run_log(name, progress)


def _looks_like_mapping(name: str) -> bool:
    try:
        with Path(name).open("rb") as stream:
            tables = tomllib.loads(stream.read(SNIFFED).decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return False
    return "draw" in tables and "rules" not in tables


def _registration(name: str) -> str:
    from verdiv.preregistration import read_preregistration

    plan = read_preregistration(name)
    arms = ", ".join(f"{arm} ({item.budget})" for arm, item in plan.arms.items())
    lines = [
        f"{name}: a sound registration, sha256 {plan.digest}",
        f"  {plan.title}",
        f"  arms and budgets: {arms}",
        f"  worst case: {plan.worst_case_units:g} units a task and replicate",
    ]
    bound = plan.rate_card.declared_bound_units
    if bound is not None and plan.worst_case_units > bound:
        lines.append(f"  NOTE: the declared bound, {bound:g} units, is below the worst case of these budgets")
    return "\n".join(lines)


def _mapping(name: str) -> str:
    from verdiv.runlog.convert import load_mapping

    mapping = load_mapping(name)
    templates = ", ".join(text for rule in mapping.files for text in rule.match)
    return f"{name}: a sound mapping, {mapping.name!r}, for files like {templates}"


def _results(name: str) -> str:
    from verdiv.reports import load_document

    document = load_document(Path(name))
    return f"{name}: sound results, {document['mode']}, {len(document['rules'])} rules"


def _keys(name: str) -> set[str]:
    """Return the keys of a JSON object; none where there is no object."""
    try:
        found: Any = json.loads(Path(name).read_bytes())
    except (OSError, ValueError, RecursionError):
        return set()
    return set(found) if isinstance(found, dict) else set()


def _lock(name: str) -> str:
    from verdiv.preregistration.lockfile import read_lock

    lock = read_lock(name)
    count = len(lock.amendments)
    amended = f", {count} amendment{'' if count == 1 else 's'}" if count else ""
    return f"{name}: a sound lock{amended}, head {lock.head}\n  verdiv verify says what it is worth"


def _suite(name: str) -> str:
    from verdiv.protocol.suite.suitefile import read_suite

    return f"{name}: a sound suite of {len(read_suite(Path(name)).tasks)} tasks"


def _tally(name: str) -> str | None:
    from verdiv.analysis.tallyfile import is_tally, read_tally

    if not is_tally(name):
        return None
    counts = read_tally(name)
    draws = sum(one.draws for one in counts.inputs)
    return f"{name}: a sound tally, {draws} draws of {len(counts.tasks.tasks)} tasks, gate {counts.gate}"


def _fault_lines(faults: tuple[Fault, ...], total: int) -> Iterator[str]:
    refusal = InputRefused("", faults, total=total)
    yield from str(refusal).splitlines()[1:]


def _run_log(name: str, progress: ProgressBar) -> Outcome:
    from verdiv.runlog.reader import validate

    def bytes_read(done: int, total: int | None) -> None:
        progress(f"checking {Path(name).name}", done, total)

    report = validate(name, progress=bytes_read)
    if not report.valid:
        lines = [
            f"{report.path}: REFUSED, {report.total_faults} fault{'' if report.total_faults == 1 else 's'}",
            *_fault_lines(report.faults, report.total_faults),
        ]
        return Outcome("\n".join(lines), refused=True)
    file = report.input
    assert file is not None
    lines = [
        f"{report.path}: {file.status}, {file.draws} draws of {file.tasks} tasks, gate {file.gate}",
        f"  sha256 {file.sha256}",
    ]
    lines += [f"  {finding.severity}: {finding.message}" for finding in report.findings]
    return Outcome("\n".join(lines), refused=False, severities=tuple(f.severity for f in report.findings))
