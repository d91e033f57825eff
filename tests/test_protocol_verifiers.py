"""The static verifier: total, deterministic, fast, never executing, and never wrong about a correct call."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verdiv.protocol.calls.verdict import EXACTLY, IN_PLACE, StaticVerdict
from verdiv.protocol.calls.wire import MAX_OUTPUT
from verdiv.protocol.suite.generate import FAMILIES, generate_suite
from verdiv.protocol.suite.suitefile import Suite
from verdiv.protocol.suite.task import Family, Task
from verdiv.protocol.verifiers import oracle_verdict, static_verdict
from verdiv.runlog.records import ErrorClass

SUITE = generate_suite(11, {"arithmetic": 200, "date": 200, "filter": 200})
TASKS = st.sampled_from(SUITE.tasks)


def family_of(task: Task) -> Family:
    """Return the family that verifies a task."""
    return FAMILIES[task.family]


@pytest.mark.slow
def test_no_correct_output_is_flagged() -> None:
    """Certificate of the false positive rate: 100,000 tasks, every accepted spelling, none flagged.

    That the spellings are correct is asked of every tenth task.
    """
    suite = generate_suite(23, {"arithmetic": 35_000, "date": 32_500, "filter": 32_500})
    outputs = 0
    for number, task in enumerate(suite.tasks):
        family = family_of(task)
        for output in family.spellings(task):
            outputs += 1
            assert not family.verify(output, task.public).flagged, (task, output)
            assert number % 10 or family.is_correct(output, task), (task, output)
    assert outputs == 35_000 * 24 + 65_000 * 6


def test_flagged_is_never_correct_and_oracle_is_the_truth() -> None:
    """An output that the static verifier refuses is not correct, and the oracle flags exactly the wrong ones."""
    for task in SUITE.tasks:
        for other in SUITE.tasks[:: len(SUITE) // 60]:
            output = FAMILIES[other.family].spellings(other)[0]
            correct = family_of(task).is_correct(output, task)
            assert not (correct and static_verdict(output, task.public, FAMILIES).flagged)
            assert oracle_verdict(output, task, FAMILIES).flagged is not correct


def fenced(text: str) -> str:
    """Wrap a reply as chat models like to."""
    return f"```json\n{text}\n```"


BREAKERS: list[Callable[[str], str | bytes]] = [
    fenced,
    lambda text: f"Sure! {text}",
    lambda text: text + text,
    lambda text: text.replace('"', "'"),
    lambda text: text[:-1],
    lambda text: text.replace("}}", ",}}"),
    lambda text: text.replace('"name"', '"tool"'),
    lambda text: text.replace("arguments", "args"),
    lambda text: json.dumps(json.loads(text)["arguments"]),
    lambda text: json.dumps([json.loads(text)]),
    lambda text: text.replace('"name": "', '"name": "my_'),
    lambda text: text.replace("}}", ', "unit": 1}}'),
    lambda text: text.replace("{", '{"name": "x", ', 1),
    lambda text: text.encode() + b"\xff",
    lambda text: text.encode("utf-16"),
    lambda text: "",
    lambda text: " \n",
    lambda text: "I cannot do that.",
    lambda text: "null",
    lambda text: "[" * 200_000,
    lambda text: '{"name": NaN, "arguments": {}}',
    lambda text: text + " " * MAX_OUTPUT,
    lambda text: text.replace("-", "/"),
    lambda text: text.replace(" + ", " plus ").replace(" * ", " × "),
    lambda text: text.replace('"expression": "', '"expression": "= '),
    lambda text: text.replace('"items": [', '"items": ["x", 1, '),
    lambda text: text.replace('"expression": "', '"expression": "2 ** '),
    lambda text: text.replace('"date": "', '"date": "the '),
]


def follow(message: str, task: Task) -> str:
    """Do what a structural message says, to the letter; what it leaves open is filled with the right value."""
    if EXACTLY in message:
        return message.split(EXACTLY, 1)[1]
    form = message.split(IN_PLACE, 1)[1]
    (value,) = task.answer.values()
    return form.replace('"..."', json.dumps(value))


@pytest.mark.parametrize("breaker", BREAKERS)
def test_structural_messages_followed_literally_pass(breaker: Callable[[str], str | bytes]) -> None:
    """Whatever breaks the form, the message's own fix yields an output that the verifier passes."""
    structural = 0
    for task in SUITE.tasks[::5]:
        broken = breaker(family_of(task).spellings(task)[0])
        verdict = static_verdict(broken, task.public, FAMILIES)
        if verdict.error_class is ErrorClass.STRUCTURAL:
            structural += 1
            assert verdict.message is not None
            assert not static_verdict(follow(verdict.message, task), task.public, FAMILIES).flagged
    assert structural > 0


@given(task=TASKS, output=st.binary(max_size=300) | st.text(max_size=300))
def test_any_bytes_get_a_verdict_whose_fix_passes(task: Task, output: str | bytes) -> None:
    """Any bytes in, a verdict out; a structural one prescribes a fix that passes, a semantic one none."""
    check_verdict(static_verdict(output, task.public, FAMILIES), task)


