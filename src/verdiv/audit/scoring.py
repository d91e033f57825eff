"""Scoring every output again: ground truth, verifier, digests, prompts and votes, on suites whose tasks are known."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from verdiv.protocol.prompts import Refused, feedback_messages, initial_messages, prompt_digest
from verdiv.protocol.suite.generate import FAMILIES
from verdiv.protocol.suite.suitefile import Suite

__all__ = ["Rescored", "Rescorer"]

Flags = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Rescored:
    """What scoring again gave, one entry a draw in the order of reading; −1 where there is nothing to score."""

    correct: Flags
    flagged: Flags
    error_class: Flags
    """0 none, 1 structural, 2 semantic."""
    output_digest: Flags
    """1 where the logged digest is that of the logged output."""
    message: Flags
    """1 where the logged message is the verifier's."""
    prompt: Flags
    """1 where the logged prompt digest is that of the prompt that the plan prescribes."""
    answer: npt.NDArray[np.uint64]
    """First 64 bits of the canonical answer's digest; 0 for none."""
    scored: int
    """Outputs scored again."""
    unknown_tasks: int
    """Draws of tasks that the suite does not hold."""


class Rescorer:
    """Scores frames of draws again.

    Parameters
    ----------
    suite
        The suite, with ground truth.
    """

    def __init__(self, suite: Suite) -> None:
        self.suite = suite
        self._parts: dict[str, list[Any]] = {}
        self._scored = 0
        self._unknown = 0
        self._refused: dict[str, tuple[str, str, str | None]] = {}
        self._initial: dict[tuple[str, str], str] = {}

    def add(self, frame: pd.DataFrame) -> None:
        """Score the next draws."""
        columns = (
            "draw_id", "task_id", "tier", "output", "message", "output_sha256", "prompt_sha256", "prompt_kind",
            "parent", "copy_of",
        )  # fmt: skip
        values = [frame[name].to_numpy(dtype=object) for name in columns]
        rows = [self._one(*row) for row in zip(*values, strict=True)]
        names = ("correct", "flagged", "error_class", "output_digest", "message", "prompt", "answer")
        for name, column in zip(names, zip(*rows, strict=True), strict=True):
            self._parts.setdefault(name, []).append(
                np.array(column, dtype=np.uint64 if name == "answer" else np.int8)
            )

    def _one(
        self,
        draw_id: str,
        task_id: str,
        tier: str,
        output: str | None,
        message: str | None,
        output_sha256: str | None,
        prompt_sha256: str | None,
        kind: str,
        parent: str | None,
        copy_of: str | None,
    ) -> tuple[int, int, int, int, int, int, int]:
        task = self.suite.by_id.get(task_id)
        if task is None:
            self._unknown += 1
            return (-1, -1, -1, -1, -1, -1, 0)
        prompt = self._prompt(task_id, tier, kind, parent)
        asked = -1 if prompt is None or prompt_sha256 is None else int(prompt == prompt_sha256)
        if output is None:
            return (-1, -1, -1, -1, -1, asked, 0)
        self._scored += 1
        family = FAMILIES[task.family]
        verdict = family.verify(output, task.public)
        if verdict.flagged:
            self._refused[draw_id] = (output, message or "", parent if kind == "feedback" else None)
        digest = -1
        if output_sha256 is not None:
            digest = int(hashlib.sha256(output.encode()).hexdigest() == output_sha256)
        canonical = hashlib.sha256(family.canonical(output, task.public).encode()).digest()
        return (
            int(family.is_correct(output, task)),
            int(verdict.flagged),
            0 if verdict.error_class is None else 1 if verdict.error_class.value == "structural" else 2,
            digest,
            int((message or None) == (verdict.message or None)),
            asked,
            int.from_bytes(canonical[:8], "big"),
        )

    def _prompt(self, task_id: str, tier: str, kind: str, parent: str | None) -> str | None:
        """Digest the prompt that a draw should have been shown; None where it cannot be told."""
        prompts = self.suite.prompts.get(tier)
        if prompts is None:
            return None
        public = self.suite.by_id[task_id].public
        if kind != "feedback":
            key = (task_id, tier)
            if key not in self._initial:
                self._initial[key] = prompt_digest(initial_messages(public, prompts))
            return self._initial[key]
        chain: list[Refused] = []
        while parent is not None:
            said = self._refused.get(parent)
            if said is None:
                return None
            chain.append(Refused(said[0], said[1]))
            parent = said[2]
        return prompt_digest(feedback_messages(public, prompts, chain[::-1])) if chain else None

    def finish(self) -> Rescored:
        """Return what all draws came to."""

        def whole(name: str) -> Any:
            parts: Sequence[Any] = self._parts.get(name, ())
            return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int8)

        return Rescored(
            correct=whole("correct"),
            flagged=whole("flagged"),
            error_class=whole("error_class"),
            output_digest=whole("output_digest"),
            message=whole("message"),
            prompt=whole("prompt"),
            answer=whole("answer").astype(np.uint64),
            scored=self._scored,
            unknown_tasks=self._unknown,
        )
