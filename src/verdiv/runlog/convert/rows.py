"""From the scope of one record to one row: the draw's own fields, before draws are linked to each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import msgspec

from verdiv.errors import Fault, InputRefused
from verdiv.runlog.checks import draw_faults
from verdiv.runlog.convert.columns import Value
from verdiv.runlog.convert.outcomes import compile_outcome
from verdiv.runlog.convert.paths import ABSENT, Reference, Scope, parse_reference
from verdiv.runlog.convert.predicates import Test, compile_predicate, is_missing
from verdiv.runlog.convert.schema import DrawColumns, Exclusion, Mapping
from verdiv.runlog.convert.values import (
    Getter,
    RowRefused,
    canonical,
    compile_value,
    digest,
    to_bool,
    to_float,
    to_int,
    to_text,
    to_time,
)
from verdiv.runlog.records import Draw

__all__ = ["MISSING_KIND", "Excluder", "Row", "RowMaker"]

MISSING_KIND: Final = "missing"
"""Kind of the error of a draw whose outcome the log does not give."""

MAX_ID = 3072
"""Characters of a task's name; a draw's name must still fit its own bound."""

_PLACEHOLDER = "?"

_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "task_id": to_text,
    "family": to_text,
    "arm": to_text,
    "condition": to_text,
    "tier": to_text,
    "model": to_text,
    "precision": to_text,
    "output": to_text,
    "replicate": to_int,
    "attempt": to_int,
    "billed": to_float,
    "tokens_in": to_int,
    "tokens_out": to_int,
    "in_flight": to_int,
    "device_seconds": to_float,
    "emitted": to_bool,
}

_REQUIRED = ("task_id", "family", "arm", "condition", "tier", "replicate", "attempt", "billed")

_DECODING: dict[str, Callable[[Any], Any]] = {
    "temperature": to_float,
    "top_p": to_float,
    "seed": to_int,
    "max_tokens": to_int,
}


@dataclass(slots=True)
class Row:
    """One draw of the log that nothing excluded, before it is linked to others."""

    file: int
    """Index of the file it came from."""
    number: int
    """1-based number of its line, row or record."""
    place: str
    draw: Draw
    """The draw; its name, parent and prompt kind follow when chains are linked."""
    retry: str | None
    """What a later attempt's prompt held."""
    answered: str
    """Class of error that a feedback prompt after this draw reports."""
    ranks: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
    """Fields whose value is a position among all rows: group and combination."""


@dataclass(slots=True)
class _Column:
    """One compiled field."""

    name: str
    get: Getter
    convert: Callable[[Any], Any]
    reference: str | None
    """What the mapping refers to, where that is a single reference."""