@given(task=TASKS, data=st.data())
def test_damaged_calls_get_a_verdict_whose_fix_passes(task: Task, data: st.DataObject) -> None:
    """Calls with characters cut, doubled or replaced get a verdict too."""
    text = data.draw(st.sampled_from(list(family_of(task).spellings(task))))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        width = data.draw(st.integers(0, 6))
        extra = data.draw(st.text(st.sampled_from('{}[]":,.0123456789 -+*()\\ue\n/x='), max_size=4))
        text = text[:at] + extra + text[at + width :]
    check_verdict(static_verdict(text, task.public, FAMILIES), task)
    family_of(task).is_correct(text, task)
    family_of(task).canonical(text, task.public)


@given(
    task=st.sampled_from([task for task in SUITE.tasks if task.family == "arithmetic"]),
    expression=st.text(st.sampled_from("0123456789+-*/() =x×.e_"), max_size=200),
)
def test_any_expression_gets_a_verdict(task: Task, expression: str) -> None:
    """Expressions of any length and nesting neither crash the parser nor pass its whitelist by accident."""
    output = json.dumps({"name": "calculate", "arguments": {"expression": expression}})
    check_verdict(static_verdict(output, task.public, FAMILIES), task)


def check_verdict(verdict: StaticVerdict, task: Task) -> None:
    """Hold a verdict to its own rules."""
    if not verdict.flagged:
        assert (verdict.error_class, verdict.code, verdict.message) == (None, None, None)
        return
    assert verdict.code
    assert verdict.message
    if verdict.error_class is ErrorClass.STRUCTURAL:
        assert not static_verdict(follow(verdict.message, task), task.public, FAMILIES).flagged
    else:
        assert EXACTLY not in verdict.message
        assert IN_PLACE not in verdict.message


@pytest.mark.parametrize(
    "expression",
    ["(" * 150, "-" * 160, "1" * 160, "9*" * 79 + "9", "((((((((((1))))))))))", "1(2)", "1\x00+1", "()"],
)
def test_extreme_expressions_are_judged(expression: str) -> None:
    """Deep nesting, huge numbers and calls of numbers are judged without a warning or a crash."""
    output = json.dumps({"name": "calculate", "arguments": {"expression": expression}})
    assert static_verdict(output, SUITE.tasks[0].public, FAMILIES).flagged


def test_nothing_is_executed(tmp_path: Path) -> None:
    """An output that would act if it were evaluated is refused by its syntax and does not act."""
    target = tmp_path / "made"
    task = next(task for task in SUITE.tasks if task.family == "arithmetic")
    for expression in (f"open({str(target)!r}, 'w')", f"__import__('pathlib').Path({str(target)!r}).touch()"):
        output = json.dumps({"name": "calculate", "arguments": {"expression": expression}})
        verdict = static_verdict(output, task.public, FAMILIES)
        assert verdict.error_class is ErrorClass.STRUCTURAL
    assert not target.exists()


SEMANTIC = [
    ("arithmetic", 4, {"expression": "1 + 1"}, "numbers"),
    ("arithmetic", 1, {"expression": "{minus}"}, "not-positive"),
    ("date", 1, {"date": "2023-02-30"}, "no-such-date"),
    ("date", 1, {"date": "1999-01-01"}, "year"),
    ("date", 3, {"date": "1999-01-01"}, "wrong-side"),
    ("date", 3, {"date": "2100-01-01"}, "window"),
    ("filter", 1, {"items": [1000]}, "not-in-list"),
    ("filter", 1, {"items": []}, "all-or-none"),
]


@pytest.mark.parametrize(("family", "level", "arguments", "code"), SEMANTIC)
def test_semantic_checks(family: str, level: int, arguments: dict[str, object], code: str) -> None:
    """Ranges and what can be read off the request are checked, and named."""
    task = next(t for t in SUITE.tasks if t.family == family and t.public.difficulty == level)
    if "{minus}" in str(arguments):
        low, high = task.public.facts["numbers"]
        arguments = {"expression": f"{low} - {high}"}
    output = json.dumps({"name": task.public.tool, "arguments": arguments})
    verdict = static_verdict(output, task.public, FAMILIES)
    assert (verdict.error_class, verdict.code) == (ErrorClass.SEMANTIC, code)


def test_silent_errors_exist() -> None:
    """What only the ground truth can see passes: wrong order of operations, off by one day, an item missing."""
    silent = 0
    for task in SUITE.tasks:
        if task.family == "arithmetic" and task.public.difficulty == 4:
            spelled = {"expression": task.answer["expression"].replace("(", "").replace(")", "")}
        elif task.family == "filter":
            spelled = {"items": task.answer["items"][:-1]}
        else:
            continue
        output = json.dumps({"name": task.public.tool, "arguments": spelled})
        silent += not static_verdict(output, task.public, FAMILIES).flagged
        assert not family_of(task).is_correct(output, task)
    assert silent > 100


def test_twenty_thousand_verdicts_a_second() -> None:
    """The verifier gives at least 20,000 verdicts a second of processor time, structural refusals included."""
    suite: Suite = generate_suite(3, {"arithmetic": 1400, "date": 1300, "filter": 1300})
    pairs = [
        (FAMILIES[t.family], text, t.public) for t in suite.tasks for text in FAMILIES[t.family].spellings(t)
    ]
    pairs += [(family, fenced(text), public) for family, text, public in pairs[::10]]
    best = 0.0
    for _ in range(3):
        start = time.process_time()
        for family, text, public in pairs:
            family.verify(text, public)
        best = max(best, len(pairs) / (time.process_time() - start))
    assert best >= 20_000
