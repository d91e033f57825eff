"""Tests of rows in three-valued logic: true, false, unknown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from verdiv.runlog.convert.columns import Predicate, Scalar
from verdiv.runlog.convert.paths import ABSENT, Scope, parse_reference

__all__ = ["Test", "as_number", "compile_predicate", "is_missing", "lookup_name", "same"]

Test: TypeAlias = Callable[[Scope], bool | None]
"""A compiled predicate; None is unknown."""


def is_missing(value: Any) -> bool:
    """Whether a value says nothing: absent, null, NaN, or a text of white space only.

    Examples
    --------
    >>> [is_missing(value) for value in (None, float("nan"), " ", 0, False)]
    [True, True, True, False, False]
    """
    if value is None or value is ABSENT:
        return True
    if isinstance(value, float):
        return value != value
    return isinstance(value, str) and not value.strip()


def same(value: Any, wanted: Scalar) -> bool:
    """Whether a value of a log is the scalar a mapping writes.

    Booleans equal booleans only, and numbers equal numbers; in tables of text (CSV) a text equals the number
    or the boolean it spells.

    Examples
    --------
    >>> same(True, 1), same(1.0, 1), same("0.50", 0.5), same("False", False), same("a", "a")
    (False, True, True, True, True)
    """
    if isinstance(value, str) and not isinstance(wanted, str):
        text = value.strip()
        if isinstance(wanted, bool):
            return text.lower() == ("true" if wanted else "false")
        number = as_number(text)
        return number is not None and number == wanted
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    return bool(value == wanted)


def as_number(value: Any) -> float | int | None:
    """Read a number, or a text that spells one; None for anything else, booleans included."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    if not isinstance(value, str) or len(value) > 64 or "_" in value:
        return None
    try:
        return int(value)
    except ValueError:
        try:
            return float(value)
        except ValueError:
            return None


def lookup_name(name: str) -> str:
    """Name under which a looked-up row's presence is bound in a scope; no reference can spell it."""
    return f"found {name}"


def compile_predicate(predicate: Predicate) -> Test:
    """Turn a predicate into a function of a row's scope."""
    if predicate.negated is not None:
        inner = compile_predicate(predicate.negated)

        def negation(scope: Scope) -> bool | None:
            value = inner(scope)
            return None if value is None else not value

        return negation
    if predicate.every is not None:
        return _combine([compile_predicate(part) for part in predicate.every], decides=False)
    if predicate.some is not None:
        return _combine([compile_predicate(part) for part in predicate.some], decides=True)
    if predicate.found is not None:
        key = lookup_name(predicate.found)
        return lambda scope: scope.names.get(key)
    return _field_test(predicate)


def _combine(parts: Sequence[Test], *, decides: bool) -> Test:
    """One part that equals ``decides`` decides; else unknown if any part is; else the opposite."""

    def combined(scope: Scope) -> bool | None:
        unknown = False
        for part in parts:
            value = part(scope)
            if value is decides:
                return decides
            unknown = unknown or value is None
        return None if unknown else not decides

    return combined


def _field_test(predicate: Predicate) -> Test:
    assert predicate.field is not None, "a predicate without combinator has a field"
    reference = parse_reference(predicate.field)
    if predicate.is_missing is not None:
        wanted = predicate.is_missing
        return lambda scope: is_missing(reference.resolve(scope)) is wanted
    check = _value_check(predicate)

    def tested(scope: Scope) -> bool | None:
        value = reference.resolve(scope)
        return None if is_missing(value) else check(value)

    return tested


def _value_check(predicate: Predicate) -> Callable[[Any], bool | None]:
    if predicate.equals is not None:
        wanted = predicate.equals
        return lambda value: same(value, wanted)
    if predicate.is_in is not None:
        choices = predicate.is_in
        return lambda value: any(same(value, choice) for choice in choices)
    if predicate.starts_with is not None:
        prefix = predicate.starts_with
        return lambda value: isinstance(value, str) and value.startswith(prefix)
    low, high = predicate.at_least, predicate.at_most

    def within(value: Any) -> bool | None:
        number = as_number(value)
        if number is None:
            return None
        return (low is None or number >= low) and (high is None or number <= high)

    return within
