"""The deployment rule when things break: no draw lost from the log, none billed twice."""

from __future__ import annotations

import asyncio
import itertools
import time
from pathlib import Path
from typing import Any

import pytest

from policy_world import NO_WAIT, draws_of, scripted, truth, verify
from verdiv.errors import UsageRefused
from verdiv.policy import (
    Ask,
    GatedRetry,
    InfrastructureRetries,
    Limits,
    ModelFailed,
    Outcome,
    PolicyLog,
    Reply,
    Tier,
    Verdict,
)
from verdiv.runlog.reader import read_run_log

__all__: list[str] = []


def test_infrastructure_retries_are_no_draws_of_the_protocol(tmp_path: Path) -> None:
    """Failed requests are logged at the attempt they were for, billed nothing, and do not use up the budget."""
    path = tmp_path / "policy.runlog.jsonl"
    model = scripted(
        TimeoutError(), ModelFailed("429", "slow down", wait=0.0), "S", ConnectionError("reset"), "C"
    )
    with PolicyLog.begin(path) as log:
        result = GatedRetry(
            Tier(model=model, budget=2), verifier=verify, log=log, retries=NO_WAIT, truth=truth
        ).run("t", "x")
    assert (result.outcome, result.billed, result.failures, len(result.draws)) == (Outcome.PASSED, 2.0, 3, 2)
    logged = draws_of(path)
    assert [(d.attempt, d.error.kind if d.error else None, d.billed) for d in logged] == [
        (1, "timeout", 0.0), (1, "429", 0.0), (1, None, 1.0), (2, "connection", 0.0), (2, None, 1.0)
    ]  # fmt: skip
    assert logged[3].parent == logged[4].parent == logged[2].draw_id
    from verdiv.estimators.chains import chains_of
    from verdiv.estimators.observations import draw_columns

    chains = chains_of(draw_columns(read_run_log(path).draws), "A3", gate="verifier")
    assert chains is not None
    assert chains.correct.tolist() == [[0, 1]]


def test_used_up_retries_end_the_task_as_unserved(tmp_path: Path) -> None:
    """When no request is served the refused draw stays the answer, and the lost draw is in the log."""
    path = tmp_path / "policy.runlog.jsonl"
    model = scripted("S", *(TimeoutError() for _ in range(3)))
    with PolicyLog.begin(path) as log:
        policy = GatedRetry(Tier(model=model, budget=2), verifier=verify, log=log, retries=NO_WAIT)
        result = policy.run("t", "x")
    assert (result.outcome, result.answer, result.accepted, result.billed) == (
        Outcome.UNSERVED,
        "S",
        False,
        1.0,
    )
    assert [d.error is not None for d in draws_of(path)] == [False, True, True, True]


def test_a_failure_that_cost_something_is_billed_once(tmp_path: Path) -> None:
    """What a failed request cost stands in its record and in the bill, and a model may price its own draws."""
    path = tmp_path / "policy.runlog.jsonl"
    model = scripted(ModelFailed("5xx", billed=0.25), Reply("C", tokens_out=3, billed=0.5))
    with PolicyLog.begin(path) as log:
        result = GatedRetry(Tier(model=model), verifier=verify, log=log, retries=NO_WAIT).run("t", "x")
    assert result.billed == 0.75
    assert [d.billed for d in draws_of(path)] == [0.25, 0.5]


def test_a_verifier_that_raises_loses_no_draw(tmp_path: Path) -> None:
    """The draw is billed and logged without verdict, the task ends as unverified, and the truth is still asked."""
    path = tmp_path / "policy.runlog.jsonl"

    def broken(output: str, ask: Ask) -> Verdict:
        raise ZeroDivisionError("oops")

    with PolicyLog.begin(path) as log:
        result = GatedRetry(Tier(model=scripted("C")), verifier=broken, truth=truth, log=log).run("t", "x")
    assert (result.outcome, result.answer, result.billed) == (Outcome.UNVERIFIED, "C", 1.0)
    assert result.reason == "the verifier failed: ZeroDivisionError: oops"
    (draw,) = draws_of(path)
    assert (draw.static, draw.correct, draw.emitted, draw.billed, draw.error) == (None, True, True, 1.0, None)


@pytest.mark.parametrize("said", [True, False, 1, {"flagged": True}])
def test_a_verdict_that_could_mean_either_thing_is_no_verdict(said: object) -> None:
    """A bare True could mean passed or flagged, so it verifies nothing."""
    result = GatedRetry(Tier(model=scripted("C")), verifier=lambda output, ask: said).run("t", "x")
    assert result.outcome is Outcome.UNVERIFIED


def test_a_truth_that_raises_leaves_the_draw_unscored(tmp_path: Path) -> None:
    """A failed truth is missing, never wrong, and does not change the outcome."""
    path = tmp_path / "policy.runlog.jsonl"

    def broken(output: str, ask: Ask) -> bool:
        raise KeyError("no answer")

    with PolicyLog.begin(path) as log:
        result = GatedRetry(Tier(model=scripted("C")), verifier=verify, truth=broken, log=log).run("t", "x")
    assert (result.outcome, result.correct) == (Outcome.PASSED, None)
    assert draws_of(path)[0].correct is None


