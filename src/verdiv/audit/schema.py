"""The JSON Schemas of claims and deviations, as shipped and as the records imply them."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel

from verdiv.audit.claims.claimsfile import ClaimsFile
from verdiv.audit.deviations import DeviationsFile

__all__ = ["Kind", "implied_schema", "shipped_schema"]

Kind: TypeAlias = Literal["claims", "deviations"]
"""A file of the audit's."""

_MODELS: dict[str, type[BaseModel]] = {"claims": ClaimsFile, "deviations": DeviationsFile}


def implied_schema(kind: Kind) -> dict[str, Any]:
    """Return the JSON Schema that the records imply; the grammar of expressions is beyond its reach."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **_MODELS[kind].model_json_schema(by_alias=True),
    }


def shipped_schema(kind: Kind) -> dict[str, Any]:
    """Return the JSON Schema that ships with the package.

    Examples
    --------
    >>> shipped_schema("claims")["properties"]["schema"]["const"]
    1
    """
    text = resources.files("verdiv.audit").joinpath(f"{kind}.schema.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded
