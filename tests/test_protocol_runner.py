"""Runs against a server with scripted faults: complete, honest about failures, within the bound, without keys."""

from __future__ import annotations

import dataclasses
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import msgspec
import pytest

from fake_server import FakeServer
from protocol_runs import command, draws_of, registered, request_of, small_suite
from verdiv.errors import UsageRefused, WriteFailed
from verdiv.protocol.prompts import Refused, feedback_messages, initial_messages, prompt_digest
from verdiv.protocol.runner.journal import journal_path
from verdiv.protocol.runner.ledger import BoundReached
from verdiv.protocol.runner.sitting import run_protocol
from verdiv.protocol.suite.generate import FAMILIES
from verdiv.runlog.reader import validate
from verdiv.runlog.records import Draw, PromptKind


def outcomes(draws: list[Draw]) -> dict[str, tuple[object, ...]]:
    """Reduce draws to what must not depend on when they were made."""
    return {
        d.draw_id: (d.output, d.correct, d.static, d.emitted, d.copy_of, d.billed, d.prompt_sha256, d.parent)
        for d in draws
    }


def run_quietly(folder: Path, **options: float) -> dict[str, tuple[object, ...]]:
    """Run the small protocol without faults, for comparison."""
    suite = small_suite()
    plan = registered(folder, suite)
    with FakeServer(suite) as server:
        outcome = run_protocol(request_of(folder, plan, server.url))
    assert outcome.complete
    return outcomes(draws_of(folder))


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[object, ...]]:
    """Outcomes of an undisturbed run."""
    return run_quietly(tmp_path_factory.mktemp("quiet"))


def test_a_run_is_complete_and_follows_the_design(tmp_path: Path) -> None:
    """Every chain ends as its arm says, shared draws are copies, prompts are what they claim, conditions included."""
    suite = small_suite()
    plan = registered(tmp_path, suite, conditions=True)
    with FakeServer(suite, delay=0.02) as server:
        outcome = run_protocol(request_of(tmp_path, plan, server.url, concurrency=3))
    assert outcome.complete
    assert validate(tmp_path / "run.runlog.jsonl").status == "complete"
    draws = draws_of(tmp_path)
    by_id = {draw.draw_id: draw for draw in draws}
    assert server.served == sum(draw.copy_of is None for draw in draws)
    for chain in outcome.design.chains:
        own = [by_id[name] for a in range(1, chain.budget + 1) if (name := chain.draw_id(a)) in by_id]
        assert [draw.attempt for draw in own] == list(range(1, len(own) + 1))
        flags = [draw.static is not None and draw.static.flagged for draw in own]
        task, prompt = suite.by_id[chain.task_id], suite.prompts[chain.tier]
        first = prompt_digest(initial_messages(task.public, prompt))
        assert own[0].copy_of == chain.copies
        assert sum(draw.emitted is True for draw in own) == 1
        if chain.redraw == "initial":
            assert len(own) == chain.budget
            assert {draw.prompt_sha256 for draw in own} == {first}
            assert len({draw.decoding.seed for draw in own if draw.decoding}) == chain.budget
            continue
        assert not any(flags[:-1][at] is False for at in range(len(flags) - 1))
        assert not flags[-1] or len(own) == chain.budget
        assert own[-1].emitted
        refused: list[Refused] = []
        for draw in own:
            if draw.attempt > 1:
                before = own[draw.attempt - 2]
                assert draw.parent == before.draw_id
                assert draw.prompt_kind == chain.redraw
                assert before.static is not None
                refused.append(Refused(before.output or "", before.static.message or ""))
            feedback = draw.prompt_kind is PromptKind.FEEDBACK
            expected = prompt_digest(feedback_messages(task.public, prompt, refused)) if feedback else first
            assert draw.prompt_sha256 == expected
            if feedback:
                assert before.static is not None
                assert str(draw.answered_class) == str(before.static.error_class)
    width = max(d.in_flight or 0 for d in draws if d.condition == "primary")
    heavy = max(d.in_flight or 0 for d in draws if d.condition == "heavy-load")
    assert (width, heavy) == (3, 4)
    assert 1 < server.most_in_flight <= 4


def test_every_draw_is_scored_as_its_suite_says(tmp_path: Path, quiet: dict[str, tuple[object, ...]]) -> None:
    """Outcomes in the log are those of verifying and scoring its outputs again."""
    run_quietly(tmp_path)
    suite = small_suite()
    for draw in draws_of(tmp_path):
        task = suite.by_id[draw.task_id]
        verdict = FAMILIES[task.family].verify(draw.output or "", task.public)
        assert draw.static is not None
        assert (draw.static.flagged, draw.static.message) == (verdict.flagged, verdict.message)
        assert draw.correct is FAMILIES[task.family].is_correct(draw.output or "", task)
        assert draw.oracle is not None
        assert draw.oracle.flagged is not draw.correct