class RowMaker:
    """Makes rows by one mapping and remembers which references never found anything."""

    def __init__(self, mapping: Mapping) -> None:
        draw = mapping.draw
        self.nonbinary = 0
        """Rewards met that are neither 0 nor the success value."""
        self._seen: set[str] = set()
        self._columns: list[_Column] = []
        self._unscored = draw.correct.unscored
        self._constants: dict[str, Any] = {}
        for name, convert in _CONVERTERS.items():
            value = getattr(draw, name)
            if isinstance(value, Value) and _is_constant(value):
                self._constants[name] = _constant(mapping.name, name, value, convert)
            elif isinstance(value, Value):
                self._columns.append(_Column(name, compile_value(value), convert, _single(value)))
        self._outcome = compile_outcome(draw.correct)
        self._outcome_reference = _reference(draw.correct)
        self._nested = {
            group: [
                _Column(f"{group}.{name}", compile_value(value), convert, _single(value))
                for name, convert in converters.items()
                if isinstance(value := getattr(table, name), Value)
            ]
            for group, table, converters in (
                ("decoding", draw.decoding, _DECODING),
                ("static", draw.static, _STATIC),
                ("error", draw.error, _ERROR),
            )
            if table is not None
        }
        self._retry = None if draw.retry is None else compile_value(draw.retry)
        self._prompt = None if draw.prompt is None else compile_value(draw.prompt)
        self._times = _Times(draw)
        self._answered = [(compile_predicate(rule.when), rule.error_class) for rule in mapping.answered]

    def never_found(self) -> tuple[tuple[str, str], ...]:
        """Fields of the mapping, with their references, that were in no row at all."""
        columns = [*self._columns, *(column for group in self._nested.values() for column in group)]
        pairs = [(column.name, column.reference) for column in columns]
        if self._outcome_reference is not None:
            pairs.append(("correct", self._outcome_reference.text))
        return tuple((name, ref) for name, ref in pairs if ref is not None and name not in self._seen)

    def make(self, scope: Scope, *, file: int, number: int) -> Row:
        """Make one row.

        Raises
        ------
        RowRefused
            A field that is required is missing, or one holds what it cannot hold.
        """
        fields: dict[str, Any] = {"draw_id": _PLACEHOLDER, **self._constants}
        ranks: dict[str, Any] = {}
        for column in self._columns:
            value = self._get(column, scope)
            if isinstance(value, tuple):
                ranks[column.name] = value
                value = 1
            if value is not None:
                fields[column.name] = value
            elif column.name in _REQUIRED:
                raise RowRefused(f"{column.name} is missing")
        if len(fields["task_id"]) > MAX_ID:
            raise RowRefused(f"task_id is longer than {MAX_ID} characters")
        fields |= self._judged(scope)
        fields |= self._times.read(scope)
        if "output" in fields:
            fields["output_sha256"] = digest(fields["output"])
            fields["output"] = fields["output"].encode("utf-8", "backslashreplace").decode("utf-8")
        if self._prompt is not None and not is_missing(prompt := self._prompt(scope)):
            fields["prompt_sha256"] = digest(canonical(prompt))
        if "decoding" in self._nested:
            decoding = self._group("decoding", scope)
            fields["decoding"] = decoding or None
        try:
            draw = msgspec.convert(fields, Draw)
        except msgspec.ValidationError as error:
            raise RowRefused(_without_value(str(error))) from None
        for fault in draw_faults(draw, "", number):
            raise RowRefused(f"{fault.field}: {fault.expected} is required", fault.got)
        return Row(
            file=file,
            number=number,
            place=scope.place,
            draw=draw,
            retry=None if self._retry is None else to_text(self._retry(scope)),
            answered=self._reported(scope, draw),
            ranks=ranks,
        )

    def _get(self, column: _Column, scope: Scope) -> Any:
        try:
            value = column.get(scope)
            if value is not ABSENT:
                self._seen.add(column.name)
            return value if isinstance(value, tuple) else column.convert(value)
        except RowRefused as error:
            raise RowRefused(f"{column.name}: {error.reason}", error.got) from None

    def _group(self, group: str, scope: Scope) -> dict[str, Any]:
        values = {column.name: self._get(column, scope) for column in self._nested[group]}
        return {name.removeprefix(f"{group}."): value for name, value in values.items() if value is not None}

    def _judged(self, scope: Scope) -> dict[str, Any]:
        """Truth, verifier's verdict and failure of the draw."""
        if "error" in self._nested and "kind" in (failure := self._group("error", scope)):
            return {"correct": None, "error": failure}
        reading = self._outcome(scope)
        if self._outcome_reference is not None:
            found = self._outcome_reference.resolve(scope)
            if found is not ABSENT:
                self._seen.add("correct")
        self.nonbinary += reading.nonbinary
        fields: dict[str, Any] = {"correct": reading.correct}
        if reading.correct is None and not self._unscored:
            fields["error"] = {"kind": MISSING_KIND, "message": "the log gives no outcome"}
        if "static" in self._nested:
            static = self._group("static", scope)
            if "flagged" in static:
                named = {"class" if name == "error_class" else name: value for name, value in static.items()}
                fields["static"] = named if static["flagged"] else {"flagged": False}
        return fields

    def _reported(self, scope: Scope, draw: Draw) -> str:
        for test, error_class in self._answered:
            if test(scope):
                return error_class
        if not self._answered and draw.static is not None and draw.static.error_class is not None:
            return draw.static.error_class.value
        return "unclassified"


