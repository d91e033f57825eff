"""Counting: what is one observation, what reaches a stage, and that a second way of counting agrees."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pandas as pd
import pytest

from verdiv.estimators.chains import chains_of
from verdiv.estimators.observations import draw_columns
from verdiv.estimators.settings import Settings
from verdiv.estimators.tally import Tally, tally_draws
from verdiv.protocol.simulator.design import Design
from verdiv.protocol.simulator.scenarios import named_world
from verdiv.protocol.simulator.table import simulate
from verdiv.runlog.records import AnsweredClass, Decoding, Draw, DrawError, ErrorClass, PromptKind, Static
from verdiv.runlog.table import draws_frame


def count(draws: list[Draw] | pd.DataFrame, gate: str = "verifier", **kwargs: Any) -> Tally:
    """Tally records or a table."""
    table = draws if isinstance(draws, pd.DataFrame) else draws_frame(draws)
    return tally_draws(draw_columns(table), gate=gate, **kwargs)


def draw(draw_id: str, task: str = "t1", arm: str = "A0", correct: bool | None = True, **kwargs: Any) -> Draw:
    """One record with little typing."""
    return Draw(draw_id=draw_id, task_id=task, arm=arm, correct=correct, billed=1.0, **kwargs)


GREEDY = Decoding(temperature=0.0)
WARM = Decoding(temperature=0.7)


def test_a_copy_is_counted_once() -> None:
    """A draw shared by construction is one observation, in however many arms it is listed."""
    tally = count(
        [
            draw("a", arm="A0", decoding=GREEDY),
            draw("b", arm="A2", decoding=GREEDY, copy_of="a"),
            draw("c", arm="A3", decoding=GREEDY, copy_of="a"),
        ]
    )
    assert tally.events["q_greedy"].total_n == 1
    assert not tally.has("q")


def test_stochastic_draws_of_one_prompt_are_not_copies() -> None:
    """At a temperature above 0 every draw is an observation of its own."""
    tally = count([draw(str(i), arm="A1", attempt=1, replicate=i, decoding=WARM) for i in range(4)])
    assert tally.events["q"].total_n == 4


def test_greedy_reruns_that_disagree_count_as_their_mean_and_are_noticed() -> None:
    """Three greedy records of one prompt, one of them wrong, are one observation worth two thirds."""
    tally = count([draw(str(i), replicate=i, correct=i > 0, decoding=GREEDY) for i in range(3)])
    assert tally.events["q_greedy"].total_n == pytest.approx(1.0)
    assert tally.events["q_greedy"].total_k == pytest.approx(2 / 3)
    assert (tally.greedy_observations, tally.disagreeing_copies) == (1, 1)


def test_a_missing_outcome_is_not_a_wrong_one() -> None:
    """An unscored draw leaves n, it does not enter it with k = 0."""
    tally = count([draw("a"), draw("b", task="t2", correct=None)])
    assert (tally.events["q"].total_k, tally.events["q"].total_n) == (1, 1)


def test_without_classes_all_answered_errors_are_unclassified() -> None:
    """s2 is computed on every answered error and labelled; s1 and sigma have no draws."""
    tally = count(
        [
            draw("a", arm="A3", correct=False),
            draw("b", arm="A3", attempt=2, prompt_kind=PromptKind.FEEDBACK, parent="a"),
        ],
        gate="truth",
    )
    assert tally.unclassified
    assert (tally.events["s2"].total_k, tally.events["s2"].total_n) == (1, 1)
    assert not tally.has("s1")
    assert not tally.has("sigma")


def test_a_class_counts_whether_or_not_the_answer_was_flagged() -> None:
    """Where the model is told of every wrong answer, an unflagged semantic error answered counts for s2."""
    tally = count(
        [
            draw("a", arm="A3", correct=False, static=Static(flagged=False)),
            draw(
                "b", arm="A3", attempt=2, prompt_kind=PromptKind.FEEDBACK, parent="a",
                answered_class=AnsweredClass.SEMANTIC, static=Static(flagged=False),
            ),
        ],
        gate="truth",
    )  # fmt: skip
    assert not tally.unclassified
    assert tally.events["s2"].total_n == 1
    assert tally.events["delta"].total_k == 0


def test_budgets_are_read_by_truncation() -> None:
    """At budget B a gated arm answers its first unflagged draw, else its last within B, and pays what it drew."""
    flagged = Static(flagged=True, error_class=ErrorClass.SEMANTIC)
    records = [
        draw("a", arm="A3", correct=False, static=flagged),
        draw(
            "b",
            arm="A3",
            correct=False,
            static=flagged,
            attempt=2,
            prompt_kind=PromptKind.FEEDBACK,
            parent="a",
        ),
        draw(
            "c",
            arm="A3",
            static=Static(flagged=False),
            attempt=3,
            prompt_kind=PromptKind.FEEDBACK,
            parent="b",
        ),
    ]
    chains = chains_of(draw_columns(draws_frame(records)), "A3", gate="verifier")
    assert chains is not None
    got = [(c.k.sum(), c.bill.sum(), c.residual.sum()) for c in (chains.at(b) for b in (1, 2, 3, 5))]
    assert got == [(0, 1, 1), (0, 2, 1), (1, 3, 0), (1, 3, 0)]


def test_a_chain_cut_off_while_pending_is_unknown_at_larger_budgets() -> None:
    """If some chain still waited for a retry at the arm's longest attempt, larger budgets are not reported."""
    flagged = Static(flagged=True, error_class=ErrorClass.SEMANTIC)
    records = [draw("a", arm="A3", correct=False, static=flagged)]
    assert ("A3", 2) not in count(records).at_budget


def naive(table: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """Count k and n of each stage again, one record at a time, without any of the package's arrays."""
    by_id: dict[str, dict[str, Any]] = {
        str(r["draw_id"]): {str(k): v for k, v in r.items()} for r in table.to_dict("records")
    }
    sets: dict[str, dict[tuple[Any, ...], list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for r in by_id.values():
        if r["condition"] != "primary" or r["error_kind"] or pd.isna(r["correct"]):
            continue
        root = by_id[r["copy_of"]] if r["copy_of"] else r
        key: tuple[Any, ...] = ("draw", root["draw_id"])
        if root["temperature"] == 0:
            key = (root["task_id"], root["prompt_sha256"], root["prompt_kind"], root["tier"])
        sets["all"][key].append(r)
    out: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for group in sets["all"].values():
        for r in group:
            for stage, event in stages_of(r, by_id):
                out[stage][0] += event / len([g for g in group if same_set(stage, g, r)])
                out[stage][1] += 1 / len([g for g in group if same_set(stage, g, r)])
    return {stage: (k, n) for stage, (k, n) in out.items()}


def same_set(stage: str, other: dict[str, Any], r: dict[str, Any]) -> bool:
    """Whether two records of one observation are weighed together: arm by arm for repairs and redraws."""
    return other["arm"] == r["arm"] if stage in ("s1", "s2", "s_blind") else True


def stages_of(r: dict[str, Any], by_id: dict[str, dict[str, Any]]) -> list[tuple[str, bool]]:
    """Name the stages a record reaches, and whether the event happened there."""
    right, flagged = bool(r["correct"]), r["flagged"] is True or r["flagged"] == True  # noqa: E712
    found: list[tuple[str, bool]] = []
    parent = by_id.get(r["parent"]) if r["parent"] else None
    if right:
        found.append(("fpr", flagged))
    if r["prompt_kind"] == "initial" and r["tier"] == "small":
        found.append(("q_greedy" if r["temperature"] == 0 else "q", right))
        if not right:
            found.append(("delta", flagged))
            if flagged:
                found.append(("sigma", r["error_class"] == "structural"))
            else:
                found.append(("eta_ox", bool(r["oracle_flagged"])))
    if r["arm"] == "A3" and r["attempt"] == 2 and parent is not None and not parent["correct"]:
        found.append(("s1" if r["answered_class"] == "structural" else "s2", right))
    if r["arm"] == "A2s" and r["attempt"] == 2:
        found.append(("s_blind", right))
    if r["tier"] == "teacher" and r["prompt_kind"] == "initial":
        found.append(("q_T", right))
    return found


@pytest.mark.parametrize("stochastic", [False, True])
def test_a_second_way_of_counting_agrees(stochastic: bool) -> None:
    """Array counts equal those of a plain loop over records, stage by stage, to the count."""
    design = Design(tasks=60, a3_stochastic=stochastic, a5_stochastic=True)
    table = simulate(named_world("plausible"), design, 5)
    tally = count(table)
    loop = naive(table)
    assert set(loop) >= {"q", "q_greedy", "delta", "sigma", "eta_ox", "fpr", "s1", "s2", "s_blind", "q_T"}
    for stage, (k, n) in loop.items():
        got = (tally.events[stage].total_k, tally.events[stage].total_n)
        assert got == pytest.approx((k, n)), stage


def test_no_count_depends_on_the_logged_order_of_draws() -> None:
    """Parallel draws are exchangeable: shuffling the records changes no stage, pair or budget."""
    table = simulate(named_world("plausible"), Design(tasks=40, a5_stochastic=True), 2)
    shuffled = table.sample(frac=1.0, random_state=7)
    before, after = count(table), count(shuffled)
    for stage, events in before.events.items():
        other = after.events[stage]
        assert (events.total_n, events.total_k) == pytest.approx((other.total_n, other.total_k)), stage
    for key, cell in before.at_budget.items():
        assert cell.k.sum() == after.at_budget[key].k.sum(), key


def test_pairs_do_not_see_the_order_in_which_draws_are_stored() -> None:
    """Grouped storage makes "second given first" eight times too low; ordered pairs of all draws do not see it."""
    rng = np.random.default_rng(3)
    theta = rng.beta(0.5, 0.5, 400)
    outcome = rng.random((400, 10)) < theta[:, None]
    grouped = np.sort(outcome, axis=1)
    rates = []
    for matrix in (outcome, grouped):
        records = [
            draw(f"{t}.{j}", task=str(t), replicate=j, correct=bool(matrix[t, j]), decoding=WARM)
            for t in range(400)
            for j in range(10)
        ]
        e = count(records, gate="none").events["s_blind_pairs"]
        rates.append(e.total_k / e.total_n)
    first_wrong = ~grouped[:, 0]
    naive_rate = grouped[first_wrong, 1].mean()
    assert rates[0] == rates[1]
    assert naive_rate < rates[0] / 2


def test_a_lost_draw_makes_the_answer_missing_not_wrong() -> None:
    """A chain whose retry failed on the way has no answer at B = 2; its flagged parent is not its answer."""
    flagged = Static(flagged=True, error_class=ErrorClass.SEMANTIC)
    records = [
        draw("a", arm="A3", correct=False, static=flagged),
        draw(
            "b", arm="A3", correct=None, attempt=2, prompt_kind=PromptKind.FEEDBACK, parent="a",
            error=DrawError(kind="timeout"),
        ),
        draw("c", task="t2", arm="A3", static=Static(flagged=False)),
    ]  # fmt: skip
    tally = count(records)
    assert [tally.at_budget["A3", b].n.sum() for b in (1, 2)] == [2, 1]
    assert tally.at_budget["A3", 2].k.sum() == 1


@pytest.mark.parametrize(
    ("outcome", "engine"), [(True, "grid"), (False, "grid"), (None, "grid"), (None, "nuts")]
)
def test_a_log_of_one_outcome_is_analysed(outcome: bool | None, engine: str) -> None:
    """All right, all wrong and nothing scored are no errors: the first two give proper intervals, the last none."""
    from verdiv.analysis import analyze_log
    from verdiv.runlog.records import Gate, Header
    from verdiv.runlog.table import InputFile, RunLog

    lost = DrawError(kind="missing") if outcome is None else None
    records = [draw(str(i), task=str(i), correct=outcome, error=lost) for i in range(20)]
    header = Header(schema=1, run_id="x", gate=Gate.NONE, harness="test")
    source = InputFile("x", "0" * 64, 20, 20, "incomplete", "none")
    log = RunLog((header,), draws_frame(records), (source,), ())
    record = analyze_log(log, settings=Settings(engine)).document["estimates"]["q0"]
    if outcome is None:
        assert record["status"] == "not_estimable"
        assert record.get("mean") is None
    else:
        assert (record["k"], record["n"]) == (20 * outcome, 20)
        assert 0 < record["low"] < record["high"] < 1
