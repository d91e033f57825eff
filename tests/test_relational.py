"""The counter of runs against a second one, written as group-by expressions and run on DuckDB, Polars and Spark."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relational_compare import differences, on_duckdb, on_polars, on_spark, relational, tallied
from relational_counts import Frame
from verdiv import fixtures
from verdiv.analysis.tallying import tally_logs
from verdiv.protocol.simulator.design import ConditionDesign, Design
from verdiv.protocol.simulator.runlog import simulate_run_log
from verdiv.protocol.simulator.scenarios import named_world
from verdiv.runlog.reader import iter_draws, read_run_log
from verdiv.runlog.records import (
    AnsweredClass,
    Decoding,
    Draw,
    DrawError,
    ErrorClass,
    Gate,
    Header,
    Oracle,
    PromptKind,
    Static,
)
from verdiv.runlog.writer import write_run_log

ENGINES: dict[str, Callable[[Path | str], Frame]] = {"duckdb": on_duckdb, "polars": on_polars}

CHAINED = ("A0", "A2", "A2s", "A3", "A4", "A5", "other")
KIND_OF = {"A2": PromptKind.BLIND, "A2s": PromptKind.BLIND, "A3": PromptKind.FEEDBACK}


def often(one: Any, *others: Any) -> st.SearchStrategy[Any]:
    """Draw a value from a few, the first twice as often."""
    return st.sampled_from([one, one, *others])


@st.composite
def outcomes(draw: st.DrawFn, feedback: bool) -> dict[str, Any]:
    """What came of a draw, or did not: lost, unscored, unseen by a verifier, flagged with and without a class."""
    error = draw(often(None, None, DrawError(kind="timeout")))
    static = draw(
        often(
            Static(flagged=True, error_class=ErrorClass.SEMANTIC),
            Static(flagged=True, error_class=ErrorClass.STRUCTURAL),
            Static(flagged=True),
            Static(flagged=False),
            Static(flagged=False),
            None,
        )
    )
    return {
        "error": error,
        "correct": None if error else draw(often(False, True, True, None)),
        "static": static,
        "oracle": draw(often(None, Oracle(flagged=True), Oracle(flagged=False))),
        "answered_class": draw(often(None, *AnsweredClass)) if feedback else None,
        "billed": draw(st.sampled_from([0.0, 0.1, 0.7, 1.0, 2.5])),
        "output_sha256": draw(often("1" * 64, "2" * 64, "3" * 64, None)),
        "emitted": draw(often(None, True, False)),
        "model": draw(often("m", "n", None)),
        "decoding": draw(
            often(
                Decoding(temperature=0.0), Decoding(temperature=0.7, seed=1), Decoding(temperature=0.7), None
            )
        ),
    }


@st.composite
def chains(draw: st.DrawFn, task: str, arm: str, start: int) -> list[Draw]:
    """Draws of one arm on one task: one chain or several votes, with attempts that repeat or are missing."""
    votes = arm == "A1"
    condition = draw(often("primary", "heavy-load"))
    replicate = draw(st.integers(0, 2))
    attempts = draw(
        st.sampled_from([[1], [1, 2], [1, 2, 3], [1, 2, 3, 4], [1, 1, 2], [1, 2, 2, 3], [2, 3], [1, 3, 5]])
    )
    made: list[Draw] = []
    for i, attempt in enumerate(attempts):
        kind = PromptKind.INITIAL if votes or attempt == 1 else KIND_OF.get(arm, PromptKind.BLIND)
        parents = [] if kind is PromptKind.INITIAL else [d.draw_id for d in made]
        prompt = draw(often("a" * 64, "b" * 64, None))
        made.append(
            Draw(
                draw_id=f"d{start + i}",
                task_id=task,
                arm=arm,
                condition=condition,
                tier="teacher" if arm in ("A4", "A5") else "small",
                replicate=replicate,
                attempt=attempt,
                prompt_kind=kind,
                parent=draw(often(parents[-1], None, *parents)) if parents else None,
                prompt_sha256=prompt,
                **draw(outcomes(kind is PromptKind.FEEDBACK)),
            )
        )
    return made


@st.composite
def hostile_logs(draw: st.DrawFn) -> tuple[Header, list[Draw]]:
    """Logs in which everything that may be missing is missing somewhere, and copies contradict what they copy."""
    made: list[Draw] = []
    tasks = draw(st.integers(1, 2))
    for _ in range(draw(st.integers(1, 8))):
        task = f"t{draw(st.integers(1, tasks))}"
        new = draw(
            chains(task, draw(st.sampled_from(["A3", "A3", "A3", "A2s", "A2s", "A1", *CHAINED])), len(made))
        )
        earlier = [d for d in made if d.task_id == task and d.prompt_kind is PromptKind.INITIAL]
        if earlier and new[0].prompt_kind is PromptKind.INITIAL and draw(st.booleans()):
            source = draw(st.sampled_from(earlier))
            new[0] = msgspec.structs.replace(new[0], copy_of=source.draw_id, tier=source.tier)
        made += new
    header = Header(schema=1, run_id="hostile", gate=draw(st.sampled_from(Gate)), harness="test")
    return header, draw(st.permutations(made)) if draw(st.booleans()) else made


def compared(engine: Callable[[Path], Frame], header: Header, draws: list[Draw]) -> list[str]:
    """Count a log both ways and say what differs."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.runlog.parquet"
        write_run_log(path, header, draws)
        counts = tally_logs([str(path)], max_budget=5)
        first = tallied(counts)
        assert first
        return differences(first, relational(engine(path), counts=counts))


