"""Draws as flat columns: what counting reads of a log is what every other reader sees, and refuses what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_series_equal

from strategies import contradictions, draw_lists
from verdiv.analysis import dealing, tallying
from verdiv.analysis.tallyfile import write_tally
from verdiv.analysis.tallying import tally_logs
from verdiv.errors import InputRefused
from verdiv.estimators.columns import Joiner, Sharer
from verdiv.estimators.observations import Labels
from verdiv.protocol.simulator.runlog import simulate_to_file
from verdiv.runlog.arrow import misfits
from verdiv.runlog.checks import draw_faults
from verdiv.runlog.columns import draw_chunk
from verdiv.runlog.flat import DICTIONARIES, FLAT_SCHEMA, faulty, flatten
from verdiv.runlog.flatlog import FlatLog
from verdiv.runlog.lines import Source
from verdiv.runlog.parquet import ARROW_SCHEMA
from verdiv.runlog.reader import iter_draws, read_run_log
from verdiv.runlog.records import Draw
from verdiv.runlog.spans import framed, line_spans
from verdiv.runlog.writer import write_run_log


def batch_of(draws: list[Draw], *, dictionaries: bool) -> Any:
    """Return draws as a batch of a Parquet log, as it is stored or as it is read."""
    rows = [{k: v for k, v in msgspec.to_builtins(d).items() if k in ARROW_SCHEMA.names} for d in draws]
    batch = pa.RecordBatch.from_pylist(rows, schema=ARROW_SCHEMA)
    columns = [
        column.dictionary_encode() if dictionaries and name in DICTIONARIES else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


@given(st.lists(st.tuples(st.sampled_from("ab"), contradictions), min_size=1, max_size=5), st.booleans())
@settings(max_examples=150, deadline=None)
def test_flat_checks_find_exactly_what_the_record_checks_find(
    parts: list[tuple[str, dict[str, Any]]], dictionaries: bool
) -> None:
    """A tally of a Parquet log misses no draw that contradicts itself, and accuses no other."""
    plain = [Draw(draw_id=name, task_id="t", arm="A3", correct=None, billed=1.0) for name, _ in parts]
    draws = [msgspec.structs.replace(d, **changes) for d, (_, changes) in zip(plain, parts, strict=True)]
    flat, bad = flatten(batch_of(draws, dictionaries=dictionaries), 0)
    assert (bad | faulty(flat)).tolist() == [bool(draw_faults(draw, "x", 1)) for draw in draws]


@pytest.mark.parametrize("field", ["arm", "tier", "prompt_kind", "answered_class", "prompt_sha256"])
def test_limits_hold_for_dictionaries_as_for_texts(field: str) -> None:
    """A value that no field allows is found at its rows, however the column is stored."""
    rows = [
        msgspec.to_builtins(Draw(draw_id=str(i), task_id="t", arm="A3", correct=None, billed=1.0))
        for i in range(5)
    ]
    for i in (1, 4):
        rows[i][field] = "x" * 5000
    batch = pa.RecordBatch.from_pylist(rows, schema=ARROW_SCHEMA)
    coded = batch.set_column(
        batch.schema.get_field_index(field), field, batch.column(field).dictionary_encode()
    )
    assert misfits(batch).tolist() == misfits(coded).tolist() == [1, 4]


@given(draw_lists(min_size=1))
@settings(max_examples=60, deadline=None)
def test_flat_columns_hold_what_the_draws_say(draws: list[Draw]) -> None:
    """Read flat, every field of a draw is what its record says; a digest is its first 128 bits."""
    flat, bad = flatten(batch_of(draws, dictionaries=True), 7)
    assert not bad.any()
    chunk = draw_chunk(draws, range(len(draws)), {})
    assert flat.column("row").to_pylist() == list(range(7, 7 + len(draws)))
    for name in (
        "draw_id",
        "task_id",
        "family",
        "arm",
        "tier",
        "model",
        "prompt_kind",
        "error_class",
        "parent",
    ):
        assert flat.column(name).to_pylist() == list(chunk.array(name)), name
    for name in ("prompt_sha256", "output_sha256"):
        said = [None if text is None else bytes.fromhex(text)[:16] for text in chunk.array(name)]
        assert flat.column(name).to_pylist() == said
    for name in ("started_at", "ended_at"):
        np.testing.assert_array_equal(flat.column(name).to_numpy(), chunk.array(name).view(np.int64))


def test_both_forms_are_flattened_alike(tmp_path: Path) -> None:
    """JSONL and Parquet of one run give the same flat columns."""
    simulate_to_file(tmp_path / "a.runlog.jsonl", tasks=12, seed=1)
    log = read_run_log(tmp_path / "a.runlog.jsonl")
    twin = tmp_path / "b.runlog.parquet"
    write_run_log(twin, log.headers[0], iter_draws(tmp_path / "a.runlog.jsonl"))
    tables = []
    for path in (tmp_path / "a.runlog.jsonl", twin):
        with Source(str(path)) as source:
            tables.append(pa.Table.from_batches(list(FlatLog(source).batches()), schema=FLAT_SCHEMA))
    assert tables[0].num_rows == len(log.draws) > 0
    assert log.draws["condition"].nunique() > 1
    for name in FLAT_SCHEMA.names:
        first, second = (table[name].to_pandas().astype(object) for table in tables)
        assert_series_equal(first, second)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("prompt_sha256", "A" * 64),
        ("output_sha256", "0" * 63),
        ("started_at", "2026-02-30T09:30:00Z"),
        ("arm", ""),
    ],
)
def test_a_tally_refuses_what_a_reader_refuses(tmp_path: Path, field: str, value: str) -> None:
    """A Parquet log with one bad value is refused by both, with the row and the field."""
    good, bad = tmp_path / "good.runlog.parquet", tmp_path / "bad.runlog.parquet"
    simulate_to_file(good, tasks=12, seed=1)
    table = pq.read_table(good)
    values = table[field].to_pylist()
    values[17] = value
    table = table.set_column(
        table.schema.get_field_index(field), table.schema.field(field), pa.array(values, pa.string())
    )
    pq.write_table(table.replace_schema_metadata(pq.read_metadata(good).metadata), bad)
    told = []
    for read in (lambda: read_run_log(bad), lambda: tally_logs([str(bad)])):
        with pytest.raises(InputRefused) as refused:
            read()
        told.append([(fault.line, fault.field) for fault in refused.value.faults])
    assert told[0] == told[1] == [(18, field)]


def test_processes_that_share_a_log_change_no_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row groups read and dealt by two processes make the tally that one process makes."""
    whole, log = tmp_path / "whole.runlog.parquet", tmp_path / "run.runlog.parquet"
    simulate_to_file(whole, tasks=20, seed=3)
    table = pq.read_table(whole).replace_schema_metadata(pq.read_metadata(whole).metadata)
    pq.write_table(table, log, row_group_size=100)
    write_tally(tmp_path / "one", tally_logs([str(log)], workers=1))
    monkeypatch.setattr(tallying, "SHARED_ROWS", 100)
    monkeypatch.setattr(tallying, "BUCKET_ROWS", 100)
    write_tally(tmp_path / "two", tally_logs([str(log)], workers=2))
    monkeypatch.setattr(tallying, "SHARED_ROWS", 10**9)
    write_tally(tmp_path / "three", tally_logs([str(log)], workers=2))
    assert (tmp_path / "two").read_bytes() == (tmp_path / "three").read_bytes()
    one, two = pq.read_table(tmp_path / "one"), pq.read_table(tmp_path / "two")
    assert one.equals(two)


