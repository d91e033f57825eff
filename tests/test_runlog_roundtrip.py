"""What is written is what is read, in every form of a run log."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import bare, draw_lists, headers, stamps
from verdiv.runlog.columns import DRAW_COLUMNS, OUTPUT_COLUMNS
from verdiv.runlog.parquet import ParquetLog
from verdiv.runlog.reader import iter_draws, iter_frames, read_run_log, validate
from verdiv.runlog.records import Draw, Footer, Gate, Header
from verdiv.runlog.stamps import instants, is_time
from verdiv.runlog.table import draws_frame
from verdiv.runlog.writer import write_run_log

HEADER = Header(schema=1, run_id="run", gate=Gate.VERIFIER, harness="test")

ENDINGS = ["jsonl", "jsonl.gz", "jsonl.zst", "parquet"]


@pytest.mark.parametrize("ending", ENDINGS)
@given(header=headers, draws=draw_lists())
@settings(max_examples=20, deadline=None)
def test_every_form_gives_back_what_was_written(ending: str, header: Header, draws: list[Draw]) -> None:
    """Records, table, header and status survive each form, whatever text and numbers they hold."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a.runlog.{ending}"
        write_run_log(path, header, draws)
        assert bare(list(iter_draws(path))) == draws
        log = read_run_log(path, outputs=True)
        assert log.headers == (header,)
        assert log.inputs[0].status == "complete"
        assert log.inputs[0].draws == len(draws)
        pd.testing.assert_frame_equal(log.draws, draws_frame(draws, outputs=True), check_exact=True)
        report = validate(path)
        assert report.valid, report.faults


@given(header=headers, draws=draw_lists())
@settings(max_examples=15, deadline=None)
def test_parquet_and_jsonl_turn_into_each_other_byte_for_byte(header: Header, draws: list[Draw]) -> None:
    """A log that goes through Parquet comes back as the same JSONL bytes, and both name the same head."""
    with tempfile.TemporaryDirectory() as folder:
        first, middle, last = (Path(folder) / name for name in ("a.jsonl", "b.parquet", "c.jsonl"))
        write_run_log(first, header, draws)
        write_run_log(middle, header, iter_draws(first))
        write_run_log(last, header, iter_draws(middle))
        assert last.read_bytes() == first.read_bytes()
        footer = msgspec.json.decode(first.read_bytes().splitlines()[-1], type=Footer)
        assert ParquetLog(str(middle), "b").footer == footer
        assert ParquetLog(str(middle), "b").chain_head() == footer.head


def test_columns_and_dtypes_are_the_contract(tmp_path: Path) -> None:
    """The table has the agreed columns, order and dtypes, with and without draws, with and without outputs."""
    draw = Draw(draw_id="d", task_id="t", arm="A0", correct=None, billed=1.0)
    for draws in ([], [draw]):
        for outputs in (False, True):
            path = tmp_path / f"{len(draws)}{outputs}.jsonl"
            write_run_log(path, HEADER, draws)
            for frame in (read_run_log(path, outputs=outputs).draws, draws_frame(draws, outputs=outputs)):
                found = {name: str(dtype) for name, dtype in frame.dtypes.items()}
                assert found == {**DRAW_COLUMNS, **(OUTPUT_COLUMNS if outputs else {})}
                assert list(found) == [*DRAW_COLUMNS, *(OUTPUT_COLUMNS if outputs else ())]


def test_missing_is_missing_and_never_false_or_zero() -> None:
    """A draw that says nothing of an outcome has NA, NaN, None or NaT there."""
    row: Any = draws_frame(
        [Draw(draw_id="d", task_id="t", arm="A0", correct=None, billed=0.0)], outputs=True
    ).iloc[0]
    said = {"draw_id", "task_id", "family", "arm", "condition", "tier", "prompt_kind", "replicate", "attempt"}
    for name in [*DRAW_COLUMNS, *OUTPUT_COLUMNS]:
        assert bool(pd.isna(row[name])) is (name not in said | {"billed", "log"}), name
    assert (row["billed"], row["replicate"], row["attempt"]) == (0.0, 0, 1)


