"""The policy's run log: every draw is on its way to the disk before the next one is made.

The small tier's draws are the chain of arm A3. A draw of the teacher for the residual stands in the arm
``blended``, with the attempt that follows and the refused draw as its parent. It was shown the initial prompt,
yet it is a ``blind`` draw of its chain and no initial one: initial draws of the teacher estimate q_T over all
tasks, and the residual is no sample of all tasks.
"""

from __future__ import annotations

import hashlib
import math
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import msgspec

from verdiv import __version__
from verdiv.errors import Fault, InputRefused, UsageRefused
from verdiv.policy.records import Ask, Drawn, Reply, Tier, Verdict
from verdiv.runlog.records import (
    RUNLOG_SCHEMA,
    AnsweredClass,
    Draw,
    DrawError,
    Gate,
    Header,
    ModelCard,
    PromptKind,
    Static,
)
from verdiv.runlog.writer import RunLogWriter

__all__ = ["PolicyLog", "Slot", "Span", "now"]

MAX_TEXT = 1_000_000
"""Characters of an output or message that the log holds; of a longer one the digest stands alone."""

MAX_NAME = 1000
"""Longest task id."""

ARMS = {"small": "A3", "teacher": "blended"}
"""Arm under which a tier's draws stand."""

Price = TypeVar("Price", float, None)

_canonical = msgspec.json.Encoder(order="sorted").encode


def now() -> str:
    """Tell the time, RFC 3339 in UTC with microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a draw stands in its chain."""

    tier: Tier
    """Who draws."""
    ask: Ask
    """What was asked."""
    replicate: int
    """Which chain of the task."""
    condition: str
    """Experimental condition."""
    parent: Drawn | None
    """The refused draw before it, None for a first one."""
    failures: int = 0
    """Requests for this draw that were not served."""

    @property
    def name(self) -> str:
        """Name of the draw; the same cell always has the same one."""
        where = f"{self.condition}/{ARMS[self.ask.tier]}/{self.ask.task_id}"
        return f"{where}/r{self.replicate}/a{self.ask.attempt}"


@dataclass(frozen=True, slots=True)
class Span:
    """When a request was made and ended, and how many were under way."""

    started_at: str
    ended_at: str
    in_flight: int


def _kind(slot: Slot) -> PromptKind:
    if slot.ask.attempt == 1:
        return PromptKind.INITIAL
    return PromptKind.FEEDBACK if slot.ask.refused else PromptKind.BLIND


def _frame(slot: Slot, span: Span) -> Draw:
    """Fill in what is known of a draw whatever came of it."""
    kind = _kind(slot)
    answered = None
    if kind is PromptKind.FEEDBACK:
        known = slot.ask.refused[-1].verdict.error_class
        answered = AnsweredClass.UNCLASSIFIED if known is None else AnsweredClass(known.value)
    return Draw(
        draw_id=slot.name,
        task_id=slot.ask.task_id,
        family=slot.ask.family,
        arm=ARMS[slot.ask.tier],
        condition=slot.condition,
        tier=slot.ask.tier,
        model=slot.tier.name,
        precision=slot.tier.precision,
        decoding=slot.tier.decoding,
        replicate=slot.replicate,
        attempt=slot.ask.attempt,
        prompt_kind=kind,
        parent=None if slot.parent is None else slot.parent.draw_id,
        prompt_sha256=_prompt_digest(slot.ask),
        correct=None,
        answered_class=answered,
        billed=0.0,
        started_at=span.started_at,
        ended_at=span.ended_at,
        in_flight=span.in_flight,
    )


def _prompt_digest(ask: Ask) -> str | None:
    """Digest the chat; None where the prompt is no chat."""
    try:
        return hashlib.sha256(_canonical(ask.messages())).hexdigest()
    except (UsageRefused, TypeError, ValueError):
        return None


