"""Function-schema tasks in the style of the Berkeley Function-Calling Leaderboard (BFCL), as a family.

A question comes with the schema of one function and, for each parameter, the values that count as right; an
empty string among them means that the parameter may be left out.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from verdiv.errors import Fault, InputRefused, UsageRefused
from verdiv.protocol.calls.shape import range_refusal
from verdiv.protocol.calls.verdict import Refusal
from verdiv.protocol.suite.json_call import JsonCallFamily
from verdiv.protocol.suite.task import PublicTask, Task

__all__ = ["FunctionCalls", "FunctionQuestion", "read_questions"]

_TYPES: Mapping[str, str] = {
    "dict": "object", "object": "object", "HashMap": "object",
    "integer": "integer", "int": "integer", "long": "integer",
    "float": "number", "number": "number", "double": "number",
    "array": "array", "list": "array", "tuple": "array", "ArrayList": "array",
    "string": "string", "String": "string", "char": "string",
    "boolean": "boolean", "bool": "boolean",
}  # fmt: skip

MAX_QUESTIONS = 1_000_000
"""Questions of one family."""


@dataclass(frozen=True)
class FunctionQuestion:
    """A question, its function and the right values."""

    question: str
    """The request in words."""
    tool: str
    """Name of the function."""
    schema: Mapping[str, Any]
    """JSON Schema of its arguments."""
    accepted: Mapping[str, Sequence[Any]]
    """Parameter to the values that count as right; the first is the canonical one, ``""`` allows leaving it out."""

    @property
    def required(self) -> dict[str, Any]:
        """Canonical arguments: parameters that may be left out are left out."""
        return {name: values[0] for name, values in self.accepted.items() if "" not in values}


def _schema(node: Mapping[str, Any]) -> dict[str, Any]:
    """Translate a BFCL parameter schema into the subset that is checked."""
    kind = _TYPES.get(str(node.get("type", "dict")), "any")
    made: dict[str, Any] = {"type": kind}
    if kind == "object" and "properties" in node:
        made["properties"] = {str(name): _schema(inner) for name, inner in node["properties"].items()}
        made["required"] = [str(name) for name in node.get("required", [])]
    if kind == "array" and isinstance(node.get("items"), Mapping):
        made["items"] = _schema(node["items"])
    if isinstance(node.get("enum"), list):
        made["enum"] = list(node["enum"])
    return made


def _question(entry: Mapping[str, Any]) -> FunctionQuestion:
    """Read one BFCL entry; raises KeyError, TypeError, ValueError or AttributeError where its form is another."""
    asked = entry["question"]
    while isinstance(asked, list):
        asked = asked[-1]
    words = asked["content"] if isinstance(asked, Mapping) else asked
    function = entry["function"][0] if isinstance(entry["function"], list) else entry["function"]
    truth = entry.get("ground_truth", entry.get("possible_answer"))
    truth = truth[0] if isinstance(truth, list) else truth
    ((tool, accepted),) = truth.items()
    if tool != function["name"] or not isinstance(words, str):
        raise ValueError("the answer calls another function")
    values = {str(name): list(choices) for name, choices in accepted.items()}
    if not all(values.values()):
        raise ValueError("a parameter has no accepted value")
    return FunctionQuestion(words, str(tool), _schema(function["parameters"]), values)


def read_questions(lines: Iterable[str | bytes], where: str = "questions") -> list[FunctionQuestion]:
    """Read questions from JSON lines in BFCL's form.

    Parameters
    ----------
    lines
        One object a line: ``question`` (text or chat turns), ``function`` (one, or a list of one) and
        ``ground_truth`` or ``possible_answer`` (function to parameter to accepted values).
    where
        Name for messages.

    Returns
    -------
    list of FunctionQuestion
        In order.

    Raises
    ------
    InputRefused
        When a line has another form; all faults at once.

    Examples
    --------
    >>> line = '''{"question": "Area of a 3 by 4 triangle?", "function": {"name": "area", "parameters": {"type":
    ... "dict", "properties": {"base": {"type": "integer"}, "height": {"type": "integer"}}, "required": ["base",
    ... "height"]}}, "ground_truth": {"area": {"base": [3], "height": [4]}}}'''
    >>> read_questions([line])[0].required
    {'base': 3, 'height': 4}
    """
    questions, faults = [], []
    for number, line in enumerate(lines, 1):
        if number > MAX_QUESTIONS:
            faults.append(Fault(where, f"at most {MAX_QUESTIONS} questions", "more", "split the file"))
            break
        try:
            questions.append(_question(json.loads(line)))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
            got = f"{type(error).__name__}: {error}"
            faults.append(
                Fault(
                    where,
                    "question, function and ground_truth",
                    got,
                    "see the family's documentation",
                    line=number,
                )
            )
    if faults:
        raise InputRefused("the questions cannot be read", faults)
    return questions


class FunctionCalls(JsonCallFamily):
    """Function-schema questions as a family: difficulty is the number of parameters that must be given.

    Types, required and unknown parameters are structural; enumerations and ranges are semantic; a wrong value
    within its type and range passes silently.

    Parameters
    ----------
    questions
        The pool that tasks are drawn from.

    Raises
    ------
    InputRefused
        When a question's own answer breaks its schema: then correct calls would be flagged.
    """

    name = "function"
    instructions = (
        "You write tool calls. Each request names a function and its parameters. Reply with one JSON object: "
        '{"name": the function, "arguments": {parameter: value}} and nothing else.'
    )

    def __init__(self, questions: Sequence[FunctionQuestion] = ()) -> None:
        self._by_level: dict[int, list[FunctionQuestion]] = {}
        faults = []
        for number, question in enumerate(questions, 1):
            task = self._task(question, "check")
            verdict = self.verify(self.spellings(task)[0], task.public)
            if verdict.flagged:
                faults.append(
                    Fault(
                        question.tool, "an answer that its schema allows", verdict.message or "",
                        "correct the question or leave it out", line=number,
                    )
                )  # fmt: skip
            self._by_level.setdefault(task.public.difficulty, []).append(question)
        if faults:
            raise InputRefused("the questions contradict their schemas", faults)
        self.levels: Sequence[int] = tuple(sorted(self._by_level))

    def _task(self, question: FunctionQuestion, task_id: str) -> Task:
        """Word a question as a task."""
        signature = json.dumps({"name": question.tool, "parameters": question.schema}, ensure_ascii=False)
        prompt = f"Function: {signature}\nRequest: {question.question}"
        level = max(1, len(question.required))
        public = PublicTask(task_id, self.name, level, prompt, question.tool, question.schema, {})
        answer = {
            "arguments": question.required,
            "accepted": {name: list(values) for name, values in question.accepted.items()},
        }
        return Task(public, answer)

    def generate(self, rng: random.Random, difficulty: int, task_id: str) -> Task:
        """Draw one question of a level.

        Parameters
        ----------
        rng
            Source of randomness.
        difficulty
            Number of parameters that must be given.
        task_id
            Identifier of the task.

        Returns
        -------
        Task
            The question with its function in the prompt.

        Raises
        ------
        UsageRefused
            When the pool has no question of the level.
        """
        pool = self._by_level.get(difficulty)
        if not pool:
            fault = Fault("questions", f"one of level {difficulty}", "none", "choose another level")
            raise UsageRefused("no task can be drawn", [fault])
        return self._task(pool[rng.randrange(len(pool))], task_id)

    def form_of(self, public: PublicTask) -> str:
        """The call with ``...`` for each required parameter."""
        arguments = dict.fromkeys(public.schema.get("required", ()), "...")
        return json.dumps({"name": public.tool, "arguments": arguments}, ensure_ascii=False)

    def structure(self, arguments: Mapping[str, Any], public: PublicTask) -> Refusal | None:
        """The schema says all there is to say of the form."""
        return None

    def meaning(self, arguments: Mapping[str, Any], public: PublicTask) -> Refusal | None:
        """Check ranges and enumerations."""
        return range_refusal(arguments, public.schema, "arguments")

    def save(self, text: str, public: PublicTask) -> Mapping[str, Any] | None:
        """Read the first JSON object in the text as the call, or as its arguments."""
        start = text.find("{")
        if start < 0 or text.count("{") > 12:
            return None
        try:
            found, _ = json.JSONDecoder().raw_decode(text[start:])
        except (ValueError, RecursionError):
            return None
        inner = found.get("arguments", found.get("parameters", found.get(public.tool, found)))
        if isinstance(inner, str):
            try:
                inner = json.loads(inner)
            except (ValueError, RecursionError):
                return None
        known = public.schema.get("properties", {})
        return {name: inner[name] for name in known if name in inner} if isinstance(inner, dict) else None

    def normal(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Spell the arguments in the order of their names."""
        return dict(sorted(arguments.items()))

    def solved(self, arguments: Mapping[str, Any], task: Task) -> bool:
        """Compare each argument with the values that count as right; letters' case does not matter."""
        accepted = task.answer["accepted"]
        if not arguments.keys() <= accepted.keys():
            return False
        return all(
            any(_same(arguments[name], value) for value in values) if name in arguments else "" in values
            for name, values in accepted.items()
        )

    def variants(self, task: Task) -> list[Mapping[str, Any]]:
        """List the canonical arguments, then each accepted value of each parameter in turn."""
        first = task.answer["arguments"]
        other = [
            {**first, name: value}
            for name, values in task.answer["accepted"].items()
            for value in values
            if value != "" and (name not in first or value != first[name])
        ]
        return [first, *other]


def _same(given: Any, right: Any) -> bool:
    """Compare two values: text without regard to case, a boolean only with a boolean."""
    if isinstance(given, str) and isinstance(right, str):
        return given.strip().casefold() == right.strip().casefold()
    return isinstance(given, bool) == isinstance(right, bool) and bool(given == right)