@pytest.mark.parametrize("fault", ["429", "500", "malformed", "half", "reset"])
def test_faults_are_retried_and_leave_no_trace_in_the_draws(
    fault: str, tmp_path: Path, quiet: dict[str, tuple[object, ...]]
) -> None:
    """One request in seven fails; the draws are those of an undisturbed run, and retries are counted apart."""
    suite = small_suite()
    plan = registered(tmp_path, suite)
    chance = random.Random(6)
    script = [fault if chance.random() < 1 / 7 else "ok" for _ in range(2000)]
    with FakeServer(suite, script.__getitem__) as server:
        outcome = run_protocol(request_of(tmp_path, plan, server.url))
    draws = draws_of(tmp_path)
    assert outcomes(draws) == quiet
    assert server.served == sum(draw.copy_of is None for draw in draws)
    assert outcome.tally.retries == len(server.requests) - server.served > 10
    assert outcome.ledger.spent == sum(draw.billed for draw in draws if draw.copy_of is None)


def test_hanging_requests_time_out_and_are_retried(
    tmp_path: Path, quiet: dict[str, tuple[object, ...]]
) -> None:
    """A request without an answer is given up after the timeout and sent again."""
    suite = small_suite()
    plan = registered(tmp_path, suite)
    with FakeServer(suite, lambda number: "hang" if number in (3, 20) else "ok") as server:
        outcome = run_protocol(request_of(tmp_path, plan, server.url, timeout=1.0))
    assert outcome.tally.retries >= 2
    assert outcomes(draws_of(tmp_path)) == quiet


def test_exhausted_retries_are_recorded_as_errors_and_not_billed(tmp_path: Path) -> None:
    """A draw that is never served is a record with an error, no outcome and no bill; shared draws fail together."""
    suite = small_suite(1)
    plan = registered(tmp_path, suite)
    with FakeServer(suite, lambda number: "500") as server:
        outcome = run_protocol(request_of(tmp_path, plan, server.url))
    draws = draws_of(tmp_path)
    assert outcome.complete
    assert {draw.error.kind for draw in draws if draw.error} == {"5xx"}
    assert all(
        d.error is not None and d.correct is None and d.billed == 0 and d.static is None for d in draws
    )
    assert outcome.ledger.spent == 0
    assert validate(tmp_path / "run.runlog.jsonl").status == "complete"
    initial = [d for d in draws if d.arm not in ("A2", "A3") or d.replicate > 1]
    assert len(server.requests) == 6 * len(initial)


def test_a_refused_request_is_not_retried(tmp_path: Path) -> None:
    """Status 400 is no failure of the infrastructure: it is recorded at once."""
    suite = small_suite(1)
    plan = registered(tmp_path, suite)
    with FakeServer(suite, lambda number: "400" if number == 0 else "ok") as server:
        run_protocol(request_of(tmp_path, plan, server.url, concurrency=1))
    first = draws_of(tmp_path)[0]
    assert first.error is not None
    assert first.error.kind == "http-400"


def test_a_refused_key_stops_the_run_at_once(tmp_path: Path) -> None:
    """Status 401 ends the run: no retry and no other draw could do better."""
    suite = small_suite()
    plan = registered(tmp_path, suite)
    with FakeServer(suite, lambda number: "401") as server, pytest.raises(UsageRefused, match="refuses"):
        run_protocol(request_of(tmp_path, plan, server.url, concurrency=1))
    assert len(server.requests) == 1


