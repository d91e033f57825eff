"""The deployment rule as running code: :class:`GatedRetry`, for blocking and for asynchronous programs."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from verdiv.errors import Fault, UsageRefused
from verdiv.policy.chain import Call, Chain, Check, Gauge, Step, Terms, Wait
from verdiv.policy.gate import GATE, Certificate, certify_counts
from verdiv.policy.log import PolicyLog, require_name
from verdiv.policy.records import (
    InfrastructureRetries,
    Limits,
    Outcome,
    Result,
    Tier,
    Truth,
    Verifier,
)

__all__ = ["GatedRetry", "Standing"]

GRACE = 1.0
"""Seconds that a cancelled request is given to end; what it still returns counts as served."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What a policy has done so far."""

    tasks: int
    """Tasks that came to an end."""
    outcomes: dict[Outcome, int]
    """Tasks by how they ended."""
    draws: int
    """Served draws."""
    escalated: int
    """Tasks that reached the teacher: the residual m_B."""
    failures: int
    """Requests that were not served."""
    billed: float
    """Units of one small draw."""
    scored: int
    """Tasks whose answer has a known truth."""
    correct: int
    """Those answered correctly."""

    @property
    def bill(self) -> float:
        """Mean units a task; NaN before the first."""
        return self.billed / self.tasks if self.tasks else float("nan")

    @property
    def quality(self) -> float:
        """Share of correct answers among the scored; NaN before the first."""
        return self.correct / self.scored if self.scored else float("nan")

    def certify(self, *, gate: float = GATE, assurance: float = 0.95) -> Certificate:
        """Judge the policy by its scored answers; see :func:`verdiv.policy.gate.certify_counts`."""
        return certify_counts(self.correct, self.scored, gate=gate, assurance=assurance)


