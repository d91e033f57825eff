"""The shipped JSON Schemas of lock, claims and deviations agree with what the readers take."""

from __future__ import annotations

import json
import tomllib
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

from verdiv import fixtures
from verdiv.audit.mutations.clean import make_clean_run
from verdiv.audit.schema import Kind, implied_schema, shipped_schema
from verdiv.preregistration.amend import amend_lock


@pytest.mark.parametrize("kind", ["claims", "deviations"])
def test_shipped_schemas_are_the_records(kind: Kind) -> None:
    """A field added to a record and not to its schema would be a format nobody documented."""
    assert shipped_schema(kind) == implied_schema(kind)


def test_the_shipped_claims_hold_to_their_schema() -> None:
    """The example that ships is an example of the format."""
    tables = tomllib.loads(fixtures.read_bytes("claims", "paper").decode())
    jsonschema.validate(tables, shipped_schema("claims"))


def test_locks_hold_to_their_schema(tmp_path: Path) -> None:
    """A lock with an amendment validates; one without digests does not."""
    clean = make_clean_run(tmp_path)
    data = clean.plan_path.read_bytes()
    amend_lock(
        clean.lock_path, data, "p", author="A", reason="r", seen="s", registration="preregistration.toml"
    )
    schema = json.loads(resources.files("verdiv.preregistration").joinpath("lock.schema.json").read_text())
    document = json.loads(clean.lock_path.read_bytes())
    jsonschema.validate(document, schema)
    del document["records"][1]["digest"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema)
