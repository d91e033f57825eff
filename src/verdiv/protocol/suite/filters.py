"""Family F3: list filtering asked in words, answered by the exact list."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from verdiv.protocol.calls.verdict import Refusal
from verdiv.protocol.suite.json_call import JsonCallFamily
from verdiv.protocol.suite.task import PublicTask, Task

__all__ = ["Filters"]

TOOL = "select"

WORDS = (
    "apple", "amber", "anchor", "basket", "bell", "bottle", "candle", "cedar", "coin", "desk", "drum",
    "eagle", "engine", "feather", "fig", "flute", "garden", "glass", "hammer", "harbor", "island", "ivory",
    "jacket", "jar", "kettle", "kite", "ladder", "lemon", "map", "marble", "needle", "nest", "olive",
    "orange", "paper", "pear", "quill", "ribbon", "river", "saddle", "silver", "table", "tiger", "umbrella",
    "velvet", "violin", "wagon", "window", "yarn", "zebra",
)  # fmt: skip

_SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    kind: {
        "type": "object",
        "properties": {"items": {"type": "array", "items": {"type": kind}}},
        "required": ["items"],
    }
    for kind in ("integer", "string")
}
_BRACKETED = re.compile(r"\[([^\[\]]*)")
_INTEGER = re.compile(r"-?[0-9]{1,9}")
_WORD = re.compile(r"[a-z]{2,20}")


def _together(part: Sequence[object], whole: Sequence[object]) -> bool:
    """Say whether the part stands in the whole in one run."""
    width = len(part)
    return any(list(whole[at : at + width]) == list(part) for at in range(len(whole) - width + 1))


class Filters(JsonCallFamily):
    """Filtering a list by a condition in words; the call must hold exactly the items that meet it, in order.

    The static verifier checks the types (structural), then that the items come from the list, in its
    order, none twice, not all and not none (semantic). A missing or an extra item passes it silently.
    """

    name = "filter"
    levels: Sequence[int] = (1, 2, 3, 4, 5)
    instructions = (
        "You write tool calls. Tool select(items): items is the JSON list of the items to keep, in order. "
        'Reply with one JSON object: {"name": "select", "arguments": {"items": [...]}}'
    )
    form = '{"name": "select", "arguments": {"items": "..."}}'

    def generate(self, rng: random.Random, difficulty: int, task_id: str) -> Task:
        """Draw one task.

        Parameters
        ----------
        rng
            Source of randomness.
        difficulty
            1: one named number of three or four left out; 2: four numbers against a threshold; 3: five words by first
            letter or length; 4: five numbers, even or odd; 5: seven numbers between two bounds.
        task_id
            Identifier of the task.

        Returns
        -------
        Task
            At least two items are kept and one dropped, and those kept do not stand together in the list.
        """
        while True:
            items, condition, keeps = self._draw(rng, difficulty)
            kept = [item for item in items if keeps(item)]
            if 2 <= len(kept) < len(items) and not _together(kept, items):
                break
        kind = "string" if isinstance(items[0], str) else "integer"
        words = f"Keep {condition}: {', '.join(str(item) for item in items)}."
        public = PublicTask(task_id, self.name, difficulty, words, TOOL, _SCHEMAS[kind], {"items": items})
        return Task(public, {"items": kept})

    @staticmethod
    def _draw(rng: random.Random, difficulty: int) -> tuple[list[Any], str, Callable[[Any], bool]]:
        """Draw a list, a condition in words and the condition itself."""
        pick = rng.randrange(2)
        if difficulty == 3:
            words = rng.sample(WORDS, 5)
            letter, length = words[rng.randrange(5)][0], rng.randrange(4, 7)
            if pick:
                return words, f'the words that start with "{letter}"', lambda word: bool(word[0] == letter)
            return words, f"the words longer than {length} letters", lambda word: len(word) > length
        numbers = rng.sample(range(1, 100), {1: 3 + pick, 2: 4, 4: 5, 5: 7}[difficulty])
        bound = rng.randrange(10, 80)
        if difficulty == 1:
            out = numbers[1 + rng.randrange(1 + pick)]
            return numbers, f"all but {out}", lambda number: bool(number != out)
        if difficulty == 2:
            if pick:
                return numbers, f"the numbers greater than {bound}", lambda number: bool(number > bound)
            return numbers, f"the numbers less than {bound}", lambda number: bool(number < bound)
        if difficulty == 4:
            parity = "even" if pick else "odd"
            return numbers, f"the {parity} numbers", lambda number: bool(number % 2 != pick)
        high = bound + rng.randrange(10, 40)
        return (
            numbers,
            f"the numbers greater than {bound} and less than {high}",
            lambda number: bool(bound < number < high),
        )

    def structure(self, arguments: Mapping[str, Any], public: PublicTask) -> Refusal | None:
        """The schema says all there is to say of the form."""
        return None

    def meaning(self, arguments: Mapping[str, Any], public: PublicTask) -> Refusal | None:
        """Check membership, repetition, order and that some but not all items are kept."""
        items, listed = arguments["items"], public.facts["items"]
        if any(item not in listed for item in items):
            return Refusal("not-in-list", "The items hold one that is not in the list of the request.")
        places = [listed.index(item) for item in items]
        if len(set(places)) != len(places):
            return Refusal("repeated", "The items hold one twice.")
        if places != sorted(places):
            return Refusal("order", "The items are not in the order of the request.")
        if not 0 < len(items) < len(listed):
            return Refusal("all-or-none", "Some items must be kept and some dropped.")
        return None

    def save(self, text: str, public: PublicTask) -> Mapping[str, Any] | None:
        """Read the last bracketed list, or the whole reply, as items of the kind that the tool takes."""
        runs = _BRACKETED.findall(text)
        body = runs[-1] if runs else text.rsplit(":", 1)[-1]
        if public.schema["properties"]["items"]["items"]["type"] == "integer":
            return {"items": [int(number) for number in _INTEGER.findall(body)]}
        return {"items": _WORD.findall(body.lower())}

    def normal(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """A list of plain items has one spelling."""
        return arguments

    def solved(self, arguments: Mapping[str, Any], task: Task) -> bool:
        """Compare the lists."""
        return bool(arguments["items"] == task.answer["items"])

    def variants(self, task: Task) -> list[Mapping[str, Any]]:
        """A list of plain items has one spelling."""
        return [task.answer]