_STATIC: dict[str, Callable[[Any], Any]] = {
    "flagged": to_bool,
    "error_class": to_text,
    "code": to_text,
    "message": to_text,
}

_ERROR: dict[str, Callable[[Any], Any]] = {"kind": to_text, "message": to_text}


class _Times:
    """Start and end of a draw; a duration gives the one from the other."""

    def __init__(self, draw: DrawColumns) -> None:
        self._start = None if draw.started_at is None else (compile_value(draw.started_at), draw.started_at)
        self._end = None if draw.ended_at is None else (compile_value(draw.ended_at), draw.ended_at)
        self._duration = None if draw.duration_seconds is None else compile_value(draw.duration_seconds)

    def read(self, scope: Scope) -> dict[str, str]:
        try:
            start = None if self._start is None else to_time(self._start[0](scope), self._start[1])
            end = None if self._end is None else to_time(self._end[0](scope), self._end[1])
            seconds = None if self._duration is None else to_float(self._duration(scope))
            if seconds is not None:
                if start is None and end is not None:
                    start = end - timedelta(seconds=seconds)
                elif end is None and start is not None:
                    end = start + timedelta(seconds=seconds)
        except OverflowError:
            raise RowRefused("times: a duration that leaves the calendar") from None
        except RowRefused as error:
            raise RowRefused(f"times: {error.reason}", error.got) from None
        named = {"started_at": start, "ended_at": end}
        return {name: instant.isoformat() for name, instant in named.items() if instant is not None}


def _is_constant(value: Value) -> bool:
    return value.const is not None and value == Value(const=value.const)


def _constant(mapping: str, name: str, value: Value, convert: Callable[[Any], Any]) -> Any:
    """Value of a constant field; a constant that no draw can hold is the mapping's fault and no row's."""
    try:
        constant = convert(value.const)
    except RowRefused as error:
        fault = Fault(mapping, error.reason, error.got, "correct the constant", field=f"draw.{name}")
        raise InputRefused("The mapping holds a constant that no draw can hold.", [fault]) from None
    if constant is None:
        fault = Fault(mapping, "a value", repr(value.const), "correct the constant", field=f"draw.{name}")
        raise InputRefused("The mapping holds a constant that says nothing.", [fault])
    return constant


def _single(value: Value) -> str | None:
    """Text of the reference that a value is, where it depends on nothing else."""
    return value.from_ if value.only_if is None else None


def _reference(value: Value) -> Reference | None:
    text = _single(value)
    return None if text is None else parse_reference(text)


def _without_value(message: str) -> str:
    """Wording of a validation error as `field: fault`."""
    fault, _, path = message.partition(" - at `$.")
    return f"{path.rstrip('`')}: {fault[:1].lower()}{fault[1:]}" if path else fault


class Excluder:
    """The mapping's exclusion rules, tried in order; the first that is true names the rule."""

    def __init__(self, rules: tuple[Exclusion, ...]) -> None:
        self._tests: list[tuple[str, Test]] = []
        for rule in rules:
            test = compile_predicate(rule.when) if rule.when is not None else _repeats(rule)
            self._tests.append((rule.name, test))

    def rule(self, scope: Scope) -> str | None:
        """Return the name of the rule that leaves this row out, or None."""
        return next((name for name, test in self._tests if test(scope)), None)


def _repeats(rule: Exclusion) -> Test:
    references = [parse_reference(text) for text in rule.repeat_of or ()]
    seen: set[str] = set()

    def repeats(scope: Scope) -> bool | None:
        values = [reference.resolve(scope) for reference in references]
        if any(is_missing(value) for value in values):
            return None
        mark = digest("\0".join(canonical(value) for value in values))
        if mark in seen:
            return True
        seen.add(mark)
        return False

    return repeats
