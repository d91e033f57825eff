"""Canonical JSON (RFC 8785) and a reader that takes nothing two programs could understand differently."""

from __future__ import annotations

import hashlib
import json
import math
import unicodedata
from collections.abc import Mapping
from typing import Any, NoReturn

from verdiv.errors import Fault, InputRefused

__all__ = ["SAFE_INTEGER", "canonical_bytes", "digest_of", "strict_json"]

SAFE_INTEGER = 2**53 - 1
"""Largest whole number that every reader of JSON holds exactly."""

PLAIN_BELOW = 1e21
"""Numbers below this are spelled without an exponent, hence like whole numbers where they are whole."""

MAX_DEPTH = 64
"""Deepest nesting of objects and arrays."""

MAX_BYTES = 64 * 2**20
"""Largest document."""


def _refuse(where: str, expected: str, got: str, remedy: str, field: str | None = None) -> NoReturn:
    raise InputRefused(f"{where} refused", [Fault(where, expected, got, remedy, field=field)])


def _check(value: Any, where: str, path: str, depth: int) -> None:
    """Refuse what has no canonical form, or more than one reading."""
    if depth > MAX_DEPTH:
        _refuse(where, f"at most {MAX_DEPTH} levels", "a deeper document", "flatten it", path)
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, str):
        _check_text(value, where, path)
    elif isinstance(value, int):
        if abs(value) > SAFE_INTEGER:
            remedy = "write it as text, or use a smaller number"
            _refuse(where, f"whole numbers up to {SAFE_INTEGER} either way", str(value)[:40], remedy, path)
    elif isinstance(value, float):
        if not math.isfinite(value):
            _refuse(where, "finite numbers", repr(value), "leave the field out where there is none", path)
        if SAFE_INTEGER < abs(value) < PLAIN_BELOW:
            remedy = "write it as text, or use a smaller number"
            _refuse(where, f"whole numbers up to {SAFE_INTEGER} either way", repr(value), remedy, path)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                _refuse(where, "text for a name", type(key).__name__, "use text", path)
            _check_text(key, where, path)
            _check(item, where, f"{path}.{key}" if path else key, depth + 1)
    elif isinstance(value, list | tuple):
        for at, item in enumerate(value):
            _check(item, where, f"{path}[{at}]", depth + 1)
    else:
        _refuse(where, "JSON values", type(value).__name__, "use text, numbers, lists and tables", path)


def _check_text(text: str, where: str, path: str) -> None:
    if not unicodedata.is_normalized("NFC", text):
        remedy = "normalise it, so that equal text is equal bytes"
        _refuse(where, "text in Unicode normal form NFC", repr(text)[:60], remedy, path)
    if not text.isascii() and any("\ud800" <= ch <= "\udfff" for ch in text):
        _refuse(where, "whole characters", "half of a surrogate pair", "write the character itself", path)


def canonical_bytes(value: Any, where: str = "document") -> bytes:
    """Return the canonical JSON of a value: RFC 8785, the same bytes from every conforming program.

    Raises
    ------
    InputRefused
        NaN or an infinity, a whole number that not every program holds, text that is not NFC, or nesting
        beyond any use.

    Examples
    --------
    >>> canonical_bytes({"b": 1.0, "a": [0.35, True, None]})
    b'{"a":[0.35,true,null],"b":1}'
    """
    import rfc8785

    _check(value, where, "", 0)
    return rfc8785.dumps(value)


def digest_of(value: Any, where: str = "document") -> str:
    """Return the SHA-256 of a value's canonical JSON, in hex.

    Examples
    --------
    >>> digest_of({})[:16]
    '44136fa355b3678a'
    """
    return hashlib.sha256(canonical_bytes(value, where)).hexdigest()


def strict_json(data: bytes, where: str) -> Any:
    r"""Read JSON, and refuse whatever another reader might take for something else.

    Parameters
    ----------
    data
        The bytes.
    where
        What messages call them.

    Returns
    -------
    object
        The value.

    Raises
    ------
    InputRefused
        More than 64 MiB, no UTF-8, a byte-order mark, no JSON, a name given twice in one object, NaN, an
        infinity or a number that overflows, an unsafe whole number, text that is not NFC, deep nesting.

    Examples
    --------
    >>> strict_json(b'{"a": 1}', "x")
    {'a': 1}
    """
    if len(data) > MAX_BYTES:
        _refuse(where, f"at most {MAX_BYTES} bytes", "a larger file", "check that it is the right file")

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        built = dict(items)
        if len(built) != len(items):
            names = [name for name, _ in items]
            twice = next(name for name in names if names.count(name) > 1)
            _refuse(where, "each name once in an object", f"{twice[:60]!r} twice", "remove one of them")
        return built

    def constant(name: str) -> NoReturn:
        _refuse(where, "finite numbers", name, "leave the field out where there is none")

    def whole(text: str) -> int:
        if len(text) > 17:
            _refuse(where, f"whole numbers up to {SAFE_INTEGER} either way", text[:40], "write it as text")
        return int(text)

    try:
        value = json.loads(
            data.decode("utf-8"), object_pairs_hook=pairs, parse_constant=constant, parse_int=whole
        )
    except UnicodeDecodeError as error:
        _refuse(where, "UTF-8", f"byte 0x{data[error.start]:02x} at {error.start}", "fetch the file again")
    except json.JSONDecodeError as error:
        _refuse(where, "JSON", f"{error.msg} at line {error.lineno}", "fetch the file again")
    except RecursionError:
        _refuse(where, f"at most {MAX_DEPTH} levels", "a deeper document", "flatten it")
    _check(value, where, "", 0)
    return value
