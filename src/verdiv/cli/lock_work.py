"""What lock, verify and amend share: where a registration comes from, and how records are told."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verdiv import fixtures
from verdiv.errors import Fault, InputRefused, UsageRefused
from verdiv.preregistration.reader import MAX_BYTES

if TYPE_CHECKING:
    from verdiv.preregistration.plan import Preregistration
    from verdiv.preregistration.verify import LockReport

__all__ = ["amendment_lines", "lock_lines", "report_json", "report_lines", "sign", "simulating", "source_of"]


def source_of(registration: str, lock: Path) -> tuple[bytes, str, str | None]:
    """Return a registration's bytes, its name for messages, and its path relative to the lock's folder.

    Raises
    ------
    InputRefused
        It cannot be read.
    UsageRefused
        It lies outside the lock's folder, so that the lock could not find it again.
    """
    if registration in fixtures.names("preregistrations"):
        return fixtures.read_bytes("preregistrations", registration), registration, None
    path = Path(registration)
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        fault = Fault(registration, "a registration that can be read", reason, "check the path")
        raise InputRefused("the registration cannot be read", [fault]) from error
    base, real = lock.parent.resolve(), path.resolve()
    if not real.is_relative_to(base):
        fault = Fault(
            registration,
            "a file under the lock's folder",
            str(real),
            f"put the lock beside it, not in {base}",
        )
        raise UsageRefused("the registration cannot be locked from there", [fault])
    return data, str(path), real.relative_to(base).as_posix()


def _range(counts: Mapping[str, Any]) -> str:
    if counts["least"] == counts["most"]:
        return f"{counts['most']}"
    expected = "" if counts["expected"] is None else f", {counts['expected']:.1f} expected"
    return f"{counts['least']} to {counts['most']}{expected}"


def _design_lines(body: Mapping[str, Any]) -> list[str]:
    outlook = body["outlook"]
    units = outlook["units_per_task"]
    bill = f"{units['worst']:g} units at worst"
    if units["expected"] is not None:
        bill = f"{units['expected']:.2f} units expected, " + bill
    if units["declared_bound"] is not None:
        relation = "within" if units["bound_covers_worst"] else "ABOVE"
        bill += f", {relation} the declared bound of {units['declared_bound']:g}"
    return [
        f"  draws:   {_range(outlook['draw_records'])} records, {_range(outlook['made_draws'])} of them made",
        f"  bill:    {bill}, a task and replicate",
        f"  files:   {', '.join(f['path'] for f in body['files']) or 'none beside the registration'}",
    ]


def _severity_lines(body: Mapping[str, Any]) -> list[str]:
    """Tell the simulated severity: supported where the claim holds, falsified where it fails."""
    from verdiv.preregistration.severity import severity_shares

    record = body.get("severity")
    if record is None:
        return []
    lines = [
        f"  severity, {record['runs']} simulated runs a world from seed {record['seed']}:",
        "    rule  supported where true  falsified where true  falsified where false",
    ]
    for rule, row in severity_shares(record).items():
        cells = [row[name] for name in ("supported_if_true", "falsified_if_true", "falsified_if_false")]
        shown = ["no such world" if c is None else f"{c / record['runs']:.2f}" for c in cells]
        lines.append(f"    {rule:<5} {shown[0]:>20}  {shown[1]:>20}  {shown[2]:>21}")
    return lines


@contextlib.contextmanager
def simulating() -> Iterator[Callable[[Preregistration, int, int], Mapping[str, Any]]]:
    """Give a function that simulates the severity of a plan and shows how far it is."""
    from verdiv.cli.progress import ProgressBar

    with ProgressBar() as bar:

        def simulate(plan: Preregistration, runs: int, seed: int) -> Mapping[str, Any]:
            from verdiv.analysis.severity import simulate_severity

            return simulate_severity(plan, runs, seed, progress=bar)

        yield simulate


def lock_lines(record: Mapping[str, Any], path: Path) -> list[str]:
    """Tell a lock that was just made."""
    body = record["body"]
    return [
        f"Locked {body['registration']['path'] or body['registration']['name']} in {path}",
        f"  digest:  {record['digest']}",
        f"  time:    {body['time']}, by this machine's clock",
        *_design_lines(body),
        *_severity_lines(body),
        f"Next: commit {path.name}, then run; verdiv verify {path} says what the lock is worth.",
    ]


def amendment_lines(record: Mapping[str, Any], path: Path) -> list[str]:
    """Tell an amendment that was just appended."""
    body = record["body"]
    changes = [f"  {c['field']}: {c['from']!r} -> {c['to']!r}" for c in body["changes"][:20]]
    if len(body["changes"]) > len(changes):
        changes.append(f"  … and {len(body['changes']) - len(changes)} more")
    return [
        f"Appended an amendment to {path}",
        f"  digest:  {record['digest']}",
        f"  parent:  {body['parent']}",
        *_design_lines(body),
        "Changed fields:" if changes else "No field of the plan changed.",
        *changes,
    ]


def sign(path: Path, key: Path) -> Path:
    """Sign a lock into the envelope beside it, and return where that stands; an older envelope is replaced."""
    from verdiv.preregistration.lockfile import read_lock
    from verdiv.preregistration.proofs import sign_lock
    from verdiv.runlog.storage import atomic_file

    target = path.with_name(f"{path.name.removesuffix('.json')}.dsse.json")
    envelope = sign_lock(read_lock(path), key, path.name)
    with atomic_file(target, overwrite=True) as stream:
        stream.write(envelope)
    return target


def report_lines(report: LockReport) -> list[str]:
    """Tell what was checked of a lock."""
    lines = [f"{check.outcome.value.upper():15} {check.check}: {check.message}" for check in report.checks]
    if report.lock is not None:
        for at, body in enumerate(report.lock.amendments, start=1):
            lines.append(f"Amendment {at}, {body['time']}, {body['author']}: {body['reason']}")
            lines.append(f"  seen before: {body['seen']}")
            lines += [f"  {c['field']}: {c['from']!r} -> {c['to']!r}" for c in body["changes"][:20]]
    if report.strength is not None:
        lines.append(f"Strength: {report.strength.tier.value}. {report.strength.text}")
    lines.append(f"{report.path}: " + ("BROKEN" if report.broken else "holds"))
    return lines


def report_json(report: LockReport) -> dict[str, Any]:
    """Return what was checked of a lock as plain JSON values."""
    strength, lock = report.strength, report.lock
    return {
        "lock": report.path,
        "status": "broken" if report.broken else "locked",
        "head": None if lock is None else lock.head,
        "locked_at": None if lock is None else lock.locked_at,
        "amendments": [] if lock is None else [dict(body) for body in lock.amendments],
        "checks": [
            {"check": c.check, "outcome": c.outcome.value, "message": c.message} for c in report.checks
        ],
        "strength": None if strength is None else {"tier": strength.tier.value, "text": strength.text},
    }
