"""A run of a few tasks against the real local model, and what the shipped real run says of it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol_runs import draws_of, registered, request_of, small_suite
from verdiv import fixtures
from verdiv.errors import MissingExtra
from verdiv.protocol.determinism import judge_determinism
from verdiv.protocol.local_server import find_local_model, serving_local_model
from verdiv.protocol.runner.sitting import run_protocol
from verdiv.runlog.reader import iter_draws, validate
from verdiv.runlog.records import Draw


@pytest.fixture(scope="module")
def local_url() -> Iterator[str]:
    """Address of the served local model; the test skips where it is not installed."""
    try:
        find_local_model()
    except MissingExtra as error:
        pytest.skip(f"{error}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    with serving_local_model(port, slots=4, patience=120) as url:
        yield url


@pytest.mark.slow
def test_a_real_server_runs_the_whole_protocol(local_url: str, tmp_path: Path) -> None:
    """Three tasks, seven arms, one seed and a rerun: complete, scored, with tokens told and within the bound."""
    suite = small_suite(1)
    plan = registered(tmp_path, suite, seeds="[1]")
    outcome = run_protocol(request_of(tmp_path, plan, local_url, concurrency=2, timeout=120))
    assert outcome.complete
    assert validate(tmp_path / "run.runlog.jsonl").status == "complete"
    draws = draws_of(tmp_path)
    assert not [draw for draw in draws if draw.error]
    assert all(draw.output and draw.correct is not None for draw in draws)
    assert all(draw.tokens_in and draw.tokens_out for draw in draws)
    assert {draw.arm for draw in draws} == set(plan.arms)
    votes = [draw.output for draw in draws if draw.arm == "A1"]
    assert len(set(votes)) > len(suite), "votes of one prompt are all alike: the seed is not forwarded"


def shipped() -> list[Draw]:
    """Read the shipped real run."""
    with fixtures.as_path("runs", "smollm2-135m") as path:
        return list(iter_draws(path))


def test_the_shipped_run_is_complete_and_followed_its_registration() -> None:
    """The bundled log has its footer, names the registration that ships beside it, and misses no draw."""
    from verdiv.preregistration import read_preregistration
    from verdiv.runlog.reader import read_run_log

    with fixtures.as_path("runs", "smollm2-135m") as path:
        log = read_run_log(path)
        assert validate(path).status == "complete"
    plan = read_preregistration("smollm2-135m")
    header = log.headers[0]
    assert header.preregistration_sha256 == plan.digest
    assert header.suite_sha256 == plan.suite.sha256
    assert len(log.draws) == 2373
    assert log.draws["error_kind"].isna().all()


def test_all_classes_of_error_occur_in_the_shipped_run() -> None:
    """First draws of the small tier are right, or wrong in each of three classes; none that is right is flagged."""
    first = [
        draw
        for draw in shipped()
        if draw.tier == "small" and draw.attempt == 1 and draw.condition == "primary"
    ]
    kinds = {
        (draw.correct, str(draw.static.error_class) if draw.static.flagged else "passed")
        for draw in first
        if draw.static is not None
    }
    assert kinds == {(True, "passed"), (False, "passed"), (False, "structural"), (False, "semantic")}
    share = sum(bool(draw.correct) for draw in first) / len(first)
    assert 0.3 < share < 0.9


def test_greedy_redraws_of_the_shipped_run() -> None:
    """The judge of determinism: all of A2's blind redraws are byte-equal, some reruns under other load differ."""
    draws = [draw for draw in shipped() if draw.condition == "primary"]
    blind = {"A2": judge_determinism(d for d in draws if d.arm in ("A0", "A2") and d.replicate == 0)}
    assert (blind["A2"].redraws, blind["A2"].differing) == (48, 0)
    whole = judge_determinism(draws)
    assert 0 < whole.differing < 0.02 * whole.redraws
    assert "not deterministic" in str(whole)
