"""Reading a registration: bounded, total over hostile bytes, every fault of the file at once."""

from __future__ import annotations

import hashlib
import json
import sys
import tomllib
from collections.abc import Iterable, Mapping
from datetime import date, time
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from verdiv import fixtures
from verdiv.errors import Fault, InputRefused
from verdiv.preregistration.plan import PREREGISTRATION_SCHEMA, Preregistration, RegisteredPlan
from verdiv.preregistration.positions import find_line, key_lines

__all__ = ["MAX_BYTES", "check_coverage", "parse_preregistration", "read_preregistration"]

MAX_BYTES = 8 * 2**20
"""Largest registration that is read; bytes."""

MAX_DEPTH = 32
"""Deepest nesting of tables and arrays; the schema needs four."""

_REMEDY = "see `verdiv init preregistration` for an annotated file"


def _bytes_of(path: Path | str) -> tuple[bytes, str]:
    """Return the bytes and the name that messages use."""
    if path == "-":
        return sys.stdin.buffer.read(MAX_BYTES + 1), "standard input"
    if isinstance(path, str) and path in fixtures.names("preregistrations"):
        return fixtures.read_bytes("preregistrations", path), path
    file = Path(path)
    if file.is_dir():
        raise InputRefused(
            "The registration cannot be read.",
            [Fault(str(file), "a file", "a folder", "name the preregistration.toml inside it")],
        )
    try:
        with file.open("rb") as handle:
            return handle.read(MAX_BYTES + 1), str(file)
    except (OSError, ValueError) as error:
        shipped = ", ".join(fixtures.names("preregistrations"))
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InputRefused(
            "The registration cannot be read.",
            [
                Fault(
                    str(file),
                    "a readable file or a shipped name",
                    reason,
                    f"check the path; shipped are: {shipped or 'none'}",
                )
            ],
        ) from error


def _refuse(name: str, expected: str, got: str, remedy: str, line: int | None = None) -> InputRefused:
    return InputRefused("The registration was refused.", [Fault(name, expected, got, remedy, line=line)])


def _text_of(data: bytes, name: str) -> str:
    if len(data) > MAX_BYTES:
        raise _refuse(
            name, f"at most {MAX_BYTES} bytes", "a larger file", "keep data out of the registration"
        )
    if not data.strip():
        raise _refuse(name, "a registration in TOML", "an empty file", _REMEDY)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _refuse(
            name, "UTF-8 text", f"byte 0x{data[error.start]:02x}", "save the file as UTF-8", line
        ) from error


def _depth_within(value: object, limit: int) -> bool:
    """Tell whether nesting stays within a limit, without recursion."""
    stack: list[tuple[object, int]] = [(value, 0)]
    while stack:
        item, depth = stack.pop()
        if depth > limit:
            return False
        if isinstance(item, dict):
            stack.extend((child, depth + 1) for child in item.values())
        elif isinstance(item, list):
            stack.extend((child, depth + 1) for child in item)
    return True


def _tables_of(text: str, name: str) -> dict[str, Any]:
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        said = str(error)
        line = int(said.split("(at line ")[1].split(",")[0]) if "(at line " in said else None
        raise _refuse(name, "valid TOML", said, "correct the syntax", line) from error
    except (RecursionError, ValueError) as error:
        raise _refuse(
            name, "plain TOML of a few levels", type(error).__name__, "remove nesting and huge numbers"
        ) from error
    if not _depth_within(tables, MAX_DEPTH):
        raise _refuse(name, f"at most {MAX_DEPTH} levels of nesting", "a deeper file", "remove the nesting")
    return tables


def _check_version(tables: Mapping[str, Any], name: str, lines: Mapping[tuple[str | int, ...], int]) -> None:
    version = tables.get("schema")
    if type(version) is int and version == PREREGISTRATION_SCHEMA:
        return
    newer = type(version) is int and version > PREREGISTRATION_SCHEMA
    fault = Fault(
        name,
        f"schema = {PREREGISTRATION_SCHEMA}",
        "no schema version" if version is None else repr(version),
        "upgrade verdiv to read it" if newer else f"write schema = {PREREGISTRATION_SCHEMA} at the top",
        line=find_line(lines, ("schema",)),
        field="schema",
    )
    raise InputRefused("The registration has another format version.", [fault])


