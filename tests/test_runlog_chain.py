"""The hash chain shows edits, truncation and reordering; a log that merely stops is incomplete."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import msgspec
import pytest
import zstandard

from runlog_files import HEADER, draw_line, header_line, log_bytes
from verdiv.errors import InputRefused
from verdiv.runlog.parquet import ParquetLog
from verdiv.runlog.reader import iter_draws, read_run_log, validate
from verdiv.runlog.records import Decoding, Draw, Static
from verdiv.runlog.writer import write_run_log

DRAWS = [
    Draw(
        draw_id=f"d{i}",
        task_id=f"t{i % 4}",
        arm="A3",
        correct=i % 3 == 0,
        billed=1.0,
        attempt=1 + i % 2,
        parent=f"d{i - 1}" if i % 2 else None,
        decoding=Decoding(temperature=0.7, seed=i),
        static=Static(flagged=i % 3 == 1),
        output=f'{{"x": {i}}}',
        started_at="2026-01-31T09:30:00.25Z",
    )
    for i in range(12)
]


@pytest.fixture
def lines(tmp_path: Path) -> list[bytes]:
    """Lines of a complete log: header, twelve draws, footer."""
    path = tmp_path / "whole.jsonl"
    write_run_log(path, HEADER, DRAWS)
    return path.read_bytes().splitlines()


def refused_at(path: Path, content: bytes) -> list[tuple[int | None, str | None]]:
    """Return line and field of each fault of a log that must be refused."""
    path.write_bytes(content)
    with pytest.raises(InputRefused) as caught:
        read_run_log(path)
    return [(fault.line, fault.field) for fault in caught.value.faults]


def joined(lines: list[bytes]) -> bytes:
    """Return lines as a file."""
    return b"".join(line + b"\n" for line in lines)


def test_an_edited_line_breaks_the_chain_at_the_next(tmp_path: Path, lines: list[bytes]) -> None:
    """The first line whose link does not hold is named; one edit is one break."""
    edited = [*lines]
    edited[5] = edited[5].replace(b'"correct":false', b'"correct":true')
    assert edited != lines
    assert refused_at(tmp_path / "a.jsonl", joined(edited)) == [(7, "prev")]
    spaced = [*lines]
    spaced[5] += b" "
    assert refused_at(tmp_path / "a.jsonl", joined(spaced)) == [(7, "prev")]


def test_the_last_draw_and_the_header_are_covered_too(tmp_path: Path, lines: list[bytes]) -> None:
    """An edit of the line before the footer, or of the header, shows as any other."""
    edited = [*lines]
    edited[12] = edited[12].replace(b'"billed":1.0', b'"billed":0.0')
    assert refused_at(tmp_path / "a.jsonl", joined(edited)) == [(14, "prev")]
    edited = [*lines]
    edited[0] = edited[0].replace(b'"run_id":"run"', b'"run_id":"nur"')
    assert refused_at(tmp_path / "a.jsonl", joined(edited)) == [(2, "prev")]


def test_dropped_added_and_moved_lines_show(tmp_path: Path, lines: list[bytes]) -> None:
    """A line taken out, put in twice, or moved is refused where the chain breaks."""
    path = tmp_path / "a.jsonl"
    assert (4, "prev") in refused_at(path, joined([*lines[:3], *lines[4:]]))
    assert (5, "prev") in refused_at(path, joined([*lines[:4], *lines[3:]]))
    assert refused_at(path, joined([*lines[:3], lines[4], lines[3], *lines[5:]]))[0] == (4, "prev")


def test_a_footer_that_does_not_match_is_refused(tmp_path: Path, lines: list[bytes]) -> None:
    """Count and head of the footer are held against what stands there."""
    path = tmp_path / "a.jsonl"
    wrong_count = [*lines[:-1], lines[-1].replace(b'"draws":12', b'"draws":13')]
    assert refused_at(path, joined(wrong_count)) == [(14, "draws")]
    head = msgspec.json.decode(lines[-1])["head"].encode()
    wrong_head = [*lines[:-1], lines[-1].replace(b'"head":"' + head, b'"head":"' + b"0" * 64)]
    assert refused_at(path, joined(wrong_head)) == [(14, "head")]
    dropped = [*lines[:-3], lines[-1]]
    assert refused_at(path, joined(dropped)) == [(12, "prev"), (12, "draws")]


def test_a_log_cut_anywhere_is_incomplete_or_refused_never_complete(
    tmp_path: Path, lines: list[bytes]
) -> None:
    """Whatever number of bytes is cut off, the log is never taken for whole, and whole draws are kept."""
    whole = joined(lines)
    path = tmp_path / "a.jsonl"
    ends = [sum(len(line) + 1 for line in lines[:n]) for n in range(len(lines) + 1)]
    for cut in sorted({*random.Random(1).sample(range(len(whole) - 1), 150), *ends[:-1]}):
        path.write_bytes(whole[:cut])
        try:
            log = read_run_log(path)
        except InputRefused:
            assert cut < len(lines[0])
            continue
        assert log.inputs[0].status == "incomplete"
        kept = sum(1 for end in ends[2:-1] if cut >= end - 1)
        assert log.inputs[0].draws == kept
        assert any(finding.check == "log.incomplete" for finding in log.findings)


def test_a_missing_last_line_end_is_not_a_loss(tmp_path: Path, lines: list[bytes]) -> None:
    """A whole footer without a line's end still ends the log."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(joined(lines)[:-1])
    assert read_run_log(path).inputs[0].status == "complete"


