"""What a model is shown: instructions, worked examples, the request, and on feedback the refused replies.

A blind redraw is shown exactly the messages of the initial draw. A feedback redraw is shown those, then each
refused reply followed by the verifier's message, in the order in which they came.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from verdiv.protocol.suite.task import Family, PublicTask, Task

__all__ = [
    "Message",
    "Refused",
    "TierPrompt",
    "feedback_messages",
    "initial_messages",
    "prompt_digest",
    "tier_prompt",
]

Message = dict[str, str]
"""One chat message: ``role`` and ``content``."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A reply that the verifier refused, and what it said."""

    output: str
    """The refused reply."""
    message: str
    """The verifier's message."""


@dataclass(frozen=True)
class TierPrompt:
    """How one tier is asked; part of the suite file, so that its digest covers every prompt."""

    instructions: Mapping[str, str]
    """System prompt by family."""
    examples: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """Worked examples by family: request and call."""
    reply: Literal["text", "json"] = "text"
    """``json`` asks the server to constrain decoding to a JSON object."""

    def as_json(self) -> dict[str, Any]:
        """Lay the prompt out as plain JSON values."""
        return {
            "instructions": dict(self.instructions),
            "examples": {name: [list(pair) for pair in pairs] for name, pairs in self.examples.items()},
            "reply": self.reply,
        }


def tier_prompt(
    families: Mapping[str, Family],
    examples: Mapping[str, Sequence[Task]] | None = None,
    *,
    reply: Literal["text", "json"] = "text",
) -> TierPrompt:
    """Build a tier's prompt from families and worked examples.

    Parameters
    ----------
    families
        Families by name; each gives its instructions.
    examples
        Worked examples by family, none where absent (zero-shot).
    reply
        ``json`` where the server constrains decoding to a JSON object.

    Returns
    -------
    TierPrompt
        Each example's reply is the first spelling of its answer.
    """
    return TierPrompt(
        instructions={name: family.instructions for name, family in families.items()},
        examples={
            name: tuple((task.public.prompt, families[name].spellings(task)[0]) for task in tasks)
            for name, tasks in (examples or {}).items()
        },
        reply=reply,
    )


def initial_messages(public: PublicTask, prompt: TierPrompt) -> list[Message]:
    """Build the messages of an initial or blind draw.

    Parameters
    ----------
    public
        Public part of the task.
    prompt
        The tier's prompt.

    Returns
    -------
    list of Message
        Instructions, examples in turns, request.

    Raises
    ------
    KeyError
        When the prompt has no instructions for the task's family.
    """
    messages = [{"role": "system", "content": prompt.instructions[public.family]}]
    for request, call in prompt.examples.get(public.family, ()):
        messages += [{"role": "user", "content": request}, {"role": "assistant", "content": call}]
    return [*messages, {"role": "user", "content": public.prompt}]


def feedback_messages(public: PublicTask, prompt: TierPrompt, refused: Sequence[Refused]) -> list[Message]:
    """Build the messages of a feedback draw.

    Parameters
    ----------
    public
        Public part of the task.
    prompt
        The tier's prompt.
    refused
        All refused replies of the chain so far, oldest first.

    Returns
    -------
    list of Message
        The initial messages, then reply and verifier's message in turns.
    """
    messages = initial_messages(public, prompt)
    for one in refused:
        messages += [
            {"role": "assistant", "content": one.output},
            {"role": "user", "content": one.message},
        ]
    return messages


def prompt_digest(messages: Sequence[Message]) -> str:
    """Digest a prompt.

    Parameters
    ----------
    messages
        The messages as sent.

    Returns
    -------
    str
        SHA-256 of their canonical JSON (RFC 8785), in hexadecimal.

    Examples
    --------
    >>> prompt_digest([])
    '4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945'
    """
    import rfc8785

    return hashlib.sha256(rfc8785.dumps([dict(message) for message in messages])).hexdigest()
