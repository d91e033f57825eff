"""Function-schema questions as a family, and families of one's own."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from verdiv.errors import InputRefused, UsageRefused
from verdiv.protocol.calls.verdict import EXACTLY, IN_PLACE
from verdiv.protocol.suite.functions import FunctionCalls, read_questions
from verdiv.protocol.suite.generate import generate_suite
from verdiv.protocol.suite.plugins import families_with
from verdiv.protocol.suite.suitefile import Suite
from verdiv.protocol.suite.task import Task
from verdiv.runlog.records import ErrorClass


def entry(**changes: Any) -> dict[str, Any]:
    """A question in BFCL's form."""
    return {
        "question": [[{"role": "user", "content": "Convert 12.5 km to miles, rounded."}]],
        "function": [
            {
                "name": "units.convert",
                "parameters": {
                    "type": "dict",
                    "properties": {
                        "value": {"type": "float"},
                        "source": {"type": "string", "enum": ["km", "mi"]},
                        "target": {"type": "string", "enum": ["km", "mi"]},
                        "digits": {"type": "integer"},
                        "tags": {"type": "array", "items": {"type": "string"}},
                    },
                    "required": ["value", "source", "target"],
                },
            }
        ],
        "ground_truth": [
            {
                "units.convert": {
                    "value": [12.5],
                    "source": ["km"],
                    "target": ["mi"],
                    "digits": [0, ""],
                    "tags": ["", ["a"]],
                }
            }
        ],
    } | changes


FAMILY = FunctionCalls(read_questions([json.dumps(entry())]))


def task() -> Task:
    """The one task of the family."""
    return FAMILY.generate(random.Random(1), 3, "function-0001")


def call(**arguments: Any) -> str:
    """Call the function of the question."""
    return json.dumps({"name": "units.convert", "arguments": arguments})


RIGHT: dict[str, Any] = {"value": 12.5, "source": "km", "target": "mi"}


def test_accepted_spellings_pass_and_are_correct() -> None:
    """Every accepted value in every JSON spelling passes the static verifier and is correct."""
    for output in FAMILY.spellings(task()):
        assert not FAMILY.verify(output, task().public).flagged
        assert FAMILY.is_correct(output, task())
    assert FAMILY.is_correct(call(**RIGHT, digits=0, tags=["a"]), task())


@pytest.mark.parametrize(
    ("output", "error_class", "code"),
    [
        (call(**RIGHT | {"value": "12.5"}), ErrorClass.STRUCTURAL, "wrong-type"),
        (call(value=12.5, source="km"), ErrorClass.STRUCTURAL, "missing-field"),
        (call(**RIGHT, extra=1), ErrorClass.STRUCTURAL, "unknown-field"),
        (call(**RIGHT, tags=[1]), ErrorClass.STRUCTURAL, "wrong-type"),
        (call(**RIGHT, digits=True), ErrorClass.STRUCTURAL, "wrong-type"),
        ('units.convert(12.5, "km", "mi")', ErrorClass.STRUCTURAL, "not-json"),
        (call(**RIGHT | {"target": "feet"}), ErrorClass.SEMANTIC, "not-allowed"),
        (call(**RIGHT | {"value": 12}), None, None),
        (call(**RIGHT, digits=3), None, None),
    ],
)
def test_wrong_calls_are_classed(output: str, error_class: ErrorClass | None, code: str | None) -> None:
    """Types and fields are structural, enumerations semantic, wrong values silent; none of them is correct."""
    verdict = FAMILY.verify(output, task().public)
    assert (verdict.error_class, verdict.code) == (error_class, code)
    assert not FAMILY.is_correct(output, task())


@pytest.mark.parametrize(
    "output",
    [
        f"```json\n{call(**RIGHT)}\n```",
        json.dumps({"units.convert": json.dumps(RIGHT)}),
        json.dumps(RIGHT),
        call(**RIGHT, unit="x"),
    ],
)
def test_content_of_malformed_calls_is_saved(output: str) -> None:
    """Where the content is whole, the message gives the whole reply, and that is correct here."""
    message = FAMILY.verify(output, task().public).message or ""
    assert FAMILY.is_correct(message.split(EXACTLY, 1)[1], task())


def test_the_form_names_every_required_parameter() -> None:
    """Where nothing can be saved, the form shows each required parameter."""
    message = FAMILY.verify("no idea", task().public).message or ""
    form = json.loads(message.split(IN_PLACE, 1)[1])
    assert form == {"name": "units.convert", "arguments": dict.fromkeys(RIGHT, "...")}


def test_bad_questions_are_refused_together() -> None:
    """Lines of another form are refused by line, all at once; answers against their own schema too."""
    lines = ["{", json.dumps(entry()), json.dumps(entry(ground_truth=[{"other": {}}])), "[]"]
    with pytest.raises(InputRefused) as caught:
        read_questions(lines)
    assert [fault.line for fault in caught.value.faults] == [1, 3, 4]
    wrong = entry(ground_truth=[{"units.convert": {"value": ["x"], "source": ["km"], "target": ["mi"]}}])
    with pytest.raises(InputRefused, match="contradict"):
        FunctionCalls(read_questions([json.dumps(wrong)]))


def test_questions_go_through_a_suite_file() -> None:
    """A suite of questions is verified and scored from its file alone, without the pool it came from."""
    suite = generate_suite(1, {"function": 1}, families={"function": FAMILY})
    again = Suite.from_json(json.loads(suite.canonical))
    bare = FunctionCalls()
    assert bare.is_correct(call(**RIGHT), again.tasks[0])
    assert not bare.is_correct(call(**RIGHT, digits=2), again.tasks[0])
    with pytest.raises(UsageRefused):
        bare.generate(random.Random(1), 3, "x")


@pytest.mark.parametrize(
    "place",
    ["json", "json:", "no_such_module_here:X", "json:nothing", "json:JSONDecoder", "verdiv.protocol.suite.dates:Dates"],
)  # fmt: skip
def test_places_that_hold_no_new_family_are_refused(place: str) -> None:
    """A place must name an importable family whose name is free."""
    with pytest.raises(UsageRefused):
        families_with([place])
