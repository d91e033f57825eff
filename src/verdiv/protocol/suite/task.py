"""What a task is, and the interface that a family of tasks implements."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from verdiv.protocol.calls.verdict import StaticVerdict

__all__ = ["Family", "PublicTask", "Task"]


@dataclass(frozen=True, slots=True)
class PublicTask:
    """The part of a task that a deployed system knows: the static verifier sees this and no more."""

    task_id: str
    """Unique within its suite."""
    family: str
    """Name of the family that made it and can verify it."""
    difficulty: int
    """Level within the family, 1 the easiest."""
    prompt: str
    """The request, in words; it never holds its answer."""
    tool: str
    """Name of the tool that must be called."""
    schema: Mapping[str, Any]
    """JSON Schema of the tool's arguments."""
    facts: Mapping[str, Any]
    """What can be read off the request without solving it: operands, window of dates, list to filter."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task with its ground truth."""

    public: PublicTask
    """The part that may be shown."""
    answer: Mapping[str, Any]
    """Arguments of the one correct call, in canonical spelling."""

    @property
    def task_id(self) -> str:
        """Identifier of the task."""
        return self.public.task_id

    @property
    def family(self) -> str:
        """Name of the task's family."""
        return self.public.family


@runtime_checkable
class Family(Protocol):
    """A family of tasks: it generates, words, verifies and knows the truth.

    Every method is a pure function of its arguments: the same random state gives the same task, the same
    output the same verdict. ``verify``, ``is_correct`` and ``canonical`` are total: any text or bytes get
    an answer, and nothing of an output is ever executed.
    """

    name: str
    """Unique name, as it stands in the run log."""
    instructions: str
    """System prompt: the tool, its arguments, the form of the reply."""
    levels: Sequence[int]
    """Levels of difficulty that the family can generate."""

    def generate(self, rng: random.Random, difficulty: int, task_id: str) -> Task:
        """Draw one task of a level."""
        ...

    def verify(self, output: str | bytes, public: PublicTask) -> StaticVerdict:
        """Judge an output from the public part of its task alone, at no token."""
        ...

    def is_correct(self, output: str | bytes, task: Task) -> bool:
        """Compare an output with the ground truth."""
        ...

    def canonical(self, output: str | bytes, public: PublicTask) -> str:
        """Spell an output so that equal calls are equal text; an unreadable one is its own text."""
        ...

    def spellings(self, task: Task) -> Sequence[str]:
        """List the correct outputs in every spelling the family accepts."""
        ...
