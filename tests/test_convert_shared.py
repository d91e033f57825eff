"""Shipped mappings on public logs: every count equals the one that plain counting gave."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from verdiv.errors import InputRefused
from verdiv.runlog.convert import Conversion, convert
from verdiv.runlog.reader import read_run_log
from verdiv.runlog.records import AnsweredClass, Draw, ErrorClass, Gate
from verdiv.runlog.writer import write_run_log

SQL = "sql/gpt-3.5/ic_sql_multiturn_gpt-3.5_10_turns_handicap.json"
INTERCODE = (
    SQL,
    "sql/gpt-3.5/ic_sql_multiturn_gpt-3.5-1_turns_handicap.json",
    "bash/chat-bison-001/ic_bash_multiturn_chat-bison-001_10_turns_fs_1.json",
    "bash/gpt-4/ic_bash_multiturn_gpt-4_10_turns_fs_1.json",
    "bash/gpt-4/ic_bash_multiturn_gpt-4_10_turns_fs_2.json",
    "bash/gpt-4/ic_bash_multiturn_gpt-4_10_turns_fs_3.json",
    "bash/gpt-4/ic_bash_multiturn_gpt-4_10_turns_fs_4.json",
    "python/gpt-3.5/ic_python_multiturn_gpt-3.5_7_turns.json",
    "python/gpt-3.5/ic_python_multiturn_gpt-4_7_turns.json",
)


@lru_cache(maxsize=8)
def converted(name: str, *sources: Path) -> Conversion:
    """Convert once for all tests that look at the same sources."""
    return convert(name, sources)


@pytest.fixture(scope="session")
def expected(shared_data: Path) -> Any:
    """The independently counted answers."""
    return json.loads((shared_data / "EXPECTED.json").read_text(encoding="utf-8"))


def share(draws: Iterable[Draw]) -> dict[str, int]:
    """Right draws of all draws; each of them must be scored."""
    scored = [draw.correct for draw in draws]
    assert None not in scored
    return {"k": sum(correct is True for correct in scored), "n": len(scored)}


def counts(entry: dict[str, Any]) -> dict[str, int]:
    """The counts of an expected entry, without its rate."""
    return {"k": entry["k"], "n": entry["n"]}


def of(draws: Sequence[Draw], arm: str, attempt: int) -> list[Draw]:
    """Draws of one arm and attempt."""
    return [draw for draw in draws if draw.arm == arm and draw.attempt == attempt]


@pytest.mark.parametrize(("arm", "run"), [("A2s", "base_run_logs"), ("A3", "reflexion_run_logs")])
def test_alfworld_hazards(shared_data: Path, expected: Any, arm: str, run: str) -> None:
    """The success of attempt t is the change of a cumulative flag, and trials order as numbers (14 after 2)."""
    draws = converted("reflexion-alfworld", shared_data / "reflexion" / "alfworld").draws
    want = expected["reflexion_alfworld"][run]
    assert share(of(draws, arm, 1)) == {"k": 84, "n": 134}
    hazards = want["hazard_by_attempt"]
    for attempt, hazard in enumerate(hazards, start=2):
        assert share(of(draws, arm, attempt)) == counts(hazard)
    assert not of(draws, arm, len(hazards) + 2)
    solved = Counter(draw.attempt for draw in draws if draw.arm == arm and draw.correct)
    cumulative = [sum(solved[a] for a in range(1, t + 1)) for t in range(1, len(hazards) + 2)]
    assert cumulative == want["cumulative_success"]


def test_alfworld_shares_its_first_attempts(shared_data: Path) -> None:
    """A first attempt that two arms share is listed in both and marked as a copy in one."""
    conversion = converted("reflexion-alfworld", shared_data / "reflexion" / "alfworld")
    by_id = {draw.draw_id: draw for draw in conversion.draws}
    firsts = of(conversion.draws, "A3", 1)
    assert {by_id[str(draw.copy_of)].arm for draw in firsts} == {"A2s"}
    assert all(by_id[str(draw.copy_of)].task_id == draw.task_id for draw in firsts)
    assert not any(draw.copy_of for draw in conversion.draws if draw.arm == "A2s" or draw.attempt > 1)
    assert (conversion.ledger.copies, conversion.ledger.copy_clashes) == (134, 0)


def test_alfworld_says_no_more_than_it_knows(shared_data: Path) -> None:
    """No verifier, no classes: static is null, the error a reflection answers is unclassified, the truth gated."""
    conversion = converted("reflexion-alfworld", shared_data / "reflexion" / "alfworld")
    assert conversion.header.gate is Gate.TRUTH
    assert all(draw.static is None for draw in conversion.draws)
    classes = {(draw.arm, draw.attempt > 1, draw.answered_class) for draw in conversion.draws}
    assert classes == {
        ("A2s", False, None),
        ("A2s", True, None),
        ("A3", False, None),
        ("A3", True, AnsweredClass.UNCLASSIFIED),
    }
    assert conversion.ledger.draws.excluded == {
        "already solved at an earlier attempt (cumulative flag)": 134 * 22 - 698
    }


def test_alfworld_single_folder(shared_data: Path) -> None:
    """A template fits the end of a path, so that one run's folder can be converted alone."""
    conversion = convert("reflexion-alfworld", [shared_data / "reflexion" / "alfworld" / "base_run_logs"])
    assert {draw.arm for draw in conversion.draws} == {"A2s"}
    assert len(conversion.draws) == 364
    assert conversion.ledger.idle_templates == ("reflexion_run_logs/env_results_trial_{trial:int}.json",)