def _jsonable(value: object) -> str:
    if isinstance(value, (date, time)):
        return value.isoformat()
    raise TypeError(type(value).__name__)


def _expected(error: ErrorDetails) -> tuple[str, str, str]:
    """Say what was expected, what was got and what to do, for one of pydantic's errors."""
    kind = error["type"]
    got = "a table" if isinstance(error["input"], dict) else repr(error["input"])
    if kind == "missing":
        return "a value", "nothing", "add the field: it has no default, the decision is the author's"
    if kind == "extra_forbidden":
        return "only known fields", got, "remove or rename it; fields are listed in the JSON Schema"
    message = error["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    return message, got, "correct the value"


def _faults(error: ValidationError, name: str, lines: Mapping[tuple[str | int, ...], int]) -> list[Fault]:
    faults: list[Fault] = []
    for item in error.errors(include_url=False):
        if item["type"] == "plan_conflict":
            faults += [
                Fault(name, c.expected, c.got, c.remedy, line=find_line(lines, tuple(c.path)), field=c.dotted)
                for c in item["ctx"]["conflicts"]
            ]
            continue
        path = tuple(item["loc"])
        expected, got, remedy = _expected(item)
        dotted = ".".join(str(key) for key in path)
        faults.append(Fault(name, expected, got, remedy, line=find_line(lines, path), field=dotted or None))
    return sorted(faults, key=lambda fault: (fault.line or 0, fault.field or ""))


def parse_preregistration(data: bytes, name: str) -> Preregistration:
    """Read a registration from its bytes.

    Parameters
    ----------
    data
        Content of a ``preregistration.toml``.
    name
        What messages call it.

    Returns
    -------
    Preregistration
        The plan, with the SHA-256 of ``data`` as ``digest``.

    Raises
    ------
    InputRefused
        Size, encoding, syntax, version, fields or their consistency; all faults of one stage at once.
    """
    text = _text_of(data, name)
    tables = _tables_of(text, name)
    lines = key_lines(text)
    _check_version(tables, name, lines)
    try:
        plan = RegisteredPlan.model_validate_json(json.dumps(tables, default=_jsonable))
    except ValidationError as error:
        raise InputRefused("The registration was refused.", _faults(error, name, lines)) from error
    return plan.with_origin(source=name, digest=hashlib.sha256(data).hexdigest())


def read_preregistration(path: Path | str) -> Preregistration:
    """Read a registration from a file, from standard input (``-``), or by the name of a shipped one.

    A string that is the name of a shipped registration means that one; a file of the same name in the
    working folder is reached as ``./name``.

    Raises
    ------
    InputRefused
        The file cannot be read, or is refused (see :func:`parse_preregistration`).

    Examples
    --------
    >>> plan = read_preregistration("verifiers-dividend")
    >>> sorted(plan.arms), plan.worst_case_units
    (['A0', 'A1', 'A2', 'A2s', 'A3', 'A4', 'A5'], 28.5)
    """
    data, name = _bytes_of(path)
    return parse_preregistration(data, name)


def check_coverage(plan: Preregistration, families: Iterable[str], arms: Iterable[str] = ()) -> None:
    """Refuse a log that holds families or arms which the plan does not know.

    A family without a registered weight cannot enter a suite-level rate, hence refusing it is the only
    answer that does not change the registered target.

    Raises
    ------
    InputRefused
        Names each unknown family and arm.
    """
    where = plan.source or "the plan"
    faults = [
        Fault(where, f"one of {', '.join(sorted(plan.families))}", family, remedy, field="families")
        for remedy in ["give the family a weight in a new registration, or leave its draws out by a rule"]
        for family in sorted(set(families) - set(plan.families))
    ]
    faults += [
        Fault(
            where,
            f"one of {', '.join(sorted(plan.arms))}",
            arm,
            "register the arm, or leave it out",
            field="arms",
        )
        for arm in sorted(set(arms) - set(plan.arms))
    ]
    if faults:
        raise InputRefused("The log holds what the registration does not know.", faults)
