"""The verdict of the static verifier, and the wording of the fix that a structural message prescribes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from verdiv.runlog.records import ErrorClass

__all__ = [
    "EXACTLY",
    "IN_PLACE",
    "PASSED",
    "Refusal",
    "StaticVerdict",
    "render_call",
    "semantic",
    "structural",
]

EXACTLY = "Reply with exactly: "
"""Opens the fix where the output's own content could be saved: what follows is the whole reply."""

IN_PLACE = 'Reply with only this JSON, your value in place of "...": '
"""Opens the fix where nothing could be saved: what follows is the form of the reply."""


@dataclass(frozen=True, slots=True)
class StaticVerdict:
    """What the static verifier says of one output."""

    flagged: bool
    """Whether the output is refused."""
    error_class: ErrorClass | None = None
    """Structural (the message prescribes the fix) or semantic (it cannot); None when it passed."""
    code: str | None = None
    """Stable short name of the check that refused; None when it passed."""
    message: str | None = None
    """Sentence for the feedback prompt; None when it passed."""


PASSED = StaticVerdict(flagged=False)
"""The one verdict of an output that no check refuses."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A check that failed, before it is worded as a verdict."""

    code: str
    """Stable short name of the check."""
    what: str
    """What is wrong, as one sentence with its full stop."""


def render_call(tool: str, arguments: Mapping[str, Any]) -> str:
    """Render a tool call in its canonical spelling.

    Parameters
    ----------
    tool
        Name of the tool.
    arguments
        Arguments in the order of the tool's schema.

    Returns
    -------
    str
        One line of JSON, with a space after each colon and comma.

    Examples
    --------
    >>> render_call("calculate", {"expression": "3 + 4"})
    '{"name": "calculate", "arguments": {"expression": "3 + 4"}}'
    """
    return json.dumps({"name": tool, "arguments": dict(arguments)}, ensure_ascii=False)


def structural(refusal: Refusal, saved: str | None, form: str) -> StaticVerdict:
    """Word a structural refusal: what is wrong, and the reply that mends it.

    Parameters
    ----------
    refusal
        The check that failed.
    saved
        The output's own content in canonical spelling, where it could be saved and passes every check.
    form
        The call with ``...`` where the value belongs.

    Returns
    -------
    StaticVerdict
        Flagged, structural, with the fix in the message.
    """
    fix = EXACTLY + saved if saved is not None else IN_PLACE + form
    return StaticVerdict(True, ErrorClass.STRUCTURAL, refusal.code, f"{refusal.what} {fix}")


def semantic(refusal: Refusal) -> StaticVerdict:
    """Word a semantic refusal: what is wrong, without a fix, since none is known.

    Parameters
    ----------
    refusal
        The check that failed.

    Returns
    -------
    StaticVerdict
        Flagged, semantic.
    """
    return StaticVerdict(True, ErrorClass.SEMANTIC, refusal.code, refusal.what)