def test_labels_rank_by_name_and_tell_who_is_there() -> None:
    """Names that no draw has are not told; a draw without one has no rank."""
    labels = Labels(np.array([2, 0, 2]), ("b", "unused", "a"))
    assert labels.present() == ["a", "b"]
    assert labels.present(np.array([True, False, True])) == ["a"]
    assert labels.equals("a").tolist() == [True, False, True]
    assert not labels.equals("unused").any()
    assert not labels.equals("unheard").any()
    names, ranks = labels.ranked()
    assert (names, ranks.tolist()) == (["a", "b"], [0, 1, 0])
    with pytest.raises(ValueError, match="without a name"):
        Labels(np.array([-1, 0]), ("a",)).ranked()
    assert Labels(np.array([-1, 0]), ("a",)).equals("a").tolist() == [False, True]


def test_equal_columns_are_one_and_cannot_be_written_to() -> None:
    """Columns with the same numbers share memory, others do not, and joined parts are made once."""
    once = Sharer()
    first, second, third = once(np.zeros(4)), once(np.zeros(4)), once(np.array([0.0, 0, 0, 1]))
    assert first is second
    assert third is not first
    assert once(np.zeros(3)) is not first
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1.0
    join = Joiner(np.array([5, 0, 1, 2, 3, 4, 6, 7]))
    assert join([first, third]) is join([second, third])
    np.testing.assert_array_equal(join([third, first]), [0, 0, 0, 0, 1, 0, 0, 0])