def test_single_byte_edits_are_noticed_or_mean_nothing(tmp_path: Path, lines: list[bytes]) -> None:
    """Of many random single-byte edits, each is refused, ends the log early, or leaves every record as it was."""
    whole = joined(lines)
    path = tmp_path / "a.jsonl"
    path.write_bytes(whole)
    before = list(iter_draws(path))
    chance = random.Random(2)
    footer_at = len(whole) - len(lines[-1]) - 1
    meaningless = 0
    for _ in range(400):
        place = chance.randrange(len(whole))
        byte = chance.choice([b for b in range(256) if b != whole[place]])
        path.write_bytes(whole[:place] + bytes([byte]) + whole[place + 1 :])
        report = validate(path)
        if report.valid and report.status == "complete":
            assert place >= footer_at
            assert list(iter_draws(path)) == before
            meaningless += 1
    assert meaningless <= 4


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_packed_logs_are_covered_by_the_same_chain(tmp_path: Path, lines: list[bytes], ending: str) -> None:
    """Digests are over unpacked bytes: packing changes nothing, and a cut packed file is incomplete."""
    pack = gzip.compress if ending == "gz" else zstandard.ZstdCompressor().compress
    path = tmp_path / f"a.jsonl.{ending}"
    path.write_bytes(pack(joined(lines)))
    assert read_run_log(path).inputs[0].status == "complete"
    long = [header_line(), *(draw_line(f"d{i}", output=str(random.Random(i).random())) for i in range(3000))]
    packed = pack(log_bytes(long))
    path.write_bytes(packed[: len(packed) // 2])
    log = read_run_log(path)
    assert log.inputs[0].status == "incomplete"
    assert 0 < log.inputs[0].draws < 3000
    middle = len(packed) // 2
    path.write_bytes(packed[:middle] + bytes([packed[middle] ^ 255]) + packed[middle + 1 :])
    with pytest.raises(InputRefused):
        read_run_log(path)


def test_packed_parts_one_after_the_other_are_one_log(tmp_path: Path, lines: list[bytes]) -> None:
    """Several gzip members or zstd frames in one file read as one stream."""
    for name, pack in {"gz": gzip.compress, "zst": zstandard.ZstdCompressor().compress}.items():
        path = tmp_path / f"a.jsonl.{name}"
        path.write_bytes(pack(joined(lines[:5])) + pack(joined(lines[5:])))
        assert read_run_log(path).inputs[0].status == "complete"


def test_a_parquet_log_whose_rows_changed_is_found_by_validation(tmp_path: Path) -> None:
    """The head in a Parquet log is that of its rows as JSONL: an edited value and a dropped row show."""
    import pyarrow.parquet as pq

    path = tmp_path / "a.parquet"
    write_run_log(path, HEADER, DRAWS)
    assert (
        ParquetLog(str(path), "a").chain_head()
        == msgspec.to_builtins(ParquetLog(str(path), "a").footer)["head"]
    )
    table = pq.read_table(path)
    metadata = pq.ParquetFile(path).metadata.metadata
    keep = {key: value for key, value in metadata.items() if key.startswith(b"verdiv")}
    billed = table.schema.get_field_index("billed")
    edited = table.set_column(billed, "billed", [[2.0, *[1.0] * 11]]).replace_schema_metadata(keep)
    pq.write_table(edited, path)
    (fault,) = validate(path).faults
    assert fault.field == "head"
    pq.write_table(table.slice(0, 11).replace_schema_metadata(keep), path)
    (fault,) = validate(path).faults
    assert (fault.field, fault.got) == ("draws", "12")
    with pytest.raises(InputRefused):
        read_run_log(path)
