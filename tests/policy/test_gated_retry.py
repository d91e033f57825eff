"""The deployment rule: what it delivers and bills, and what it writes down."""

from __future__ import annotations

import asyncio
import json
import math
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from policy_world import World, draws_of, scripted, truth, verify
from verdiv.errors import UsageRefused, WriteFailed
from verdiv.policy import (
    Ask,
    GatedRetry,
    Outcome,
    PolicyLog,
    Result,
    Standing,
    Tier,
    Verdict,
    certify_counts,
)
from verdiv.pricing.closed import blended, feedback, teacher_gated
from verdiv.runlog.reader import read_run_log
from verdiv.runlog.records import AnsweredClass, Decoding, PromptKind

__all__: list[str] = []


@pytest.mark.slow
def test_quality_bill_and_residual_are_those_of_the_closed_form(tmp_path: Path) -> None:
    """Over 100,000 tasks the policy delivers, costs and escalates what Q*, bill* and m_B say, log included."""
    tasks, world = 100_000, World(7)
    path = tmp_path / "policy.runlog.jsonl"
    with PolicyLog.begin(path) as log:
        policy = GatedRetry(
            Tier(model=world.small, budget=2),
            Tier(model=world.teacher, price=2.5),
            verifier=verify,
            truth=truth,
            log=log,
        )
        for number in range(tasks):
            policy.run(f"t{number}", "x")
    told = policy.standing
    assert_near(told, tasks, budget=2)
    run = read_run_log(path)
    assert len(run.draws) == told.draws
    assert float(run.draws["billed"].sum()) == pytest.approx(told.billed, abs=1e-6)
    answers = run.draws[run.draws["emitted"].fillna(False)].groupby("task_id").tail(1)
    assert int(answers["correct"].sum()) == told.correct


def assert_near(told: Standing, tasks: int, *, budget: int) -> None:
    """Compare with the closed form within four standard errors, those of the bill by its own distribution."""
    form = blended(budget, 0.8, 0.18, 0.6, 0.99, 0.85, 0.9, 2.5)
    quality, residual = float(form.quality), float(form.residual)
    left = [1.0, *(float(feedback(b, 0.8, 0.18, 0.6, 0.99, 0.85).residual) for b in range(1, budget + 1))]
    bills = {float(n): left[n - 1] - left[n] for n in range(1, budget + 1)} | {budget + 2.5: residual}
    mean = sum(bill * p for bill, p in bills.items())
    assert mean == pytest.approx(float(form.bill), abs=1e-12)
    deviation = math.sqrt(sum((bill - mean) ** 2 * p for bill, p in bills.items()))
    assert (told.tasks, told.scored) == (tasks, tasks)
    assert abs(told.quality - quality) < 4 * math.sqrt(quality * (1 - quality) / tasks)
    assert abs(told.escalated / tasks - residual) < 4 * math.sqrt(residual * (1 - residual) / tasks)
    assert abs(told.bill - mean) < 4 * deviation / math.sqrt(tasks)


@pytest.mark.parametrize("budget", [1, 2, 3])
def test_every_budget_is_priced_by_its_own_form(budget: int) -> None:
    """B is the small tier's draws and nothing else: budgets 1 to 3 each meet their own closed form."""
    tasks, world = 20_000, World(budget)
    policy = GatedRetry(
        Tier(model=world.small, budget=budget),
        Tier(model=world.teacher, price=2.5),
        verifier=verify,
        truth=truth,
    )
    for number in range(tasks):
        policy.run(f"t{number}", "x")
    assert_near(policy.standing, tasks, budget=budget)


def test_without_a_teacher_it_is_the_feedback_arm_and_with_a_gated_one_its_quality_is_higher() -> None:
    """No teacher: Q_B, E_B and the residual is emitted as known wrong. A teacher of budget 2 adds A5's quality."""
    tasks, world = 20_000, World(3, s1=0.5, s2=0.3)
    alone = GatedRetry(Tier(model=world.small, budget=2), verifier=verify, truth=truth)
    gated = GatedRetry(
        Tier(model=world.small, budget=2),
        Tier(model=world.teacher, price=2.5, budget=2),
        verifier=verify,
        truth=truth,
    )
    for number in range(tasks):
        alone.run(f"t{number}", "x")
        gated.run(f"t{number}", "x")
    form = feedback(2, 0.8, 0.18, 0.6, 0.5, 0.3)
    residual = float(form.residual)
    told = alone.standing
    assert abs(told.quality - float(form.quality)) < 4 * math.sqrt(0.25 / tasks)
    assert abs(told.outcomes[Outcome.FLAGGED] / tasks - residual) < 4 * math.sqrt(residual / tasks)
    a5 = teacher_gated(2, 0.9, 0.08, 2.5)
    told = gated.standing
    quality = float(form.quality) + residual * float(a5.quality)
    assert abs(told.quality - quality) < 4 * math.sqrt(quality * (1 - quality) / tasks)
    assert abs(told.bill - float(form.bill) - residual * float(a5.bill)) < 4 * 0.9 / math.sqrt(tasks)


