"""Worlds written as TOML: any value of a world, on top of a named one.

.. code-block:: toml

    schema = 1
    name = "my world"
    base = "plausible"              # optional; "worked" otherwise
    seed_logits = [0.5, 0.0, -0.5]

    [rates]                         # all families
    s1 = 0.9
    lambda2 = "as-first"            # silent as often as wrong first draws are

    [icc]
    q = 0.5

    [[families]]                    # replaces the base's families; rates not named are those above
    name = "arithmetic"
    weight = 14
    rates = { q = 0.9 }

Further tables: ``ease``, ``blind``, ``drift``, ``repairs``, ``greedy``, ``load``, ``losses``, ``conditions``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

from verdiv.errors import Fault, InputRefused, UsageRefused
from verdiv.protocol.simulator.behaviour import ConditionEffect
from verdiv.protocol.simulator.rates import Rates
from verdiv.protocol.simulator.scenarios import BASES, named_world
from verdiv.protocol.simulator.world import MAX_FAMILIES, PARTS, Family, World

__all__ = ["MAX_BYTES", "WORLD_SCHEMA", "load_world", "parse_world"]

WORLD_SCHEMA = 1
"""Integer version of the world file; a newer one is refused."""

MAX_BYTES = 1 << 20
"""Largest world file."""

AS_FIRST = "as-first"
"""In place of ``lambda1`` or ``lambda2``: silent as often as the task's wrong first draws."""

KEYS = {
    "schema",
    "name",
    "base",
    "rho",
    "wrong_outputs",
    "seed_logits",
    "rates",
    "families",
    "conditions",
    *PARTS,
}

Part = TypeVar("Part")


def load_world(name_or_path: str | Path) -> World:
    """Return a world by its name, or read it from a TOML file.

    Parameters
    ----------
    name_or_path
        A name of :func:`verdiv.protocol.simulator.scenarios.named_world`, or a path that ends with ``.toml``.

    Raises
    ------
    InputRefused
        If the file cannot be read or a value is not right; all faults are reported together.
    UsageRefused
        If a name is unknown.
    """
    text = str(name_or_path)
    if not text.endswith(".toml"):
        return named_world(text)
    path = Path(text)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        fault = Fault(
            text, "a readable file", error.strerror or type(error).__name__, "check path and rights"
        )
        raise InputRefused("world file refused", [fault]) from error
    return parse_world(data, text)


def parse_world(data: bytes, where: str) -> World:
    """Read a world from the bytes of a TOML file.

    Raises
    ------
    InputRefused
        If the text is no TOML, or a value is not right; all faults are reported together.
    """
    if len(data) > MAX_BYTES:
        raise _refused(Fault(where, f"at most {MAX_BYTES} bytes", "more", "shorten the file"))
    try:
        document = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise _refused(Fault(where, "TOML in UTF-8", str(error), "correct the syntax")) from error
    faults: list[Fault] = []
    if document.get("schema") != WORLD_SCHEMA:
        got = repr(document.get("schema"))
        faults.append(Fault(where, f"{WORLD_SCHEMA}", got, "write schema = 1, or upgrade", field="schema"))
    faults += _unknown(where, document, KEYS, "")
    base = document.get("base", "worked")
    if not isinstance(base, str) or base.split("+")[0] not in BASES:
        faults.append(Fault(where, f"one of {', '.join(BASES)}", repr(base), "name one", field="base"))
        raise _refused(*faults)
    try:
        start = named_world(base)
    except UsageRefused as error:
        raise InputRefused("world file refused", [*faults, *error.faults]) from error
    changes: dict[str, Any] = {
        name: _part(getattr(start, name), document.get(name, {}), where, name, faults) for name in PARTS
    }
    changes["families"] = _families(start, document, where, faults)
    changes["conditions"] = _conditions(start, document, where, faults)
    changes["name"] = document.get("name", where)
    if not isinstance(changes["name"], str) or not 1 <= len(changes["name"]) <= 200:
        faults.append(
            Fault(where, "a text of 1 to 200 characters", repr(changes["name"]), "rename", field="name")
        )
    for name in ("rho", "wrong_outputs"):
        if name in document:
            changes[name] = document[name]
    if "seed_logits" in document:
        logits = document["seed_logits"]
        if isinstance(logits, list):
            changes["seed_logits"] = tuple(logits)
        else:
            faults.append(
                Fault(where, "a list of numbers", repr(logits), "write a list", field="seed_logits")
            )
    if faults:
        raise _refused(*faults)
    try:
        return replace(start, **changes)
    except UsageRefused as error:
        raise InputRefused("world file refused", error.faults) from error