@pytest.mark.parametrize("path", INTERCODE)
def test_intercode_counts(shared_data: Path, expected: Any, path: str) -> None:
    """Only a reward of exactly 1 is correct; an invalid action is structural, a valid wrong one semantic."""
    conversion = converted("intercode-sql", shared_data / "intercode" / path)
    draws, want = conversion.draws, expected["intercode"][path]
    first, second = of(draws, "A3", 1), of(draws, "A3", 2)
    assert share(first) == counts(want["q0"])
    assert max(draw.attempt for draw in draws) == want["max_turns"]
    wrong = [draw for draw in first if not draw.correct]
    flagged = [draw for draw in wrong if draw.static is not None and draw.static.flagged]
    assert (len(flagged), len(wrong)) == (
        want["structural_first"]["k"],
        want["structural_first"]["n"],
    )
    right_flagged = [d for d in first if d.correct and d.static is not None and d.static.flagged]
    assert len(right_flagged) == want["checker_FP_P_invalid_given_correct"]["k"]
    by_class: dict[str, list[Draw]] = defaultdict(list)
    for draw in second:
        by_class[str(draw.answered_class)].append(draw)
    assert share(by_class["structural"]) == counts(want["s1_next_after_structural"])
    python = path.startswith("python")
    assert share(by_class["unclassified" if python else "semantic"]) == counts(want["s2_next_after_semantic"])
    assert not by_class["semantic" if python else "unclassified"]
    assert conversion.ledger.ragged == want["length_mismatch_rows"]
    assert conversion.ledger.nonbinary == want["nonbinary_rewards"]
    assert (
        sum(draw.static is None for draw in draws) - want["length_mismatch_rows"]
        == (want["null_valid_action"])
    )


def test_intercode_sql_in_figures(shared_data: Path) -> None:
    """q0 703/1034, flagged wrong 37/331, flagged correct 0/753 of all draws, s1 8/37, s2 24/294."""
    draws = converted("intercode-sql", shared_data / "intercode" / SQL).draws
    first = of(draws, "A3", 1)
    assert share(first) == {"k": 703, "n": 1034}
    flagged = Counter((draw.correct, draw.static.flagged) for draw in first if draw.static is not None)
    assert (flagged[False, True], flagged[False, True] + flagged[False, False]) == (37, 331)
    overall = Counter((draw.correct, draw.static.flagged) for draw in draws if draw.static is not None)
    assert (overall[True, True], overall[True, True] + overall[True, False]) == (0, 753)
    second = of(draws, "A3", 2)
    structural = [draw for draw in second if draw.answered_class is AnsweredClass.STRUCTURAL]
    semantic = [draw for draw in second if draw.answered_class is AnsweredClass.SEMANTIC]
    assert (share(structural), share(semantic)) == ({"k": 8, "n": 37}, {"k": 24, "n": 294})