def test_blocking_and_asynchronous_runs_are_the_same_rule() -> None:
    """The same seed gives the same results through run and arun, asynchronous model and verifier included."""

    async def all_async() -> list[Result]:
        world = World(11)

        async def model(ask: Ask) -> str:
            await asyncio.sleep(0)
            return world.small(ask)

        async def check(output: str, ask: Ask) -> Verdict | None:
            return verify(output, ask)

        policy = GatedRetry(Tier(model=model, budget=3), verifier=check)
        return [await policy.arun(f"t{n}", "x") for n in range(300)]

    world = World(11)
    policy = GatedRetry(Tier(model=world.small, budget=3), verifier=verify)
    one = [policy.run(f"t{n}", "x") for n in range(300)]
    two = asyncio.run(all_async())
    assert [(r.answer, r.billed, r.outcome, r.draws) for r in one] == [
        (r.answer, r.billed, r.outcome, r.draws) for r in two
    ]
    assert {r.billed for r in one} >= {1.0, 2.0}


def test_the_log_says_what_every_draw_was(tmp_path: Path) -> None:
    """A3's chain and the teacher's draw stand with kind, parent, class, price and emission as the format wants."""
    path = tmp_path / "policy.runlog.jsonl"
    with PolicyLog.begin(path, small="S-4B", teacher="T-27B") as log:
        policy = GatedRetry(
            Tier(model=scripted("S", "M"), budget=2, name="S-4B", decoding=Decoding(temperature=0.7)),
            Tier(model=scripted("M", "C"), budget=2, price=2.5),
            verifier=verify,
            truth=truth,
            log=log,
        )
        result = policy.run("t", "x", family="dates")
    assert (result.outcome, result.answer, result.billed, result.escalated) == (
        Outcome.PASSED,
        "C",
        7.0,
        True,
    )
    first, second, third, fourth = draws_of(path)
    assert [d.arm for d in (first, second, third, fourth)] == ["A3", "A3", "blended", "blended"]
    assert [d.attempt for d in (first, second, third, fourth)] == [1, 2, 3, 4]
    assert [d.prompt_kind for d in (first, second, third, fourth)] == [
        PromptKind.INITIAL, PromptKind.FEEDBACK, PromptKind.BLIND, PromptKind.FEEDBACK
    ]  # fmt: skip
    assert [d.parent for d in (second, third, fourth)] == [first.draw_id, second.draw_id, third.draw_id]
    assert [d.answered_class for d in (second, fourth)] == [AnsweredClass.STRUCTURAL, AnsweredClass.SEMANTIC]
    assert [d.emitted for d in (first, second, third, fourth)] == [False, True, False, True]
    assert [d.billed for d in (first, second, third, fourth)] == [1.0, 1.0, 2.5, 2.5]
    assert first.prompt_sha256 == third.prompt_sha256 != second.prompt_sha256
    assert {d.family for d in (first, second, third, fourth)} == {"dates"}


def test_the_teachers_draws_on_the_residual_are_no_sample_of_all_tasks(tmp_path: Path) -> None:
    """Analysis of a policy's log prices A3 at its budget and takes no q_T from escalated tasks alone."""
    from verdiv.analysis import analyze

    path, world = tmp_path / "policy.runlog.jsonl", World(5, s1=0.3, s2=0.2)
    with PolicyLog.begin(path) as log:
        policy = GatedRetry(
            Tier(model=world.small, budget=2),
            Tier(model=world.teacher, price=2.5),
            verifier=verify,
            truth=truth,
            log=log,
        )
        for number in range(400):
            policy.run(f"t{number}", "x")
    document = analyze([str(path)]).document
    assert document["gate"] == "verifier"
    assert document["estimates"]["q_t"]["status"] == "not_estimable"
    assert document["estimates"]["q0"]["n"] == 400
    (row,) = [r for r in document["frontier"] if (r["arm"], r["budget"]) == ("A3", 2)]
    assert row["direct"]["chains"] == 400
    assert sum(r["units"] for r in document["ledger"]["rows"]) == pytest.approx(policy.standing.billed)


def test_the_retry_shows_the_refused_reply_and_the_message() -> None:
    """The second draw's conversation is the prompt, the refused reply and what the verifier said of it."""
    seen: list[Ask] = []

    def model(ask: Ask) -> str:
        seen.append(ask)
        return "S" if len(seen) == 1 else "C"

    GatedRetry(Tier(model=model, budget=2), verifier=verify).run("t", "Say C.")
    assert [(m["role"], m["content"]) for m in seen[1].messages()] == [
        ("user", "Say C."), ("assistant", "S"), ("user", "S is wrong, write C.")
    ]  # fmt: skip


