"""The contract of results documents: what the reader accepts and what it refuses."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sample_document import bare_document, crowded_document, hostile_document, sample_document
from verdiv.errors import InputRefused
from verdiv.reports import load_document, validate_document
from verdiv.reports import schema as module

Document = dict[str, Any]


@pytest.mark.parametrize("make", [sample_document, hostile_document, crowded_document, bare_document])
def test_documents_of_every_kind_are_accepted(make: Callable[[], Document]) -> None:
    """Complete, hostile, crowded and bare documents keep the contract."""
    validate_document(make())


def test_schema_is_itself_valid() -> None:
    """The shipped file is a JSON Schema of draft 2020-12."""
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(dict(module.results_schema()))


def test_more_keys_may_stand_beside_the_named_ones() -> None:
    """A later writer may add keys; a reader of this version goes on."""
    document = sample_document()
    document["later"] = {"anything": [1, None]}
    document["estimates"]["q0"]["later"] = 1
    document["rules"]["P1"]["later"] = "x"
    validate_document(document)


def _set(path: str, value: Any) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        *steps, last = path.split("/")
        place: Any = document
        for step in steps:
            place = place[int(step)] if isinstance(place, list) else place[step]
        if isinstance(place, list):
            place[int(last)] = value
        else:
            place[last] = value

    return change


def _drop(name: str) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        del document[name]

    return change


BREAKAGES = {
    "newer": (_set("schema", 2), "schema"),
    "not a version": (_set("schema", "1"), "schema"),
    "no rules": (_drop("rules"), None),
    "no floors": (_drop("floors"), None),
    "a rule is missing": (lambda d: d["rules"].pop("R4"), "rules"),
    "a rule too many": (lambda d: d["rules"].update(P7=d["rules"]["P6"]), "rules"),
    "unknown verdict": (_set("rules/P3/verdict", "true"), "rules.P3.verdict"),
    "verdict as truth value": (_set("rules/P3/verdict", True), "rules.P3.verdict"),
    "unknown mode": (_set("mode", "confirmed"), "mode"),
    "probability above one": (_set("rules/P2/probability_claim", 1.2), "rules.P2.probability_claim"),
    "negative probability": (_set("break_even/B_star/2", -0.1), "break_even.B_star"),
    "budget that is none": (lambda d: d["break_even"]["B_star"].update({"0": 0.1}), "break_even.B_star"),
    "not a number": (_set("estimates/q0/mean", math.nan), "estimates.q0.mean"),
    "infinite": (_set("frontier/0/bill", math.inf), "frontier[0].bill"),
    "text for a number": (_set("estimates/q0/mean", "0.8"), "estimates.q0.mean"),
    "number for a text": (_set("title", 3), "title"),
    "status made up": (_set("estimates/q0/status", "assumed"), "estimates.q0.status"),
    "negative count": (_set("inputs/0/draws", -1), "inputs[0].draws"),
    "broken count": (_set("inputs/0/draws", 1.5), "inputs[0].draws"),
    "curve too long": (_set("densities/q0/x", [0.0] * 201), "densities.q0"),
    "curve unpaired": (_set("densities/q0/y", [0.0, 1.0]), "densities.q0"),
    "findings as text": (_set("findings", "none"), "findings"),
}


@pytest.mark.parametrize("name", BREAKAGES)
def test_breakages_are_refused_at_their_place(name: str) -> None:
    """Each breach of the contract is refused, and the fault names the field."""
    change, field = BREAKAGES[name]
    document = sample_document()
    change(document)
    with pytest.raises(InputRefused) as caught:
        validate_document(document)
    fields = [fault.field for fault in caught.value.faults]
    if field is None:
        assert fields == [None]
    else:
        assert any(found is not None and found.startswith(field) for found in fields), fields


def test_all_faults_come_at_once() -> None:
    """Three breaches give three faults, not one after another."""
    document = sample_document()
    document["title"], document["mode"], document["estimates"]["s1"]["mean"] = 1, "x", "y"
    with pytest.raises(InputRefused) as caught:
        validate_document(document)
    assert {fault.field for fault in caught.value.faults} == {"title", "mode", "estimates.s1.mean"}


@pytest.mark.parametrize("value", [None, [], "text", 3])
def test_only_objects_are_documents(value: Any) -> None:
    """Anything but an object is refused before the schema is asked."""
    with pytest.raises(InputRefused):
        validate_document(value)


def test_load_returns_what_was_written(tmp_path: Path) -> None:
    """Reading gives back the document, nulls and texts included."""
    path = tmp_path / "results.json"
    document = hostile_document()
    path.write_text(json.dumps(document), encoding="utf-8")
    assert load_document(path) == document


RAW = {
    "empty": b"",
    "half": b'{"schema": 1, "title": ',
    "not utf-8": b'{"title": "\xff"}',
    "NaN": b'{"schema": NaN}',
    "name twice": b'{"schema": 1, "schema": 1}',
    "deep": b'{"a":' * 60 + b"1" + b"}" * 60,
    "endless": b"[" * 200_000,
    "list": b"[]",
    "huge integer": b'{"schema": ' + b"9" * 5000 + b"}",
    "overflow": b'{"schema": 1e999}',
}


@pytest.mark.parametrize("name", RAW)
def test_load_refuses_broken_files(name: str, tmp_path: Path) -> None:
    """A file that is no results document gives an error that names it, whatever its bytes."""
    path = tmp_path / "results.json"
    path.write_bytes(RAW[name])
    with pytest.raises(InputRefused) as caught:
        load_document(path)
    assert str(path) in str(caught.value)


def test_load_refuses_files_that_are_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The size is bounded before anything is parsed."""
    path = tmp_path / "results.json"
    path.write_text(json.dumps(bare_document()), encoding="utf-8")
    monkeypatch.setattr(module, "MAX_BYTES", 100)
    with pytest.raises(InputRefused, match="at most 100 bytes"):
        load_document(path)


def test_load_refuses_folders_and_missing_files(tmp_path: Path) -> None:
    """A folder and a missing file are named as such."""
    for path in (tmp_path, tmp_path / "none.json"):
        with pytest.raises(InputRefused, match="cannot read results"):
            load_document(path)


def test_validation_leaves_the_document_alone() -> None:
    """Checking is free of side effects."""
    document = sample_document()
    before = copy.deepcopy(document)
    validate_document(document)
    assert document == before
