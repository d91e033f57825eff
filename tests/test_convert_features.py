"""What a mapping can say, each on a table small enough to check by eye."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from convert_tables import mapping_of, outcomes, run
from verdiv.errors import InputRefused, UsageRefused
from verdiv.runlog.convert import convert, readers, sources
from verdiv.runlog.records import AnsweredClass, ErrorClass, PromptKind

NAN = float("nan")


@pytest.mark.parametrize(
    ("reward", "correct"),
    [
        (1, True),
        (1.0, True),
        (True, True),
        ("1", True),
        ("true", True),
        ("False", False),
        (0, False),
        (0.67, False),
        (0.9999999999, False),
        (2, False),
        (-1, False),
        (None, None),
        ("", None),
        ("  ", None),
        (NAN, None),
        ("nan", None),
    ],
)
def test_outcome_is_exact_or_missing(tmp_path: Path, reward: Any, correct: bool | None) -> None:
    """Success is exactly 1; null, NaN and the empty text are missing and never false."""
    conversion = run(tmp_path, mapping_of(), a__jsonl=[{"task": "t", "ok": reward}])
    (draw,) = conversion.draws
    assert draw.correct is correct
    assert (draw.error is not None and draw.error.kind == "missing") is (correct is None)
    assert conversion.ledger.missing == (correct is None)


@pytest.mark.parametrize("reward", ["yes", [1], {"a": 1}, float("inf"), "1_0"])
def test_outcome_is_never_guessed(tmp_path: Path, reward: Any) -> None:
    """A text, a list or an infinity is no outcome: the row is rejected, with file and line."""
    rows = [{"task": "a", "ok": 1}, {"task": "b", "ok": reward}]
    conversion = run(tmp_path, mapping_of(), a__jsonl=rows)
    assert [draw.task_id for draw in conversion.draws] == ["a"]
    assert list(conversion.ledger.draws.rejected.values()) == [1]
    (example,) = conversion.ledger.examples
    assert (Path(example.file).name, example.row) == ("a.jsonl", 2)
    assert "neither true, false nor a number" in example.text


def test_thresholds(tmp_path: Path) -> None:
    """A mapping may name another success value, or a threshold from which rewards count."""
    rows = [{"task": str(r), "ok": r} for r in (0, 50, 99, 100)]
    exact = run(tmp_path, mapping_of({"correct": {"from": "ok", "success": 100}}), a__jsonl=rows)
    assert [draw.correct for draw in exact.draws] == [False, False, False, True]
    assert exact.ledger.nonbinary == 2
    least = run(tmp_path, mapping_of({"correct": {"from": "ok", "at_least": 50}}), a__jsonl=rows)
    assert [draw.correct for draw in least.draws] == [False, True, True, True]


def test_value_maps_and_missing_marks(tmp_path: Path) -> None:
    """Texts become outcomes through a map; marks of missingness stay missing; the unlisted is rejected."""
    correct = {"from": "ok", "map": {"C": True, "I": False}, "missing": ["NA", -1]}
    rows = [{"task": str(i), "ok": ok} for i, ok in enumerate(["C", "I", "NA", -1, None, "P"])]
    conversion = run(tmp_path, mapping_of({"correct": correct}), a__jsonl=rows)
    assert [draw.correct for draw in conversion.draws] == [True, False, None, None, None]
    assert conversion.ledger.draws.rejected == {"a value that the map does not list": 1}


def test_formats_give_the_same_draws(tmp_path: Path) -> None:
    """CSV, TSV, JSON Lines (also gzipped, also named .json), a JSON document and Parquet read alike."""
    rows: list[dict[str, Any]] = [
        {"task": "a", "ok": 1, "n": 3},
        {"task": "b", "ok": 0, "n": 4},
        {"task": "c", "ok": None, "n": 5},
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    cells = [[row["task"], "" if row["ok"] is None else row["ok"], row["n"]] for row in rows]
    writers: dict[str, Any] = {
        "x.csv": "task,ok,n\r\n" + "".join(",".join(map(str, row)) + "\r\n" for row in cells),
        "x.tsv": "task\tok\tn\n" + "".join("\t".join(map(str, row)) + "\n" for row in cells),
        "x.jsonl": "\ufeff" + lines,
        "x.json": json.dumps(rows),
        "lines.json": lines,
    }
    seen = []
    for name, text in writers.items():
        path = tmp_path / name
        path.write_text(text, encoding="utf-8", newline="")
        table = mapping_of({"tokens_in": "n"}, files=[{"match": name}])
        seen.append([(d.task_id, d.correct, d.tokens_in) for d in convert(table, [path]).draws])
    (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "x.parquet")
    for name in ("x.jsonl.gz", "x.parquet"):
        table = mapping_of({"tokens_in": "n"}, files=[{"match": name}])
        seen.append([(d.task_id, d.correct, d.tokens_in) for d in convert(table, [tmp_path / name]).draws])
    assert seen == [[("a", True, 3), ("b", False, 4), ("c", None, 5)]] * 7


@pytest.mark.parametrize("name", ["x.csv.gz", "x.csv.zst", "x.csv"])
@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstandard"])
def test_packed_files_are_told_by_their_bytes(
    tmp_path: Path, name: str, pack: Callable[[bytes], bytes]
) -> None:
    """Gzip and Zstandard are unpacked whatever the file is called; a broken one is refused by its name."""
    stored = pack(b"task,ok\n" + b"".join(b"t%d,%d\n" % (i, i % 2) for i in range(5000)))
    (tmp_path / name).write_bytes(stored)
    draws = convert(mapping_of(files=[{"match": name, "format": "csv"}]), [tmp_path]).draws
    assert (len(draws), sum(bool(draw.correct) for draw in draws)) == (5000, 2500)
    (tmp_path / name).write_bytes(stored[:-9])
    with pytest.raises(InputRefused) as refused:
        convert(mapping_of(files=[{"match": name, "format": "csv"}]), [tmp_path])
    assert [fault.where for fault in refused.value.faults] == [f"{tmp_path.name}/{name}"]


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstandard"])
def test_a_packed_bomb_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    """A small file that holds too much is refused once the bound is passed, with little more than it in memory."""
    monkeypatch.setattr(readers, "MAX_BYTES", 1 << 20)
    (tmp_path / "x.csv.gz").write_bytes(pack(bytes(64 << 20)))
    tracemalloc.start()
    try:
        with pytest.raises(InputRefused, match="unpacked"):
            convert(mapping_of(files=[{"match": "*.gz"}]), [tmp_path])
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_standard_input_is_read_like_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard input gives the draws, the digest and the captured names of a file with its bytes and name."""
    stored = zstandard.compress(b'{"task": "a", "ok": 1}\n{"task": "b", "ok": 0}\n')
    path = tmp_path / "trial_3.jsonl"
    path.write_bytes(stored)
    table = mapping_of({"replicate": "@trial"}, files=[{"match": "trial_{trial:int}.jsonl"}])
    expected = convert(table, [path])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stored)))
    found = convert(table, ["-"], stdin_name="runs/trial_3.jsonl")
    assert found.draws == expected.draws
    assert found.header == expected.header
    (entry,) = found.ledger.files
    assert (entry.path, entry.sha256) == ("-", expected.ledger.files[0].sha256)