def test_intercode_all_turn_transitions(shared_data: Path, expected: Any) -> None:
    """The class that a draw answers is that of the very turn before it, at every attempt."""
    draws = converted("intercode-sql", shared_data / "intercode" / SQL).draws
    want = expected["intercode"][SQL]["all_turn_transitions"]
    later = [draw for draw in draws if draw.attempt > 1]
    for name in ("structural", "semantic"):
        answered = [draw for draw in later if draw.answered_class == name]
        assert share(answered) == {"k": want[f"{name}_k"], "n": want[f"{name}_n"]}


def test_intercode_task_sets_stay_apart(shared_data: Path) -> None:
    """Task 0 of one data set is not task 0 of another: a folder of several sets merges nothing."""
    conversion = converted("intercode-sql", shared_data / "intercode" / "bash" / "gpt-4")
    assert len({draw.task_id for draw in conversion.draws}) == 60 + 53 + 60 + 27
    assert {draw.replicate for draw in conversion.draws} == {0}
    assert conversion.ledger.clean


def test_intercode_two_runs_are_two_replicates(shared_data: Path) -> None:
    """The 1-turn and the 10-turn file answer the same tasks: two replicates, not duplicates."""
    conversion = converted("intercode-sql", shared_data / "intercode" / "sql")
    first = of(conversion.draws, "A3", 1)
    by_replicate = {r: share(d for d in first if d.replicate == r) for r in (0, 1)}
    assert sorted(entry["k"] for entry in by_replicate.values()) == [703, 740]
    assert conversion.ledger.clean


@pytest.mark.parametrize("direction", ["input", "output"])
def test_cruxeval_counts(shared_data: Path, expected: Any, direction: str) -> None:
    """Scores and texts are joined by key though the two objects list their keys in different orders."""
    conversion = converted("cruxeval", shared_data / "cruxeval")
    want = expected["cruxeval_codellama7b_T0.2"][direction]
    draws = [draw for draw in conversion.draws if draw.family == direction]
    assert share(draws) == {"k": want["successes"], "n": 8000}
    tasks: dict[str, list[Draw]] = defaultdict(list)
    for draw in draws:
        tasks[draw.task_id].append(draw)
    assert {len(group) for group in tasks.values()} == {10}
    assert {tuple(sorted(d.replicate for d in group)) for group in tasks.values()} == {tuple(range(10))}
    right = [sum(d.correct is True for d in group) for group in tasks.values()]
    assert (right.count(0), right.count(10)) == (want["never_solved"], want["always_solved"])
    pairs = (sum(c * (10 - c) for c in right), sum(9 * (10 - c) for c in right))
    assert pairs == (want["pair_num"], want["pair_den"])
    twins = sum(
        a.output == b.output for group in tasks.values() for i, a in enumerate(group) for b in group[i + 1 :]
    )
    assert twins / (45 * len(tasks)) == pytest.approx(want["identical_text_share_of_pairs"], abs=1e-12)


def test_cruxeval_order_is_meaningless(shared_data: Path) -> None:
    """The log is marked so that no estimator reads list order as draw order; other files are listed."""
    conversion = converted("cruxeval", shared_data / "cruxeval")
    assert not conversion.header.order_meaningful
    assert {draw.attempt for draw in conversion.draws} == {1}
    assert {draw.arm for draw in conversion.draws} == {"A0"}
    assert {draw.decoding.temperature for draw in conversion.draws if draw.decoding} == {0.2}
    assert {Path(name).name for name in conversion.ledger.unmatched} == {
        "SOURCE.md",
        "cruxeval.jsonl",
        "generations_codellama-7b_temp0.2_input.json",
        "generations_codellama-7b_temp0.2_output.json",
    }


def test_cruxeval_single_file(shared_data: Path) -> None:
    """One scored file alone is a log of one family."""
    path = shared_data / "cruxeval" / "sample_scored_codellama-7b_temp0.2_output.json"
    assert share(convert("cruxeval", [path]).draws) == {"k": 2737, "n": 8000}


