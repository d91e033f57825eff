"""Reading a model's JSON, and mending what a schema shows to be wrong in form alone.

Nothing is evaluated, lengths and depths are bounded, and a value is only ever changed in ways that the schema
prescribes: a field renamed to the one missing name it resembles, an unknown field dropped, a number taken out of
its quotes, an enumerated word in its own spelling.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Reading", "mended", "read_json", "skeleton"]

MAX_OUTPUT = 200_000
"""Longest output that is read."""

MAX_DEPTH = 12
"""Levels of a schema that are followed."""

JSON_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


@dataclass(frozen=True, slots=True)
class Reading:
    """What stands in an output."""

    value: Any
    """The JSON value; None where there is none."""
    found: bool
    """Whether a JSON value stands in the output."""
    fault: str | None
    """Why the output is not that JSON value and nothing else; None where it is."""


class _Doubled(ValueError):
    """A field stands twice."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Doubled(f'the field "{twice}" stands twice')
    return table


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON number")


_decoder = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_no_constant)


def read_json(output: str) -> Reading:
    """Read an output as one JSON value, or find the one that prose or a code fence surrounds.

    Parameters
    ----------
    output
        What the model said.

    Returns
    -------
    Reading
        With the fault in words where the output is not JSON alone.

    Examples
    --------
    >>> read_json('Sure: {"city": "Bonn"} Anything else?')
    Reading(value={'city': 'Bonn'}, found=True, fault='text surrounds the JSON')
    """
    if len(output) > MAX_OUTPUT:
        return Reading(None, False, f"it is longer than {MAX_OUTPUT} characters")
    text = output.strip()
    try:
        return Reading(_decoder.decode(text), True, None)
    except _Doubled as error:
        return Reading(None, False, str(error))
    except RecursionError:
        return Reading(None, False, "it is nested too deeply")
    except ValueError as error:
        fault = str(error)
    start = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
    if start >= 0:
        try:
            value, _ = _decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            return Reading(None, False, fault)
        return Reading(value, True, "text surrounds the JSON")
    return Reading(None, False, fault if text else "it is empty")


def _local(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow local references; anything else is an empty schema."""
    for _ in range(MAX_DEPTH):
        if not isinstance(schema, Mapping):
            return {}
        name = schema.get("$ref")
        if not isinstance(name, str):
            return schema
        if not name.startswith("#/"):
            return {}
        schema = root
        for part in name[2:].split("/"):
            schema = schema.get(part, {}) if isinstance(schema, Mapping) else {}
    return {}


def skeleton(schema: Any, root: Mapping[str, Any], depth: int = 0) -> Any:
    """Lay out the form of a value: every property with ``...`` or its only value in place of the value.

    Examples
    --------
    >>> form = {"type": "object", "properties": {"city": {"type": "string"}, "unit": {"const": "C"}}}
    >>> skeleton(form, form)
    {'city': '...', 'unit': 'C'}
    """
    here = _local(schema, root)
    if "const" in here:
        return here["const"]
    properties = here.get("properties")
    if isinstance(properties, Mapping) and depth < MAX_DEPTH:
        required = here.get("required", list(properties))
        names = [name for name in properties if name in required] or list(properties)
        return {name: skeleton(properties[name], root, depth + 1) for name in names}
    if here.get("type") == "array" and depth < MAX_DEPTH:
        return [skeleton(here.get("items", {}), root, depth + 1)]
    return "..."


def mended(value: Any, schema: Any, root: Mapping[str, Any], depth: int = 0) -> Any:
    """Mend what is wrong in form alone.

    Parameters
    ----------
    value
        The value as read.
    schema, root
        Its schema, and the document that local references point into.
    depth
        Levels above.

    Returns
    -------
    Any
        A new value, or the same where nothing could be mended; whether it now passes is for the caller to check.

    Examples
    --------
    >>> form = {"properties": {"days": {"type": "integer"}}, "additionalProperties": False, "required": ["days"]}
    >>> mended({"day": "3", "mood": "fine"}, form, form)
    {'days': 3}
    """
    here = _local(schema, root)
    if depth >= MAX_DEPTH:
        return value
    if isinstance(here.get("enum"), list):
        return _spelled(value, here["enum"])
    if "const" in here:
        return here["const"]
    wanted = here.get("type")
    if isinstance(value, dict) and isinstance(here.get("properties"), Mapping):
        return _mended_object(value, here, root, depth)
    if isinstance(value, list) and isinstance(here.get("items"), Mapping):
        return [mended(one, here["items"], root, depth + 1) for one in value]
    if wanted == "array" and not isinstance(value, list | dict):
        return [mended(value, here.get("items", {}), root, depth + 1)]
    return _coerced(value, wanted) if isinstance(wanted, str) else value


def _mended_object(
    value: dict[str, Any], here: Mapping[str, Any], root: Mapping[str, Any], depth: int
) -> dict[str, Any]:
    """Rename, drop and mend the fields of an object."""
    properties = here["properties"]
    missing = [name for name in here.get("required", []) if name in properties and name not in value]
    closed = here.get("additionalProperties") is False
    out: dict[str, Any] = {}
    for name, field in value.items():
        key = name
        if name not in properties and closed:
            near = difflib.get_close_matches(name.lower(), [m.lower() for m in missing], n=2, cutoff=0.6)
            if len(near) != 1:
                continue
            key = next(m for m in missing if m.lower() == near[0])
            missing.remove(key)
        out[key] = mended(field, properties[key], root, depth + 1) if key in properties else field
    for name in missing:
        only = _local(properties[name], root)
        if "const" in only:
            out[name] = only["const"]
    return out


def _spelled(value: Any, words: list[Any]) -> Any:
    """Spell an enumerated word as the schema does, where one alone differs by case or spaces only."""
    if value in words or not isinstance(value, str):
        return value
    same = [w for w in words if isinstance(w, str) and w.casefold() == value.strip().casefold()]
    return same[0] if len(same) == 1 else value


def _coerced(value: Any, wanted: str) -> Any:
    """Take a scalar to the type wanted where nothing is lost."""
    kinds = JSON_TYPES.get(wanted)
    if kinds is None or (isinstance(value, kinds) and not (isinstance(value, bool) and wanted != "boolean")):
        return value
    if wanted == "string" and isinstance(value, int | float) and not isinstance(value, bool):
        return json.dumps(value)
    if wanted == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and wanted in ("integer", "number", "boolean", "null", "array", "object"):
        inner = read_json(value)
        if inner.found and inner.fault is None:
            again = _coerced(inner.value, wanted) if isinstance(inner.value, float) else inner.value
            if isinstance(again, kinds) and not (isinstance(again, bool) and wanted != "boolean"):
                return again
    return value
