"""Reading an output as a tool call: total on any bytes, and never executing anything."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from verdiv.protocol.calls.shape import shape_refusal
from verdiv.protocol.calls.verdict import Refusal

__all__ = ["MAX_OUTPUT", "read_call", "text_of"]

MAX_OUTPUT = 8192
"""Characters of an output that are read; a longer one is refused unread."""

MAX_DEPTH = 12
"""Opening brackets of a tool call; no tool of the suite nests deeper."""


class _Refused(ValueError):
    """A JSON construct that a tool call may not hold."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object, refusing a name given twice (parsers disagree about which one counts)."""
    built = dict(pairs)
    if len(built) != len(pairs):
        raise _Refused("a name is given twice in one object")
    return built


def _constant(name: str) -> NoReturn:
    """Refuse NaN and the infinities, which are no JSON."""
    raise _Refused(f"{name} is not a JSON value")


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant)


def text_of(output: str | bytes) -> str:
    """Turn an output into text, whatever its bytes.

    Parameters
    ----------
    output
        What the model returned.

    Returns
    -------
    str
        The text; bytes that are not UTF-8 become replacement characters.

    Examples
    --------
    >>> text_of(b"ab")
    'ab'
    """
    return output.decode("utf-8", "replace") if isinstance(output, bytes) else output


def read_call(output: str | bytes, tool: str, schema: Mapping[str, Any]) -> dict[str, Any] | Refusal:
    """Read an output as the call of one tool.

    Parameters
    ----------
    output
        What the model returned: any text or bytes.
    tool
        The tool that must be called.
    schema
        JSON Schema of its arguments (the subset of :mod:`verdiv.protocol.calls.shape`).

    Returns
    -------
    dict or Refusal
        The arguments of a well-formed call, else the first structural check that fails.

    Examples
    --------
    >>> read_call('{"name": "f", "arguments": {}}', "f", {"type": "object"})
    {}
    >>> read_call("f()", "f", {"type": "object"}).code
    'not-json'
    """
    if len(output) > MAX_OUTPUT:
        return Refusal("too-long", f"The reply is longer than {MAX_OUTPUT} characters.")
    if isinstance(output, bytes):
        try:
            text = output.decode("utf-8")
        except UnicodeDecodeError:
            return Refusal("encoding", "The reply is not UTF-8 text.")
    else:
        text = output
    if not text.strip():
        return Refusal("empty", "The reply is empty.")
    if text.count("{") + text.count("[") > MAX_DEPTH:
        return Refusal("nesting", "The reply holds too many brackets.")
    try:
        call = _DECODER.decode(text)
    except _Refused as refused:
        return Refusal("not-json", f"The reply is not valid JSON: {refused}.")
    except (ValueError, RecursionError):
        return Refusal("not-json", "The reply is not one JSON object and nothing else.")
    return _arguments(call, tool, schema)


def _arguments(call: Any, tool: str, schema: Mapping[str, Any]) -> dict[str, Any] | Refusal:
    """Check the envelope around the arguments, then their shape."""
    if not isinstance(call, dict):
        return Refusal("not-object", "The reply is JSON, but not an object.")
    if call.keys() != {"name", "arguments"}:
        return Refusal("envelope", 'The object must have the fields "name" and "arguments" and no others.')
    if call["name"] != tool:
        return Refusal("wrong-tool", f'The field "name" must be "{tool}".')
    arguments = call["arguments"]
    if not isinstance(arguments, dict):
        return Refusal("wrong-type", 'The field "arguments" must be an object.')
    return shape_refusal(arguments, schema, "arguments") or arguments