@pytest.mark.parametrize("ending", ENDINGS)
def test_long_logs_come_in_tables_of_bounded_length(tmp_path: Path, ending: str) -> None:
    """Tables read one after the other are the whole table, cut."""
    draws = [
        Draw(draw_id=f"d{i}", task_id=f"t{i % 7}", arm="A0", correct=i % 3 == 0, billed=1.0, replicate=i)
        for i in range(17_000)
    ]
    path = tmp_path / f"a.{ending}"
    write_run_log(path, HEADER, draws)
    frames = list(iter_frames(path, rows=1000))
    assert len(frames) > 1
    assert max(map(len, frames)) <= 16_384
    whole = pd.concat(frames, ignore_index=True)
    pd.testing.assert_frame_equal(whole, draws_frame(draws))
    pd.testing.assert_frame_equal(whole, read_run_log(path).draws)


def test_the_order_of_fields_and_blanks_between_them_do_not_matter(tmp_path: Path) -> None:
    """A log by another program, with its own spacing and 2 for 2.0, reads as well."""
    from verdiv.runlog.chain import line_digest

    lines = [b'{"harness": "x", "gate": "none", "run_id": "r", "record": "header", "schema": 1}']
    lines.append(
        b'{ "task_id" : "t", "draw_id":"d", "attempt": 1, "correct": true, "billed": 2, "arm": "A0", '
        b'"prev": "%s", "record": "draw" }\t' % line_digest(lines[-1]).encode()
    )
    head = line_digest(lines[-1]).encode()
    lines.append(b'{"record":"footer","draws":1,"head":"%s","prev":"%s"}' % (head, head))
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join(lines))
    log = read_run_log(path)
    assert log.inputs[0].status == "complete"
    assert log.draws["draw_id"].tolist() == ["d"]
    assert log.draws["billed"].tolist() == [2.0]


@given(st.lists(st.none() | stamps(), max_size=8))
@settings(deadline=None)
def test_instants_agree_with_the_standard_library(texts: list[str | None]) -> None:
    """Every RFC 3339 time becomes the instant that datetime makes of it, nanoseconds kept."""
    from datetime import UTC, datetime

    found = instants(texts)
    instant: Any
    for text, instant in zip(texts, found, strict=True):
        if text is None:
            assert np.isnat(instant)
            continue
        assert is_time(text)
        when = datetime.fromisoformat(text.upper()).astimezone(UTC).replace(tzinfo=None)
        assert instant.astype("datetime64[us]") == np.datetime64(when, "us")
        decimals = text[19:].split("+")[0].split("-")[0].rstrip("Zz").lstrip(".")
        assert int(instant.astype(np.int64)) % 10**9 == int((decimals + "0" * 9)[:9])


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-31T09:30:00",
        "2026-02-30T09:30:00Z",
        "2023-02-29T09:30:00Z",
        "2026-13-01T09:30:00Z",
        "2026-01-31T24:00:00Z",
        "2026-01-31T23:59:60Z",
        "2026-01-31T09:30:00+24:00",
        "2026-01-31T09:30:00+01:60",
        "2026-01-31T09:30:00.1234567890Z",
        "1699-12-31T09:30:00Z",
        "2200-01-01T09:30:00Z",
        "2026-01-31",
        "2026-01-31T09:30:00Z\n",
        "٢٠٢٦-01-31T09:30:00Z",
        "now",
        "",
    ],
)
def test_what_is_no_time_is_no_instant(text: str) -> None:
    """Days that no month has, times without offset and other text are not times, alone or among times."""
    assert not is_time(text)
    found = instants(["2026-01-31T09:30:00Z", text, None])
    assert np.isnat(found).tolist() == [False, True, True]