def _clean(text: str) -> str:
    """Replace what UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _short(text: str | None) -> str | None:
    """Keep text that a log line holds."""
    return None if text is None else _clean(text)[:MAX_TEXT]


def _count(number: object) -> int | None:
    """Keep a number that is a count; what a server tells is not trusted to be one."""
    fine = isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 2**63
    return int(number) if fine else None  # type: ignore[call-overload]


def price_or(default: Price, number: float | None) -> float | Price:
    """Keep a finite number from 0, else take the default."""
    fine = isinstance(number, int | float) and not isinstance(number, bool) and 0 <= number < math.inf
    return float(number) if fine else default  # type: ignore[arg-type]


def served_record(
    slot: Slot, span: Span, reply: Reply, billed: float, verdict: Verdict | None, correct: bool | None
) -> Draw:
    """Describe a served draw.

    Parameters
    ----------
    slot, span, reply
        Where, when, what.
    billed
        Units of one small draw.
    verdict
        The verifier's, None where it failed.
    correct
        The truth, None where it is not known.

    Returns
    -------
    Draw
        ``emitted`` where its arm answers with it: passed, unverified, or the last within the budget.
    """
    output = _clean(reply.text)
    static = None
    if verdict is not None:
        static = Static(
            flagged=verdict.flagged,
            error_class=verdict.error_class if verdict.flagged else None,
            code=(_clean(verdict.code)[:200] or None) if verdict.code else None,
            message=_short(verdict.message),
        )
    last = len(slot.ask.refused) + 1 == slot.tier.budget
    return msgspec.structs.replace(
        _frame(slot, span),
        output=output if len(output) <= MAX_TEXT else None,
        output_sha256=hashlib.sha256(output.encode()).hexdigest(),
        correct=correct,
        static=static,
        billed=billed,
        tokens_in=_count(reply.tokens_in),
        tokens_out=_count(reply.tokens_out),
        device_seconds=price_or(None, reply.device_seconds),
        emitted=last or verdict is None or not verdict.flagged,
    )


def failed_record(slot: Slot, span: Span, kind: str, message: str, billed: float) -> Draw:
    """Describe a request that was not served: no measurement, and billed only where it cost something."""
    return msgspec.structs.replace(
        _frame(slot, span),
        draw_id=f"{slot.name}/x{slot.failures}",
        error=DrawError(kind=_clean(kind)[:200] or "error", message=_short(message[:2000]) or None),
        billed=billed,
        emitted=False,
    )


@dataclass
class PolicyLog:
    """A durable run log that a policy writes and ``verdiv analyze`` reads.

    Use :meth:`begin`, :meth:`resume` or :meth:`open`; as a context manager it ends with a footer, and on an
    error without one, so that it can be resumed. Threads and tasks may share it.
    """

    writer: RunLogWriter
    """Where records go."""
    _chains: dict[tuple[str, str], int] = field(default_factory=dict)
    """Condition and task to the number of their chains."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def begin(
        cls,
        path: str | Path,
        *,
        small: str | None = None,
        teacher: str | None = None,
        note: str | None = None,
    ) -> Self:
        """Begin a new log.

        Parameters
        ----------
        path
            Plain JSONL file that does not stand yet, e.g. ``policy.runlog.jsonl``.
        small, teacher
            Names of the models.
        note
            A sentence for the header.

        Raises
        ------
        WriteFailed
            The name is taken, or the system refused to write.
        """
        started = now()
        names = {"small": small, "teacher": teacher}
        header = Header(
            schema=RUNLOG_SCHEMA,
            run_id=f"policy-{started}",
            gate=Gate.VERIFIER,
            harness="verdiv policy",
            harness_version=__version__,
            models={tier: ModelCard(name=name) for tier, name in names.items() if name},
            started_at=started,
            note=note,
        )
        return cls(RunLogWriter(path, header, durable=True))

    @classmethod
    def resume(cls, path: str | Path) -> Self:
        """Go on with a log that has no footer yet.

        Raises
        ------
        InputRefused, UsageRefused, WriteFailed
            The log cannot be read, has its footer, or is being written by another program.
        """
        from verdiv.runlog.reader import iter_draws

        writer = RunLogWriter.resume(path)
        chains: dict[tuple[str, str], int] = {}
        try:
            for draw in iter_draws(path):
                key = (draw.condition, draw.task_id)
                chains[key] = max(chains.get(key, 0), draw.replicate + 1)
        except BaseException:
            writer.abandon()
            raise
        return cls(writer, chains)

    @classmethod
    def open(cls, path: str | Path, **header: str | None) -> Self:
        """Go on with the log that stands at the path, or begin it; for a service that is started again.

        Parameters
        ----------
        path
            Plain JSONL file.
        header
            As for :meth:`begin`; without effect on a log that stands.
        """
        return cls.resume(path) if Path(path).exists() else cls.begin(path, **header)

    def next_chain(self, condition: str, task_id: str) -> int:
        """Number the next chain of a task, 0 for its first one."""
        with self._lock:
            number = self._chains.get((condition, task_id), 0)
            self._chains[condition, task_id] = number + 1
            return number

    def append(self, draw: Draw) -> None:
        """Write a record.

        Raises
        ------
        WriteFailed
            The system refused to write.
        InputRefused
            The record is refused even without its texts.
        """
        try:
            self.writer.append(draw)
        except InputRefused:
            if draw.output is None:
                raise
            self.writer.append(msgspec.structs.replace(draw, output=None))

    def close(self) -> None:
        """End the log with its footer."""
        self.writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.writer.close()
        else:
            self.writer.abandon()


def require_name(task_id: str) -> None:
    """Refuse task ids that a log cannot hold, before anything is drawn.

    Raises
    ------
    UsageRefused
        No text, an empty or a very long one, or one that UTF-8 cannot hold.
    """
    fine = isinstance(task_id, str) and 0 < len(task_id) <= MAX_NAME and _clean(task_id) == task_id
    if not fine:
        fault = Fault(
            "task",
            f"a text of 1 to {MAX_NAME} characters",
            repr(task_id)[:80],
            "name the task",
            field="task_id",
        )
        raise UsageRefused("this task cannot be logged", [fault])
