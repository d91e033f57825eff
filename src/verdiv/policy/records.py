"""What goes in and out of the deployment rule: what a model is asked, what a verifier says, what came of a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from verdiv.errors import Fault, UsageRefused
from verdiv.runlog.records import Decoding, ErrorClass

__all__ = [
    "Ask",
    "Drawn",
    "InfrastructureRetries",
    "Limits",
    "Message",
    "Model",
    "ModelFailed",
    "Outcome",
    "Refused",
    "Reply",
    "Result",
    "Tier",
    "Truth",
    "Verdict",
    "Verifier",
]

Message = Mapping[str, Any]
"""One chat message: ``role`` and ``content``."""

MAX_BUDGET = 63
"""Most draws of one tier for one task; longer chains are not read back."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a verifier says of one output."""

    flagged: bool
    """Whether the output is refused."""
    message: str | None = None
    """What is wrong and how to mend it: the text of the retry prompt. None where it passed."""
    error_class: ErrorClass | None = None
    """Structural where the message prescribes the fix, semantic where it cannot; None is unknown."""
    code: str | None = None
    """Stable short name of the check that refused."""


@dataclass(frozen=True, slots=True)
class Refused:
    """An output that the verifier refused, and what it said."""

    output: str
    """The refused output."""
    verdict: Verdict
    """Why it was refused."""

    @property
    def message(self) -> str:
        """What the model is told; a plain sentence where the verifier said nothing."""
        return self.verdict.message or "This reply was refused by a check. Correct it."


@dataclass(frozen=True, slots=True)
class Ask:
    """One request to one model."""

    task_id: str
    """The task."""
    prompt: Any
    """What the caller gave: a text, a list of chat messages, or anything that model and verifier understand."""
    tier: str
    """``small`` or ``teacher``."""
    attempt: int
    """1-based draw of the task; the teacher's follow the small tier's."""
    refused: tuple[Refused, ...] = ()
    """This tier's refused outputs so far, oldest first; empty on a tier's first draw."""
    seconds_left: float | None = None
    """Seconds until the task's deadline when the request was made; None without one."""
    family: str = "all"
    """Family of the task."""

    def messages(self) -> list[Message]:
        """Lay the request out as a chat: the prompt, then each refused output and the verifier's message.

        Returns
        -------
        list of Message
            New list; the caller's messages stand in it unchanged.

        Raises
        ------
        UsageRefused
            The prompt is neither a text nor a list of messages.

        Examples
        --------
        >>> no = Refused("{}", Verdict(True, "Add the field city."))
        >>> [m["role"] for m in Ask("t", "Weather in Bonn?", "small", 2, (no,)).messages()]
        ['user', 'assistant', 'user']
        """
        if isinstance(self.prompt, str):
            chat: list[Message] = [{"role": "user", "content": self.prompt}]
        elif isinstance(self.prompt, Sequence) and all(isinstance(one, Mapping) for one in self.prompt):
            chat = list(self.prompt)
        else:
            fault = Fault("prompt", "a text or a list of messages", type(self.prompt).__name__, "give one")
            raise UsageRefused("this prompt is no chat", [fault])
        for one in self.refused:
            chat += [
                {"role": "assistant", "content": one.output},
                {"role": "user", "content": one.message},
            ]
        return chat


@dataclass(frozen=True, slots=True)
class Reply:
    """A served draw. A model that returns plain text need not make one."""

    text: str
    """What the model said."""
    tokens_in: int | None = None
    """Tokens of the prompt."""
    tokens_out: int | None = None
    """Tokens of the reply."""
    billed: float | None = None
    """Price of this draw in units of one small draw; the tier's price if None."""
    device_seconds: float | None = None
    """Seconds on the device, where the server tells."""


class ModelFailed(Exception):
    """Raised by a model whose request was not served: the infrastructure's failure, not the model's answer.

    Parameters
    ----------
    kind
        Short name, e.g. ``timeout``, ``429``, ``5xx``, ``connection``.
    message
        What happened, without any address or key.
    wait
        Seconds that the server asked to wait; None leaves them to the policy.
    billed
        What the failed request cost all the same, in units of one small draw.
    again
        Whether another try may help.
    """

    def __init__(
        self,
        kind: str,
        message: str = "",
        *,
        wait: float | None = None,
        billed: float = 0.0,
        again: bool = True,
    ) -> None:
        self.kind, self.message, self.wait, self.billed, self.again = kind, message, wait, billed, again
        super().__init__(f"{kind}: {message}" if message else kind)


Model = Callable[[Ask], Any]
"""Takes an :class:`Ask`; returns a text or a :class:`Reply`, or (for ``arun``) an awaitable of one."""