def _refused(*faults: Fault) -> InputRefused:
    return InputRefused("world file refused", faults)


def _unknown(where: str, table: Mapping[str, Any], known: set[str], prefix: str) -> list[Fault]:
    said = ", ".join(sorted(known))
    return [
        Fault(where, f"a key among {said}", repr(key), "remove or rename it", field=f"{prefix}{key}"[:200])
        for key in table
        if key not in known
    ]


def _part(start: Part, table: object, where: str, name: str, faults: list[Fault]) -> Part:
    """Replace values of a group by those of a table; ranges are checked when the world is made."""
    if not isinstance(table, dict):
        faults.append(Fault(where, "a table", type(table).__name__, f"write [{name}]", field=name))
        return start
    known = {field.name for field in fields(start)}  # type: ignore[arg-type]
    faults += _unknown(where, table, known, f"{name}.")
    values = {key: value for key, value in table.items() if key in known}
    for key in ("lambda1", "lambda2"):
        if key in known and values.get(key) == AS_FIRST:
            values[key] = None
    for key in ("name", "precision"):
        if key in values and not isinstance(values[key], str):
            got = repr(values.pop(key))
            faults.append(Fault(where, "a text", got, "quote it", field=f"{name}.{key}"))
    return replace(start, **values)  # type: ignore[type-var]


def _rows(document: Mapping[str, Any], name: str, where: str, faults: list[Fault]) -> list[dict[str, Any]]:
    rows = document.get(name, [])
    if (
        not isinstance(rows, list)
        or len(rows) > MAX_FAMILIES
        or not all(isinstance(row, dict) for row in rows)
    ):
        expected = f"at most {MAX_FAMILIES} tables"
        faults.append(Fault(where, expected, type(rows).__name__, f"write [[{name}]]", field=name))
        return []
    return rows


def _families(
    start: World, document: Mapping[str, Any], where: str, faults: list[Fault]
) -> tuple[Family, ...]:
    common = document.get("rates", {})
    families = tuple(
        replace(family, rates=_part(family.rates, common, where, "rates", [])) for family in start.families
    )
    shared: Rates = _part(start.families[0].rates, common, where, "rates", faults)
    rows = _rows(document, "families", where, faults)
    if not rows:
        return families
    found = []
    for index, row in enumerate(rows):
        place = f"families[{index}]"
        faults += _unknown(where, row, {"name", "weight", "rates"}, f"{place}.")
        name = row.get("name")
        if not isinstance(name, str):
            faults.append(Fault(where, "a text", repr(name), "name the family", field=f"{place}.name"))
            name = place
        rates = _part(shared, row.get("rates", {}), where, f"{place}.rates", faults)
        found.append(Family(name=name, weight=row.get("weight", 1.0), rates=rates))
    return tuple(found)


def _conditions(
    start: World, document: Mapping[str, Any], where: str, faults: list[Fault]
) -> tuple[ConditionEffect, ...]:
    rows = _rows(document, "conditions", where, faults)
    if not rows:
        return start.conditions
    return tuple(
        _part(ConditionEffect(name=""), row, where, f"conditions[{index}]", faults)
        for index, row in enumerate(rows)
    )