def test_a_fault_of_the_models_code_is_logged_and_raised(tmp_path: Path) -> None:
    """An error that is no failure of the infrastructure is not retried into silence."""
    path = tmp_path / "policy.runlog.jsonl"
    with PolicyLog.begin(path) as log:
        policy = GatedRetry(Tier(model=scripted("S", TypeError("bug")), budget=2), verifier=verify, log=log)
        with pytest.raises(TypeError, match="bug"):
            policy.run("t", "x")
    assert [(d.error.kind if d.error else None) for d in draws_of(path)] == [None, "TypeError"]


def test_a_model_that_returns_no_text_is_billed_and_refused(tmp_path: Path) -> None:
    """What a model returned was paid for, even where it is no text."""
    path = tmp_path / "policy.runlog.jsonl"
    with PolicyLog.begin(path) as log:
        policy = GatedRetry(Tier(model=scripted({"text": "C"})), verifier=verify, log=log)
        with pytest.raises(UsageRefused, match="a text or a Reply"):
            policy.run("t", "x")
    (draw,) = draws_of(path)
    assert (draw.error is not None, draw.billed) == (True, 1.0)


def test_the_budget_in_units_is_never_passed(tmp_path: Path) -> None:
    """A draw that would pass the task's budget is not made: 3.4 units hold two small draws and no teacher."""
    path = tmp_path / "policy.runlog.jsonl"
    with PolicyLog.begin(path) as log:
        policy = GatedRetry(
            Tier(model=scripted("S", "S"), budget=2), Tier(model=scripted("C"), price=2.5),
            verifier=verify, limits=Limits(units=3.4), log=log,
        )  # fmt: skip
        result = policy.run("t", "x")
    assert (result.outcome, result.answer, result.billed) == (Outcome.BUDGET, "S", 2.0)
    assert len(draws_of(path)) == 2
    exact = GatedRetry(
        Tier(model=scripted("S", "S"), budget=2), Tier(model=scripted("C"), price=2.5),
        verifier=verify, limits=Limits(units=4.5),
    )  # fmt: skip
    assert exact.run("t", "x").billed == 4.5


def test_a_deadline_ends_an_asynchronous_request(tmp_path: Path) -> None:
    """At the deadline the request is cancelled, logged as such and not billed; the refused draw is the answer."""
    path = tmp_path / "policy.runlog.jsonl"

    async def model(ask: Ask) -> str:
        if ask.refused:
            await asyncio.sleep(60)
        return "S"

    began = time.monotonic()
    with PolicyLog.begin(path) as log:
        policy = GatedRetry(Tier(model=model, budget=2), verifier=verify, limits=Limits(seconds=0.2), log=log)
        result = asyncio.run(policy.arun("t", "x"))
    assert time.monotonic() - began < 10
    assert (result.outcome, result.answer, result.billed) == (Outcome.DEADLINE, "S", 1.0)
    assert [(d.attempt, d.error.kind if d.error else None) for d in draws_of(path)] == [
        (1, None),
        (2, "deadline"),
    ]


def test_a_blocking_draw_that_comes_late_is_used_and_no_other_is_made(tmp_path: Path) -> None:
    """A draw paid for is never thrown away; the draw that the deadline forbids stands in the log as missing."""
    path, calls = tmp_path / "policy.runlog.jsonl", itertools.count()

    def model(ask: Ask) -> str:
        next(calls)
        assert ask.seconds_left is not None
        time.sleep(ask.seconds_left + 0.01)
        return "S"

    with PolicyLog.begin(path) as log:
        policy = GatedRetry(
            Tier(model=model, budget=2), verifier=verify, limits=Limits(seconds=0.05), log=log
        )
        result = policy.run("t", "x")
    assert (result.outcome, result.answer, result.billed, next(calls)) == (Outcome.DEADLINE, "S", 1.0, 1)
    assert [d.error.kind if d.error else None for d in draws_of(path)] == [None, "deadline"]


def test_a_model_that_times_out_is_tried_again(tmp_path: Path) -> None:
    """A request beyond its timeout is cancelled and made again; one draw is billed."""
    path, calls = tmp_path / "policy.runlog.jsonl", itertools.count()

    async def model(ask: Ask) -> str:
        if next(calls) == 0:
            await asyncio.sleep(60)
        return "C"

    patient = InfrastructureRetries(timeout=0.1, first_wait=0.0)
    with PolicyLog.begin(path) as log:
        policy = GatedRetry(Tier(model=model), verifier=verify, retries=patient, log=log)
        result = asyncio.run(policy.arun("t", "x"))
    assert (result.outcome, result.billed, result.failures) == (Outcome.PASSED, 1.0, 1)
    assert [d.error.kind if d.error else None for d in draws_of(path)] == ["timeout", None]