Verifier = Callable[[str, Ask], Any]
"""Takes an output and its :class:`Ask`; returns a :class:`Verdict`, or None (passed), or a text (refused, with
this message, class unknown); for ``arun`` also an awaitable of one."""

Truth = Callable[[str, Ask], Any]
"""Takes an output and its :class:`Ask`; returns True, False, or None where the truth is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """One model tier and what a draw of it costs."""

    model: Model
    """Draws."""
    budget: int = 1
    """Most draws of a task."""
    price: float = 1.0
    """Price of a draw, in units of one small draw."""
    name: str | None = None
    """Model name, for the log."""
    precision: str | None = None
    """Numeric format of the weights, for the log."""
    decoding: Decoding | None = None
    """Sampling settings, for the log; temperature 0 is greedy."""

    def __post_init__(self) -> None:
        """Refuse budgets that are no counts, and prices that are none."""
        faults = []
        if isinstance(self.budget, bool) or not 1 <= self.budget <= MAX_BUDGET or self.budget % 1:
            expected = f"a whole number of draws from 1 to {MAX_BUDGET}"
            faults.append(Fault("tier", expected, repr(self.budget), "give a budget", field="budget"))
        if not 0 <= self.price < float("inf"):
            faults.append(
                Fault("tier", "a finite price from 0", repr(self.price), "give a price", field="price")
            )
        if faults:
            raise UsageRefused("this tier cannot be used", faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one task may spend."""

    units: float | None = None
    """Most units of one small draw; a draw whose price would pass them is not made. None: no bound."""
    seconds: float | None = None
    """Deadline of the task in seconds from its start. None: no deadline."""

    def __post_init__(self) -> None:
        """Refuse bounds that are no positive numbers."""
        for name in ("units", "seconds"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                fault = Fault("limits", "a finite number above 0", repr(value), "give one", field=name)
                raise UsageRefused("these limits cannot be kept", [fault])


@dataclass(frozen=True, slots=True, kw_only=True)
class InfrastructureRetries:
    """How requests that were not served are tried again. They never count as draws of the protocol."""

    most: int = 2
    """Most tries again of one draw."""
    on: tuple[type[Exception], ...] = (TimeoutError, ConnectionError)
    """Errors that say a request was not served, beside :class:`ModelFailed`; a client library's own go here.
    Any other error is a fault of the model's code: it is logged and raised."""
    timeout: float | None = None
    """Seconds that one request may take under ``arun``; a blocking model keeps its own."""
    first_wait: float = 0.5
    """Seconds before the first try again, doubled each time."""
    longest_wait: float = 30.0
    """Longest wait in seconds, also of those a server asks for."""


class Outcome(StrEnum):
    """How a task ended."""

    PASSED = "passed"
    """The verifier let the answer pass."""
    FLAGGED = "flagged"
    """All draws were refused: the answer is the last one and known to be wrong."""
    BUDGET = "budget"
    """The next draw would have passed the task's budget in units; the answer is the last, refused draw."""
    DEADLINE = "deadline"
    """The deadline came first; the answer is the last, refused draw, if there is one."""
    UNSERVED = "unserved"
    """The infrastructure served no further draw; the answer is the last, refused draw, if there is one."""
    UNVERIFIED = "unverified"
    """The verifier failed on the answer, so nobody knows whether it passes."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """One served draw of a task."""

    draw_id: str
    """Name of the draw, in the log too."""
    tier: str
    """``small`` or ``teacher``."""
    attempt: int
    """1-based draw of the task."""
    output: str
    """What the model said."""
    verdict: Verdict | None
    """What the verifier said; None where it failed."""
    correct: bool | None
    """The truth, where it is known."""
    billed: float
    """Units of one small draw."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one task."""

    task_id: str
    """The task."""
    replicate: int
    """How many chains of this task stand in the log before this one."""
    outcome: Outcome
    """How it ended."""
    draws: tuple[Drawn, ...]
    """Served draws, in order; the last one is the answer."""
    failures: int
    """Requests that were not served."""
    billed: float
    """Units of one small draw that the task cost, failed requests included where they cost something."""
    seconds: float
    """Wall-clock seconds from start to end."""
    reason: str | None = None
    """What went wrong, where something did."""

    @property
    def answer(self) -> str | None:
        """Output to use; None where no draw was served. Look at ``accepted`` first."""
        return self.draws[-1].output if self.draws else None

    @property
    def accepted(self) -> bool:
        """Whether the verifier let the answer pass."""
        return self.outcome is Outcome.PASSED

    @property
    def escalated(self) -> bool:
        """Whether the teacher drew."""
        return any(draw.tier == "teacher" for draw in self.draws)

    @property
    def correct(self) -> bool | None:
        """Truth of the answer, where it is known."""
        return self.draws[-1].correct if self.draws else None
