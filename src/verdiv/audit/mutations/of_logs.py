"""Breakages of the log: edited lines, and records rewritten with a chain that holds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import msgspec

from verdiv.audit.mutations.clean import CleanRun
from verdiv.audit.mutations.edits import (
    change,
    change_every,
    drop,
    edit_lines,
    expect,
    first,
    insert_after,
    where,
)
from verdiv.runlog.records import AnsweredClass, Draw, DrawError, ErrorClass, Gate, PromptKind, Static

__all__ = ["LOG_BREAKAGES"]

replace = msgspec.structs.replace

OTHER = "0" * 63 + "1"
"""A digest of nothing."""

EDITED = where(own=True, failed=False)


def _sub(old: bytes, new: bytes, line: int = 5) -> Callable[[CleanRun], None]:
    """Return an edit of one line, as by hand."""

    def apply(run: CleanRun) -> None:
        def edit(lines: list[bytes]) -> list[bytes]:
            at = next(i for i in range(line, len(lines)) if old in lines[i])
            lines[at] = lines[at].replace(old, new, 1)
            return lines

        edit_lines(run, edit)

    return apply


def _header(**changes: Any) -> Callable[[CleanRun], None]:
    def apply(run: CleanRun) -> None:
        run.header = replace(run.header, **changes)
        run.write_log()

    return apply


def _decoded(draw: Draw, **changes: Any) -> Draw:
    assert draw.decoding is not None
    return replace(draw, decoding=replace(draw.decoding, **changes))


def _judged(draw: Draw, **changes: Any) -> Draw:
    assert draw.static is not None
    return replace(draw, static=replace(draw.static, **changes))


def _swap(run: CleanRun) -> None:
    edit_lines(run, lambda lines: [*lines[:6], lines[7], lines[6], *lines[8:]])


def _flip_correct(run: CleanRun) -> None:
    at = first(run, where(own=True, failed=False, arm="A4", correct=False))
    change(run, lambda draw: draw is run.draws[at], correct=True)


def _flip_flag(run: CleanRun) -> None:
    change_every(
        run,
        lambda draw: (
            draw.draw_id == run.draws[first(run, where(arm="A4", flagged=True, failed=False))].draw_id
        ),
        lambda draw: replace(draw, static=Static(flagged=False)),
    )


def _other_class(run: CleanRun) -> None:
    pick = where(arm="A1", flagged=True, failed=False)
    draw = run.draws[first(run, pick)]
    assert draw.static is not None
    now = ErrorClass.SEMANTIC if draw.static.error_class is ErrorClass.STRUCTURAL else ErrorClass.STRUCTURAL
    change(run, pick, static=replace(draw.static, error_class=now))


def _new_message(run: CleanRun) -> None:
    pick = where(arm="A1", flagged=True, failed=False)
    draw = run.draws[first(run, pick)]
    assert draw.static is not None
    change(run, pick, static=replace(draw.static, message="The answer is the one in the file."))


def _other_output(run: CleanRun) -> None:
    right = run.draws[first(run, where(arm="A1", correct=True))]
    change(run, where(arm="A1", correct=True), output=(right.output or "") + " ")


def _swap_seed(run: CleanRun) -> None:
    pick = where(arm="A1", own=True, failed=False)
    draw = _decoded(run.draws[first(run, pick)], seed=77)
    change(run, pick, decoding=draw.decoding)


def _extra_task(run: CleanRun) -> None:
    at = first(run, where(arm="A4", failed=False))
    insert_after(run, at, replace(run.draws[at], draw_id="extra", task_id="arithmetic-9999"))


def _extra_arm(run: CleanRun) -> None:
    at = first(run, where(arm="A4", failed=False))
    insert_after(run, at, replace(run.draws[at], draw_id="extra", arm="A9"))


def _extra_replicate(run: CleanRun) -> None:
    at = first(run, where(arm="A4", failed=False))
    insert_after(run, at, replace(run.draws[at], draw_id="extra", replicate=9))


def _lost_chain(run: CleanRun) -> None:
    lost = run.draws[first(run, where(arm="A4", failed=False))]
    drop(run, lambda draw: (draw.arm, draw.task_id, draw.replicate) == ("A4", lost.task_id, lost.replicate))


def _measured_twice(run: CleanRun) -> None:
    at = first(run, where(arm="A4", failed=False))
    insert_after(run, at, replace(run.draws[at], draw_id="again", correct=True))


def _other_model(run: CleanRun) -> None:
    change(run, where(arm="A4", failed=False, replicate=2), model="a larger one")


def _second_half(run: CleanRun, pick: Callable[[Draw], bool], edit: Callable[[Draw], Draw]) -> None:
    half = len(run.draws) // 2
    late = {draw.draw_id for draw in run.draws[half:]}
    change_every(run, lambda draw: draw.draw_id in late and pick(draw), edit)


def _precision(run: CleanRun) -> None:
    _second_half(run, where(tier="small", condition="primary"), lambda draw: replace(draw, precision="Q4_1"))


def _warmer(run: CleanRun) -> None:
    change_every(run, where(arm="A2s"), lambda draw: _decoded(draw, temperature=1.0))


def _longer(run: CleanRun) -> None:
    _second_half(run, where(arm="A1"), lambda draw: _decoded(draw, max_tokens=4096))


def _reworded(run: CleanRun) -> None:
    change(run, where(arm="A1", own=True, failed=False), prompt_sha256=OTHER)


def _over_budget(run: CleanRun) -> None:
    at = first(run, where(arm="A5", attempt=2, failed=False))
    draw = run.draws[at]
    run.draws[at] = _judged(draw, flagged=True)
    more = replace(draw, draw_id="more", attempt=3, parent=draw.draw_id, started_at=draw.ended_at)
    insert_after(run, at, more)


def _after_pass(run: CleanRun) -> None:
    at = first(run, where(arm="A2s", attempt=1, flagged=False))
    draw = run.draws[at]
    more = replace(draw, draw_id="more", attempt=2, prompt_kind=PromptKind.BLIND, parent=draw.draw_id)
    insert_after(run, at, replace(more, started_at=draw.ended_at, ended_at=draw.ended_at, emitted=False))


def _stopped_chain(run: CleanRun) -> None:
    last = run.draws[first(run, where(arm="A3", attempt=2, own=True, condition="primary"))]
    drop(run, lambda draw: draw.draw_id == last.draw_id)


def _short_vote(run: CleanRun) -> None:
    lost = run.draws[first(run, where(arm="A1", attempt=5, emitted=False))]
    drop(run, lambda draw: draw.draw_id == lost.draw_id)


def _no_message(run: CleanRun) -> None:
    pick = where(prompt_kind=PromptKind.FEEDBACK)
    retry = run.draws[first(run, pick)]
    begun = run.draws[first(run, where(task_id=retry.task_id, tier="small", attempt=1, failed=False))]
    change(run, pick, prompt_sha256=begun.prompt_sha256)


def _hint(run: CleanRun) -> None:
    change(run, where(prompt_kind=PromptKind.BLIND), prompt_sha256=OTHER)


def _wrong_kind(run: CleanRun) -> None:
    change(run, where(prompt_kind=PromptKind.BLIND, arm="A2s"), prompt_kind=PromptKind.FEEDBACK)


def _wrong_answered(run: CleanRun) -> None:
    pick = where(prompt_kind=PromptKind.FEEDBACK)
    was = run.draws[first(run, pick)].answered_class
    now = AnsweredClass.SEMANTIC if was is AnsweredClass.STRUCTURAL else AnsweredClass.STRUCTURAL
    change(run, pick, answered_class=now)


def _two_answers(run: CleanRun) -> None:
    change(run, where(arm="A1", emitted=False, failed=False), emitted=True)


def _other_winner(run: CleanRun) -> None:
    """Let a vote emit a losing draw."""
    for at, draw in enumerate(run.draws):
        if draw.arm == "A1" and draw.emitted:
            losers = [
                i
                for i, other in enumerate(run.draws)
                if (other.arm, other.task_id, other.replicate) == ("A1", draw.task_id, draw.replicate)
                and other.output != draw.output
                and other.error is None
            ]
            if losers:
                run.draws[at] = replace(draw, emitted=False)
                run.draws[losers[0]] = replace(run.draws[losers[0]], emitted=True)
                run.write_log()
                return
    raise LookupError("every vote was unanimous")


def _billed_failure(run: CleanRun) -> None:
    change(run, where(failed=True), billed=1.0, emitted=True)


def _false_copy(run: CleanRun) -> None:
    pick = where(own=False)
    was = run.draws[first(run, pick)]
    change(run, pick, correct=not was.correct)


def _copied_vote(run: CleanRun) -> None:
    vote = run.draws[first(run, where(arm="A1", attempt=1, failed=False))]
    pick = where(arm="A2s", attempt=1, task_id=vote.task_id, failed=False)
    draw = run.draws[first(run, pick)]
    run.draws[first(run, pick)] = replace(vote, draw_id=draw.draw_id, arm="A2s", copy_of=vote.draw_id)
    run.write_log()


def _fewer_replicates(run: CleanRun) -> None:
    drop(run, lambda draw: draw.replicate == 2)


def _many_failures(run: CleanRun) -> None:
    at = first(run, where(failed=True))
    for count in range(7):
        run.draws.insert(at, replace(run.draws[at], draw_id=f"failure-{count}"))
    expect(run)
    run.write_log()


def _odd_failure(run: CleanRun) -> None:
    change(run, where(failed=True), error=DrawError(kind="too slow for us"))


def _lucky_failures(run: CleanRun) -> None:
    """Declare failures before two dozen right draws, as if wrong ones had been thrown away."""
    right = [draw for draw in run.draws if where(arm="A1", correct=True)(draw)][:60]
    for draw in right:
        failed = replace(
            draw, draw_id=f"{draw.draw_id}/lost", correct=None, static=None, oracle=None, output=None,
            output_sha256=None, billed=0.0, emitted=False, error=DrawError(kind="timeout"),
        )  # fmt: skip
        run.draws.insert(run.draws.index(draw), failed)
    expect(run)
    run.write_log()


def _discount(run: CleanRun) -> None:
    change(run, where(arm="A3", attempt=2, own=True), billed=0.5)


def _dear(run: CleanRun) -> None:
    change_every(run, where(tier="teacher", failed=False), lambda draw: replace(draw, billed=25.0))


def _before_lock(run: CleanRun) -> None:
    change(run, where(failed=False), started_at="2026-02-01T08:00:00.000Z")


def _ends_first(run: CleanRun) -> None:
    change(run, EDITED, nth=3, ended_at="2026-03-02T07:00:00.000Z")


def _overtakes(run: CleanRun) -> None:
    retry = run.draws[first(run, where(arm="A3", attempt=2, own=True))]
    parent = next(draw for draw in run.draws if draw.draw_id == retry.parent)
    change(run, lambda draw: draw.draw_id == retry.draw_id, started_at=parent.started_at)


def _frozen_seed(run: CleanRun) -> None:
    """Give every sampled wrong answer of a prompt the same bytes, as a server that ignores seeds would."""
    seen: dict[str, Draw] = {}

    def edit(draw: Draw) -> Draw:
        kept = seen.setdefault(draw.task_id, draw)
        return replace(draw, output=kept.output, output_sha256=kept.output_sha256)

    change_every(run, lambda draw: draw.arm == "A1" and draw.correct is False, edit)


def _skipped_attempt(run: CleanRun) -> None:
    def deep(draw: Draw) -> bool:
        return draw.attempt == 3 and draw.parent is not None

    draw = run.draws[first(run, deep)]
    before = next(one for one in run.draws if one.draw_id == draw.parent)
    change(run, deep, parent=before.parent)


def _other_text(run: CleanRun) -> None:
    """Change a feedback prompt into another text that also differs from the first."""
    digest = hashlib.sha256(b"another text").hexdigest()
    change(run, where(prompt_kind=PromptKind.FEEDBACK), prompt_sha256=digest)


def _cut(run: CleanRun) -> None:
    """End the file in the middle of its last draw, as a crash would."""
    lines = run.log_path.read_bytes().splitlines(keepends=True)
    run.log_path.write_bytes(b"".join(lines[:-2]) + lines[-2][:90])


def _boast(run: CleanRun) -> None:
    count = len(run.draws)
    edit_lines(run, lambda x: [*x[:-1], x[-1].replace(b'"draws":%d' % count, b'"draws":%d' % (count + 1))])


LOG_BREAKAGES: tuple[tuple[str, str, Callable[[CleanRun], None]], ...] = (
    ("an outcome flipped by hand", "log.chain", _sub(b'"correct":false', b'"correct":true')),
    ("a flag edited by hand", "log.chain", _sub(b'"flagged":true', b'"flagged":false')),
    ("two rows reordered", "log.chain", _swap),
    ("a row repeated", "log.chain", lambda run: edit_lines(run, lambda x: [*x[:9], x[8], *x[9:]])),
    ("a row taken out", "log.chain", lambda run: edit_lines(run, lambda x: [*x[:9], *x[10:]])),
    ("the tail dropped, footer kept", "log.count", lambda run: edit_lines(run, lambda x: [*x[:-20], x[-1]])),
    ("the tail dropped, footer too", "log.complete", lambda run: edit_lines(run, lambda x: x[:-20])),
    ("the last line cut in half", "log.complete", _cut),
    ("an id used twice", "log.ids", _sub(b'A4/arithmetic-0002/r0/a1","task', b'A4/arithmetic-0001/r0/a1","task')),
    ("a time without an offset", "log.times", _sub(b'Z","ended_at"', b'","ended_at"')),
    ("a field nobody knows", "log.format", _sub(b'"family":', b'"note":1,"family":')),
    ("a footer that claims more draws", "log.count", _boast),
    ("fewer draws than the header expects", "log.expected", _header(expected_draws=9999)),
    ("a copy that differs from its original", "log.copies", _false_copy),
    ("sampled outputs all alike", "log.seed_forwarded", _frozen_seed),
    ("an outcome flipped, chain rewritten", "scoring.correct", _flip_correct),
    ("a flag taken off, chain rewritten", "scoring.flags", _flip_flag),
    ("an error class changed", "scoring.classes", _other_class),
    ("a verifier's message reworded", "scoring.messages", _new_message),
    ("an output edited under its digest", "scoring.outputs", _other_output),
    ("a vote's winner exchanged", "scoring.votes", _other_winner),
    ("a feedback prompt that is another text", "scoring.prompts", _other_text),
    ("a task that is not in the suite", "grid.tasks", _extra_task),
    ("a task left out", "grid.tasks", lambda run: drop(run, where(task_id="date-0001"))),
    ("an arm left out", "grid.missing", lambda run: drop(run, where(arm="A2s"))),
    ("one cell left out", "grid.missing", _lost_chain),
    ("an arm nobody registered", "grid.unplanned", _extra_arm),
    ("a replicate nobody registered", "grid.unplanned", _extra_replicate),
    ("a cell measured twice", "grid.duplicates", _measured_twice),
    ("a retry that answers another draw", "grid.attempts", _skipped_attempt),
    ("a draw beyond the budget", "grid.budgets", _over_budget),
    ("a retry of a draw that passed", "grid.retried_after_pass", _after_pass),
    ("a chain ended early", "grid.stopped_early", _stopped_chain),
    ("a vote of four", "grid.votes", _short_vote),
    ("an undeclared model", "drift.models", _other_model),
    ("a precision changed mid-run", "drift.precision", _precision),
    ("a warmer temperature", "drift.decoding", _warmer),
    ("a token limit changed mid-run", "drift.decoding", _longer),
    ("a seed swapped", "drift.seeds", _swap_seed),
    ("a first prompt reworded", "drift.prompts", _reworded),
    ("another suite in the header", "drift.suite", _header(suite_sha256=OTHER)),
    ("gated by the truth", "drift.gate", _header(gate=Gate.TRUTH)),
    ("a feedback prompt without the message", "arms.feedback_prompts", _no_message),
    ("a blind prompt with a hint", "arms.blind_prompts", _hint),
    ("feedback in a blind arm", "arms.prompt_kinds", _wrong_kind),
    ("an answer to another class of error", "arms.answered_class", _wrong_answered),
    ("two answers of one chain", "arms.emission", _two_answers),
    ("a failure billed and answered", "arms.failures", _billed_failure),
    ("a first draw shared where none may be", "arms.sharing", _copied_vote),
    ("a replicate never run", "selection.stopping", _fewer_replicates),
    ("more retries than registered", "selection.infrastructure", _many_failures),
    ("a failure of a kind nobody registered", "selection.infrastructure", _odd_failure),
    ("failures before right draws only", "selection.retry_luck", _lucky_failures),
    ("a retry at half price", "bill.prices", _discount),
    ("a bill above the bound", "bill.bound", _dear),
    ("a draw before the lock", "time.after_lock", _before_lock),
    ("a draw that ends before it starts", "time.starts_before_ends", _ends_first),
    ("a retry before its error", "time.chains", _overtakes),
    ("a log begun after its draws", "time.header", _header(started_at="2026-03-02T09:00:00.000Z")),
    ("a log of another registration", "lock.followed", _header(preregistration_sha256=OTHER)),
)  # fmt: skip
"""Name, check that must catch it, and the breakage."""
