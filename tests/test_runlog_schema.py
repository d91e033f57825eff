"""Records, decoder, slow walk, JSON Schema and column checks are one format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import contradictions, draw_lists, headers
from verdiv.runlog.arrow import misfits, row_faults
from verdiv.runlog.checks import draw_faults, suspects
from verdiv.runlog.columns import draw_chunk
from verdiv.runlog.faults import line_faults
from verdiv.runlog.parquet import ARROW_SCHEMA
from verdiv.runlog.records import (
    Draw,
    Footer,
    Header,
)
from verdiv.runlog.schema import runlog_schema, shipped_schema

VALIDATOR = jsonschema.Draft202012Validator(runlog_schema())

decode = msgspec.json.Decoder(Header | Draw | Footer).decode

oddments: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not number.is_integer()),
    st.sampled_from(["", "x", "verifier", "structural", "feedback", "x" * 4097, "0" * 64, "0" * 63 + "G"]),
    st.sampled_from([2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**400, -1, 0, 0.5]),
    st.sampled_from(["2026-01-31T09:30:00Z", "2026-01-31T09:30:00"]),
    st.lists(st.none(), max_size=1),
    st.dictionaries(st.sampled_from(["flagged", "kind", "temperature", "x"]), st.booleans(), max_size=2),
)


def test_the_shipped_schema_is_the_records_schema() -> None:
    """The schema file cannot lag behind the records."""
    assert shipped_schema() == runlog_schema()
    jsonschema.Draft202012Validator.check_schema(shipped_schema())


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_schema_walk_and_decoder_agree_on_every_line(data: st.DataObject) -> None:
    """Whatever value stands in whatever field, the schema, the walk and the decoder say the same of it."""
    header = data.draw(headers)
    draws = data.draw(draw_lists(min_size=1, max_size=1))
    record = msgspec.json.decode(msgspec.json.encode(data.draw(st.sampled_from([header, *draws]))))
    record.setdefault("record", "draw" if "draw_id" in record else "header")
    names = st.sampled_from([*sorted(record), "surplus"])
    for _ in range(data.draw(st.integers(min_value=0, max_value=2))):
        name = data.draw(names)
        if data.draw(st.booleans()):
            record.pop(name, None)
        elif isinstance(record.get(name), dict) and data.draw(st.booleans()):
            record[name][data.draw(st.sampled_from([*sorted(record[name]), "surplus"]))] = data.draw(oddments)
        else:
            record[name] = data.draw(oddments)
    line = json.dumps(record).encode()
    walked = line_faults(line, "x", 1)
    assert VALIDATOR.is_valid(record) is (not walked), walked
    try:
        decode(line)
        decoded = True
    except msgspec.DecodeError:
        decoded = False
    by_column = {"prompt_sha256", "output_sha256", "started_at", "ended_at", "prev", "head", "schema"}
    by_column |= {"preregistration_sha256", "suite_sha256"}
    left = [fault for fault in walked if fault.field not in by_column]
    assert decoded is (not left) or (not decoded and walked), walked


@given(st.lists(st.tuples(st.sampled_from("ab"), contradictions), min_size=1, max_size=5))
@settings(max_examples=150, deadline=None)
def test_column_checks_find_exactly_what_the_record_checks_find(
    parts: list[tuple[str, dict[str, Any]]],
) -> None:
    """The fast look at columns misses no draw that contradicts itself, and accuses no other."""
    draws = [
        msgspec.structs.replace(
            Draw(draw_id=name, task_id="t", arm="A3", correct=None, billed=1.0), **changes
        )
        for name, changes in parts
    ]
    found = suspects(draw_chunk(draws, range(1, len(draws) + 1), {}))
    assert found.tolist() == [bool(draw_faults(draw, "x", 1)) for draw in draws]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"billed": -1.0},
        {"billed": float("nan")},
        {"billed": float("inf")},
        {"billed": None},
        {"attempt": 0},
        {"replicate": -1},
        {"draw_id": ""},
        {"draw_id": None},
        {"task_id": "x" * 4097},
        {"prompt_kind": "retry"},
        {"prompt_kind": None},
        {"model": ""},
        {"decoding": {"temperature": -0.1}},
        {"decoding": {"temperature": float("nan")}},
        {"decoding": {"top_p": 1.1}},
        {"decoding": {}},
        {"static": {"flagged": None}},
        {"static": {"flagged": True, "class": "odd"}},
        {"static": {"flagged": True, "class": "semantic"}},
        {"oracle": {"flagged": None}},
        {"error": {"kind": None}},
        {"error": {"kind": "timeout"}},
        {"tokens_in": -1},
        {"in_flight": 0},
        {"answered_class": "unclassified"},
        {"answered_class": "other"},
    ],
)
def test_parquet_values_are_held_to_the_same_limits(changes: dict[str, Any]) -> None:
    """The look at Parquet columns finds exactly the rows that the slow walk has faults for."""
    plain = {
        "draw_id": "d",
        "task_id": "t",
        "family": "f",
        "arm": "A0",
        "condition": "primary",
        "tier": "small",
    }
    plain |= {"replicate": 0, "attempt": 1, "prompt_kind": "initial", "billed": 1.0}  # type: ignore[dict-item]
    rows = [plain, {**plain, **changes}, plain]
    batch = pa.RecordBatch.from_pylist(rows, schema=ARROW_SCHEMA)
    faults = row_faults(batch, 1, "x", 2)
    assert misfits(batch).tolist() == ([1] if faults else [])
    assert bool(faults) is (changes not in ALLOWED)


ALLOWED: list[dict[str, Any]] = [
    {},
    {"decoding": {}},
    {"static": {"flagged": True, "class": "semantic"}},
    {"error": {"kind": "timeout"}},
    {"answered_class": "unclassified"},
]


def test_a_table_that_is_no_run_log_is_refused_as_parquet(tmp_path: Path) -> None:
    """Other columns, other types, no metadata and another version of a Parquet file are told apart."""
    import pyarrow.parquet as pq

    from runlog_files import HEADER
    from verdiv.errors import InputRefused
    from verdiv.runlog.reader import read_run_log
    from verdiv.runlog.writer import write_run_log

    path = tmp_path / "a.parquet"
    write_run_log(path, HEADER, [Draw(draw_id="d", task_id="t", arm="A0", correct=None, billed=1.0)])
    table = pq.read_table(path)
    metadata = pq.ParquetFile(path).metadata.metadata
    keep = {key: value for key, value in metadata.items() if key.startswith(b"verdiv")}
    newer = {**keep, b"verdiv.runlog.parquet": b"2"}
    bad_header = {**keep, b"verdiv.runlog.header": b'{"record":"header","schema":1}'}
    surplus = table.append_column("surplus", pa.array([1]))
    cases = [
        (pa.table({"x": [1]}), keep, "no such column"),
        (table.drop_columns(["billed"]), keep, "no such column"),
        (surplus, keep, "an unknown column"),
        (table.set_column(0, "draw_id", pa.array([1])), keep, "int64"),
        (table, {}, "without our metadata"),
        (table, newer, "update verdiv"),
        (table, bad_header, "run_id"),
    ]
    for wrong, said, message in cases:
        pq.write_table(wrong.replace_schema_metadata(said), path)
        with pytest.raises(InputRefused, match=message):
            read_run_log(path)
    path.write_bytes(b"PAR1" + np.random.default_rng(1).bytes(500) + b"PAR1")
    with pytest.raises(InputRefused):
        read_run_log(path)


def test_parquet_faults_name_rows_and_fields(tmp_path: Path) -> None:
    """All faults of a Parquet log come at once, by row and field, as those of lines do."""
    import pyarrow.parquet as pq

    from runlog_files import HEADER
    from verdiv.errors import InputRefused
    from verdiv.runlog.reader import read_run_log
    from verdiv.runlog.writer import write_run_log

    path = tmp_path / "a.parquet"
    draws = [Draw(draw_id=f"d{i}", task_id="t", arm="A0", correct=None, billed=1.0) for i in range(4)]
    write_run_log(path, HEADER, draws)
    metadata = pq.ParquetFile(path).metadata.metadata
    keep = {key: value for key, value in metadata.items() if key.startswith(b"verdiv")}
    rows = pq.read_table(path).to_pylist()

    def faults(*changes: tuple[int, dict[str, Any]]) -> list[tuple[int | None, str | None]]:
        changed = [dict(row) for row in rows]
        for place, values in changes:
            changed[place] |= values
        table = pa.Table.from_pylist(changed, schema=ARROW_SCHEMA).replace_schema_metadata(keep)
        pq.write_table(table, path)
        with pytest.raises(InputRefused) as caught:
            read_run_log(path)
        return [(fault.line, fault.field) for fault in caught.value.faults]

    assert faults((1, {"billed": -1.0, "attempt": 0}), (3, {"prompt_kind": "x"})) == [
        (2, "attempt"),
        (2, "billed"),
        (4, "prompt_kind"),
    ]
    assert faults((2, {"draw_id": "d0"})) == [(3, "draw_id")]
    assert faults((2, {"parent": "nowhere"})) == [(3, "parent")]
    assert faults((2, {"prompt_kind": "blind"})) == [(3, "prompt_kind")]
    assert faults((0, {"started_at": "noon"})) == [(1, "started_at")]
    assert faults((0, {"output_sha256": "x" * 64})) == [(1, "output_sha256")]


@pytest.mark.parametrize("kind", ["[]", "{}", "1", "null", "[[1]]"])
def test_a_record_that_names_no_kind_is_a_fault(kind: str) -> None:
    """Whatever stands where a record says its kind, the answer is a fault with line and field, never a crash."""
    (fault,) = line_faults(f'{{"record":{kind}}}'.encode(), "x.runlog.jsonl", 3)
    assert (fault.line, fault.field) == (3, "record")
