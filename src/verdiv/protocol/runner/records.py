"""From a served draw to its record in the run log: scored, verified, priced, and free of addresses and keys."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

import msgspec

from verdiv.protocol.runner.client import Failure, Reply
from verdiv.protocol.runner.design import Chain, draw_seed
from verdiv.protocol.suite.task import Family, Task
from verdiv.runlog.records import (
    AnsweredClass,
    Decoding,
    Draw,
    DrawError,
    Oracle,
    PromptKind,
    Static,
)

__all__ = ["as_copy", "emit", "failed_draw", "plurality", "scored_draw", "shared_failure"]


def _frame(chain: Chain, attempt: int, family: str, model: str, precision: str | None) -> Draw:
    """Fill in what is known of a draw before it is made."""
    kind = PromptKind.INITIAL
    if attempt > 1 and chain.redraw in ("blind", "feedback"):
        kind = PromptKind(chain.redraw)
    chained = attempt > 1 and chain.redraw != "initial"
    return Draw(
        draw_id=chain.draw_id(attempt),
        task_id=chain.task_id,
        family=family,
        arm=chain.arm,
        condition=chain.condition,
        tier=chain.tier,
        model=model,
        precision=precision,
        decoding=Decoding(
            temperature=chain.temperature,
            top_p=chain.top_p,
            seed=draw_seed(chain.seed, chain.arm, chain.task_id, attempt),
            max_tokens=chain.max_tokens,
        ),
        replicate=chain.replicate,
        attempt=attempt,
        prompt_kind=kind,
        parent=chain.draw_id(attempt - 1) if chained else None,
        correct=None,
        billed=0.0,
    )


def scored_draw(
    chain: Chain,
    attempt: int,
    task: Task,
    family: Family,
    reply: Reply,
    *,
    model: str,
    precision: str | None,
    prompt_sha256: str,
    in_flight: int,
    answers: Draw | None,
) -> Draw:
    """Score and verify a reply.

    Parameters
    ----------
    chain, attempt
        The cell of the design.
    task, family
        The task and its family.
    reply
        What was served.
    model, precision
        As the registration names them.
    prompt_sha256
        Digest of the messages.
    in_flight
        Requests in flight when it was asked, itself included.
    answers
        The refused draw whose error the prompt reported, None outside feedback.

    Returns
    -------
    Draw
        Not yet marked as emitted.
    """
    verdict = family.verify(reply.text, task.public)
    correct = family.is_correct(reply.text, task)
    answered = None
    if answers is not None:
        known = answers.static is not None and answers.static.error_class is not None
        answered = (
            AnsweredClass(str(answers.static.error_class))  # type: ignore[union-attr]
            if known
            else AnsweredClass.UNCLASSIFIED
        )
    return msgspec.structs.replace(
        _frame(chain, attempt, task.family, model, precision),
        prompt_sha256=prompt_sha256,
        output=reply.text,
        output_sha256=hashlib.sha256(reply.text.encode()).hexdigest(),
        correct=correct,
        static=Static(
            flagged=verdict.flagged,
            error_class=verdict.error_class,
            code=verdict.code,
            message=verdict.message,
        ),
        oracle=Oracle(flagged=not correct),
        answered_class=answered,
        billed=chain.price,
        tokens_in=reply.tokens_in,
        tokens_out=reply.tokens_out,
        started_at=reply.started_at,
        ended_at=reply.ended_at,
        in_flight=in_flight,
    )


def failed_draw(
    chain: Chain,
    attempt: int,
    task: Task,
    failure: Failure,
    *,
    model: str,
    precision: str | None,
    in_flight: int,
) -> Draw:
    """Record a draw that was not served: no measurement, and not billed.

    Parameters
    ----------
    chain, attempt
        The cell of the design.
    task
        The task.
    failure
        What happened.
    model, precision
        As the registration names them.
    in_flight
        Requests in flight when it was asked, itself included.

    Returns
    -------
    Draw
        With ``error``.
    """
    return msgspec.structs.replace(
        _frame(chain, attempt, task.family, model, precision),
        error=DrawError(kind=failure.kind, message=failure.message),
        started_at=failure.started_at,
        ended_at=failure.ended_at,
        in_flight=in_flight,
        emitted=False,
    )


def as_copy(chain: Chain, source: Draw) -> Draw:
    """List a shared first draw in the arm that shares it.

    Parameters
    ----------
    chain
        The chain that shares.
    source
        The draw as it was made.

    Returns
    -------
    Draw
        With ``copy_of``; its price stands in ``billed``, since the arm alone would have paid it.
    """
    return msgspec.structs.replace(
        source,
        draw_id=chain.draw_id(1),
        arm=chain.arm,
        copy_of=source.draw_id,
        replicate=chain.replicate,
        parent=None,
        emitted=None,
        prev=None,
    )


def shared_failure(chain: Chain, source: Draw) -> Draw:
    """List a shared first draw that was not served: a failure here too.

    Parameters
    ----------
    chain
        The chain that shares.
    source
        The draw that failed.

    Returns
    -------
    Draw
        With the same ``error``.
    """
    return msgspec.structs.replace(
        source, draw_id=chain.draw_id(1), arm=chain.arm, replicate=chain.replicate, prev=None
    )


def emit(draw: Draw, emitted: bool) -> Draw:
    """Mark a draw as what its arm answered, or not.

    Parameters
    ----------
    draw
        The draw.
    emitted
        Whether it is the arm's answer.

    Returns
    -------
    Draw
        The marked draw.
    """
    return msgspec.structs.replace(draw, emitted=emitted)


def plurality(canonical: Sequence[str]) -> int:
    """Decide a vote: the most frequent canonical output, ties to the one that came first.

    Parameters
    ----------
    canonical
        Canonical outputs in the order of the draws, at least one.

    Returns
    -------
    int
        Index of the first draw that voted for the winner.

    Examples
    --------
    >>> plurality(["b", "a", "c", "a", "b"])
    0
    """
    votes = Counter(canonical)
    most = max(votes.values())
    return next(at for at, output in enumerate(canonical) if votes[output] == most)