def test_standard_input_needs_a_name_where_names_are_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a name the first template without captures reads it; where there is none, that is refused."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"task,ok\na,1\n")))
    assert len(convert(mapping_of(files=[{"match": ["{arm}.csv", "*.csv"]}]), ["-"]).draws) == 1
    with pytest.raises(UsageRefused, match="stdin-name"):
        convert(mapping_of(files=[{"match": "{arm}.csv"}]), ["-"])


def test_too_long_a_standard_input_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard input without end fills no disk."""
    monkeypatch.setattr(sources, "MAX_STREAM", 1 << 20)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(bytes(3 << 20))))
    with pytest.raises(InputRefused, match="at most 1048576 bytes"):
        convert(mapping_of(files=[{"match": "*.csv"}]), ["-"])


def test_nested_paths_wildcards_and_passed_elements(tmp_path: Path) -> None:
    """Keys of an object become columns, and a record can refer to every level it lies in."""
    document = {
        "seed": 7,
        "results": {
            "m.1": {"easy": {"runs": [{"no": 5, "tries": [{"ok": 0}, {"ok": 1}]}]}},
            "m2": {"hard": {"runs": [{"no": 6, "tries": [{"ok": 0}]}, {"no": 8, "tries": []}]}},
        },
    }
    draw = {
        "task_id": {"join": ["@model", "@level"], "separator": ":"},
        "family": "@level",
        "replicate": "@run.no",
        "attempt": {"from": "#try", "add": 1},
        "retry": {"const": "feedback"},
        "decoding": {"seed": "@root.seed", "temperature": 0},
    }
    paths = ["results.{model}.{level}.runs[run].tries[try]"]
    conversion = run(tmp_path, mapping_of(draw, records={"paths": paths}), a__json=document)
    assert outcomes(conversion) == [("m.1:easy", 1, False), ("m.1:easy", 2, True), ("m2:hard", 1, False)]
    assert [draw.replicate for draw in conversion.draws] == [5, 5, 6]
    assert {draw.decoding.seed for draw in conversion.draws if draw.decoding} == {7}


def test_alternative_record_paths(tmp_path: Path) -> None:
    """Attempts may lie at one place or at another; an empty or null place yields nothing and is no fault."""
    document = [
        {"id": "a", "attempts": [{"ok": 1}], "steps": None},
        {"id": "b", "attempts": [], "steps": [{"attempts": [{"ok": 0}, {"ok": 1}]}]},
    ]
    draw = {
        "task_id": {"join": ["@item.id", "#step"]},
        "attempt": {"from": "#try", "add": 1},
        "retry": {"const": "blind"},
    }
    paths = ["[item].attempts[try]", "[item].steps[step].attempts[try]"]
    conversion = run(tmp_path, mapping_of(draw, records={"paths": paths}), a__json=document)
    assert outcomes(conversion) == [("a", 1, True), ("b/0", 1, False), ("b/0", 2, True)]
    assert conversion.ledger.clean


def test_wrong_shape_is_rejected_where_it_lies(tmp_path: Path) -> None:
    """A branch of another shape than the record path says is one rejected record, the rest is read."""
    document = {"runs": [{"tries": [{"task": "a", "ok": 1}]}, {"tries": "none"}]}
    conversion = run(tmp_path, mapping_of(records={"paths": ["runs[].tries[]"]}), a__json=document)
    assert len(conversion.draws) == 1
    assert conversion.ledger.records.rejected == {"an array where the record path leads": 1}
    assert "a string at runs[1].tries" in conversion.ledger.examples[0].text


@pytest.mark.parametrize(
    ("length", "want"),
    [("shortest", [True]), ("longest", [True, False, None]), ("reward", [True, False])],
)
def test_ragged_arrays(tmp_path: Path, length: str, want: list[bool | None]) -> None:
    """Arrays of different lengths are reported, and the mapping says which length holds."""
    row = {"task": "a", "rewards": [1, 0], "actions": ["x", "y", "z"], "notes": ["n"]}
    arrays = {"reward": "rewards", "action": "actions", "note": "notes"}
    draw = {
        "correct": "@reward",
        "output": "@action",
        "attempt": {"from": "#turn", "add": 1},
        "retry": {"const": "feedback"},
    }
    table = mapping_of(draw, records={"expand": {"arrays": arrays, "length": length}})
    conversion = run(tmp_path, table, a__jsonl=[row, {**row, "task": "b", "actions": [], "rewards": []}])
    mine = [draw for draw in conversion.draws if draw.task_id == "a"]
    assert [draw.correct for draw in mine] == want
    assert [draw.output for draw in mine] == ["x", "y", "z"][: len(want)]
    assert conversion.ledger.ragged == 2
    assert "reward 2, action 3, note 1" in conversion.ledger.ragged_examples[0].text


def test_wide_table_of_attempts(tmp_path: Path) -> None:
    """One row with a column an attempt: blank later columns are attempts never made, not missing outcomes."""
    text = "task,first,second,third\na,1,,\nb,0,1,\nc,0,0,0\nd,,,\n"
    expand = {"arrays": {"result": ["first", "second", "third"]}, "until_missing": "result"}
    draw = {
        "correct": "@result",
        "attempt": {"from": "#turn", "add": 1},
        "retry": {"const": "blind"},
    }
    conversion = run(tmp_path, mapping_of(draw, records={"expand": expand}), a__csv=text)
    assert outcomes(conversion) == [
        ("a", 1, True),
        ("b", 1, False),
        ("b", 2, True),
        ("c", 1, False),
        ("c", 2, False),
        ("c", 3, False),
    ]
    assert conversion.ledger.records.excluded == {"no draw in the record": 1}
    assert conversion.ledger.closes


def cumulative_files(folder: Path, flags: dict[int, dict[str, Any]]) -> None:
    """Write one file a trial."""
    for trial, tasks in flags.items():
        rows = [{"task": task, "ok": flag} for task, flag in tasks.items()]
        (folder / f"trial_{trial}.json").write_text(json.dumps(rows), encoding="utf-8")


CUMULATIVE = {
    "correct": {"from": "ok", "cumulative": True},
    "attempt": {"from": "@trial", "add": 1},
    "retry": {"const": "blind"},
}


def test_cumulative_flags(tmp_path: Path) -> None:
    """Success of attempt t is the change between files; a solved task is not tried again."""
    trials = {t: {"a": True, "b": t >= 2, "c": False, "d": t >= 10} for t in range(12)}
    cumulative_files(tmp_path, trials)
    conversion = convert(mapping_of(CUMULATIVE, files=[{"match": "trial_{trial:int}.json"}]), [tmp_path])
    by_task = {task: [d.correct for d in conversion.draws if d.task_id == task] for task in "abcd"}
    assert by_task == {
        "a": [True],
        "b": [False, False, True],
        "c": [False] * 12,
        "d": [False] * 10 + [True],
    }
    assert sum(conversion.ledger.draws.excluded.values()) == 48 - 27
    assert conversion.ledger.closes


def test_cumulative_flag_that_is_missing(tmp_path: Path) -> None:
    """After a missing flag a success cannot be placed, and is missing too; a failure can."""
    cumulative_files(
        tmp_path,
        {
            0: {"a": False, "b": False},
            1: {"a": None, "b": None},
            2: {"a": True, "b": False},
            3: {"a": True, "b": True},
        },
    )
    conversion = convert(mapping_of(CUMULATIVE, files=[{"match": "trial_{trial:int}.json"}]), [tmp_path])
    by_task = {task: [d.correct for d in conversion.draws if d.task_id == task] for task in "ab"}
    assert by_task == {"a": [False, None, None], "b": [False, None, False, True]}


def test_cumulative_flag_that_falls_back(tmp_path: Path) -> None:
    """A flag that was true and is false again contradicts itself: the row is rejected by name."""
    cumulative_files(tmp_path, {0: {"a": True}, 1: {"a": False}})
    conversion = convert(mapping_of(CUMULATIVE, files=[{"match": "trial_{trial:int}.json"}]), [tmp_path])
    assert outcomes(conversion) == [("a", 1, True)]
    assert conversion.ledger.draws.rejected == {"a cumulative success flag that falls back": 1}


def test_missing_trial_breaks_the_chain(tmp_path: Path) -> None:
    """An attempt without its predecessor answers nothing that is known: it is rejected, and so is the rest."""
    cumulative_files(tmp_path, {0: {"a": False}, 2: {"a": False}, 3: {"a": True}})
    conversion = convert(mapping_of(CUMULATIVE, files=[{"match": "trial_{trial:int}.json"}]), [tmp_path])
    assert outcomes(conversion) == [("a", 1, False)]
    assert conversion.ledger.draws.rejected == {"an attempt whose predecessor is not in the log": 2}
    assert conversion.ledger.closes


def test_one_folder_an_arm_with_shared_first_attempts(tmp_path: Path) -> None:
    """Folders name arms; first attempts shared by construction are copies; copies that disagree are counted."""
    for arm, rows in {
        "fb": [
            {"task": "a", "n": 1, "ok": 0},
            {"task": "a", "n": 2, "ok": 1},
            {"task": "b", "n": 1, "ok": 1},
        ],
        "bl": [
            {"task": "a", "n": 1, "ok": 0},
            {"task": "a", "n": 2, "ok": 0},
            {"task": "b", "n": 1, "ok": 0},
        ],
    }.items():
        (tmp_path / arm).mkdir()
        run(tmp_path / arm, mapping_of(), log__jsonl=rows)
    draw = {
        "arm": {"from": "@folder", "map": {"bl": "A2s", "fb": "A3"}},
        "attempt": "n",
        "retry": {"from": "@folder", "map": {"bl": "blind", "fb": "feedback"}},
    }
    files = [{"match": "{folder}/log.jsonl"}]
    conversion = convert(
        mapping_of(draw, files=files, shared_first={"from": "A2s", "to": ["A3"]}), [tmp_path]
    )
    made = {(d.arm, d.task_id, d.attempt): d for d in conversion.draws}
    assert made["A3", "a", 1].copy_of == made["A2s", "a", 1].draw_id
    assert made["A3", "a", 2].parent == made["A3", "a", 1].draw_id
    assert made["A3", "a", 2].prompt_kind is PromptKind.FEEDBACK
    assert made["A2s", "a", 2].prompt_kind is PromptKind.BLIND
    assert made["A2s", "a", 2].answered_class is None
    assert (conversion.ledger.copies, conversion.ledger.copy_clashes) == (2, 1)
    assert not conversion.ledger.clean
    position = {d.draw_id: i for i, d in enumerate(conversion.draws)}
    for d in conversion.draws:
        for other in (d.parent, d.copy_of):
            assert other is None or position[other] < position[d.draw_id]


def test_one_file_an_arm(tmp_path: Path) -> None:
    """Constants of a file rule tell its files apart from others."""
    files = [
        {"match": "base.jsonl", "set": {"arm": "A2s", "kind": "blind"}},
        {"match": "*.jsonl", "set": {"arm": "A3", "kind": "feedback"}},
    ]
    rows = [{"task": "a", "n": n, "ok": 0} for n in (1, 2)]
    draw = {"arm": "@arm", "attempt": "n", "retry": "@kind"}
    conversion = run(tmp_path, mapping_of(draw, files=files), base__jsonl=rows, other__jsonl=rows)
    assert [(d.arm, d.prompt_kind.value) for d in conversion.draws if d.attempt == 2] == [
        ("A2s", "blind"),
        ("A3", "feedback"),
    ]


def test_classes_and_what_was_answered(tmp_path: Path) -> None:
    """A class may come from several columns; a feedback draw answers the class of the draw before it."""
    rows = [
        {"task": "a", "n": 1, "ok": 0, "parsed": False, "ran": None},
        {"task": "a", "n": 2, "ok": 0, "parsed": True, "ran": False},
        {"task": "a", "n": 3, "ok": 0, "parsed": True, "ran": True},
        {"task": "a", "n": 4, "ok": 1, "parsed": True, "ran": True},
        {"task": "b", "n": 1, "ok": 0, "parsed": None, "ran": None},
    ]
    structural = {"field": "parsed", "equals": False}
    semantic = {"all": [{"not": structural}, {"field": "ran", "equals": False}]}
    static = {
        "flagged": {"when": {"any": [structural, semantic]}},
        "class": {
            "cases": [{"when": structural, "then": "structural"}, {"when": semantic, "then": "semantic"}]
        },
    }
    draw = {"attempt": "n", "retry": {"const": "feedback"}, "static": static}
    conversion = run(tmp_path, mapping_of(draw), a__jsonl=rows)
    made = {(d.task_id, d.attempt): d for d in conversion.draws}
    classes = [made["a", n].static.error_class for n in (1, 2, 3)]  # type: ignore[union-attr]
    assert classes == [ErrorClass.STRUCTURAL, ErrorClass.SEMANTIC, None]
    assert [made["a", n].answered_class for n in (2, 3, 4)] == [
        AnsweredClass.STRUCTURAL,
        AnsweredClass.SEMANTIC,
        AnsweredClass.UNCLASSIFIED,
    ]
    assert made["b", 1].static is None


def test_answered_rules_override_the_verifier(tmp_path: Path) -> None:
    """Where the log tells the model of wrong answers that no verifier flagged, their class can be named."""
    rows = [{"task": "a", "n": n, "ok": n == 2, "valid": True} for n in (1, 2)]
    table = mapping_of(
        {"attempt": "n", "retry": {"const": "feedback"}},
        answered=[{"when": {"field": "valid", "equals": True}, "class": "semantic"}],
    )
    conversion = run(tmp_path, table, a__jsonl=rows)
    assert conversion.draws[1].answered_class is AnsweredClass.SEMANTIC
    assert conversion.draws[1].static is None


@pytest.mark.parametrize(
    ("predicate", "left"),
    [
        ({"field": "n", "equals": 2}, "acd"),
        ({"field": "n", "in": [1, 2]}, "cd"),
        ({"field": "n", "at_least": 2}, "ad"),
        ({"field": "n", "at_most": 2}, "cd"),
        ({"field": "n", "is_missing": True}, "abc"),
        ({"field": "n", "is_missing": False}, "d"),
        ({"not": {"field": "n", "equals": 2}}, "bd"),
        ({"all": [{"field": "n", "at_least": 2}, {"field": "task", "equals": "b"}]}, "acd"),
        ({"any": [{"field": "n", "equals": 1}, {"field": "task", "in": ["d"]}]}, "bc"),
        ({"field": "task", "starts_with": "d"}, "abc"),
        ({"field": "n", "equals": "2"}, "abcd"),
    ],
)
def test_exclusions_in_three_valued_logic(tmp_path: Path, predicate: dict[str, Any], left: str) -> None:
    """A rule leaves a row out only where it is true: what is missing is unknown, and unknown keeps the row."""
    rows = [{"task": task, "ok": 1, "n": n} for task, n in zip("abcd", (1, 2, 3, None), strict=True)]
    table = mapping_of(exclude=[{"name": "rule", "when": predicate}])
    conversion = run(tmp_path, table, a__jsonl=rows)
    assert "".join(draw.task_id for draw in conversion.draws) == left
    assert sum(conversion.ledger.draws.excluded.values()) == 4 - len(left)
    assert conversion.ledger.closes


def test_csv_texts_equal_what_they_spell(tmp_path: Path) -> None:
    """In a table of texts a number equals its spelling and true equals True; a text equals itself only."""
    text = "task,ok,n,kind\na,1,2.0,True\nb,1,2x,false\n"
    table = mapping_of(
        exclude=[
            {
                "name": "x",
                "when": {"all": [{"field": "n", "equals": 2}, {"field": "kind", "equals": True}]},
            }
        ]
    )
    assert [draw.task_id for draw in run(tmp_path, table, a__csv=text).draws] == ["b"]


def test_repeats_are_read_once(tmp_path: Path) -> None:
    """Rows that repeat an earlier one in all the named fields are left out; a missing field proves nothing."""
    rows = [
        {"task": "a", "ok": 1, "t": 0.125, "out": "x"},
        {"task": "b", "ok": 1, "t": 0.125, "out": "x"},
        {"task": "c", "ok": 1, "t": 0.25, "out": "x"},
        {"task": "d", "ok": 1, "t": None, "out": "x"},
        {"task": "e", "ok": 1, "t": None, "out": "x"},
    ]
    table = mapping_of(exclude=[{"name": "again", "repeat_of": ["t", "out"]}])
    conversion = run(tmp_path, table, a__jsonl=rows)
    assert [draw.task_id for draw in conversion.draws] == ["a", "c", "d", "e"]
    assert conversion.ledger.draws.excluded == {"again": 1}


def test_ranks_order_numbers_as_numbers(tmp_path: Path) -> None:
    """A replicate may be the position of a file and a run; run 10 comes after run 9; the note lists them."""
    rows = [{"task": "a", "ok": 1, "run": run_number} for run_number in (10, 9)]
    draw = {"replicate": {"rank": ["@file.stem", "run"]}}
    conversion = run(tmp_path, mapping_of(draw), log2__jsonl=rows, log10__jsonl=rows)
    assert [draw.replicate for draw in conversion.draws] == [1, 0, 3, 2]
    assert "0 = log2 9; 1 = log2 10; 2 = log10 9; 3 = log10 10" in str(conversion.header.note)


def test_ranks_within_groups(tmp_path: Path) -> None:
    """Positions may begin anew in each group, so that tasks of one file only are not replicate 1 of nothing."""
    draw = {"replicate": {"rank": ["@file.stem"], "within": ["task"]}}
    conversion = run(
        tmp_path,
        mapping_of(draw),
        x1__jsonl=[{"task": "a", "ok": 1}],
        x2__jsonl=[{"task": "a", "ok": 1}, {"task": "b", "ok": 1}],
    )
    assert [(d.task_id, d.replicate) for d in conversion.draws] == [("a", 0), ("a", 1), ("b", 0)]


def lookup_mapping() -> dict[str, Any]:
    """Return a mapping whose failures stand in a second file."""
    return mapping_of(
        {
            "correct": {"when": {"not": {"found": "fault"}}},
            "static": {"flagged": {"when": {"found": "fault"}}, "code": "@fault.kind"},
        },
        files=[{"match": "{set}.jsonl"}],
        lookups=[
            {
                "name": "fault",
                "match": "{set}.faults.jsonl",
                "skip": 1,
                "scope": ["@set"],
                "key": [{"from": "number"}],
                "for": [{"from": "task", "template": "t_{n:int}", "add": 1}],
            }
        ],
    )


def test_lookups(tmp_path: Path) -> None:
    """Rows of a second file are joined by key within their scope; rows nobody asks for are reported."""
    table = lookup_mapping()
    table["files"] = [{"match": "{set}.log.jsonl"}]
    rows = [{"task": f"t_{i}"} for i in range(3)]
    faults = [{"total": 3}, {"number": 2, "kind": "x"}, {"number": 9, "kind": "y"}]
    conversion = run(
        tmp_path, table, one__log__jsonl=rows, one__faults__jsonl=faults, two__log__jsonl=[{"task": "t_7"}]
    )
    assert [(d.task_id, d.correct) for d in conversion.draws] == [
        ("t_0", True),
        ("t_1", False),
        ("t_2", True),
        ("t_7", None),
    ]
    flagged = conversion.draws[1].static
    assert flagged is not None
    assert (flagged.flagged, flagged.code) == (True, "x")
    assert conversion.draws[3].static is None
    assert conversion.ledger.orphans == {"fault": 1}
    assert not conversion.ledger.clean


def test_counted_attempts(tmp_path: Path) -> None:
    """A record may say how many attempts there were and the truth of the last one only."""
    draw = {
        "correct": {"from": "ok", "only_if": {"field": "@last", "equals": True}},
        "attempt": {"from": "#turn", "add": 1},
        "retry": {"const": "feedback"},
    }
    expand = {"count": {"length_of": "notes", "default": 0, "add": 1}}
    rows = [{"task": "a", "ok": 1, "notes": ["x", "y"]}, {"task": "b", "ok": 0}]
    conversion = run(tmp_path, mapping_of(draw, records={"expand": expand}), a__jsonl=rows)
    assert outcomes(conversion) == [("a", 1, None), ("a", 2, None), ("a", 3, True), ("b", 1, False)]


def test_failures_are_no_measurements(tmp_path: Path) -> None:
    """A row with an infrastructure error keeps its code and has neither outcome nor verdict."""
    draw = {
        "error": {"kind": "code", "message": "text"},
        "static": {"flagged": {"when": {"field": "ok", "equals": 0}}},
    }
    rows = [{"task": "a", "ok": 0, "code": 429, "text": "slow down"}, {"task": "b", "ok": 0, "code": None}]
    conversion = run(tmp_path, mapping_of(draw), a__jsonl=rows)
    failed, made = conversion.draws
    assert failed.error is not None
    assert (failed.error.kind, failed.error.message) == ("429", "slow down")
    assert (failed.correct, failed.static, made.correct, made.error) == (None, None, False, None)


@pytest.mark.parametrize(
    ("draw", "row", "want"),
    [
        (
            {"started_at": "t", "duration_seconds": "s"},
            {"t": "2026-01-01T00:00:00Z", "s": 1.5},
            ("2026-01-01T00:00:00+00:00", "2026-01-01T00:00:01.500000+00:00"),
        ),
        (
            {"ended_at": "t", "duration_seconds": {"from": "s", "scale": 0.001}},
            {"t": "2026-01-01T02:00:01+02:00", "s": 1000},
            ("2026-01-01T02:00:00+02:00", "2026-01-01T02:00:01+02:00"),
        ),
        (
            {"started_at": {"from": "t", "unit": "unix_ms"}},
            {"t": 1500},
            ("1970-01-01T00:00:01.500000+00:00", None),
        ),
        (
            {"started_at": {"from": "t", "offset": "+01:00"}},
            {"t": "2026-01-01 00:00:00"},
            ("2026-01-01T00:00:00+01:00", None),
        ),
    ],
)
def test_times(
    tmp_path: Path, draw: dict[str, Any], row: dict[str, Any], want: tuple[str | None, str | None]
) -> None:
    """Start, end and duration give each other; every instant has an offset."""
    conversion = run(tmp_path, mapping_of(draw), a__jsonl=[{"task": "a", "ok": 1, **row}])
    (made,) = conversion.draws
    assert (made.started_at, made.ended_at) == want


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("attempt", 0, "attempt: expected `int` >= 1"),
        ("attempt", 1.5, "attempt: an integer was expected"),
        ("attempt", True, "attempt: an integer was expected"),
        ("attempt", 10**30, "attempt: an integer was expected"),
        ("attempt", 2, "retry: blind or feedback is required for attempts after the first"),
        ("billed", -1, "billed: expected `float` >= 0.0"),
        ("billed", "many", "billed: a number was expected"),
        ("billed", float("inf"), "billed: a finite number was expected"),
        ("billed", None, "billed is missing"),
        ("tokens_in", -3, "tokens_in: expected `int` >= 0"),
        (
            "started_at",
            "2026-01-01T00:00:00",
            "times: a time without offset; the mapping can name the offset",
        ),
        ("started_at", "yesterday", "times: an RFC 3339 instant was expected"),
        ("started_at", "0001-01-01T00:00:00Z", "started_at: "),
        ("task_id", None, "task_id is missing"),
        ("task_id", "x" * 4000, "task_id is longer than 3072 characters"),
        ("emitted", "perhaps", "emitted: true or false was expected"),
    ],
)
def test_rows_that_cannot_be_draws(tmp_path: Path, field: str, value: Any, reason: str) -> None:
    """A row that no draw can hold is rejected with the field and the reason, and the others go on."""
    rows = [{"task": "a", "ok": 1}, {"task": "b", "ok": 1, "v": value}]
    source = {"from": "v"} if field != "task_id" else {"first_of": ["v"]}
    defaults = {"attempt": 1, "billed": 1, "task_id": "ok"}
    if field in defaults:
        rows[0]["v"] = 1
    conversion = run(tmp_path, mapping_of({field: source}), a__jsonl=rows)
    assert len(conversion.draws) == 1
    (found,) = conversion.ledger.draws.rejected
    assert found.startswith(reason)
    assert conversion.ledger.examples[0].row == 2
    assert conversion.ledger.closes


def test_duplicates_and_families(tmp_path: Path) -> None:
    """The same attempt twice, or one task in two families, is rejected and not averaged."""
    rows = [
        {"task": "a", "ok": 1, "f": "x"},
        {"task": "a", "ok": 0, "f": "x"},
        {"task": "a", "ok": 0, "f": "y", "r": 1},
    ]
    draw = {"family": "f", "replicate": {"from": "r", "default": 0}}
    conversion = run(tmp_path, mapping_of(draw), a__jsonl=rows)
    assert outcomes(conversion) == [("a", 1, True)]
    assert sorted(conversion.ledger.draws.rejected) == [
        "a task that belongs to another family already; put the family into task_id",
        "the same task, arm, replicate and attempt as an earlier row",
    ]


def test_names_of_draws_never_collide(tmp_path: Path) -> None:
    """Slashes in arms and tasks do not make two draws one."""
    rows = [{"task": "c", "arm": "a/r0/a1/b", "ok": 1}, {"task": "b/r0/a1/c", "arm": "a", "ok": 1}]
    conversion = run(tmp_path, mapping_of({"arm": "arm"}), a__jsonl=rows)
    assert len({draw.draw_id for draw in conversion.draws}) == 2


def test_slips_of_the_mapping(tmp_path: Path) -> None:
    """A column that is in no row is a note, and an error where it is the outcome: nothing is all missing."""
    conversion = run(tmp_path, mapping_of({"tokens_in": "tokenz"}), a__jsonl=[{"task": "a", "ok": 1}])
    assert conversion.ledger.notes == ("draw.tokens_in: no row has 'tokenz'",)
    with pytest.raises(InputRefused, match="The outcome is in no row"):
        run(tmp_path, mapping_of({"correct": "okay"}), a__jsonl=[{"task": "a", "ok": 1}])


def test_order_and_gate_reach_the_header(tmp_path: Path) -> None:
    """The header says what sent draws to retry and whether the order of parallel draws means something."""
    table = mapping_of(gate="truth", order_meaningful=False)
    header = run(tmp_path, table, a__jsonl=[{"task": "a", "ok": 1}]).header
    assert (header.gate.value, header.order_meaningful, header.expected_draws) == ("truth", False, 1)


def test_same_inputs_give_the_same_records(tmp_path: Path) -> None:
    """A conversion depends on the files' bytes and not on where they lie or how they are named as sources."""
    rows = [{"task": "a", "ok": 1}, {"task": "b", "ok": 0}]
    (tmp_path / "x").mkdir()
    (tmp_path / "y").mkdir()
    first = run(tmp_path / "x", mapping_of(), a__jsonl=rows)
    second = run(tmp_path / "y", mapping_of(), a__jsonl=rows)
    third = convert(mapping_of(), [tmp_path / "y" / "a.jsonl", tmp_path / "y"])
    assert first.header == second.header == third.header
    assert list(first.draws) == list(second.draws) == list(third.draws)


