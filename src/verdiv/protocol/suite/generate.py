"""The seeded generator: a suite of distinct tasks with a digest that any JSON canonicaliser reproduces."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from verdiv.errors import Fault, InputRefused, UsageRefused
from verdiv.protocol.suite.arithmetic import Arithmetic
from verdiv.protocol.suite.dates import Dates
from verdiv.protocol.suite.filters import Filters
from verdiv.protocol.suite.task import Family, PublicTask, Task

__all__ = ["DEFAULT_COUNTS", "FAMILIES", "SUITE_SCHEMA", "Suite", "generate_suite", "shots"]

SUITE_SCHEMA = 1
"""Integer version of the suite file; a newer one is refused."""

MAX_TASKS = 1_000_000
"""Tasks of one suite."""

TRIES = 2_000
"""Draws for one task before its level is called exhausted."""

FAMILIES: Mapping[str, Family] = {family.name: family for family in (Arithmetic(), Dates(), Filters())}
"""The families that ship, by name."""

DEFAULT_COUNTS: Mapping[str, int] = {"arithmetic": 14, "dates": 13, "filters": 13}
"""Tasks a family in the protocol's suite of 40."""


@dataclass(frozen=True)
class Suite:
    """An ordered set of tasks, no two alike."""

    tasks: tuple[Task, ...]
    """The tasks, families one after the other."""

    def __len__(self) -> int:
        """Count the tasks."""
        return len(self.tasks)

    def as_json(self) -> dict[str, Any]:
        """Lay the suite out as plain JSON values, ground truth included.

        Returns
        -------
        dict
            ``schema`` and ``tasks``.
        """
        return {
            "schema": SUITE_SCHEMA,
            "tasks": [
                {
                    "task_id": task.task_id,
                    "family": task.family,
                    "difficulty": task.public.difficulty,
                    "prompt": task.public.prompt,
                    "tool": task.public.tool,
                    "schema": task.public.schema,
                    "facts": task.public.facts,
                    "answer": task.answer,
                }
                for task in self.tasks
            ],
        }

    @cached_property
    def canonical(self) -> bytes:
        """The suite's canonical JSON (RFC 8785)."""
        import rfc8785

        return rfc8785.dumps(self.as_json())

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON, in hexadecimal."""
        return hashlib.sha256(self.canonical).hexdigest()

    @cached_property
    def by_id(self) -> Mapping[str, Task]:
        """Look tasks up by their identifier."""
        return {task.task_id: task for task in self.tasks}

    @classmethod
    def from_json(cls, document: Any, where: str = "suite") -> Suite:
        """Read a suite from plain JSON values.

        Parameters
        ----------
        document
            Decoded JSON, as :meth:`as_json` lays it out.
        where
            Name for messages.

        Returns
        -------
        Suite
            The suite.

        Raises
        ------
        InputRefused
            When the document has another version or form, or holds a task twice.
        """
        if not isinstance(document, dict) or document.get("schema") != SUITE_SCHEMA:
            got = repr(document.get("schema")) if isinstance(document, dict) else type(document).__name__
            fault = Fault(where, f"a suite of schema {SUITE_SCHEMA}", got, "generate it with this version", field="schema")
            raise InputRefused("the suite cannot be read", [fault])
        tasks, faults = [], []
        kinds = {
            "task_id": str, "family": str, "difficulty": int, "prompt": str,
            "tool": str, "schema": dict, "facts": dict, "answer": dict,
        }  # fmt: skip
        entries = document.get("tasks")
        if not isinstance(entries, list):
            fault = Fault(where, "a list", type(entries).__name__, "generate the suite again", field="tasks")
            raise InputRefused("the suite cannot be read", [fault])
        for at, entry in enumerate(entries):
            bad = [name for name, kind in kinds.items() if not isinstance(dict(entry).get(name), kind)] if isinstance(entry, dict) else list(kinds)
            if bad:
                faults.append(Fault(where, "a task's fields", "missing or of another type", "generate the suite again", field=f"tasks[{at}].{bad[0]}"))
                continue
            public = PublicTask(**{name: entry[name] for name in kinds if name != "answer"})
            tasks.append(Task(public, entry["answer"]))
        if len({task.task_id for task in tasks}) != len(tasks):
            faults.append(Fault(where, "distinct task_ids", "one given twice", "generate the suite again", field="tasks"))
        if faults:
            raise InputRefused("the suite cannot be read", faults)
        return cls(tuple(tasks))


def generate_suite(
    seed: int,
    counts: Mapping[str, int] = DEFAULT_COUNTS,
    *,
    families: Mapping[str, Family] = FAMILIES,
    levels: Mapping[str, Sequence[int]] | None = None,
    exclude: Iterable[str] = (),
) -> Suite:
    """Generate a suite: the same arguments give the same tasks.

    Each family draws from its own generator, seeded by seed and name, and cycles through its levels, so
    that difficulty is graded evenly and a family's tasks do not depend on the others.

    Parameters
    ----------
    seed
        Fixed seed.
    counts
        Tasks a family.
    families
        Families by name.
    levels
        Levels of difficulty by family, the family's own where absent.
    exclude
        Prompts that must not appear, such as those of worked examples.

    Returns
    -------
    Suite
        The suite; no two prompts alike.

    Raises
    ------
    UsageRefused
        When a family or level is unknown, the size is out of range, or a level has no more distinct tasks.

    Examples
    --------
    >>> suite = generate_suite(1)
    >>> len(suite), suite.tasks[0].task_id
    (40, 'arithmetic-0001')
    """
    total = sum(counts.values())
    if not 0 < total <= MAX_TASKS or min(counts.values()) < 0:
        fault = Fault("counts", f"1 to {MAX_TASKS} tasks", str(total), "choose another size")
        raise UsageRefused("the suite cannot be generated", [fault])
    seen = set(exclude)
    tasks: list[Task] = []
    for name, count in counts.items():
        if name not in families:
            fault = Fault("counts", f"one of {', '.join(families)}", name, "name a family that is there")
            raise UsageRefused("the suite cannot be generated", [fault])
        family = families[name]
        chosen = tuple((levels or {}).get(name, family.levels))
        if not chosen or not set(chosen) <= set(family.levels):
            fault = Fault(f"levels of {name}", f"some of {list(family.levels)}", str(list(chosen)), "choose others")
            raise UsageRefused("the suite cannot be generated", [fault])
        rng = random.Random(f"{seed}:{name}")  # noqa: S311
        width = max(4, len(str(count)))
        for at in range(count):
            tasks.append(_fresh(family, rng, chosen[at % len(chosen)], f"{name}-{at + 1:0{width}d}", seen))
    return Suite(tuple(tasks))


def _fresh(family: Family, rng: random.Random, level: int, task_id: str, seen: set[str]) -> Task:
    """Draw until the prompt is a new one."""
    for _ in range(TRIES):
        task = family.generate(rng, level, task_id)
        if task.public.prompt not in seen:
            seen.add(task.public.prompt)
            return task
    fault = Fault(
        f"{family.name}, level {level}",
        "a task not yet in the suite",
        f"none in {TRIES} draws",
        "ask for fewer tasks or more levels",
    )
    raise UsageRefused("the suite cannot be generated", [fault])


def shots(family: Family, count: int) -> list[Task]:
    """Draw the worked examples of a family's few-shot prompt, levels in turn.

    Parameters
    ----------
    family
        The family.
    count
        Number of examples.

    Returns
    -------
    list of Task
        The same ones whenever asked.
    """
    rng = random.Random(f"worked examples:{family.name}")  # noqa: S311
    levels = family.levels
    return [family.generate(rng, levels[at % len(levels)], f"example-{at + 1}") for at in range(count)]
