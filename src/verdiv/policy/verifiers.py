"""Verifiers for structured outputs whose messages prescribe the fix: a JSON Schema, or a pydantic model.

A refusal is *structural* where the message says what to write instead (the outcome S of *The Verifier's
Dividend*), and *semantic* where it can only say what is wrong (M): a number out of range, a value that a check of
one's own refuses.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from verdiv.errors import Fault, UsageRefused
from verdiv.policy.mending import mended, read_json, skeleton
from verdiv.policy.records import Ask, Verdict
from verdiv.runlog.records import ErrorClass

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from pydantic import BaseModel

__all__ = ["Problem", "PydanticVerifier", "SchemaVerifier"]

SHOWN = 5
"""Problems that a message names."""

MAX_SHOWN = 200
"""Characters of a value that a message repeats."""

MAX_FIX = 4000
"""Longest reply that a message prescribes word for word."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with an output."""

    code: str
    """Stable short name."""
    sentence: str
    """What is wrong and, where it is known, what to write; with its full stop."""
    structural: bool
    """Whether the sentence prescribes the fix."""


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _shown(value: Any) -> str:
    text = _dump(value)
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"


def _verdict(problems: list[Problem], fix: str | None, form: str) -> Verdict:
    """Word the problems, with the whole reply where it could be mended, else its form."""
    sentences = [problem.sentence for problem in problems[:SHOWN]]
    if len(problems) > SHOWN:
        sentences.append(f"{len(problems) - SHOWN} more problems follow.")
    semantic = fix is None and any(not problem.structural for problem in problems)
    if fix is not None and len(fix) <= MAX_FIX:
        sentences.append("Reply with exactly: " + fix)
    elif not semantic or any(problem.structural for problem in problems):
        sentences.append('Reply with only this JSON, your values in place of "...": ' + form)
    first = next((p for p in problems if not p.structural), problems[0]) if semantic else problems[0]
    return Verdict(
        flagged=True,
        message=" ".join(sentences),
        error_class=ErrorClass.SEMANTIC if semantic else ErrorClass.STRUCTURAL,
        code=first.code,
    )


def _judged(
    output: str, schema: Mapping[str, Any], form: str, problems: Callable[[Any], Sequence[Problem]]
) -> Verdict:
    """Read an output, list its problems, and offer it mended where that leaves none."""
    reading = read_json(output)
    if not reading.found:
        return _verdict([_unread(str(reading.fault))], None, form)
    found = list(problems(reading.value))
    if reading.fault is not None:
        found.insert(0, _unread(reading.fault))
    if not found:
        return Verdict(flagged=False)
    saved = mended(reading.value, schema, schema)
    return _verdict(found, None if problems(saved) else _dump(saved), form)


def _unread(fault: str) -> Problem:
    return Problem("json", f"The reply must be one JSON value and nothing else: {fault}.", True)


def _place(path: list[Any]) -> str:
    """Name a place in the reply."""
    if not path:
        return "The reply"
    words = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path)
    return f'Field "{words.lstrip(".")}"'


