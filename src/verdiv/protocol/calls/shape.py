"""A small, bounded subset of JSON Schema: enough for tool signatures, and with no pattern to be slow on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verdiv.protocol.calls.verdict import Refusal

__all__ = ["range_refusal", "shape_refusal"]

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def _is(value: Any, kind: str) -> bool:
    """Say whether a value has a JSON type; a boolean is never a number."""
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES.get(kind, ()))


def shape_refusal(value: Any, schema: Mapping[str, Any], place: str) -> Refusal | None:
    """Find the first structural fault of a value: types, required fields, unknown fields, items.

    Parameters
    ----------
    value
        Decoded JSON.
    schema
        ``type`` (``any`` for no check), ``properties``, ``required`` and ``items`` are read; a field that
        ``properties`` does not name is refused.
    place
        Name of the value, for the sentence.

    Returns
    -------
    Refusal or None
        None where the shape holds.

    Examples
    --------
    >>> shape_refusal({"n": "1"}, {"type": "object", "properties": {"n": {"type": "integer"}}}, "arguments").what
    'The field "n" must be an integer.'
    """
    kind = schema.get("type", "object")
    if kind == "any":
        return None
    if not _is(value, kind):
        article = "an" if kind[0] in "aeio" else "a"
        return Refusal("wrong-type", f'The field "{place}" must be {article} {kind}.')
    if kind == "object" and "properties" in schema:
        return _object_refusal(value, schema)
    if kind == "array" and "items" in schema:
        for item in value:
            wanted = schema["items"].get("type", "object")
            if wanted != "any" and not _is(item, wanted):
                return Refusal("wrong-type", f'Each element of "{place}" must be of type {wanted}.')
            found = shape_refusal(item, schema["items"], place)
            if found is not None:
                return found
    return None


def _object_refusal(value: Mapping[str, Any], schema: Mapping[str, Any]) -> Refusal | None:
    """Check the fields of an object."""
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            return Refusal("missing-field", f'The field "{name}" is missing.')
    for name, inner in value.items():
        if name not in properties:
            return Refusal("unknown-field", "The arguments hold a field that the tool does not have.")
        found = shape_refusal(inner, properties[name], name)
        if found is not None:
            return found
    return None


def range_refusal(value: Any, schema: Mapping[str, Any], place: str) -> Refusal | None:
    """Find the first value outside its range: ``minimum``, ``maximum`` and ``enum``, at any depth.

    Parameters
    ----------
    value
        Decoded JSON whose shape holds.
    schema
        Schema with the ranges.
    place
        Name of the value, for the sentence.

    Returns
    -------
    Refusal or None
        None where every range holds.

    Examples
    --------
    >>> range_refusal(7, {"type": "integer", "maximum": 5}, "n").what
    'The value of "n" is out of range.'
    """
    if "enum" in schema and value not in schema["enum"]:
        return Refusal("not-allowed", f'The value of "{place}" is not one of those allowed.')
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and (value < schema.get("minimum", value) or value > schema.get("maximum", value)):
        return Refusal("out-of-range", f'The value of "{place}" is out of range.')
    if isinstance(value, dict):
        parts = [(inner, schema.get("properties", {}).get(name, {}), name) for name, inner in value.items()]
    elif isinstance(value, list):
        parts = [(inner, schema.get("items", {}), place) for inner in value]
    else:
        return None
    for inner, inner_schema, name in parts:
        found = range_refusal(inner, inner_schema, name)
        if found is not None:
            return found
    return None
