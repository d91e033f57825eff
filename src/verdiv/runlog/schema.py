"""The JSON Schema of a run log's lines, made from the records and shipped beside them."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import msgspec

from verdiv.runlog.records import RUNLOG_SCHEMA, Draw, Footer, Header

__all__ = ["runlog_schema", "shipped_schema"]


def runlog_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of one line, as the records define it.

    Returns
    -------
    dict
        A line is a header, a draw or a footer, told apart by ``record``. What ties lines together (the
        chain, ids, counts) and what ties fields together cannot be said in it and is checked in reading.

    Examples
    --------
    >>> sorted(runlog_schema()["$defs"]["Footer"]["required"])
    ['draws', 'head', 'record']
    """
    schema = msgspec.json.schema(Header | Draw | Footer)
    definitions = schema["$defs"]
    definitions["Header"]["properties"]["schema"] |= {"minimum": 1, "maximum": RUNLOG_SCHEMA}
    for definition in definitions.values():
        definition["description"] = definition.get("description", "").strip()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"One line of a run log, version {RUNLOG_SCHEMA}",
        **schema,
    }


def shipped_schema() -> dict[str, Any]:
    """Return the JSON Schema that ships with the package.

    Returns
    -------
    dict
        Equal to :func:`runlog_schema`; a test holds the two together.
    """
    text = files("verdiv.runlog").joinpath("schemas/runlog.schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