class _Counts:
    """Counts results; threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._outcomes: dict[Outcome, int] = {}
        self._draws = self._escalated = self._failures = self._scored = self._correct = 0
        self._billed = 0.0

    def add(self, result: Result) -> None:
        with self._lock:
            self._outcomes[result.outcome] = self._outcomes.get(result.outcome, 0) + 1
            self._draws += len(result.draws)
            self._escalated += result.escalated
            self._failures += result.failures
            self._billed += result.billed
            self._scored += result.correct is not None
            self._correct += result.correct is True

    def standing(self) -> Standing:
        with self._lock:
            return Standing(
                sum(self._outcomes.values()),
                dict(self._outcomes),
                self._draws,
                self._escalated,
                self._failures,
                self._billed,
                self._scored,
                self._correct,
            )


class GatedRetry:
    r"""Sample on the small tier, verify, retry with the message up to B*, escalate the residual to the teacher.

    *The Verifier's Dividend*, Deployment Rule. With a verifier that flags no correct draw it delivers and costs

    .. math:: Q^* = Q_B + m_B q_T, \qquad bill^* = E_B + m_B \rho

    where Q_B, E_B and m_B are quality, bill and residual of the feedback arm
    (:func:`verdiv.pricing.closed.blended`). The teacher is gated too: with a budget above 1 it is asked again with
    its own message.

    Parameters
    ----------
    small, teacher
        The tiers; ``small.budget`` is B (2 in the paper). Without a teacher the last refused draw is the answer.
        ``teacher.price`` is ρ.
    verifier
        Checks every draw of both tiers.
    log
        Run log of every draw; None keeps none.
    truth
        Scores draws where the truth is known, for the log; it never steers the policy.
    limits
        Budget and deadline of a task.
    retries
        How requests that were not served are tried again.
    certificate
        A judgement of this policy by its deployment gate; one that failed refuses to build it.
    condition
        Experimental condition in the log.

    Raises
    ------
    UsageRefused
        A certificate that was not passed, or a condition that no log holds.

    Notes
    -----
    * A model or verifier may be called from several threads or tasks at once, as the policy itself may.
    * A verifier that raises ends the task as ``unverified``: its draw is logged without verdict.
    * A draw that comes after the deadline from a model that cannot be interrupted is used: it was paid for.
    * Errors of a model's own code (any not named in ``retries.on``) are logged as failed requests and raised.

    Examples
    --------
    >>> model = lambda ask: '{"city": "Bonn"}' if ask.refused else '{"town": "Bonn"}'
    >>> verifier = lambda output, ask: None if "city" in output else "Name the field city, not town."
    >>> result = GatedRetry(Tier(model=model, budget=2), verifier=verifier).run("weather-1", "Weather in Bonn?")
    >>> result.outcome.value, result.answer, result.billed
    ('passed', '{"city": "Bonn"}', 2.0)
    """

    def __init__(
        self,
        small: Tier,
        teacher: Tier | None = None,
        *,
        verifier: Verifier,
        log: PolicyLog | None = None,
        truth: Truth | None = None,
        limits: Limits | None = None,
        retries: InfrastructureRetries | None = None,
        certificate: Certificate | None = None,
        condition: str = "primary",
    ) -> None:
        if certificate is not None:
            certificate.require()
        if not condition or "/" in condition or len(condition) > 200:
            fault = Fault("policy", "a short name without /", repr(condition), "rename it", field="condition")
            raise UsageRefused("this condition cannot be logged", [fault])
        self._terms = Terms(
            small=small,
            teacher=teacher,
            verifier=verifier,
            truth=truth,
            limits=limits or Limits(),
            retries=retries or InfrastructureRetries(),
            condition=condition,
            log=log,
            gauge=Gauge(),
        )
        self._counts = _Counts()

    @property
    def standing(self) -> Standing:
        """What the policy has done so far; tasks that raised are in the log only."""
        return self._counts.standing()

    def _chain(self, task_id: str, prompt: Any, family: str) -> Chain:
        require_name(task_id)
        log = self._terms.log
        replicate = 0 if log is None else log.next_chain(self._terms.condition, task_id)
        return Chain(self._terms, task_id, prompt, family, replicate)

    def run(self, task_id: str, prompt: Any, *, family: str = "all") -> Result:
        """Answer one task, waiting for it.

        Parameters
        ----------
        task_id
            Name of the task; the same name again is another chain of the same task.
        prompt
            What the model is asked: a text, chat messages, or whatever model and verifier understand.
        family
            Family of the task in the log, the same each time.

        Returns
        -------
        Result
            Also where nothing passed: look at ``accepted`` and ``outcome``.

        Raises
        ------
        UsageRefused
            A task id that no log holds, an asynchronous model or verifier, a model that returns no text.
        WriteFailed
            The log cannot be written.
        Exception
            Whatever a model raised that is no failure of the infrastructure.
        """
        steps = self._chain(task_id, prompt, family).steps()
        go: Callable[[Any], Step] = steps.send
        value: Any = None
        while True:
            try:
                step = go(value)
            except StopIteration as stop:
                result: Result = stop.value
                self._counts.add(result)
                return result
            try:
                value, go = _perform(step), steps.send
            except BaseException as error:
                value, go = error, steps.throw

    async def arun(self, task_id: str, prompt: Any, *, family: str = "all") -> Result:
        """Answer one task without blocking: as :meth:`run`, but models and verifiers may be asynchronous.

        A blocking model is run in a thread. Deadline and timeout end a request; cancelling the task does so too,
        and the request is logged before ``CancelledError`` goes on.
        """
        steps = self._chain(task_id, prompt, family).steps()
        go: Callable[[Any], Step] = steps.send
        value: Any = None
        while True:
            try:
                step = go(value)
            except StopIteration as stop:
                result: Result = stop.value
                self._counts.add(result)
                return result
            try:
                value, go = await _perform_async(step), steps.send
            except BaseException as error:
                value, go = error, steps.throw


def _perform(step: Step) -> Any:
    """Do what a chain asks for, waiting for it."""
    if isinstance(step, Wait):
        time.sleep(step.seconds)
        return None
    said = step.model(step.ask) if isinstance(step, Call) else step.function(step.output, step.ask)
    if inspect.isawaitable(said):
        if isinstance(said, Coroutine):
            said.close()
        what = "model" if isinstance(step, Call) else "verifier or truth"
        fault = Fault(what, "a blocking function", "an asynchronous one", "use arun")
        raise UsageRefused("run cannot wait for this", [fault])
    return said


async def _perform_async(step: Step) -> Any:
    """Do what a chain asks for, without blocking."""
    if isinstance(step, Wait):
        await asyncio.sleep(step.seconds)
        return None
    if isinstance(step, Check):
        said = step.function(step.output, step.ask)
        return await said if inspect.isawaitable(said) else said
    return await _ask(step)


async def _asked(step: Call) -> Any:
    """Ask a model of either kind."""
    call: Any = step.model
    own = inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(call.__call__)
    said = call(step.ask) if own else await asyncio.to_thread(call, step.ask)
    return await said if inspect.isawaitable(said) else said


async def _ask(step: Call) -> Any:
    """Ask a model for as long as the step allows; an answer that crosses its cancellation is taken.

    Raises
    ------
    TimeoutError
        No answer in time.
    asyncio.CancelledError
        The task was cancelled and the model had not answered.
    """
    request = asyncio.ensure_future(_asked(step))
    try:
        await asyncio.wait({request}, timeout=step.seconds)
        if not request.done():
            await _end(request)
    except asyncio.CancelledError:
        with contextlib.suppress(asyncio.CancelledError):
            await _end(request)
        if not request.done() or request.cancelled() or request.exception() is not None:
            raise
        # The draw was served: it is handed over and logged, and the cancellation strikes at the next wait.
        _cancel_again()
    if not request.done() or request.cancelled():
        bound = "" if step.seconds is None else f" in {step.seconds:.3g} s"
        raise TimeoutError(f"no answer{bound}")
    return request.result()


def _cancel_again() -> None:
    """Put off the cancellation that was just delivered to the next wait, counted once."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
        task.cancel()


async def _end(request: asyncio.Future[Any]) -> None:
    """Cancel a request and give it a moment to end."""
    request.cancel()
    request.add_done_callback(_forget)
    await asyncio.wait({request}, timeout=GRACE)


def _forget(request: asyncio.Future[Any]) -> None:
    """Take what a request that nobody waits for ended with, so that it is no unseen error."""
    if not request.cancelled():
        request.exception()