def parquet(folder: Path, header: Header, draws: Iterable[Draw]) -> Path:
    """Write a log as Parquet."""
    path = folder / "run.runlog.parquet"
    write_run_log(path, header, (msgspec.structs.replace(d, prev=None) for d in draws))
    return path


CONDITIONS = (ConditionDesign(name="heavy-load"), ConditionDesign(name="nvfp4"))
WORLDS = {
    "plausible": Design(tasks=60, conditions=CONDITIONS),
    "null+sticky": Design(tasks=40, a3_stochastic=True),
    "worked+collapse+seeds": Design(tasks=40, budgets={"A0": 1, "A1": 7, "A2s": 3, "A3": 4}, greedy_reruns=2),
}


@pytest.fixture(scope="module", params=WORLDS)
def simulated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of some world."""
    header, draws = simulate_run_log(named_world(request.param), WORLDS[request.param], 3)
    return parquet(tmp_path_factory.mktemp("run"), header, draws)


@pytest.mark.parametrize("engine", ENGINES)
def test_simulated_runs_are_counted_alike(simulated: Path, engine: str) -> None:
    """Stages, answers at budgets, pluralities, parallel draws, flows and ledgers are those of the second counter."""
    counts = tally_logs([str(simulated)])
    first = tallied(counts)
    assert {key[1] for key in first} >= {"event", "cell", "parallel"}
    assert differences(first, relational(ENGINES[engine](simulated), counts=counts)) == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", fixtures.names("runs"))
def test_shipped_runs_are_counted_alike(tmp_path: Path, name: str, engine: str) -> None:
    """The runs that ship are counted alike, task by task and condition by condition."""
    with fixtures.as_path("runs", name) as path:
        log = parquet(tmp_path, read_run_log(path).headers[0], iter_draws(path))
    counts = tally_logs([str(log)])
    assert differences(tallied(counts), relational(ENGINES[engine](log), counts=counts)) == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
def test_spark_runs_the_second_counter_too(spark: Any, tmp_path: Path) -> None:
    """The same expressions on Spark give the same counts."""
    header, draws = simulate_run_log(named_world("plausible"), Design(tasks=12, conditions=CONDITIONS), 4)
    log = parquet(tmp_path, header, draws)
    counts = tally_logs([str(log)])
    assert differences(tallied(counts), relational(on_spark(log, spark), counts=counts)) == []


@given(hostile_logs(), st.sampled_from([*ENGINES]))
@settings(max_examples=15, suppress_health_check=list(HealthCheck))
def test_hostile_logs_are_counted_alike(log: tuple[Header, list[Draw]], engine: str) -> None:
    """Missing outcomes, contradicting copies, repeated and missing attempts are read the same way by both counters."""
    assert compared(ENGINES[engine], *log) == []


def test_one_outcome_turned_is_seen(tmp_path: Path) -> None:
    """The comparison can fail: a run with one outcome turned is told from the run that it was."""
    header, simulated = simulate_run_log(named_world("null"), Design(tasks=10), 5)
    draws = list(simulated)
    counts = tally_logs([str(parquet(tmp_path, header, draws))])
    at = next(i for i, d in enumerate(draws) if d.arm == "A4" and d.correct)
    turned = [*draws[:at], msgspec.structs.replace(draws[at], correct=False), *draws[at + 1 :]]
    (tmp_path / "turned").mkdir()
    other = parquet(tmp_path / "turned", header, turned)
    said = differences(tallied(counts), relational(on_polars(other), counts=counts))
    assert {line.split(":")[0] for line in said} >= {
        "('primary', 'event', 'q_T', 'k')",
        "('primary', 'cell', 'A4', 1, '', 'k')",
    }


FLAGGED = Static(flagged=True, error_class=ErrorClass.SEMANTIC)
"""What the verifier says of most draws below."""


def chain(arm: str, kind: PromptKind, corrects: str, replicate: int = 0, **changes: Any) -> list[Draw]:
    """Return a chain of flagged draws; a letter tells whether each is right or wrong."""
    made: list[Draw] = []
    for i, letter in enumerate(corrects):
        made.append(
            Draw(
                draw_id=f"{arm}-{replicate}-{i + 1}",
                task_id="t",
                arm=arm,
                replicate=replicate,
                attempt=i + 1,
                prompt_kind=kind if i else PromptKind.INITIAL,
                parent=made[-1].draw_id if made else None,
                correct=letter == "r",
                static=FLAGGED,
                billed=1.0,
                **changes,
            )
        )
    return made


def stage(folder: Path, draws: list[Draw], name: str, gate: Gate = Gate.VERIFIER) -> tuple[float, float]:
    """Return n and k of a stage of one small log."""
    header = Header(schema=1, run_id="r", gate=gate, harness="test")
    counts = tally_logs([str(parquet(folder, header, draws))], max_budget=5)
    events = counts.shards["primary"].events[name]
    return float(events.n.sum()), float(events.k.sum())


def test_late_repairs_answer_errors(tmp_path: Path) -> None:
    """A late draw that answers a correct one, flagged by mistake, repairs nothing; first repairs are counted so too."""
    draws = chain("A3", PromptKind.FEEDBACK, "wwrr")
    assert stage(tmp_path, draws, "late2") == (1.0, 1.0)


def test_blind_redraws_follow_draws_that_the_gate_sent_back(tmp_path: Path) -> None:
    """A redraw of what the gate let pass is no retry, however a harness came to make it."""
    passed = chain("A2s", PromptKind.BLIND, "ww", 0)
    passed[0] = msgspec.structs.replace(passed[0], static=Static(flagged=False))
    draws = passed + chain("A2s", PromptKind.BLIND, "wr", 1) + chain("A2s", PromptKind.BLIND, "rr", 2)
    assert stage(tmp_path, draws, "s_blind") == (2.0, 2.0)
    (tmp_path / "truth").mkdir()
    assert stage(tmp_path / "truth", draws, "s_blind", Gate.TRUTH) == (2.0, 1.0)


def test_a_greedy_retry_counts_once_in_the_drift(tmp_path: Path) -> None:
    """Two greedy records of one repair that disagree are one observation, half of which is wrong."""
    greedy: dict[str, Any] = {"decoding": Decoding(temperature=0.0), "model": "m"}
    draws = [
        d for r, word in enumerate(("ww", "wr")) for d in chain("A3", PromptKind.FEEDBACK, word, r, **greedy)
    ]
    draws += chain("A1", PromptKind.INITIAL, "ww", 0)
    n, k = stage(tmp_path, draws, "drift_feedback")
    assert n == pytest.approx(0.5, abs=1e-12)
    np.testing.assert_allclose(k, 0.0, atol=1e-12)
