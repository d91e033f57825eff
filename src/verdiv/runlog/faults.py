"""Everything that is wrong with one line: the slow and thorough look after the fast decoder said no.

The walk follows the record types themselves, so that it, the decoder and the JSON Schema cannot drift apart.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal

from msgspec import inspect

from verdiv.errors import Fault
from verdiv.runlog.records import RUNLOG_SCHEMA, Draw, Footer, Header

__all__ = ["REMEDY", "line_faults", "parsed_line", "says_twice", "unknown_version"]

REMEDY = "correct the program that wrote it, or convert the log again"

BAD_NUMBER = object()
"""Stands for NaN and Infinity, which JSON does not have."""

Problem = tuple[str, str, str]
"""Field, what was expected, what was got."""


class _Object(dict[str, Any]):
    """A JSON object that remembers which of its names came twice."""

    twice: tuple[str, ...] = ()


def _pairs(pairs: list[tuple[str, Any]]) -> _Object:
    made = _Object(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        made.twice = tuple(sorted({name for name in names if names.count(name) > 1}))
    return made


_json = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=lambda _: BAD_NUMBER)


def parsed_line(line: bytes, where: str, number: int) -> tuple[Any, list[Fault]]:
    """Return what a line says, or the fault that it is no JSON in UTF-8.

    Parameters
    ----------
    line
        Bytes without the line's end.
    where, number
        File and line for the fault.

    Returns
    -------
    tuple of (object, list of Fault)
        The parsed value and no fault, or None and one fault.
    """

    def fault(expected: str, got: str, remedy: str = REMEDY) -> tuple[None, list[Fault]]:
        return None, [Fault(where, expected, got, remedy, line=number)]

    if not line.strip():
        return fault("a record", "an empty line", "remove it, or correct the program that wrote it")
    if b"\0" in line:
        return fault("text", f"a NUL byte at byte {line.index(0) + 1}")
    if line.startswith(b"\xef\xbb\xbf"):
        return fault("a record", "a byte order mark", "save the file as UTF-8 without one")
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        return fault("UTF-8", f"byte 0x{line[error.start]:02x} at byte {error.start + 1}")
    try:
        value, end = _json.raw_decode(text, len(text) - len(text.lstrip(" \t\r")))
    except json.JSONDecodeError as error:
        return fault("one JSON object", f"{error.msg} at character {error.pos + 1}")
    except RecursionError:
        return fault("a record", "a value nested too deeply")
    except ValueError as error:
        return fault("numbers of a bearable length", str(error))
    if text[end:].strip(" \t\r"):
        return fault("one JSON object", f"more behind it at character {end + 1}")
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode("utf-8")
    except (UnicodeEncodeError, RecursionError):
        return fault("text that UTF-8 can hold", "half of a surrogate pair")
    return value, []


class _Twice(Exception):
    """A name came twice in an object."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise _Twice
    return made


_plain_json = json.JSONDecoder(object_pairs_hook=_once)


def says_twice(line: bytes) -> bool:
    """Whether a line that decodes well gives a field twice, which the decoder lets pass.

    Examples
    --------
    >>> says_twice(b'{"correct": false, "correct": true}'), says_twice(b'{"a": {"b": 1}, "c": {"b": 1}}')
    (True, False)
    """
    try:
        _plain_json.decode(line.decode("utf-8"))
    except _Twice:
        return True
    return False


def line_faults(
    line: bytes, where: str, number: int, *, kind: Literal["header", "draw", "footer"] | None = None
) -> list[Fault]:
    """Return all faults of one line.

    Parameters
    ----------
    line
        Bytes without the line's end.
    where, number
        File and line that the faults name.
    kind
        Record that must stand there; None takes what the line says.

    Returns
    -------
    list of Fault
        Empty for a record whose every field holds. The chain and what ties records together are not looked
        at here.
    """
    value, faults = parsed_line(line, where, number)
    if faults:
        return faults
    types = _records()
    said = value.get("record") if isinstance(value, dict) else None
    known = isinstance(said, str) and said in types  # a hostile line may say a list here
    if not isinstance(value, dict) or not known or (kind is not None and said != kind):
        expected = f"a {kind} record" if kind else "a header, draw or footer record"
        got = (
            "a record without its kind" if isinstance(value, dict) and "record" not in value else _said(said)
        )
        got = got if isinstance(value, dict) else f"not an object but {_said(value)}"
        return [Fault(where, expected, got, REMEDY, line=number, field="record")]
    if said == "header" and (version := unknown_version(value, where, number)):
        return [version]
    return [
        Fault(where, expected, got, REMEDY, line=number, field=field or None)
        for field, expected, got in _walk(types[str(said)], value, "")
    ]