def test_links_that_leave_the_folder_are_not_followed(tmp_path: Path) -> None:
    """A link to a file elsewhere is listed and never read; a pipe does not hang the command."""
    outside = tmp_path / "outside.jsonl"
    outside.write_text('{"task": "secret", "ok": 1}\n', encoding="utf-8")
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "link.jsonl").symlink_to(outside)
    (folder / "up").symlink_to(tmp_path, target_is_directory=True)
    (folder / "broken.jsonl").symlink_to(folder / "nothing.jsonl")
    os.mkfifo(folder / "pipe.jsonl")
    conversion = run(folder, mapping_of(), a__jsonl=[{"task": "a", "ok": 1}])
    assert [draw.task_id for draw in conversion.draws] == ["a"]
    assert conversion.ledger.unmatched == (
        "logs/broken.jsonl (a link, not followed)",
        "logs/link.jsonl (a link, not followed)",
        "logs/pipe.jsonl (no regular file)",
        "logs/up (a link, not followed)",
    )


def test_progress_is_told(tmp_path: Path) -> None:
    """Progress counts files up to their number."""
    calls: list[tuple[str, int, int]] = []
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(f'{{"task": "{name}", "ok": 1}}\n', encoding="utf-8")
    convert(mapping_of(), [tmp_path], progress=lambda *call: calls.append(call))
    assert [(done, total) for _, done, total in calls] == [(0, 2), (1, 2), (2, 2)]