class SchemaVerifier:
    """Verifier for outputs that are JSON of a schema.

    Parameters
    ----------
    schema
        JSON Schema (draft 2020-12 unless ``$schema`` names another). Remote references are not followed.

    Raises
    ------
    UsageRefused
        The schema is none.

    Examples
    --------
    >>> form = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    ...         "required": ["city", "days"], "additionalProperties": False}
    >>> verdict = SchemaVerifier(form)('{"city": "Bonn", "day": "3"}', Ask("t", "", "small", 1))
    >>> verdict.error_class.value, verdict.message[-47:]
    ('structural', 'Reply with exactly: {"city": "Bonn", "days": 3}')
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        from jsonschema.exceptions import SchemaError
        from jsonschema.validators import Draft202012Validator, validator_for
        from referencing import Registry

        self.schema = dict(schema)
        kind = validator_for(self.schema, default=Draft202012Validator)
        try:
            kind.check_schema(self.schema)
        except SchemaError as error:
            fault = Fault("schema", "a JSON Schema", error.message, "correct it", field=error.json_path)
            raise UsageRefused("outputs cannot be verified by this schema", [fault]) from None
        self._validator = kind(self.schema, registry=Registry())
        self._form = _dump(skeleton(self.schema, self.schema))

    def __call__(self, output: str, ask: Ask) -> Verdict:
        """Verify one output.

        Returns
        -------
        Verdict
            Passed only where the whole output is JSON that the schema takes.
        """
        return _judged(output, self.schema, self._form, lambda value: list(self.problems(value)))

    def problems(self, value: Any) -> Iterator[Problem]:
        """Yield what the schema finds wrong with a value, in the order of its places."""
        found = sorted(self._validator.iter_errors(value), key=lambda e: [str(p) for p in e.absolute_path])
        for error in found:
            yield from _schema_problems(error)


def _schema_problems(error: ValidationError) -> Iterator[Problem]:
    """Word one fault that a schema found."""
    where, keyword, bound = _place(list(error.absolute_path)), str(error.validator), error.validator_value
    worded = _WORDS.get(keyword)
    if worded is not None:
        yield from worded(where, bound, error)
    elif keyword in _BOUNDS:
        words = _BOUNDS[keyword]
        yield Problem(keyword, f"{where} must {words} {_shown(bound)}, not {_shown(error.instance)}.", False)
    elif error.context:
        nearest = min(error.context, key=lambda one: len(list(one.absolute_path)))
        yield Problem(keyword, f"{where} fits none of its forms: {nearest.message[:MAX_SHOWN]}.", False)
    else:
        yield Problem(keyword, f"{where}: {error.message[:MAX_SHOWN]}.", False)


def _required(where: str, bound: Any, error: ValidationError) -> Iterator[Problem]:
    properties = error.schema.get("properties", {}) if isinstance(error.schema, Mapping) else {}
    for name in bound:
        if isinstance(error.instance, Mapping) and name not in error.instance:
            kind = properties.get(name, {}) if isinstance(properties, Mapping) else {}
            typed = kind.get("type") if isinstance(kind, Mapping) else None
            hint = f" ({typed})" if isinstance(typed, str) else ""
            # One fault a name: the validator reports each missing name by itself.
            if error.message.startswith(repr(name)):
                yield Problem("missing", f'{where} lacks "{name}"{hint}: add it.', True)


def _additional(where: str, bound: Any, error: ValidationError) -> Iterator[Problem]:
    known = list(error.schema.get("properties", {})) if isinstance(error.schema, Mapping) else []
    given = error.instance if isinstance(error.instance, Mapping) else {}
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, [k for k in known if k not in given], n=1)
            fix = f'rename it to "{near[0]}"' if near else "remove it"
            yield Problem("unknown", f'{where} has the unknown field "{name[:MAX_SHOWN]}": {fix}.', True)


def _type(where: str, bound: Any, error: ValidationError) -> Iterator[Problem]:
    kinds = bound if isinstance(bound, str) else " or ".join(map(str, bound))
    yield Problem("type", f"{where} must be of type {kinds}, not {_shown(error.instance)}.", True)


def _enum(where: str, bound: Any, error: ValidationError) -> Iterator[Problem]:
    yield Problem("enum", f"{where} must be one of {_shown(bound)}, not {_shown(error.instance)}.", False)


def _const(where: str, bound: Any, error: ValidationError) -> Iterator[Problem]:
    yield Problem("const", f"{where} must be {_shown(bound)}.", True)


_WORDS: Mapping[str, Callable[[str, Any, ValidationError], Iterator[Problem]]] = {
    "required": _required,
    "additionalProperties": _additional,
    "type": _type,
    "enum": _enum,
    "const": _const,
}
"""Keyword to the words of its fault."""

_BOUNDS = {
    "minimum": "be at least",
    "maximum": "be at most",
    "exclusiveMinimum": "be greater than",
    "exclusiveMaximum": "be less than",
    "multipleOf": "be a multiple of",
    "pattern": "match the pattern",
    "format": "have the format",
    "minLength": "have a length of at least",
    "maxLength": "have a length of at most",
    "minItems": "have at least this many items:",
    "maxItems": "have at most this many items:",
}
"""Keywords of values that a message can bound but not prescribe."""


class PydanticVerifier:
    """Verifier for outputs that are JSON of a pydantic model, its own validators included.

    Parameters
    ----------
    model
        A pydantic model class.

    Examples
    --------
    >>> from pydantic import BaseModel, Field
    >>> class Weather(BaseModel, extra="forbid"):
    ...     city: str
    ...     days: int = Field(ge=1, le=14)
    >>> check, ask = PydanticVerifier(Weather), Ask("t", "", "small", 1)
    >>> check('{"town": "Bonn", "days": 3}', ask).error_class.value
    'structural'
    >>> check('{"city": "Bonn", "days": 40}', ask).message
    'Field "days": input should be less than or equal to 14, not 40.'
    """

    def __init__(self, model: type[BaseModel]) -> None:
        self.model = model
        self._schema: dict[str, Any] = model.model_json_schema()
        self._form = _dump(skeleton(self._schema, self._schema))

    def __call__(self, output: str, ask: Ask) -> Verdict:
        """Verify one output.

        Returns
        -------
        Verdict
            Passed only where the whole output is JSON that the model takes.
        """
        return _judged(output, self._schema, self._form, self._problems)

    def _problems(self, value: Any) -> list[Problem]:
        """List what the model finds wrong with a value."""
        from pydantic import ValidationError as Invalid

        try:
            self.model.model_validate_json(_dump(value))
        except Invalid as error:
            return [_pydantic_problem(one) for one in error.errors(include_url=False, include_context=False)]
        return []


def _pydantic_problem(error: Mapping[str, Any]) -> Problem:
    """Word one fault that pydantic found."""
    kind, where = str(error["type"]), _place(list(error["loc"]))
    structural = kind in ("missing", "extra_forbidden") or kind.endswith(("_type", "_parsing", "_from_float"))
    if kind == "missing":
        return Problem(kind, f"{where} is missing: add it.", True)
    if kind == "extra_forbidden":
        return Problem(kind, f"{where} is unknown: remove it.", True)
    message = str(error["msg"])[:MAX_SHOWN].rstrip(".")
    words = message[:1].lower() + message[1:]
    return Problem(kind, f"{where}: {words}, not {_shown(_plain(error['input']))}.", structural)


def _plain(value: Any) -> Any:
    """Make what pydantic was given fit for JSON."""
    try:
        _dump(value)
    except (TypeError, ValueError):
        return str(value)[:MAX_SHOWN]
    return value
