"""Mapping files: found by name or by path, bounded in size, refused with all their faults at once."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping as MappingType
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from verdiv.errors import Fault, InputRefused, UsageRefused
from verdiv.runlog.convert.names import unbound_names
from verdiv.runlog.convert.schema import Mapping

__all__ = ["load_mapping", "mapping_json_schema", "parse_mapping", "shipped_mappings"]

MAX_MAPPING_BYTES = 1 << 20
"""Bytes of a mapping file."""

_SUFFIX = ".toml"


def _shipped() -> dict[str, Traversable]:
    folder = resources.files("verdiv").joinpath("fixtures", "mappings")
    if not folder.is_dir():
        return {}
    return {item.name.removesuffix(_SUFFIX): item for item in folder.iterdir() if item.name.endswith(_SUFFIX)}


def shipped_mappings() -> tuple[str, ...]:
    """Return the names of the mappings that ship with the package, sorted.

    Examples
    --------
    >>> "reflexion-alfworld" in shipped_mappings()
    True
    """
    return tuple(sorted(_shipped()))


def load_mapping(name_or_path: str | Path) -> Mapping:
    """Load a mapping, by the name of a shipped one or by the path of a file.

    Parameters
    ----------
    name_or_path
        A text without ``/`` that does not end in ``.toml`` is a name; anything else is a path.

    Raises
    ------
    UsageRefused
        No shipped mapping has that name.
    InputRefused
        The file cannot be read, is no TOML, or breaks the format; all its faults are listed.

    Examples
    --------
    >>> load_mapping("reflexion-alfworld").gate
    <Gate.TRUTH: 'truth'>
    """
    text = str(name_or_path)
    if isinstance(name_or_path, str) and "/" not in text and "\\" not in text and not text.endswith(_SUFFIX):
        shipped = _shipped()
        if text not in shipped:
            known = ", ".join(sorted(shipped))
            fault = Fault("mapping", f"one of {known}", text, "name one of these, or a file as ./NAME.toml")
            raise UsageRefused("No mapping of that name ships with verdiv.", [fault])
        return parse_mapping(_toml(shipped[text].read_bytes(), text), where=text)
    path = Path(name_or_path)
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_MAPPING_BYTES + 1)
    except OSError as error:
        fault = Fault(text, "a readable mapping file", error.strerror or str(error), "check the path")
        raise InputRefused("The mapping cannot be read.", [fault]) from error
    return parse_mapping(_toml(content, text), where=text)


def parse_mapping(data: MappingType[str, Any], *, where: str = "mapping") -> Mapping:
    """Validate a mapping that is already a table of tables.

    Raises
    ------
    InputRefused
        With one fault for every key that is unknown, missing or wrong.
    """
    try:
        mapping = Mapping.model_validate(_frozen(data))
    except ValidationError as error:
        found = [dict(item) for item in error.errors(include_url=False)]
        faults = [_fault(where, item) for item in found if not _is_echo(item)]
        raise InputRefused("The mapping breaks its format.", faults) from None
    except RecursionError:
        fault = Fault(where, "a mapping", "tables nested without end", "flatten it")
        raise InputRefused("The mapping breaks its format.", [fault]) from None
    unbound = [
        Fault(where, "a name that the mapping binds", text, "bind it, or correct the reference", field=place)
        for place, text in unbound_names(mapping)
    ]
    if unbound:
        raise InputRefused("The mapping refers to names that nothing binds.", unbound)
    return mapping


def mapping_json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a mapping file, as it ships in ``runlog/schemas/mapping.schema.json``.

    References, templates and record paths are texts there; their small grammars are checked on loading.
    """
    schema = Mapping.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "verdiv mapping"}


def _frozen(value: Any) -> Any:
    """Lists as tuples, all the way down."""
    if isinstance(value, MappingType):
        return {key: _frozen(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_frozen(item) for item in value)
    return value


def _toml(content: bytes, where: str) -> dict[str, Any]:
    if len(content) > MAX_MAPPING_BYTES:
        fault = Fault(where, f"at most {MAX_MAPPING_BYTES} bytes", "a larger file", "is this a mapping?")
        raise InputRefused("The mapping is too large.", [fault])
    try:
        return tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        got = f"byte {content[error.start]:#04x} at {error.start}"
        fault = Fault(where, "UTF-8", got, "save it as UTF-8")
        raise InputRefused("The mapping is no text.", [fault]) from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        fault = Fault(where, "TOML", str(error) or "too deep nesting", "correct the syntax")
        raise InputRefused("The mapping is no TOML.", [fault]) from error


def _fault(where: str, item: dict[str, Any]) -> Fault:
    place = ".".join(str(part) for part in item["loc"] if not _is_branch(part))
    given = item.get("input")
    match item["type"]:
        case "extra_forbidden":
            expected, got, remedy = "only keys the format knows", "an unknown key", "remove it or correct it"
        case "missing":
            expected, got, remedy = "this key", "nothing", "add it"
        case _:
            message = str(item["msg"]).removeprefix("Value error, ")
            expected = f"another value ({message[:1].lower()}{message[1:]})"
            got = "a table" if isinstance(given, dict) else repr(given)
            remedy = "correct the value"
    return Fault(where, expected, got, remedy, field=place or None)


def _is_branch(part: Any) -> bool:
    """Whether a part of a location names a branch of a union and nothing in the file."""
    return isinstance(part, str) and (part in ("bool", "int", "float", "str") or "[" in part)


def _is_echo(item: dict[str, Any]) -> bool:
    """Whether a fault only repeats that the elements of a list, each reported already, were all refused."""
    return item["type"] == "too_short" and bool(item.get("input"))
