"""The generator: fixed by its seed, no two tasks alike, no prompt that holds its answer."""

from __future__ import annotations

import json
import re

import pytest

from verdiv.errors import InputRefused, UsageRefused
from verdiv.protocol.prompts import feedback_messages, initial_messages, prompt_digest, tier_prompt
from verdiv.protocol.suite.arithmetic import evaluate, parse_expression
from verdiv.protocol.suite.generate import DEFAULT_COUNTS, FAMILIES, generate_suite, shots
from verdiv.protocol.suite.suitefile import Suite, read_suite

BIG = {"arithmetic": 35_000, "date": 32_500, "filter": 32_500}


@pytest.fixture(scope="module")
def big() -> Suite:
    """A suite of 100,000 tasks."""
    return generate_suite(5, BIG)


def test_same_seed_same_digest() -> None:
    """The suite is a function of its seed: the digest is stored here, and another seed has another."""
    digest = generate_suite(1).digest
    assert digest == generate_suite(1).digest
    assert digest != generate_suite(2).digest
    assert digest == "8062ab1d0e079231423a846ab4082773c59ebde31ecb05297944c79adde549b0"


def test_default_counts_are_the_protocols() -> None:
    """The protocol has 14 arithmetic, 13 date and 13 filtering tasks."""
    families = [task.family for task in generate_suite(1).tasks]
    assert [families.count(name) for name in ("arithmetic", "date", "filter")] == [14, 13, 13]
    assert sum(DEFAULT_COUNTS.values()) == 40


def test_digest_is_that_of_the_canonical_form() -> None:
    """Any canonicaliser gives the same bytes: here Python's own, which agrees on ASCII and integers."""
    suite = generate_suite(3)
    own = json.dumps(suite.as_json(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert own.encode() == suite.canonical


def test_hundred_thousand_distinct_tasks(big: Suite) -> None:
    """No two of 100,000 tasks are alike, neither by name nor by prompt."""
    assert len(big) == 100_000
    assert len({task.public.prompt for task in big.tasks}) == 100_000
    assert len(big.by_id) == 100_000


def test_difficulty_is_graded_evenly(big: Suite) -> None:
    """Every level of a family takes its equal share."""
    for name, family in FAMILIES.items():
        levels = [task.public.difficulty for task in big.tasks if task.family == name]
        for level in family.levels:
            assert abs(levels.count(level) - len(levels) / len(family.levels)) <= 1


def test_no_prompt_holds_its_answer(big: Suite) -> None:
    """Neither a spelling of the answer, nor its value, nor its items in one run stand in the prompt."""
    for task in big.tasks:
        prompt = task.public.prompt
        squeezed = re.sub(r"\s", "", prompt)
        if task.family == "arithmetic":
            tree = parse_expression(task.answer["expression"])
            assert tree is not None
            assert str(evaluate(tree)) not in re.findall(r"\d+", prompt)
            assert task.answer["expression"].replace(" ", "") not in squeezed
        elif task.family == "date":
            assert task.answer["date"] not in prompt
        else:
            run = ",".join(map(str, task.answer["items"]))
            listed = "," + squeezed.split(":", 1)[1].rstrip(".") + ","
            assert f",{run}," not in listed


def test_a_family_does_not_depend_on_the_others() -> None:
    """Leaving a family out leaves the tasks of the rest as they were."""
    alone = generate_suite(1, {"date": 13})
    assert alone.tasks == tuple(task for task in generate_suite(1).tasks if task.family == "date")


def test_worked_examples_are_no_tasks() -> None:
    """A request shown as an example in a prompt never comes up as a task."""
    examples = {name: shots(family, 50) for name, family in FAMILIES.items()}
    prompts = {"small": tier_prompt(FAMILIES, examples)}
    shown = {task.public.prompt for tasks in examples.values() for task in tasks}
    suite = generate_suite(1, {"arithmetic": 3000, "date": 3000, "filter": 3000}, prompts=prompts)
    assert not shown & {task.public.prompt for task in suite.tasks}


def test_file_round_trip(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A suite read back is the suite written, prompts included, whatever the file's spacing."""
    prompts = {"small": tier_prompt(FAMILIES, {"date": shots(FAMILIES["date"], 2)}, reply="json")}
    suite = generate_suite(1, prompts=prompts)
    file = tmp_path_factory.mktemp("suite") / "suite.json"
    file.write_text(json.dumps(suite.as_json(), indent=3))
    assert read_suite(file) == suite
    assert read_suite(file).digest == suite.digest


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda d: d.update(schema=2), "schema"),
        (lambda d: d.update(tasks=3), "tasks"),
        (lambda d: d["tasks"][4].pop("answer"), "tasks[4].answer"),
        (lambda d: d["tasks"][4].update(difficulty="2"), "tasks[4].difficulty"),
        (lambda d: d["tasks"].append(d["tasks"][0]), "tasks"),
        (lambda d: d.update(prompts={"small": {"reply": "xml", "instructions": {}, "examples": {}}}), "prompts.small"),
    ],
)  # fmt: skip
def test_a_broken_suite_is_refused(change: object, field: str) -> None:
    """A suite of another version, with a field missing or a task twice, is refused by field."""
    document = json.loads(generate_suite(1).canonical)
    change(document)  # type: ignore[operator]
    with pytest.raises(InputRefused) as caught:
        Suite.from_json(document)
    assert field in {fault.field for fault in caught.value.faults}


def test_all_faults_of_a_suite_come_at_once() -> None:
    """Two broken tasks are two faults of one error."""
    document = json.loads(generate_suite(1).canonical)
    del document["tasks"][1]["prompt"], document["tasks"][7]["tool"]
    with pytest.raises(InputRefused) as caught:
        Suite.from_json(document)
    assert [fault.field for fault in caught.value.faults] == ["tasks[1].prompt", "tasks[7].tool"]


@pytest.mark.parametrize(
    ("counts", "levels"),
    [
        ({"arithmetic": 0}, None),
        ({"poetry": 3}, None),
        ({"date": 3}, {"date": [9]}),
        ({"date": 2_000_000}, None),
    ],
)
def test_impossible_sizes_are_refused(counts: dict[str, int], levels: dict[str, list[int]] | None) -> None:
    """No tasks, unknown families, unknown levels and endless suites are refused."""
    with pytest.raises(UsageRefused):
        generate_suite(1, counts, levels=levels)


def test_an_exhausted_level_is_said() -> None:
    """A level that has no further task ends the generation with an error, not with a repeated task."""
    with pytest.raises(UsageRefused, match="cannot be generated"):
        generate_suite(1, {"date": 15_000}, levels={"date": [1]})


def test_blind_prompt_equals_the_first_and_feedback_holds_the_message() -> None:
    """A blind redraw is shown the initial messages; a feedback one those plus reply and message, in turn."""
    from verdiv.protocol.prompts import Refused

    task = generate_suite(1).tasks[0]
    prompt = tier_prompt(FAMILIES, {"arithmetic": shots(FAMILIES["arithmetic"], 2)})
    first = initial_messages(task.public, prompt)
    assert [message["role"] for message in first] == ["system", *["user", "assistant"] * 2, "user"]
    later = feedback_messages(task.public, prompt, [Refused("a", "b"), Refused("c", "d")])
    assert later[: len(first)] == first
    assert [message["content"] for message in later[len(first) :]] == ["a", "b", "c", "d"]
    assert prompt_digest(first) != prompt_digest(later)