def parts_of(path: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[bytes, int]:
    """Tally a JSONL log by two processes where it can be cut; return the file and how many stretches were dealt."""
    seen: list[int] = []
    linked = dealing.linked

    def spy(stretches: Any, frame: Any) -> Any:
        found = linked(stretches, frame)
        seen.append(0 if found is None else len(found))
        return found

    monkeypatch.setattr(tallying, "linked", spy)
    monkeypatch.setattr(tallying, "SHARED_BYTES", 1)
    write_tally(out, tally_logs([str(path)], workers=2), overwrite=True)
    return out.read_bytes(), sum(seen)


def test_stretches_of_a_jsonl_log_make_its_tally(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines read and dealt by two processes make the tally that one process makes, byte by byte."""
    log = tmp_path / "run.runlog.jsonl"
    simulate_to_file(log, tasks=20, seed=3)
    write_tally(tmp_path / "one", tally_logs([str(log)], workers=1))
    together, stretches = parts_of(log, tmp_path / "two", monkeypatch)
    assert stretches == 2
    assert together == (tmp_path / "one").read_bytes()


@pytest.mark.parametrize(
    "harm", ["no footer", "no last line end", "edited", "moved", "dropped", "footer count"]
)
def test_a_log_out_of_order_is_read_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    """What stretches cannot judge is judged by the reader of the whole log, with its words."""
    log, bad = tmp_path / "run.runlog.jsonl", tmp_path / "bad.runlog.jsonl"
    simulate_to_file(log, tasks=20, seed=3)
    lines = log.read_bytes().split(b"\n")
    middle = len(lines) // 2
    if harm == "no footer":
        lines = [*lines[:-2], b""]
    elif harm == "no last line end":
        lines = lines[:-1]
    elif harm == "edited":
        lines[middle] = lines[middle].replace(b'"billed":', b'"billed": ')
    elif harm == "moved":
        lines[middle], lines[middle + 1] = lines[middle + 1], lines[middle]
    elif harm == "dropped":
        del lines[middle]
    else:
        lines[-2] = lines[-2].replace(b'"draws":', b'"draws":1')
    bad.write_bytes(b"\n".join(lines))
    told: list[Any] = []
    for shared in (False, True):
        try:
            if shared:
                data, stretches = parts_of(bad, tmp_path / "out", monkeypatch)
                assert stretches == 0
            else:
                write_tally(tmp_path / "out", tally_logs([str(bad)], workers=1))
                data = (tmp_path / "out").read_bytes()
            told.append(data)
        except InputRefused as error:
            told.append(str(error))
    assert told[0] == told[1]
    assert isinstance(told[0], bytes) == (harm in ("no footer", "no last line end"))


@pytest.mark.parametrize("field", ["draw_id", "parent", "copy_of"])
def test_names_of_a_parquet_log_are_held_together(tmp_path: Path, field: str) -> None:
    """A tally refuses a draw_id that stands twice and a link to a draw that is not there, as a reader does."""
    good, bad = tmp_path / "good.runlog.parquet", tmp_path / "bad.runlog.parquet"
    simulate_to_file(good, tasks=12, seed=1)
    table = pq.read_table(good)
    values = table[field].to_pylist()
    values[-1] = values[0] if field == "draw_id" else "nobody"
    column = pa.array(values, pa.string())
    table = table.set_column(table.schema.get_field_index(field), table.schema.field(field), column)
    pq.write_table(table.replace_schema_metadata(pq.read_metadata(good).metadata), bad)
    told = []
    for read in (lambda: read_run_log(bad), lambda: tally_logs([str(bad)])):
        with pytest.raises(InputRefused) as refused:
            read()
        told.append([str(fault) for fault in refused.value.faults])
    assert told[0] == told[1]
    assert len(told[0]) >= 1


def test_lines_are_cut_at_their_ends(tmp_path: Path) -> None:
    """Stretches cover every byte between header and footer once, each a number of whole lines."""
    log = tmp_path / "run.runlog.jsonl"
    simulate_to_file(log, tasks=12, seed=3)
    data = log.read_bytes()
    frame = framed(str(log))
    assert frame is not None
    assert data[: frame.start].count(b"\n") == data[frame.end :].count(b"\n") == 1
    for count in (1, 2, 7, 100_000):
        spans = line_spans(str(log), frame, count)
        assert b"".join(data[a:b] for a, b in spans) == data[frame.start : frame.end]
        assert all(data[b - 1 : b] == b"\n" for _, b in spans)
    (tmp_path / "empty").write_bytes(b"")
    assert framed(str(tmp_path / "empty")) is None
    assert framed(str(tmp_path / "missing")) is None
