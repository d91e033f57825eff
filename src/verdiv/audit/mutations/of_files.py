"""Breakages of lock, registration, suite, results and printed figures."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from verdiv.audit.mutations.clean import CleanRun, plan_bytes
from verdiv.preregistration import read_preregistration
from verdiv.preregistration.amend import amend_lock
from verdiv.preregistration.lock import lock_bytes, lock_plan, record_of
from verdiv.preregistration.lockfile import read_lock
from verdiv.preregistration.rules import RULE_IDS

__all__ = ["LOCK_BREAKAGES", "RESULTS_BREAKAGES", "moved_figure"]

AMENDED_AT = "2026-03-05T00:00:00Z"


def _edit(run: CleanRun, old: bytes, new: bytes, *, lock: bool = False) -> None:
    path = run.lock_path if lock else run.plan_path
    data = path.read_bytes()
    if old not in data:
        raise LookupError(f"the file does not say {old!r}")
    path.write_bytes(data.replace(old, new, 1))


def _moved_margin(run: CleanRun) -> None:
    _edit(run, b"quality_margin = 0.05", b"quality_margin = 0.15")


def _edited_lock(run: CleanRun) -> None:
    _edit(run, b'"quality_margin":0.05', b'"quality_margin":0.15', lock=True)


def _spaced_lock(run: CleanRun) -> None:
    document = json.loads(run.lock_path.read_bytes())
    run.lock_path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _repeated_key(run: CleanRun) -> None:
    _edit(run, b'{"format":', b'{"format":"verdiv.lock","format":', lock=True)


def _amended(run: CleanRun, data: bytes, time: str) -> None:
    run.plan_path.write_bytes(data)
    amend_lock(
        run.lock_path, data, "preregistration.toml", author="A. Mender", reason="the margin seemed small",
        seen="all outcomes", registration="preregistration.toml", time=time,
    )  # fmt: skip
    run.plan = read_preregistration(run.plan_path)


def _late_amendment(run: CleanRun) -> None:
    _amended(run, plan_bytes().replace(b"quality_margin = 0.05", b"quality_margin = 0.15"), AMENDED_AT)


def _dropped_amendment(run: CleanRun) -> None:
    _amended(run, plan_bytes().replace(b"gamma = 0.95", b"gamma = 0.9"), "2026-03-01T13:00:00Z")
    _amended(run, plan_bytes().replace(b"gamma = 0.95", b"gamma = 0.8"), "2026-03-01T14:00:00Z")
    records = read_lock(run.lock_path).records
    run.lock_path.write_bytes(lock_bytes([records[0], records[2]]))


def _forged_outlook(run: CleanRun) -> None:
    body = dict(read_lock(run.lock_path).first)
    body["outlook"] = body["outlook"] | {
        "units_per_task": body["outlook"]["units_per_task"] | {"worst": 27.5}
    }
    run.lock_path.write_bytes(lock_bytes([record_of(body)]))


def _forged_severity(run: CleanRun) -> None:
    body = dict(read_lock(run.lock_path).first)
    told = {"world": "null", "verdicts": "ssss"}
    body["severity"] = {
        "runs": 5,
        "seed": 1,
        "rules": {rule: {"true": told, "false": None} for rule in RULE_IDS},
    }
    run.lock_path.write_bytes(lock_bytes([record_of(body)]))


def _other_suite(run: CleanRun) -> None:
    run.suite_path.write_bytes(run.suite_path.read_bytes() + b"\n")


def _soft_alternative(run: CleanRun) -> None:
    data = plan_bytes().replace(b"alternative = 0.25", b"alternative = 0.75")
    run.plan_path.write_bytes(data)
    run.lock_path.unlink()
    lock_plan(
        data,
        "preregistration.toml",
        run.lock_path,
        registration="preregistration.toml",
        time="2026-03-01T12:00:00Z",
    )
    run.plan = read_preregistration(run.plan_path)


LOCK_BREAKAGES: tuple[tuple[str, str, Callable[[CleanRun], None]], ...] = (
    ("a margin moved after the lock", "lock.registration", _moved_margin),
    ("a margin moved in the lock", "lock.digest", _edited_lock),
    ("a lock spelled another way", "lock.digest", _spaced_lock),
    ("a key given twice in the lock", "lock.digest", _repeated_key),
    ("an amendment taken out", "lock.digest", _dropped_amendment),
    ("an outlook forged, digest renewed", "lock.outlook", _forged_outlook),
    ("a severity with a run left out", "lock.severity", _forged_severity),
    ("a suite changed after the lock", "lock.files", _other_suite),
    ("an amendment after the outcomes", "lock.amended_after_data", _late_amendment),
    ("an alternative inside its claim", "rules.regions", _soft_alternative),
)
"""Name, check that must catch it, and the breakage."""


def _results(edit: Callable[[dict[str, Any]], None]) -> Callable[[CleanRun], None]:
    def apply(run: CleanRun) -> None:
        document = json.loads(run.results_path.read_text("utf-8"))
        edit(document)
        run.results_path.write_text(json.dumps(document), encoding="utf-8")

    return apply


def _first_verdict(document: dict[str, Any]) -> None:
    rule = next(iter(document["rules"].values()))
    rule["verdict"] = "falsified" if rule["verdict"] != "falsified" else "supported"
    for part in rule.get("parts") or ():
        part["verdict"] = "inconclusive"
    if not rule.get("parts"):
        rule["verdict"] = "certain"


def _set(document: dict[str, Any], value: Any, *path: Any) -> None:
    for key in path[:-1]:
        document = document[key]
    document[path[-1]] = value


def _outside(document: dict[str, Any]) -> None:
    record = next(
        r for r in document["estimates"].values() if isinstance(r.get("mean"), float) and r.get("n")
    )
    record["mean"] = record["high"] + 0.1


def _moved_result(document: dict[str, Any]) -> None:
    _set(document, 0.2, "preregistration", "plan", "rules", "P3", "quality_margin")


def _other_digest(document: dict[str, Any]) -> None:
    _set(document, "0" * 64, "preregistration", "digest")


def _outliers(document: dict[str, Any]) -> None:
    document["exclusions"].append({"rule": "outliers", "draws": 3})


RESULTS_BREAKAGES: tuple[tuple[str, str, Callable[[CleanRun], None]], ...] = (
    (
        "results of another log",
        "results.inputs",
        _results(lambda d: _set(d, "0" * 64, "inputs", 0, "sha256")),
    ),
    ("a margin moved in the results", "results.plan", _results(_moved_result)),
    ("results of another registration", "results.plan", _results(_other_digest)),
    ("a rule left out of the results", "results.rules", _results(lambda d: d["rules"].pop("R3"))),
    ("a verdict changed in the results", "results.rules", _results(_first_verdict)),
    ("a count changed in the flow", "results.flow", _results(lambda d: _set(d, 1, "flow", 0, "attempted"))),
    (
        "a bill changed in the results",
        "results.ledger",
        _results(lambda d: _set(d, 1.5, "ledger", "total_units")),
    ),
    ("an estimate moved out of its interval", "results.counts", _results(_outside)),
    ("an exclusion nobody registered", "selection.exclusions", _results(_outliers)),
)
"""Name, check that must catch it, and the breakage."""


def moved_figure(value: str) -> str:
    """Move the last digit of a printed figure by one.

    Examples
    --------
    >>> moved_figure("16.8"), moved_figure("0.60")
    ('16.9', '0.61')
    """
    digits = Decimal(value)
    exponent = digits.as_tuple().exponent
    return str(digits + Decimal(1).scaleb(exponent if isinstance(exponent, int) else 0))
