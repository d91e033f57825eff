"""A suite: tasks with ground truth and the tiers' prompts, in one file that one digest covers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from verdiv.errors import Fault, InputRefused
from verdiv.protocol.prompts import TierPrompt
from verdiv.protocol.suite.task import PublicTask, Task

__all__ = ["SUITE_SCHEMA", "Suite", "read_suite"]

SUITE_SCHEMA = 1
"""Integer version of the suite file; a newer one is refused."""

MAX_BYTES = 512 * 2**20
"""Largest suite file that is read."""

_TASK_FIELDS: Mapping[str, type] = {
    "task_id": str,
    "family": str,
    "difficulty": int,
    "prompt": str,
    "tool": str,
    "schema": dict,
    "facts": dict,
    "answer": dict,
}


@dataclass(frozen=True)
class Suite:
    """An ordered set of tasks, no two alike, and how each tier is asked."""

    tasks: tuple[Task, ...]
    """The tasks, families one after the other."""
    prompts: Mapping[str, TierPrompt] = field(default_factory=dict)
    """Tier to its prompt."""

    def __len__(self) -> int:
        """Count the tasks."""
        return len(self.tasks)

    def as_json(self) -> dict[str, Any]:
        """Lay the suite out as plain JSON values, ground truth included.

        Returns
        -------
        dict
            ``schema``, ``tasks`` and ``prompts``.
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
            "prompts": {tier: prompt.as_json() for tier, prompt in self.prompts.items()},
        }

    @cached_property
    def canonical(self) -> bytes:
        """The suite's canonical JSON (RFC 8785), which is also its file."""
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
            When the document has another version or form, or holds a task twice; all faults at once.
        """
        if not isinstance(document, dict) or document.get("schema") != SUITE_SCHEMA:
            got = repr(document.get("schema")) if isinstance(document, dict) else type(document).__name__
            raise _refuse([_fault(where, f"a suite of schema {SUITE_SCHEMA}", got, "schema")])
        entries, prompts = document.get("tasks"), document.get("prompts", {})
        if not isinstance(entries, list) or not isinstance(prompts, dict):
            raise _refuse(
                [_fault(where, "a list of tasks and a table of prompts", "something else", "tasks")]
            )
        tasks, faults = [], []
        for at, entry in enumerate(entries):
            bad = _bad_field(entry)
            if bad is None:
                public = PublicTask(**{name: entry[name] for name in _TASK_FIELDS if name != "answer"})
                tasks.append(Task(public, entry["answer"]))
            else:
                faults.append(
                    _fault(where, "a value of the right type", "none or another", f"tasks[{at}].{bad}")
                )
        if len({task.task_id for task in tasks}) != len(tasks):
            faults.append(_fault(where, "distinct task_ids", "one given twice", "tasks"))
        read = {}
        for tier, prompt in prompts.items():
            try:
                read[tier] = _prompt(prompt)
            except (TypeError, ValueError, KeyError, AttributeError):
                faults.append(
                    _fault(where, "instructions, examples, reply", "something else", f"prompts.{tier}")
                )
        if faults:
            raise _refuse(faults)
        return cls(tuple(tasks), read)


def _prompt(entry: Any) -> TierPrompt:
    """Read one tier's prompt; raises where its form is another."""
    examples = {
        str(family): tuple((str(request), str(call)) for request, call in pairs)
        for family, pairs in entry["examples"].items()
    }
    if entry["reply"] not in ("text", "json"):
        raise ValueError("reply")
    instructions = {str(family): str(text) for family, text in entry["instructions"].items()}
    return TierPrompt(instructions, examples, entry["reply"])


def _bad_field(entry: Any) -> str | None:
    """Name the first field of a task that is absent or of another type."""
    if not isinstance(entry, dict):
        return "task_id"
    for name, kind in _TASK_FIELDS.items():
        if not isinstance(entry.get(name), kind):
            return name
    return None


def _fault(where: str, expected: str, got: str, field: str) -> Fault:
    return Fault(where, expected, got, "generate the suite again with `verdiv suite`", field=field)


def _refuse(faults: list[Fault]) -> InputRefused:
    return InputRefused("the suite cannot be read", faults)


def read_suite(path: Path) -> Suite:
    """Read a suite file.

    Parameters
    ----------
    path
        JSON file.

    Returns
    -------
    Suite
        The suite; its digest is that of its canonical form, however the file is spaced.

    Raises
    ------
    InputRefused
        When the file cannot be read, is no JSON or no suite.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise _refuse([_fault(str(path), f"at most {MAX_BYTES} bytes", "more", "tasks")])
        return Suite.from_json(json.loads(data), str(path))
    except (OSError, ValueError, RecursionError) as error:
        raise _refuse([_fault(str(path), "a readable JSON file", str(error), "schema")]) from error
