"""The deployment rule for one task, free of waiting: it yields what is to be done and is told what came of it.

*The Verifier's Dividend*, Deployment Rule: sample on the small tier and check; if flagged, attach the message and
sample again, up to B*; if still flagged, escalate to the teacher, gated by the same verifier. Blocking and
asynchronous drivers step through the same generator, so that there is one rule and one bookkeeping. Whatever
is thrown into it, a draw that was served is logged and billed once, and a request that was not is logged as such.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Any

from verdiv.errors import UsageRefused
from verdiv.policy.log import PolicyLog, Slot, Span, failed_record, now, price_or, served_record
from verdiv.policy.records import (
    Ask,
    Drawn,
    InfrastructureRetries,
    Limits,
    Model,
    ModelFailed,
    Outcome,
    Refused,
    Reply,
    Result,
    Tier,
    Truth,
    Verdict,
    Verifier,
)
from verdiv.runlog.records import Draw, ErrorClass

__all__ = ["Call", "Chain", "Check", "Gauge", "Step", "Terms", "Wait"]


@dataclass(frozen=True, slots=True)
class Call:
    """To be done: ask a model. Answered by what it returned, or by what it raised, thrown in."""

    model: Model
    ask: Ask
    seconds: float | None
    """Longest time to wait for it, None for any."""


@dataclass(frozen=True, slots=True)
class Check:
    """To be done: show an output to the verifier or to the truth. Answered likewise."""

    function: Verifier | Truth
    output: str
    ask: Ask


@dataclass(frozen=True, slots=True)
class Wait:
    """To be done: nothing, for some seconds."""

    seconds: float


Step = Call | Check | Wait
Steps = Generator[Step, Any, Result]


class Gauge:
    """Counts requests under way; threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0

    def enter(self) -> int:
        """Count a request in and return how many are under way, itself included."""
        with self._lock:
            self._count += 1
            return self._count

    def leave(self) -> None:
        """Count a request out."""
        with self._lock:
            self._count -= 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The deployment rule as agreed: who draws, who checks, what it may cost."""

    small: Tier
    teacher: Tier | None
    verifier: Verifier
    truth: Truth | None
    limits: Limits
    retries: InfrastructureRetries
    condition: str
    log: PolicyLog | None
    gauge: Gauge


def _verdict(said: object) -> Verdict:
    """Read what a verifier returned.

    Raises
    ------
    TypeError, ValueError
        Neither a verdict, nor a text, nor None; a bare bool could mean either thing.
    """
    if said is None:
        return Verdict(flagged=False)
    if isinstance(said, str):
        return Verdict(flagged=True, message=said)
    if not isinstance(said, Verdict):
        raise TypeError(f"a verifier returns a Verdict, a text or None, not {type(said).__name__}")
    if not isinstance(said.flagged, bool):
        raise TypeError("Verdict.flagged is True or False")
    known = None if said.error_class is None else ErrorClass(said.error_class)
    message, code = (None if text is None else str(text) for text in (said.message, said.code))
    return Verdict(said.flagged, message, known if said.flagged else None, code)


def _truth(said: object) -> bool | None:
    """Read what the truth returned."""
    if said is None or isinstance(said, bool):
        return said
    raise TypeError(f"the truth returns True, False or None, not {type(said).__name__}")


def _reply(said: object) -> Reply:
    """Read what a model returned."""
    if isinstance(said, Reply):
        if not isinstance(said.text, str):
            raise UsageRefused(f"Reply.text is a text, not {type(said.text).__name__}")
        return said
    if isinstance(said, str):
        return Reply(said)
    raise UsageRefused(f"a model returns a text or a Reply, not {type(said).__name__}")


@dataclass
class Chain:
    """One task on its way through the rule."""

    terms: Terms
    task_id: str
    prompt: Any
    family: str
    replicate: int
    began: float = field(default_factory=time.monotonic)
    drawn: list[Drawn] = field(default_factory=list)
    spent: float = 0.0
    failures: int = 0
    outcome: Outcome = Outcome.FLAGGED
    reason: str | None = None

    def steps(self) -> Steps:
        """Follow the rule; the generator's value is the result.

        Yields
        ------
        Call, Check or Wait
            What is to be done next.
        """
        yield from self._tier("small", self.terms.small)
        if self.outcome is Outcome.FLAGGED and self.terms.teacher is not None:
            yield from self._tier("teacher", self.terms.teacher)
        return Result(
            task_id=self.task_id,
            replicate=self.replicate,
            outcome=self.outcome,
            draws=tuple(self.drawn),
            failures=self.failures,
            billed=self.spent,
            seconds=time.monotonic() - self.began,
            reason=self.reason,
        )

    def _tier(self, name: str, tier: Tier) -> Generator[Step, Any, None]:
        """Draw on one tier until a draw passes or its budget ends."""
        refused: tuple[Refused, ...] = ()
        for _ in range(tier.budget):
            if (
                self.terms.limits.units is not None
                and self.spent + tier.price > self.terms.limits.units + 1e-9
            ):
                self._stop(Outcome.BUDGET, "the next draw would pass the task's budget")
                return
            ask = Ask(
                task_id=self.task_id,
                prompt=self.prompt,
                tier=name,
                attempt=len(self.drawn) + 1,
                refused=refused,
                family=self.family,
            )
            parent = self.drawn[-1] if self.drawn else None
            slot = Slot(tier, ask, self.replicate, self.terms.condition, parent)
            drawn = yield from self._draw(slot)
            if drawn is None:
                return
            if drawn.verdict is None or not drawn.verdict.flagged:
                self.outcome = Outcome.UNVERIFIED if drawn.verdict is None else Outcome.PASSED
                return
            refused += (Refused(drawn.output, drawn.verdict),)
        self.outcome = Outcome.FLAGGED

    def _stop(self, outcome: Outcome, reason: str) -> None:
        self.outcome, self.reason = outcome, reason

    def _left(self) -> float | None:
        """Seconds until the deadline."""
        seconds = self.terms.limits.seconds
        return None if seconds is None else self.began + seconds - time.monotonic()

    def _draw(self, slot: Slot) -> Generator[Step, Any, Drawn | None]:
        """Get one draw served, checked and logged; None where the infrastructure or the clock forbids it."""
        retries = self.terms.retries
        for tries in range(retries.most + 1):
            left = self._left()
            if left is not None and left <= 0:
                stamp = now()
                self._lost(slot, Span(stamp, stamp, 1), "deadline", "the deadline came before the request")
                self._stop(Outcome.DEADLINE, "the deadline came before the next draw")
                return None
            slot = replace(slot, ask=replace(slot.ask, seconds_left=left), failures=tries)
            bounds = [bound for bound in (left, retries.timeout) if bound is not None]
            in_flight, started = self.terms.gauge.enter(), now()
            failed: BaseException | None = None
            said = None
            try:
                said = yield Call(slot.tier.model, slot.ask, min(bounds, default=None))
            except BaseException as error:
                failed = error
            self.terms.gauge.leave()
            span = Span(started, now(), in_flight)
            if failed is None:
                return (yield from self._served(slot, span, said))
            wait = self._unserved(slot, span, failed, tries)
            if wait is None:
                return None
            yield Wait(wait)
        return None

    def _unserved(self, slot: Slot, span: Span, error: BaseException, tries: int) -> float | None:
        """Log a request that was not served; return the wait before it is made again, None for never.

        Raises
        ------
        BaseException
            The error itself, logged, where it is no failure of the infrastructure.
        """
        told = error if isinstance(error, ModelFailed) else None
        foreseen = told is not None or isinstance(error, self.terms.retries.on)
        left = self._left()
        late = foreseen and left is not None and left <= 0
        kind = "deadline" if late else told.kind if told else _kind_of(error)
        words = told.message if told else str(error) or type(error).__name__
        self._lost(slot, span, kind, words, price_or(0.0, told.billed) if told else 0.0)
        if not foreseen:
            raise error
        if late:
            self._stop(Outcome.DEADLINE, "the deadline came before the model's answer")
            return None
        if tries == self.terms.retries.most or (told is not None and not told.again):
            self._stop(Outcome.UNSERVED, f"{kind}: {words}")
            return None
        own = self.terms.retries.first_wait * 2.0**tries
        asked = price_or(None, told.wait) if told else None
        wait = min(own if asked is None else asked, self.terms.retries.longest_wait)
        if left is not None and wait >= left:
            self._stop(Outcome.DEADLINE, f"the deadline comes before another try ({kind})")
            return None
        return wait

    def _lost(self, slot: Slot, span: Span, kind: str, words: str, billed: float = 0.0) -> None:
        """Count and log a request that was not served."""
        self.failures += 1
        self.spent += billed
        self._append(failed_record(slot, span, kind, words, billed))

    def _append(self, draw: Draw) -> None:
        if self.terms.log is not None:
            self.terms.log.append(draw)

    def _served(self, slot: Slot, span: Span, said: object) -> Generator[Step, Any, Drawn]:
        """Bill, check, score and log what a model returned; logged also where checking is broken off."""
        try:
            reply = _reply(said)
        except UsageRefused as error:
            self._lost(slot, span, "no-text", error.message, slot.tier.price)
            raise
        billed = price_or(slot.tier.price, reply.billed)
        self.spent += billed
        verdict: Verdict | None = None
        correct: bool | None = None
        broken: BaseException | None = None
        try:
            verdict = _verdict((yield Check(self.terms.verifier, reply.text, slot.ask)))
        except BaseException as error:
            broken = error
            self.reason = f"the verifier failed: {type(error).__name__}: {error}"
        if self.terms.truth is not None and not _ends(broken):
            try:
                correct = _truth((yield Check(self.terms.truth, reply.text, slot.ask)))
            except BaseException as error:
                broken = error if _ends(error) else broken
                self.reason = self.reason or f"the truth failed: {type(error).__name__}: {error}"
        self._append(served_record(slot, span, reply, billed, verdict, correct))
        drawn = Drawn(
            draw_id=slot.name,
            tier=slot.ask.tier,
            attempt=slot.ask.attempt,
            output=reply.text,
            verdict=verdict,
            correct=correct,
            billed=billed,
        )
        self.drawn.append(drawn)
        if broken is not None and _ends(broken):
            raise broken
        return drawn


def _ends(error: BaseException | None) -> bool:
    """Tell whether an error ends the task at once: a cancellation, an interrupt, or wrong use."""
    return isinstance(error, UsageRefused) or (error is not None and not isinstance(error, Exception))


def _kind_of(error: BaseException) -> str:
    """Name a failure."""
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, ConnectionError):
        return "connection"
    name = type(error).__name__
    return "cancelled" if name in ("CancelledError", "KeyboardInterrupt", "GeneratorExit") else name
