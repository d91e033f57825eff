"""The JSON Schema of a registration file, as shipped and as the records imply it."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from verdiv.preregistration.plan import RegisteredPlan

__all__ = ["implied_schema", "shipped_schema"]


def implied_schema() -> dict[str, Any]:
    """Return the JSON Schema that the records imply; rules between fields are beyond its reach."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **RegisteredPlan.model_json_schema(by_alias=True),
    }


def shipped_schema() -> dict[str, Any]:
    """Return the JSON Schema that ships with the package.

    Examples
    --------
    >>> shipped_schema()["properties"]["schema"]["const"]
    1
    """
    text = (
        resources.files("verdiv.preregistration").joinpath("preregistration.schema.json").read_text("utf-8")
    )
    loaded: dict[str, Any] = json.loads(text)
    return loaded
