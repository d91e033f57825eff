"""From a mapping's value to a function of a row, and from what a log holds to the type a field has."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from verdiv.runlog.convert.columns import Scalar, Time, Value
from verdiv.runlog.convert.paths import ABSENT, Scope, parse_reference
from verdiv.runlog.convert.predicates import Test, as_number, compile_predicate, is_missing, same
from verdiv.runlog.convert.templates import parse_template

__all__ = [
    "Getter",
    "RowRefused",
    "canonical",
    "compile_value",
    "digest",
    "shown",
    "to_bool",
    "to_float",
    "to_int",
    "to_text",
    "to_time",
]

Getter: TypeAlias = Callable[[Scope], Any]
"""A compiled value."""

MAX_SHOWN = 60
"""Characters of a log's value that a reason repeats."""


class RowRefused(Exception):
    """One row cannot become a draw; the reason is counted and the row goes no further.

    Parameters
    ----------
    reason
        What was wrong, the same words for the same fault, so that reasons can be counted.
    got
        What stood there, for the examples.
    """

    def __init__(self, reason: str, got: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.got = got


def shown(value: Any) -> str:
    """Spell a value of a log, short enough for a message."""
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"


def canonical(value: Any) -> str:
    """Spell a value as the keys of a ``map`` are written.

    Examples
    --------
    >>> [canonical(value) for value in (True, 1.0, "C", None, [1, 2])]
    ['true', '1', 'C', 'null', '[1,2]']
    """
    if isinstance(value, str):
        return value
    if value is ABSENT or value is None:
        return "null"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    except (TypeError, ValueError, RecursionError):
        raise RowRefused("a value that cannot be written as text") from None


def digest(text: str) -> str:
    """SHA-256 of the UTF-8 bytes of a text, in hex; lone surrogates are escaped first."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def compile_value(value: Value) -> Getter:
    """Turn a mapping's value into a function of a row's scope.

    The function returns None where the value is missing, and raises :class:`RowRefused` where it is there but
    cannot be used. A ``rank`` gives the pair (group, combination): positions follow once all rows are read.
    """
    getter = _source(value)
    if value.rank is not None:
        return getter
    if value.only_if is not None:
        getter = _limited(getter, compile_predicate(value.only_if))
    if value.missing is not None:
        getter = _emptied(getter, value.missing)
    if value.map is not None:
        getter = _mapped(getter, value.map, value.otherwise)
    if value.template is not None:
        getter = _templated(getter, value.template)
    if value.default is not None:
        getter = _defaulted(getter, value.default)
    if value.scale is not None or value.add is not None:
        getter = _linear(getter, 1.0 if value.scale is None else value.scale, value.add or 0)
    if value.sha256:
        getter = _hashed(getter)
    return getter


def _source(value: Value) -> Getter:
    if value.const is not None:
        const = value.const
        return lambda scope: const
    if value.from_ is not None:
        reference = parse_reference(value.from_)
        return reference.resolve
    if value.first_of is not None:
        references = [parse_reference(text) for text in value.first_of]
        return lambda scope: next(
            (found for ref in references if not is_missing(found := ref.resolve(scope))), None
        )
    if value.join is not None:
        parts, separator = [compile_value(part) for part in value.join], value.separator
        return lambda scope: _joined([part(scope) for part in parts], separator)
    if value.cases is not None:
        cases = [(compile_predicate(case.when), case.then) for case in value.cases]
        otherwise = value.otherwise
        return lambda scope: next((then for test, then in cases if test(scope)), otherwise)
    if value.when is not None:
        return compile_predicate(value.when)
    if value.length_of is not None:
        array = parse_reference(value.length_of)
        return lambda scope: _length(array.resolve(scope))
    ranked = [parse_reference(text) for text in value.rank or ()]
    within = [parse_reference(text) for text in value.within or ()]
    return lambda scope: (
        tuple(canonical(ref.resolve(scope)) for ref in within),
        tuple(canonical(ref.resolve(scope)) for ref in ranked),
    )


def _joined(parts: list[Any], separator: str) -> str | None:
    texts = [canonical(part) for part in parts if not is_missing(part)]
    return separator.join(texts) if texts else None


def _length(value: Any) -> int | None:
    if is_missing(value):
        return None
    if not isinstance(value, list):
        raise RowRefused("an array was expected whose length is asked for")
    return len(value)


def _limited(getter: Getter, test: Test) -> Getter:
    return lambda scope: getter(scope) if test(scope) else None


def _emptied(getter: Getter, marks: tuple[Scalar, ...]) -> Getter:
    def emptied(scope: Scope) -> Any:
        value = getter(scope)
        return None if value is not ABSENT and any(same(value, mark) for mark in marks) else value

    return emptied


def _defaulted(getter: Getter, default: Scalar) -> Getter:
    def defaulted(scope: Scope) -> Any:
        value = getter(scope)
        return default if is_missing(value) else value

    return defaulted


def _mapped(getter: Getter, table: dict[str, Scalar], otherwise: Scalar | None) -> Getter:
    def mapped(scope: Scope) -> Any:
        value = getter(scope)
        key = canonical(value)
        if key in table:
            return table[key]
        if is_missing(value):
            return None
        if otherwise is None:
            raise RowRefused("a value that the map does not list", shown(key))
        return otherwise

    return mapped


def _templated(getter: Getter, texts: tuple[str, ...]) -> Getter:
    templates = [parse_template(text) for text in texts]
    reason = "a text that does not fit the template " + " or ".join(map(repr, texts))

    def templated(scope: Scope) -> Any:
        value = getter(scope)
        if is_missing(value):
            return None
        parts = canonical(value).split("/")
        for template in templates:
            found = template.match(parts)
            if found is not None:
                return found[template.names[0]]
        raise RowRefused(reason, shown(value))

    return templated


def _linear(getter: Getter, scale: float, add: int) -> Getter:
    def linear(scope: Scope) -> Any:
        value = getter(scope)
        if is_missing(value):
            return None
        number = as_number(value)
        if number is None:
            raise RowRefused("a number was expected", shown(value))
        return number + add if scale == 1.0 else number * scale + add

    return linear


def _hashed(getter: Getter) -> Getter:
    def hashed(scope: Scope) -> Any:
        value = getter(scope)
        return None if value is None or value is ABSENT else digest(canonical(value))

    return hashed


def to_text(value: Any) -> str | None:
    """Read a text; numbers, booleans and nested values are spelled out, a missing value stays missing."""
    return None if is_missing(value) else canonical(value)


def to_int(value: Any) -> int | None:
    """Read an integer; ``3.0`` and ``"3"`` are integers, ``3.5`` and ``true`` are refused.

    Examples
    --------
    >>> to_int("3.0"), to_int(None)
    (3, None)
    """
    if is_missing(value):
        return None
    number = as_number(value)
    if isinstance(number, float):
        if number != number:
            return None
        number = int(number) if math.isfinite(number) and number.is_integer() else None
    if number is None or abs(number) >= 2**63:
        raise RowRefused("an integer was expected", shown(value))
    return number


def to_float(value: Any) -> float | None:
    """Read a finite number; NaN is missing, infinity is refused."""
    if is_missing(value):
        return None
    number = as_number(value)
    if number is None or (isinstance(number, int) and abs(number) > 10**300):
        raise RowRefused("a number was expected", shown(value))
    number = float(number)
    if math.isinf(number):
        raise RowRefused("a finite number was expected", shown(value))
    return None if math.isnan(number) else number


def to_bool(value: Any) -> bool | None:
    """Read a boolean: true, false, 1, 0 or their spellings; anything else is refused.

    Examples
    --------
    >>> to_bool("False"), to_bool(1.0), to_bool("")
    (False, True, None)
    """
    if is_missing(value):
        return None
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    number = as_number(value)
    if number not in (0, 1):
        raise RowRefused("true or false was expected", shown(value))
    return number == 1


def to_time(value: Any, time: Time) -> datetime | None:
    """Read an instant as the mapping says it is written.

    Raises
    ------
    RowRefused
        It is no instant, or is written without an offset and the mapping names none.
    """
    if is_missing(value):
        return None
    if time.unit != "rfc3339":
        seconds = to_float(value)
        assert seconds is not None, "a value that is not missing gives a number"
        scale = 1.0 if time.unit == "unix_s" else 1e-3
        try:
            return datetime.fromtimestamp(0, UTC) + timedelta(seconds=seconds * scale)
        except OverflowError:
            raise RowRefused("an instant was expected", shown(value)) from None
    try:
        instant = datetime.fromisoformat(str(value).strip())
    except ValueError:
        raise RowRefused("an RFC 3339 instant was expected", shown(value)) from None
    if instant.tzinfo is None:
        if time.offset is None:
            raise RowRefused("a time without offset; the mapping can name the offset")
        return datetime.fromisoformat(instant.isoformat() + time.offset)
    return instant
