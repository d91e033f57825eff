"""Reading and checking of results documents against the shipped JSON Schema.

A results document is hostile input: it may come from another machine. Its size, its depth and the length
of its texts are bounded, numbers must be finite, names must be unique, and every fault is reported at once.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verdiv.errors import Fault, InputRefused

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

__all__ = ["RESULTS_SCHEMA", "Document", "load_document", "results_schema", "validate_document"]

Document = Mapping[str, Any]
"""A results document as parsed JSON."""

RESULTS_SCHEMA = 1
"""Integer version of the results format; a newer one is refused."""

MAX_BYTES = 64 * 1024 * 1024
"""Largest results file that is read, in bytes."""

MAX_DEPTH = 40
"""Deepest nesting of objects and arrays that is accepted."""

MAX_FAULTS = 1000
"""Faults collected of one document before the search stops."""


@cache
def results_schema() -> Mapping[str, Any]:
    """Return the JSON Schema (draft 2020-12) of ``results.json`` that the package ships."""
    text = (files("verdiv.reports") / "results.schema.json").read_text(encoding="utf-8")
    schema: Mapping[str, Any] = json.loads(text)
    return schema


def _dotted(path: tuple[str | int, ...]) -> str | None:
    """Write a path as ``estimates.q0.mean`` or ``inputs[0].path``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text or None


def _shape_faults(value: object, where: str, path: tuple[str | int, ...] = ()) -> Iterator[Fault]:
    """Find numbers that are not finite and nesting that is too deep."""
    if len(path) > MAX_DEPTH:
        yield Fault(
            where,
            f"at most {MAX_DEPTH} levels of nesting",
            "more",
            "write the document with verdiv analyze",
            field=_dotted(path[:3]),
        )
    elif isinstance(value, float) and not math.isfinite(value):
        yield Fault(
            where,
            "a finite number or null",
            str(value),
            "write null for a missing value",
            field=_dotted(path),
        )
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _shape_faults(item, where, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            if isinstance(item, float | Mapping | list | tuple):
                yield from _shape_faults(item, where, (*path, index))


def _expected(validator: str, value: object) -> str:
    match validator, value:
        case "type", str():
            return f"a value of type {value}"
        case "type", list():
            return f"a value of type {' or '.join(str(v) for v in value)}"
        case "enum", list():
            return "one of " + ", ".join("null" if v is None else str(v) for v in value)
        case "additionalProperties", _:
            return "no other keys than the named ones"
        case _:
            return f"{validator} {json.dumps(value, ensure_ascii=False)[:80]}"


def _deepest(error: ValidationError) -> Iterator[ValidationError]:
    """Go down to the faults themselves: inside a nullable record, those of the record."""
    if error.validator == "anyOf" and error.context:
        for inner in error.context:
            if inner.schema_path[0] == 0:
                yield from _deepest(inner)
    else:
        yield error


def _schema_faults(document: Document, where: str) -> Iterator[Fault]:
    from jsonschema import Draft202012Validator

    validator = Draft202012Validator(results_schema())
    for deepest in chain.from_iterable(map(_deepest, validator.iter_errors(document))):
        field = _dotted(tuple(deepest.absolute_path))
        expected = _expected(str(deepest.validator), deepest.validator_value)
        if deepest.validator == "required":
            name = deepest.message.removesuffix(" is a required property")
            expected, got = f"the key {name}", "no such key"
        elif deepest.validator == "additionalProperties":
            got = deepest.message
        else:
            got = json.dumps(deepest.instance, ensure_ascii=False, default=str)
        yield Fault(
            where,
            expected,
            got,
            "correct the value or write the document again with verdiv analyze",
            field=field,
        )


def _consistency_faults(document: Document, where: str) -> Iterator[Fault]:
    """Find curves whose coordinates do not pair up."""
    for name, density in (document.get("densities") or {}).items():
        if density is None:
            continue
        lengths = {len(density["x"]), len(density["y"])}
        if density.get("prior") is not None:
            lengths.add(len(density["prior"]))
        if len(lengths) > 1:
            yield Fault(
                where,
                "x, y and prior of equal length",
                f"lengths {sorted(lengths)}",
                "write one height for each position",
                field=f"densities.{name}",
            )


def _check(document: object, where: str) -> None:
    if not isinstance(document, Mapping):
        fault = Fault(where, "a JSON object", type(document).__name__, "pass a results document")
        raise InputRefused("the results document was refused", [fault])
    version = document.get("schema")
    if isinstance(version, int) and not isinstance(version, bool) and version > RESULTS_SCHEMA:
        fault = Fault(
            where,
            f"version {RESULTS_SCHEMA} or older",
            str(version),
            "install a newer verdiv: this document was written by one",
            field="schema",
        )
        raise InputRefused("the results document has a newer format", [fault])
    faults = list(islice(_shape_faults(document, where), MAX_FAULTS))
    if not faults:
        faults = list(islice(_schema_faults(document, where), MAX_FAULTS))
    if not faults:
        faults = list(islice(_consistency_faults(document, where), MAX_FAULTS))
    if faults:
        raise InputRefused("the results document was refused", faults)


def validate_document(document: Document) -> None:
    """Check a results document against the shipped schema.

    Parameters
    ----------
    document
        The parsed ``results.json``.

    Raises
    ------
    InputRefused
        With one fault for each place that breaks the format: not an object, a newer version, numbers that
        are not finite, missing or mistyped keys, curves whose coordinates do not pair up.

    Examples
    --------
    >>> try:
    ...     validate_document({"schema": 2})
    ... except InputRefused as refused:
    ...     print(refused.message)
    the results document has a newer format
    """
    _check(document, "results")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        twice, times = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"the name {twice!r} {times} times in one object")
    return record


def _refuse_constant(name: str) -> object:
    raise ValueError(f"the constant {name}, which JSON does not have")


def load_document(path: Path) -> dict[str, Any]:
    """Read and check a ``results.json``.

    Parameters
    ----------
    path
        The file, at most 64 MiB of UTF-8 JSON with unique names and finite numbers.

    Returns
    -------
    dict
        The document, ready for :func:`verdiv.reports.render_html`.

    Raises
    ------
    InputRefused
        If the file cannot be read, is no such JSON, or breaks the schema; all faults are named.
    """
    where = str(path)

    def refused(expected: str, got: str, remedy: str) -> InputRefused:
        return InputRefused(f"cannot read results from {where}", [Fault(where, expected, got, remedy)])

    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise refused("a readable file", error.strerror or type(error).__name__, "check the path") from error
    if len(raw) > MAX_BYTES:
        raise refused(f"at most {MAX_BYTES} bytes", "more", "write the document with verdiv analyze")
    try:
        document = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        got = str(error) if isinstance(error, ValueError) else "nesting without end"
        raise refused("UTF-8 JSON", got, "write the document with verdiv analyze") from error
    _check(document, where)
    checked: dict[str, Any] = document
    return checked