def test_cancellation_is_logged_and_goes_on(tmp_path: Path) -> None:
    """A cancelled task leaves its request in the log, unbilled, and the canceller is not kept from cancelling."""
    path = tmp_path / "policy.runlog.jsonl"

    async def scene(log: PolicyLog) -> None:
        begun = asyncio.Event()

        async def model(ask: Ask) -> str:
            begun.set()
            await asyncio.sleep(60)
            return "C"

        task = asyncio.create_task(GatedRetry(Tier(model=model), verifier=verify, log=log).arun("t", "x"))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with PolicyLog.begin(path) as log:
        asyncio.run(scene(log))
    (draw,) = draws_of(path)
    assert (draw.error.kind if draw.error else None, draw.billed) == ("cancelled", 0.0)


def test_an_answer_that_crosses_its_cancellation_is_kept(tmp_path: Path) -> None:
    """A model that answers while it is cancelled was paid: its draw is logged and billed once."""
    path = tmp_path / "policy.runlog.jsonl"

    async def scene(log: PolicyLog) -> None:
        begun = asyncio.Event()

        async def model(ask: Ask) -> str:
            begun.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                return "C"
            return "W"

        async def slow_check(output: str, ask: Ask) -> Verdict | None:
            await asyncio.sleep(0)
            return verify(output, ask)

        task = asyncio.create_task(GatedRetry(Tier(model=model), verifier=slow_check, log=log).arun("t", "x"))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelling() == 1

    with PolicyLog.begin(path) as log:
        asyncio.run(scene(log))
    (draw,) = draws_of(path)
    assert (draw.output, draw.billed, draw.static, draw.error) == ("C", 1.0, None, None)


def test_an_outer_timeout_stays_a_timeout(tmp_path: Path) -> None:
    """`asyncio.timeout` around a task raises TimeoutError, and the draw is in the log."""
    path = tmp_path / "policy.runlog.jsonl"

    async def scene(log: PolicyLog) -> None:
        async def model(ask: Ask) -> str:
            await asyncio.sleep(60)
            return "C"

        policy = GatedRetry(Tier(model=model), verifier=verify, log=log)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await policy.arun("t", "x")

    with PolicyLog.begin(path) as log:
        asyncio.run(scene(log))
    assert len(draws_of(path)) == 1


def test_an_interrupt_in_a_verifier_loses_no_draw(tmp_path: Path) -> None:
    """Ctrl-C while the verifier works: the draw is logged without verdict, then the interrupt goes on."""
    path = tmp_path / "policy.runlog.jsonl"

    def interrupted(output: str, ask: Ask) -> Verdict:
        raise KeyboardInterrupt

    log = PolicyLog.begin(path)
    with pytest.raises(KeyboardInterrupt):
        GatedRetry(Tier(model=scripted("C")), verifier=interrupted, truth=truth, log=log).run("t", "x")
    log.close()
    (draw,) = draws_of(path)
    assert (draw.output, draw.billed, draw.static) == ("C", 1.0, None)


def test_hostile_outputs_are_logged() -> None:
    """Lone surrogates and very long outputs neither stop the policy nor leave the log."""
    for output in ("\ud800 C", "x" * 3_000_000, "\x00", ""):
        result = GatedRetry(Tier(model=scripted(output)), verifier=verify).run("t", "x")
        assert result.answer == output


def test_hostile_outputs_stand_in_the_log(tmp_path: Path) -> None:
    """Text that UTF-8 cannot hold is replaced, text too long leaves its digest."""
    path = tmp_path / "policy.runlog.jsonl"
    outputs = ("\ud800 C", "x" * 3_000_000, "\x00", "")
    with PolicyLog.begin(path) as log:
        policy = GatedRetry(Tier(model=scripted(*outputs)), verifier=verify, log=log)
        for number in range(len(outputs)):
            policy.run(f"t{number}", "x")
    logged = draws_of(path)
    assert [d.output for d in logged] == ["? C", None, "\x00", ""]
    assert all(d.output_sha256 for d in logged)


@pytest.mark.parametrize("task_id", ["", "x" * 1001, "\ud800", 5])
def test_a_task_that_no_log_holds_is_refused_before_it_is_paid(task_id: Any) -> None:
    """The model is not asked for a task whose draw could not be logged."""
    with pytest.raises(UsageRefused, match="cannot be logged"):
        GatedRetry(Tier(model=scripted()), verifier=verify).run(task_id, "x")


def test_an_asynchronous_model_is_refused_by_run() -> None:
    """`run` says that `arun` is meant, and leaves no coroutine behind."""

    async def model(ask: Ask) -> str:
        return "C"

    with pytest.raises(UsageRefused, match="run cannot wait") as told:
        GatedRetry(Tier(model=model), verifier=verify).run("t", "x")
    assert "use arun" in str(told.value)