def test_keys_come_from_the_environment_and_reach_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key is sent as a bearer token; neither it nor the address stands in log or journal."""
    suite = small_suite(1)
    plan = registered(tmp_path, suite)
    monkeypatch.setenv("TEST_KEY", "top-secret-token")
    with FakeServer(suite) as server:
        request = request_of(tmp_path, plan, server.url)
        keyed = {p: dataclasses.replace(e, key_env="TEST_KEY") for p, e in request.endpoints.items()}
        run_protocol(dataclasses.replace(request, endpoints=keyed))
    assert set(server.keys) == {"Bearer top-secret-token"}
    for file in tmp_path.glob("run.*"):
        text = file.read_text()
        assert "top-secret" not in text
        assert server.url not in text


def test_a_missing_key_is_said_before_anything_is_asked(tmp_path: Path) -> None:
    """Without the variable the run ends with an error, and the server is not asked."""
    suite = small_suite(1)
    plan = registered(tmp_path, suite)
    with FakeServer(suite) as server:
        request = request_of(tmp_path, plan, server.url)
        keyed = {p: dataclasses.replace(e, key_env="NO_SUCH_KEY") for p, e in request.endpoints.items()}
        with pytest.raises(UsageRefused, match="key is missing"):
            run_protocol(dataclasses.replace(request, endpoints=keyed))
    assert server.requests == []


def test_the_declared_bound_is_never_passed(tmp_path: Path) -> None:
    """The run stops before the draw that could pass the bound; what was drawn stands and can be read."""
    suite = small_suite()
    plan = registered(tmp_path, suite, bound=3.0)
    limit = 3.0 * len(suite) * 2
    with FakeServer(suite) as server, pytest.raises(BoundReached):
        run_protocol(request_of(tmp_path, plan, server.url))
    prices = {"small": 1.0, "teacher": 2.5}
    drawn = [draw for draw in draws_of(tmp_path) if draw.copy_of is None]
    assert sum(prices[draw.tier] for draw in drawn) <= limit
    assert limit - sum(prices[draw.tier] for draw in drawn) < 2.5 * 4
    assert validate(tmp_path / "run.runlog.jsonl").status == "incomplete"


def test_a_standing_log_is_never_written_over(tmp_path: Path) -> None:
    """Without resume a taken name is refused; with it, a complete log and the log of another run are too."""
    suite = small_suite(1)
    plan = registered(tmp_path, suite)
    with FakeServer(suite) as server:
        request = request_of(tmp_path, plan, server.url)
        run_protocol(request)
        before = request.log.read_bytes()
        with pytest.raises(WriteFailed):
            run_protocol(request)
        with pytest.raises(UsageRefused, match="complete"):
            run_protocol(request, resume=True)
        lines = before.splitlines(keepends=True)
        request.log.write_bytes(b"".join(lines[:-3]))
        other = registered(tmp_path, suite, seeds="[1, 3]")
        with pytest.raises(UsageRefused, match="another run"):
            run_protocol(request_of(tmp_path, other, server.url), resume=True)
    assert request.log.read_bytes() == b"".join(lines[:-3])


@pytest.mark.slow
def test_twenty_kills_lose_only_what_was_in_flight(tmp_path: Path) -> None:
    """Kill -9 at 20 random points under scripted faults; the resumed log is that of an undisturbed run.

    Draws served minus draws logged is never above the draws in flight at the kills, and each of those is listed.
    """
    kills, width = 20, 4
    calm, stormy = tmp_path / "calm", tmp_path / "stormy"
    calm.mkdir()
    stormy.mkdir()
    suite = small_suite(12)
    plan = registered(calm, suite)
    with FakeServer(suite) as server:
        run_protocol(request_of(calm, plan, server.url))
    registered(stormy, suite)
    faults = random.Random(4)
    names = ["429", "500", "hang", "malformed", "half", "reset"]
    script = [faults.choice(names) if faults.random() < 0.06 else "ok" for _ in range(20_000)]
    waits = random.Random(5)
    log, killed = stormy / "run.runlog.jsonl", 0
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    with FakeServer(suite, script.__getitem__, delay=0.03) as server:
        words = command(stormy, server.url, concurrency=width, timeout=3.0)
        while True:
            asked = len(server.requests)
            process = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if killed < kills:
                until = time.monotonic() + 120
                while len(server.requests) == asked and process.poll() is None:
                    assert time.monotonic() < until
                    time.sleep(0.01)
                time.sleep(waits.uniform(0.0, 0.6))
                process.send_signal(signal.SIGKILL)
            output, errors = process.communicate(timeout=300)
            if process.returncode == -signal.SIGKILL:
                killed += 1
                continue
            break
        assert process.returncode == 0, errors.decode()
    assert killed == kills, "the run ended before all kills: give it more tasks"
    report = validate(log)
    assert report.status == "complete"
    draws = draws_of(stormy)
    assert outcomes(draws) == outcomes(draws_of(calm))
    entries = [msgspec.json.decode(line) for line in journal_path(log).read_bytes().splitlines()]
    lost = [entry["lost"] for entry in entries if "lost" in entry]
    logged = sum(draw.copy_of is None for draw in draws)
    assert 0 <= server.served - logged <= len(lost) <= kills * width
    assert len({intent["number"] for intent in lost}) == len(lost)
    assert {intent["draw_id"] for intent in lost} <= {draw.draw_id for draw in draws}
    assert f"{len(lost)} draws in flight were lost".encode() in output


@pytest.mark.slow
def test_an_interrupt_ends_the_run_in_order(tmp_path: Path) -> None:
    """SIGINT awaits and logs the draws in flight, exits with 130, loses nothing; resume completes the log."""
    suite = small_suite(4)
    registered(tmp_path, suite)
    with FakeServer(suite, delay=0.05) as server:
        words = command(tmp_path, server.url)
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while len(server.requests) < 20:
            time.sleep(0.01)
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == 130
        assert server.served == sum(draw.copy_of is None for draw in draws_of(tmp_path)) + votes_open(
            tmp_path
        )
        again = subprocess.run(words, capture_output=True, timeout=300, check=False)
        assert again.returncode == 0
        assert server.served == sum(draw.copy_of is None for draw in draws_of(tmp_path))
    assert b"lost" not in again.stdout


def votes_open(folder: Path) -> int:
    """Count answers of unfinished votes, which the journal keeps."""
    logged = {draw.draw_id for draw in draws_of(folder)}
    lines = journal_path(folder / "run.runlog.jsonl").read_bytes().splitlines()
    answers = [msgspec.json.decode(line).get("answer") for line in lines]
    return len({answer["draw_id"] for answer in answers if answer} - logged)
