"""Schema and pydantic verifiers: what they let pass, and that their messages prescribe the fix."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, field_validator

from verdiv.errors import UsageRefused
from verdiv.policy import Ask, GatedRetry, Tier, Verdict
from verdiv.policy.mending import mended, read_json
from verdiv.policy.verifiers import PydanticVerifier, SchemaVerifier
from verdiv.runlog.records import ErrorClass

__all__: list[str] = []

ASK = Ask("t", "x", "small", 1)
FIX = "Reply with exactly: "

WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"const": "weather"},
        "city": {"type": "string", "minLength": 1},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "unit": {"enum": ["celsius", "fahrenheit"]},
    },
    "required": ["name", "city", "days"],
    "additionalProperties": False,
}
RIGHT = {"name": "weather", "city": "Bonn", "days": 3}


class Weather(BaseModel, extra="forbid"):
    """The same call as a pydantic model, with a check of its own."""

    name: Literal["weather"]
    city: str
    days: int = Field(ge=1, le=14, strict=True)

    @field_validator("city")
    @classmethod
    def known(cls, city: str) -> str:
        """Refuse a place that is none."""
        if city == "Atlantis":
            raise ValueError("there is no such city")
        return city


SCHEMA, MODEL = SchemaVerifier(WEATHER), PydanticVerifier(Weather)
BOTH = pytest.mark.parametrize("verifier", [SCHEMA, MODEL], ids=["schema", "pydantic"])


def fixed(verdict: Verdict) -> Any:
    """Return the reply that a message prescribes word for word."""
    assert verdict.message is not None
    return json.loads(verdict.message.rsplit(FIX, 1)[1])


@BOTH
def test_a_right_output_passes(verifier: Any) -> None:
    """JSON that the schema takes is not flagged, whitespace around it included."""
    assert verifier(f"  {json.dumps(RIGHT)}\n", ASK) == Verdict(False)


@BOTH
@pytest.mark.parametrize(
    "output",
    [
        'Sure!\n```json\n{"name": "weather", "city": "Bonn", "days": 3}\n```',
        '{"name": "weather", "town": "Bonn", "city": "Bonn", "days": 3}',
        '{"name": "weather", "city": "Bonn", "days": "3"}',
        '{"name": "weather", "city": "Bonn", "day": 3}',
        '{"city": "Bonn", "days": 3}',
        '{"name": "Weather", "city": "Bonn", "days": 3.0}',
    ],
    ids=["prose", "unknown field", "quoted number", "renamed", "constant missing", "constant misspelt"],
)
def test_what_is_wrong_in_form_alone_is_structural_and_the_message_is_the_fix(
    verifier: Any, output: str
) -> None:
    """The class is structural exactly as the message prescribes a reply, and that reply passes."""
    verdict = verifier(output, ASK)
    assert (verdict.flagged, verdict.error_class) == (True, ErrorClass.STRUCTURAL)
    assert fixed(verdict) == RIGHT
    assert verifier(json.dumps(fixed(verdict)), ASK) == Verdict(False)


@BOTH
def test_a_missing_value_is_structural_with_the_form_of_the_reply(verifier: Any) -> None:
    """What to add is known although its value is not: the message names the field and shows the form."""
    verdict = verifier('{"name": "weather", "days": 3}', ASK)
    assert verdict.error_class is ErrorClass.STRUCTURAL
    assert "city" in verdict.message
    assert verdict.message.endswith('{"name": "weather", "city": "...", "days": "..."}')


@BOTH
def test_a_value_out_of_range_is_semantic(verifier: Any) -> None:
    """The message says what is wrong and prescribes no value, since none is known."""
    verdict = verifier('{"name": "weather", "city": "Bonn", "days": 40}', ASK)
    assert verdict.error_class is ErrorClass.SEMANTIC
    assert "14" in verdict.message
    assert "40" in verdict.message
    assert FIX not in verdict.message


def test_a_check_of_ones_own_is_semantic() -> None:
    """A model's validator says why, and no fix is known."""
    verdict = MODEL('{"name": "weather", "city": "Atlantis", "days": 3}', ASK)
    assert (verdict.error_class, verdict.code) == (ErrorClass.SEMANTIC, "value_error")
    assert "there is no such city" in str(verdict.message)


def test_one_semantic_problem_among_structural_ones_makes_the_refusal_semantic() -> None:
    """A fix of the form alone would be refused again, so it is not prescribed word for word."""
    verdict = SCHEMA('{"name": "weather", "city": "Bonn", "days": 40, "mood": 1}', ASK)
    assert verdict.error_class is ErrorClass.SEMANTIC
    assert 'unknown field "mood"' in str(verdict.message)
    assert FIX not in str(verdict.message)