def unknown_version(header: Any, where: str, number: int) -> Fault | None:
    """Return the fault of a header whose format version is not ours to read, or None."""
    version = header.get("schema") if isinstance(header, Mapping) else None
    if type(version) is not int or 1 <= version <= RUNLOG_SCHEMA:
        return None
    remedy = "update verdiv" if version > RUNLOG_SCHEMA else REMEDY
    expected = f"run log version 1 to {RUNLOG_SCHEMA}" if RUNLOG_SCHEMA > 1 else "run log version 1"
    return Fault(where, expected, str(version), remedy, line=number, field="schema")


@cache
def _records() -> dict[str, inspect.StructType]:
    found: dict[str, inspect.StructType] = {}
    for record in (Header, Draw, Footer):
        kind = inspect.type_info(record)
        if isinstance(kind, inspect.StructType):
            found[str(kind.tag)] = kind
    return found


def _said(value: Any) -> str:
    """Repeat a value as the log wrote it, cut short."""
    if value is BAD_NUMBER:
        return "NaN or Infinity"
    text = json.dumps(value, ensure_ascii=False, default=lambda _: "NaN or Infinity")
    return text if len(text) <= 80 else text[:80] + "…"


def _name(name: str) -> str:
    """Repeat a field's name safely."""
    clean = "".join(ch if ch.isprintable() else "\N{REPLACEMENT CHARACTER}" for ch in name[:60])
    return clean if len(name) <= 60 else clean + "…"


def _walk(kind: inspect.Type, value: Any, field: str) -> Iterator[Problem]:
    """Yield the problems of a value against its type."""
    pattern: str | None = None
    if isinstance(kind, inspect.Metadata):
        found = (kind.extra_json_schema or {}).get("pattern")
        pattern = None if found is None else str(found)
        kind = kind.type
    if isinstance(kind, inspect.UnionType):
        if value is None and kind.includes_none:
            return
        others = [one for one in kind.types if not isinstance(one, inspect.NoneType)]
        for place, expected, got in _walk(others[0], value, field):
            yield place, f"{expected} or null" if place == field else expected, got
    elif isinstance(kind, inspect.StructType):
        yield from _struct(kind, value, field)
    elif isinstance(kind, inspect.DictType):
        if not isinstance(value, dict):
            yield field, "an object", _said(value)
            return
        for name, inner in value.items():
            yield from _walk(kind.value_type, inner, f"{field}.{_name(name)}")
    elif (wanted := _misfit(kind, value, pattern)) is not None:
        yield field, wanted, _said(value)


def _struct(kind: inspect.StructType, value: Any, field: str) -> Iterator[Problem]:
    if not isinstance(value, dict):
        yield field, "an object", _said(value)
        return
    dot = f"{field}." if field else ""
    for name in getattr(value, "twice", ()):
        yield dot + name, "a field once", "it twice"
    known = {one.encode_name: one for one in kind.fields}
    for name in value:
        if name not in known and name != kind.tag_field:
            yield dot + _name(name), "a field of the format", "an unknown field"
    for name, one in known.items():
        if name in value:
            yield from _walk(one.type, value[name], dot + name)
        elif one.required:
            yield dot + name, "this field", "nothing"


def _misfit(kind: inspect.Type, value: Any, pattern: str | None) -> str | None:
    """Return what was expected of a plain value that does not fit, or None."""
    if isinstance(kind, inspect.NoneType):
        return None if value is None else "null"
    if isinstance(kind, inspect.BoolType):
        return None if isinstance(value, bool) else "true or false"
    if isinstance(kind, inspect.EnumType):
        names = [member.value for member in kind.cls]
        return None if value in names and isinstance(value, str) else " | ".join(sorted(names))
    if isinstance(kind, inspect.StrType):
        return _text_misfit(kind, value, pattern)
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        return _number_misfit(kind, value)
    raise TypeError(f"no rule for {kind}")


def _text_misfit(kind: inspect.StrType, value: Any, pattern: str | None) -> str | None:
    length = len(value) if isinstance(value, str) else -1
    if pattern is not None:
        digest = pattern.startswith("^[0-9a-f]")
        expected = "64 lower-case hex digits" if digest else "an RFC 3339 time with offset"
        return None if length >= 0 and re.search(pattern, value) and "\n" not in value else expected
    least, most = kind.min_length or 0, kind.max_length
    if length < least or (most is not None and length > most):
        return f"text of {least} to {most} characters" if most is not None else "text"
    return None


def _number_misfit(kind: inspect.IntType | inspect.FloatType, value: Any) -> str | None:
    whole = isinstance(kind, inspect.IntType)
    name = "an integer" if whole else "a number"
    low, high = kind.ge, kind.le
    if low is not None:
        name += f" ≥ {low}"
    if high is not None and high != 2**63 - 1:
        name += f" and ≤ {high}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return name
    if isinstance(value, float) and (whole or not math.isfinite(value)):
        return name
    if not whole and abs(value) > sys.float_info.max:
        return name
    if (low is not None and value < low) or (high is not None and value > high):
        return name if high != 2**63 - 1 else f"{name} and ≤ {high}"
    return None