def test_structured_output_counts(shared_data: Path, expected: Any) -> None:
    """Attempts lie at two places; the file and the run number make the replicate; repairs are structural."""
    conversion = converted("structured-output", shared_data / "structured_output_retry")
    want = list(expected["structured_output_retry"].values())
    for file, entry in enumerate(want):
        draws = [draw for draw in conversion.draws if draw.replicate // 3 == file]
        first, second = of(draws, "A3", 1), of(draws, "A3", 2)
        assert share(first) == {"k": entry["first_ok"], "n": entry["units"]}
        assert share(second) == {"k": entry["second_ok"], "n": entry["second_n"]}
        assert len(draws) == entry["attempts"]
        assert {draw.answered_class for draw in second} == {AnsweredClass.STRUCTURAL}
        assert sum(draw.tokens_in or 0 for draw in draws) == entry["totals"]["in"]
        assert sum(draw.tokens_out or 0 for draw in draws) == entry["totals"]["out"]
        scenario = Counter(draw.task_id.split("/")[1] for draw in first)
        right = Counter(draw.task_id.split("/")[1] for draw in first if draw.correct)
        assert {key: {"units": n, "first_ok": right[key]} for key, n in scenario.items()} == (
            entry["by_scenario"]
        )
    assert [entry["first_ok"] for entry in want] == [170, 186]
    assert [(entry["second_ok"], entry["second_n"]) for entry in want] == [(22, 22), (5, 6)]


def test_structured_output_verdicts(shared_data: Path) -> None:
    """The validator flags exactly what is not valid, as structural, with the code of its first error."""
    conversion = converted("structured-output", shared_data / "structured_output_retry")
    assert conversion.header.gate is Gate.VERIFIER
    codes: Counter[str | None] = Counter()
    for draw in conversion.draws:
        assert draw.static is not None
        assert draw.static.flagged is (draw.correct is False)
        if draw.static.flagged:
            assert draw.static.error_class is ErrorClass.STRUCTURAL
            assert draw.static.message
            codes[draw.static.code] += 1
    assert codes == {"invalid_json": 12 + 7, "invalid_type": 10}
    assert len({draw.family for draw in conversion.draws}) == 10


def test_structured_output_times(shared_data: Path) -> None:
    """The logged instant is the end of a request; its start is the duration earlier, and never overlaps."""
    conversion = converted("structured-output", shared_data / "structured_output_retry")
    assert all(draw.started_at and draw.ended_at for draw in conversion.draws)
    chains: dict[str, Draw] = {draw.draw_id: draw for draw in conversion.draws}
    for draw in conversion.draws:
        assert str(draw.started_at) < str(draw.ended_at)
        if draw.parent:
            assert str(chains[draw.parent].ended_at) <= str(draw.started_at)


def test_bfcl_counts(shared_data: Path, expected: Any) -> None:
    """A result that the score file does not list is right; ids count from 1 there and from 0 here."""
    conversion = converted("bfcl", shared_data / "bfcl_v1")
    dates = {"2024-07-06": 0, "2024-08-11": -1}
    checked = 0
    for key, entry in expected["bfcl_v1"].items():
        date, _, family = key.partition("/")
        if date not in dates:
            continue
        draws = [draw for draw in conversion.draws if draw.family == family]
        replicates = sorted({draw.replicate for draw in draws})
        draws = [draw for draw in draws if draw.replicate == replicates[dates[date]]]
        assert share(draws) == {"k": entry["header"]["correct_count"], "n": entry["tasks"]}
        flagged = [draw for draw in draws if draw.static is not None and draw.static.flagged]
        assert len(flagged) == entry["structural_share_of_failures"]["k"]
        assert not any(draw.correct for draw in flagged)
        checked += 1
    assert checked == 13
    assert conversion.ledger.clean
    assert not conversion.ledger.notes


def test_bfcl_copied_generations_are_read_once(shared_data: Path) -> None:
    """Two dates with the same bytes are one generation: 800 repeats are left out and named."""
    conversion = converted("bfcl", shared_data / "bfcl_v1")
    assert list(conversion.ledger.draws.excluded.values()) == [800]
    java = [draw for draw in conversion.draws if draw.family.endswith("FC/java")]
    assert [share(d for d in java if d.replicate == r)["k"] for r in (0, 1, 2)] == [53, 60, 64]


def test_bfcl_without_score_file_has_no_outcome(shared_data: Path) -> None:
    """A result file whose score file is not among the sources says nothing about right and wrong."""
    folder = shared_data / "bfcl_v1" / "2024-08-11" / "result" / "mistral-tiny-2312"
    conversion = convert("bfcl", [folder])
    assert {draw.correct for draw in conversion.draws} == {None}
    assert {draw.error.kind for draw in conversion.draws if draw.error} == {"missing"}
    assert conversion.ledger.missing == 400


def test_llmperf_failures_are_no_measurements(shared_data: Path, expected: Any) -> None:
    """Failed requests carry their code and neither tokens nor times; nothing is scored."""
    conversion = converted("llmperf", shared_data / "llmperf")
    for name, entry in expected["llmperf"].items():
        draws = [draw for draw in conversion.draws if draw.family == name.removesuffix(".json")]
        assert len(draws) == entry["n"]
        failed = [draw for draw in draws if draw.error is not None]
        assert len(failed) == entry["errors"]
        codes = {code: n for code, n in entry["error_codes"].items() if code != "None"}
        assert Counter(draw.error.kind for draw in failed if draw.error) == codes
        assert all(draw.tokens_out is None and draw.ended_at is None for draw in failed)
        tokens = [draw.tokens_out for draw in draws if draw.tokens_out is not None]
        assert sum(tokens) / len(tokens) == pytest.approx(entry["mean_out_tokens"], rel=1e-12)
    assert all(draw.correct is None for draw in conversion.draws)


def test_lm_eval_list_is_no_outcome(shared_data: Path) -> None:
    """A metric that is a list of texts (corpus f1) is no outcome: the draw stays, its truth is missing."""
    conversion = converted("lm-eval", shared_data / "lm_eval_row")
    (draw,) = conversion.draws
    assert (draw.correct, draw.error and draw.error.kind) == (None, "missing")
    assert "no draw has an outcome" in conversion.ledger.notes


def test_programming_counts(shared_data: Path, expected: Any) -> None:
    """Truth is logged for the last attempt only; what came before is flagged and has no outcome."""
    conversion = converted("reflexion-programming", shared_data / "reflexion" / "programming")
    want = expected["reflexion_programming"]
    for family, entry in (("mbpp", "mbpp_py_two_runs"), ("humaneval", "humaneval_gpt4_two_runs")):
        draws = [draw for draw in conversion.draws if (draw.arm, draw.family) == ("A0", family)]
        assert share(draws) == {"k": want[entry]["successes"], "n": want[entry]["trials"]}
        assert {draw.replicate for draw in draws} == {0, 1}
    mbpp = [draw for draw in conversion.draws if (draw.arm, draw.family) == ("A3", "mbpp")]
    passed = [d for d in mbpp if d.attempt == 1 and d.static is not None and not d.static.flagged]
    assert share(passed) == {"k": 248 - 27, "n": want["mbpp_reflexion"]["first_accepted"]["k"]}
    second = [d for d in mbpp if d.attempt == 2 and d.correct is not None]
    assert share(second) == counts(want["mbpp_reflexion"]["one_reflection_solved"])
    last_of_budget = [d for d in mbpp if d.attempt == 5]
    assert {d.static for d in last_of_budget} == {None}
    assert len(last_of_budget) == want["mbpp_reflexion"]["n_reflections"]["4"]
    assert sum(d.correct is True for d in mbpp) == want["mbpp_reflexion"]["solved"]


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("reflexion-alfworld", "reflexion/alfworld"),
        ("intercode-sql", f"intercode/{SQL}"),
        ("structured-output", "structured_output_retry"),
        ("llmperf", "llmperf"),
    ],
)
def test_ledgers_close_and_logs_read_back(shared_data: Path, tmp_path: Path, name: str, source: str) -> None:
    """Every conversion closes its books and is a run log that the reader takes whole."""
    conversion = converted(name, shared_data / source)
    assert conversion.ledger.closes
    assert conversion.ledger.clean
    path = tmp_path / "x.runlog.jsonl"
    write_run_log(path, conversion.header, conversion.draws)
    log = read_run_log(path)
    assert list(log.draws["draw_id"]) == [draw.draw_id for draw in conversion.draws]
    missing = int(log.draws["correct"].isna().sum())
    assert missing == sum(draw.correct is None for draw in conversion.draws)


def test_wrong_mapping_for_a_folder(shared_data: Path) -> None:
    """Where no file matches, the templates and the files that were there are named."""
    with pytest.raises(InputRefused, match="No source fits the mapping 'cruxeval'") as caught:
        convert("cruxeval", [shared_data / "lm_eval_row"])
    fields = [fault.where for fault in caught.value.faults]
    assert "lm_eval_row/SOURCE.md" in fields