def test_many_tasks_at_once_share_one_log(tmp_path: Path) -> None:
    """Concurrent tasks lose and repeat no draw, and each tells how many requests were under way."""
    path, world, lock = tmp_path / "policy.runlog.jsonl", World(2), threading.Lock()

    async def model(ask: Ask) -> str:
        await asyncio.sleep(0.001)
        return world.small(ask)

    async def scene(policy: GatedRetry) -> list[Result]:
        return list(await asyncio.gather(*(policy.arun(f"t{n % 50}", "x") for n in range(200))))

    with PolicyLog.begin(path) as log:
        policy = GatedRetry(Tier(model=model, budget=2), verifier=verify, log=log)
        results = asyncio.run(scene(policy))
        threads = [threading.Thread(target=_run_some, args=(log, lock, world, n)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    logged = draws_of(path)
    assert sum(d.billed for d in logged if "th" not in d.task_id) == sum(r.billed for r in results)
    assert max(d.in_flight or 0 for d in logged) > 50
    assert len({(r.task_id, r.replicate) for r in results}) == 200
    assert sum(d.task_id.startswith("th") and d.attempt == 1 for d in logged) == 40


def _run_some(log: PolicyLog, lock: threading.Lock, world: World, number: int) -> None:
    def model(ask: Ask) -> str:
        with lock:
            return world.small(ask)

    policy = GatedRetry(Tier(model=model, budget=2), verifier=verify, log=log)
    for at in range(10):
        policy.run(f"th{number}-{at}", "x")


def test_a_log_is_taken_up_again_after_a_crash(tmp_path: Path) -> None:
    """A log without footer goes on, and a task seen before begins its next chain."""
    path = tmp_path / "policy.runlog.jsonl"
    log = PolicyLog.open(path)
    GatedRetry(Tier(model=scripted("C")), verifier=verify, log=log).run("t", "x")
    log.writer.abandon()
    with PolicyLog.open(path) as again:
        result = GatedRetry(Tier(model=scripted("C")), verifier=verify, log=again).run("t", "x")
    assert result.replicate == 1
    assert [d.replicate for d in draws_of(path)] == [0, 1]
    with pytest.raises(WriteFailed):
        PolicyLog.begin(path)


@pytest.mark.parametrize(
    "wrong", [{"budget": 0}, {"budget": 2.5}, {"budget": 64}, {"price": -1.0}, {"price": math.nan}]
)
def test_impossible_tiers_are_refused(wrong: dict[str, Any]) -> None:
    """A budget is a count of draws and a price is a price."""
    with pytest.raises(UsageRefused):
        Tier(model=scripted(), **wrong)


def test_the_deployment_gate_refuses_a_policy_that_does_not_reach_it() -> None:
    """A failed certificate builds no policy; 95 of 100 passes g = .85 and 88 of 100 does not, with probability .95."""
    passed, failed = certify_counts(95, 100), certify_counts(88, 100)
    assert (passed.passed, failed.passed) == (True, False)
    assert 0.7 < failed.probability < 0.9
    GatedRetry(Tier(model=scripted()), verifier=verify, certificate=passed)
    with pytest.raises(UsageRefused, match="deployment gate"):
        GatedRetry(Tier(model=scripted()), verifier=verify, certificate=failed)
    policy = GatedRetry(Tier(model=lambda ask: "C"), verifier=verify, truth=truth)
    for number in range(40):
        policy.run(f"t{number}", "x")
    assert policy.standing.certify().passed
    assert not policy.standing.certify(gate=0.99).passed


def test_the_log_is_complete_json(tmp_path: Path) -> None:
    """The file ends with a footer that counts its draws."""
    path = tmp_path / "policy.runlog.jsonl"
    with PolicyLog.begin(path) as log:
        GatedRetry(Tier(model=scripted("C")), verifier=verify, log=log).run("t", "x")
    last = json.loads(path.read_text().splitlines()[-1])
    assert (last["record"], last["draws"]) == ("footer", 1)


def test_the_audit_takes_an_escalation_for_what_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A policy's log raises no finding, and a teacher's draw that answers no last attempt still does."""
    from verdiv.cli.app import run
    from verdiv.runlog.records import Header
    from verdiv.runlog.writer import write_run_log

    path = tmp_path / "policy.runlog.jsonl"
    with PolicyLog.begin(path) as log:
        policy = GatedRetry(
            Tier(model=lambda ask: "S", budget=2),
            Tier(model=lambda ask: "C", price=2.5),
            verifier=verify,
            truth=truth,
            log=log,
        )
        policy.run("t", "x")
    assert run(["audit", str(path)]) == 0
    first, _, third = draws_of(path)
    header = json.loads(path.read_text().splitlines()[0])
    astray = tmp_path / "astray.runlog.jsonl"
    kept = Header(schema=1, run_id=header["run_id"], gate=header["gate"], harness=header["harness"])
    moved = msgspec.structs.replace(third, parent=first.draw_id, prev=None)
    write_run_log(astray, kept, [first, draws_of(path)[1], moved])
    capsys.readouterr()
    assert run(["audit", str(astray)]) == 1
    assert "grid.attempts" in capsys.readouterr().out