def test_an_enumerated_word_in_another_spelling_is_structural_and_another_word_semantic() -> None:
    """Case is form; which of two words was meant is not."""
    near = SCHEMA('{"name": "weather", "city": "Bonn", "days": 3, "unit": "Celsius"}', ASK)
    far = SCHEMA('{"name": "weather", "city": "Bonn", "days": 3, "unit": "kelvin"}', ASK)
    assert (near.error_class, fixed(near)["unit"]) == (ErrorClass.STRUCTURAL, "celsius")
    assert far.error_class is ErrorClass.SEMANTIC
    assert '["celsius", "fahrenheit"]' in str(far.message)


@BOTH
@pytest.mark.parametrize(
    "output",
    [
        "",
        "I cannot help with that.",
        '{"name": "weather", "city": "Bonn", "days": 3',
        '{"name": "weather", "city": "Bonn", "city": "Rome", "days": 3}',
        '{"name": "weather", "city": "Bonn", "days": NaN}',
        "[" * 100_000,
        '{"name": "weather", "city": "' + "x" * 300_000 + '", "days": 3}',
        '{"name": "weather", "city": "Bonn", "days": ' + "9" * 5000 + "}",
    ],
    ids=["empty", "prose", "cut", "doubled", "NaN", "deep", "long", "huge number"],
)
def test_hostile_outputs_are_refused_with_the_form(verifier: Any, output: str) -> None:
    """No output raises, none passes, and each message is short and actionable."""
    verdict = verifier(output, ASK)
    assert verdict.flagged
    assert verdict.error_class is ErrorClass.STRUCTURAL
    assert '"city": "..."' in verdict.message
    assert len(verdict.message) < 2000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_any_json_is_judged_and_a_prescribed_fix_always_passes(value: Any) -> None:
    """Whatever the value, the verdict is one of the two, and no message prescribes what would be refused."""
    for verifier in (SCHEMA, MODEL):
        verdict = verifier(json.dumps(value), ASK)
        assert verdict.flagged
        if FIX in str(verdict.message):
            assert not verifier(json.dumps(fixed(verdict)), ASK).flagged


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    """Reading raises for no text, and what it takes whole is what the standard library reads."""
    reading = read_json(text)
    if reading.fault is None:
        assert reading.value == json.loads(text)


@given(JSON)
def test_mending_keeps_what_is_right(value: Any) -> None:
    """A value without a schema, and a right call, come through mending unchanged."""
    assert mended(value, {}, {}) == value
    assert mended(RIGHT, WEATHER, WEATHER) == RIGHT


def test_a_schema_that_is_none_is_refused() -> None:
    """A wrong schema is found when the verifier is built, not when an output comes."""
    with pytest.raises(UsageRefused, match="cannot be verified"):
        SchemaVerifier({"type": "objekt"})


def test_nested_models_are_mended_through_local_references() -> None:
    """Fields of a nested model are mended where they stand; the message names the place."""

    class Place(BaseModel, extra="forbid"):
        city: str

    class Trip(BaseModel, extra="forbid"):
        stops: list[Place]

    verdict = PydanticVerifier(Trip)('{"stops": [{"citty": "Bonn"}]}', ASK)
    assert fixed(verdict) == {"stops": [{"city": "Bonn"}]}
    assert 'Field "stops[0].citty"' in str(verdict.message)


def test_a_remote_reference_is_not_followed() -> None:
    """A schema that points elsewhere fails as a verifier and opens no connection."""
    verifier = SchemaVerifier({"$ref": "http://127.0.0.1:9/schema.json"})
    result = GatedRetry(Tier(model=lambda ask: "{}"), verifier=verifier).run("t", "x")
    assert result.outcome.value == "unverified"
    assert "127.0.0.1" in str(result.reason)


def test_the_message_mends_a_real_chain() -> None:
    """A model that obeys the message passes at the second draw."""

    def obedient(ask: Ask) -> str:
        if not ask.refused:
            return "Here you are: {'city': 'Bonn'}, or " + '{"name": "weather", "city": "Bonn", "day": "3"}'
        return ask.refused[-1].message.rsplit(FIX, 1)[-1]

    def quoted(ask: Ask) -> str:
        return '{"name": "weather", "city": "Bonn", "day": "3"}' if not ask.refused else obedient(ask)

    result = GatedRetry(Tier(model=quoted, budget=2), verifier=SCHEMA).run("t", "x")
    assert (result.accepted, result.billed) == (True, 2.0)
