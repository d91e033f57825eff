"""Each way in which a run log can be wrong is refused with its line, its field and a remedy."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from runlog_files import draw_line, header_line, log_bytes, write_lines
from verdiv.errors import SHOWN_FAULTS, Fault, InputRefused
from verdiv.runlog.reader import iter_draws, iter_frames, read_run_log, validate


def refusal(path: Path) -> InputRefused:
    """Read a log that must be refused, and see that every way of reading it agrees."""
    with pytest.raises(InputRefused) as caught:
        read_run_log(path)
    with pytest.raises(InputRefused):
        list(iter_frames(path))
    report = validate(path)
    assert not report.valid
    assert report.input is None
    places = [(fault.line, fault.field) for fault in caught.value.faults]
    assert places == [(fault.line, fault.field) for fault in report.faults][: len(places)]
    return caught.value


def only_fault(path: Path) -> Fault:
    """Read a log that must be refused for one reason."""
    refused = refusal(path)
    assert refused.total == 1, str(refused)
    (fault,) = refused.faults
    assert fault.where == str(path)
    assert fault.expected
    assert fault.remedy
    return fault


FIELD_FAULTS: list[tuple[dict[str, Any], str, str]] = [
    ({"billed": -0.5}, "billed", "a number ≥ 0"),
    ({"billed": "1"}, "billed", "a number ≥ 0"),
    ({"billed": None}, "billed", "a number ≥ 0"),
    ({"billed": True}, "billed", "a number ≥ 0"),
    ({"correct": "yes"}, "correct", "true or false or null"),
    ({"correct": 1}, "correct", "true or false or null"),
    ({"attempt": 0}, "attempt", "an integer ≥ 1"),
    ({"attempt": 1.5}, "attempt", "an integer ≥ 1"),
    ({"attempt": 2**63}, "attempt", "an integer ≥ 1"),
    ({"replicate": -1}, "replicate", "an integer ≥ 0"),
    ({"draw_id": ""}, "draw_id", "text of 1 to 4096 characters"),
    ({"task_id": "x" * 4097}, "task_id", "text of 1 to 4096 characters"),
    ({"arm": None}, "arm", "text of 1 to 4096 characters"),
    ({"prompt_kind": "retry"}, "prompt_kind", "blind | feedback | initial"),
    ({"output_sha256": "A" * 64}, "output_sha256", "64 lower-case hex digits"),
    ({"prompt_sha256": "ab"}, "prompt_sha256", "64 lower-case hex digits or null"),
    ({"started_at": "2026-01-31T09:30:00"}, "started_at", "an RFC 3339 time with offset"),
    ({"ended_at": "2026-02-30T09:30:00Z"}, "ended_at", "an RFC 3339 time with offset"),
    ({"static": {"flagged": None}}, "static.flagged", "true or false"),
    ({"static": {}}, "static.flagged", "this field"),
    ({"static": {"flagged": True, "class": "odd"}}, "static.class", "semantic | structural or null"),
    ({"static": []}, "static", "an object or null"),
    ({"decoding": {"temperature": -1}}, "decoding.temperature", "a number ≥ 0 or null"),
    ({"decoding": {"top_p": 1.5}}, "decoding.top_p", "a number ≥ 0 and ≤ 1 or null"),
    ({"decoding": {"seed": 2**63}}, "decoding.seed", "an integer"),
    ({"tokens_in": -1}, "tokens_in", "an integer ≥ 0"),
    ({"in_flight": 0}, "in_flight", "an integer ≥ 1"),
    ({"device_seconds": -0.1}, "device_seconds", "a number ≥ 0 or null"),
    ({"error": {"message": "x"}, "correct": None}, "error.kind", "this field"),
    ({"answer": 1}, "answer", "a field of the format"),
    ({"static": {"flagged": False, "colour": "red"}}, "static.colour", "a field of the format"),
    ({"error": {"kind": "timeout"}}, "correct", "null on a draw with an error"),
    ({"prompt_kind": "feedback"}, "prompt_kind", "initial on attempt 1"),
    ({"answered_class": "structural"}, "answered_class", "null on a draw with initial prompt"),
    ({"static": {"flagged": False, "class": "semantic"}}, "static.class", "null on an unflagged draw"),
    ({"parent": "d2"}, "parent", "another draw"),
    ({"copy_of": "d2"}, "copy_of", "another draw"),
    ({"parent": "nowhere"}, "parent", "the draw_id of a draw in this log"),
    ({"copy_of": "nowhere"}, "copy_of", "the draw_id of a draw in this log"),
]


@pytest.mark.parametrize(
    "changes, field, expected", FIELD_FAULTS, ids=[str(c)[:40] for c, _, _ in FIELD_FAULTS]
)
def test_a_wrong_value_is_named_by_line_and_field(
    tmp_path: Path, changes: dict[str, Any], field: str, expected: str
) -> None:
    """A value that its field does not allow, or that contradicts another, is one fault with line and field."""
    records = [header_line(), draw_line("d1"), draw_line("d2", **changes), draw_line("d3")]
    fault = only_fault(write_lines(tmp_path / "a.jsonl", records))
    assert (fault.line, fault.field) == (3, field)
    assert fault.expected.startswith(expected)


def test_a_field_that_is_not_there_is_named(tmp_path: Path) -> None:
    """A draw without its outcome is refused: a missing outcome is said, with null."""
    without = draw_line("d1")
    del without["correct"]
    fault = only_fault(write_lines(tmp_path / "a.jsonl", [header_line(), without]))
    assert (fault.line, fault.field, fault.got) == (2, "correct", "nothing")


@pytest.mark.parametrize(
    "line, got",
    [
        (
            b'{"record":"draw","draw_id":"d","task_id":"t","arm":"A0","correct":NaN,"billed":1}',
            "NaN or Infinity",
        ),
        (
            b'{"record":"draw","draw_id":"d","task_id":"t","arm":"A0","correct":null,"billed":-Infinity}',
            "NaN",
        ),
        (
            b'{"record":"draw","draw_id":"d","task_id":"t","arm":"A0","correct":null,"billed":1e999}',
            "Infinity",
        ),
        (b'{"record":"draw","draw_id":"\xff","task_id":"t"}', "byte 0xff at byte 29"),
        (b'{"record":"draw","draw_id":"\x00"}', "a NUL byte at byte 29"),
        (b'{"record":"draw","draw_id":"\\ud800"}', "half of a surrogate pair"),
        (b"", "an empty line"),
        (b"   ", "an empty line"),
        (b"{} {}", "more behind it"),
        (b"[]", "not an object but []"),
        (b"3", "not an object but 3"),
        (b'{"record":"dr', "Unterminated string"),
        (b'{"record":"note"}', '"note"'),
        (b'{"draw_id":"d"}', "a record without its kind"),
        (b"[" * 100_000, "a value nested too deeply"),
        (b"1" * 5000, "Exceeds the limit"),
        (b"\xef\xbb\xbf{}", "a byte order mark"),
    ],
)
def test_a_line_that_is_no_record_is_named(tmp_path: Path, line: bytes, got: str) -> None:
    """Text that is no record says what it is instead; the rest of the log is still read."""
    records: list[dict[str, Any] | bytes] = [header_line(), draw_line("d1"), line, draw_line("d2", billed=-1)]
    refused = refusal(write_lines(tmp_path / "a.jsonl", records))
    assert [fault.line for fault in refused.faults] == [3, 4]
    assert got in refused.faults[0].got


def test_all_faults_of_a_file_come_at_once(tmp_path: Path) -> None:
    """Ten faults are shown and the rest counted; none hides another."""
    records = [header_line(), *(draw_line(f"d{i}", billed=-1, attempt=0) for i in range(30))]
    refused = refusal(write_lines(tmp_path / "a.jsonl", records))
    assert refused.total == 60
    message = str(refused)
    assert message.count("expected") == SHOWN_FAULTS
    assert message.endswith("… and 50 more")


def test_a_repeated_draw_id_names_both_lines(tmp_path: Path) -> None:
    """The same draw_id twice is refused, far apart and side by side, with both lines."""
    for gap in (0, 2000):
        between = [draw_line(f"x{i}") for i in range(gap)]
        records = [header_line(), draw_line("d1"), *between, draw_line("d1")]
        fault = only_fault(write_lines(tmp_path / f"{gap}.jsonl", records))
        assert (fault.line, fault.field) == (gap + 3, "draw_id")
        assert "line 2" in fault.got


def test_a_faulty_draw_is_not_missed_by_those_that_name_it(tmp_path: Path) -> None:
    """A draw whose own line is wrong still counts as there for its children: one mistake, one fault."""
    records = [header_line(), draw_line("d1", billed=-1), draw_line("d2", parent="d1", attempt=2)]
    assert only_fault(write_lines(tmp_path / "a.jsonl", records)).line == 2


def test_a_draw_may_be_named_before_it_comes(tmp_path: Path) -> None:
    """Logs of parallel draws need not be in order: a parent or original may stand further down."""
    records = [header_line(), draw_line("d2", parent="d1"), draw_line("d1")]
    assert validate(write_lines(tmp_path / "a.jsonl", records)).valid


@pytest.mark.parametrize(
    "version, remedy", [(2, "update verdiv"), (0, "correct the program"), (-1, "correct")]
)
def test_an_unknown_version_is_refused_before_anything_else(
    tmp_path: Path, version: int, remedy: str
) -> None:
    """A log of another version is refused for that alone, whatever fields it has that we do not know."""
    path = write_lines(tmp_path / "a.jsonl", [header_line(schema=version, new_field=1), draw_line("d1")])
    fault = only_fault(path)
    assert (fault.line, fault.field, fault.got) == (1, "schema", str(version))
    assert remedy in fault.remedy


@pytest.mark.parametrize(
    "changes, field",
    [
        ({"gate": "oracle"}, "gate"),
        ({"run_id": None}, "run_id"),
        ({"prev": "0" * 64}, "prev"),
        ({"models": {"small": {"precision": "BF16"}}}, "models.small.name"),
        ({"serving": {"engine": "x", "max_concurrency": 0}}, "serving.max_concurrency"),
        ({"started_at": "2026-02-30T00:00:00Z"}, "started_at"),
        ({"suite_sha256": "x"}, "suite_sha256"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_wrong_header_is_named_by_field(tmp_path: Path, changes: dict[str, Any], field: str) -> None:
    """Header fields are held to their types as draw fields are."""
    path = tmp_path / "a.jsonl"
    lines = log_bytes([header_line(), draw_line("d1")]).splitlines()
    path.write_bytes(json.dumps(header_line(**changes)).encode() + b"\n" + lines[1] + b"\n")
    fault = only_fault(path)
    assert (fault.line, fault.field) == (1, field)


def test_a_log_begins_with_its_header_and_has_one(tmp_path: Path) -> None:
    """No header, a second header, and records behind the footer are refused at their line."""
    assert only_fault(write_lines(tmp_path / "none.jsonl", [draw_line("d1")])).line == 1
    second: list[dict[str, Any] | bytes] = [header_line(), draw_line("d1")]
    second += [json.dumps(header_line()).encode(), draw_line("d2")]
    fault = only_fault(write_lines(tmp_path / "two.jsonl", second))
    assert (fault.line, fault.got) == (3, "a second header")
    whole = log_bytes([header_line(), draw_line("d1")])
    (tmp_path / "behind.jsonl").write_bytes(whole + b"{}\n{}\n")
    refused = refusal(tmp_path / "behind.jsonl")
    assert {fault.line for fault in refused.faults} == {4, 5}
    (tmp_path / "twice.jsonl").write_bytes(whole + whole)
    assert 4 in {fault.line for fault in refusal(tmp_path / "twice.jsonl").faults}


def test_a_foreign_log_is_told_to_be_converted(tmp_path: Path) -> None:
    """A JSONL file that never was a run log is refused with the way to make it one."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"task": 1, "success": true}\n')
    assert "convert" in only_fault(path).remedy


@pytest.mark.parametrize("content", [b"", b"\n"])
def test_an_empty_file_is_refused(tmp_path: Path, content: bytes) -> None:
    """Nothing in a file is not a log without draws."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    assert "empty" in only_fault(path).got


def test_what_cannot_be_opened_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No such file, a folder and a file without permission are three clear refusals."""
    assert "nothing of that name" in only_fault(tmp_path / "none.jsonl").got
    assert only_fault(tmp_path).got == "a folder"
    path = write_lines(tmp_path / "a.jsonl", [header_line()])

    def denied(*_: Any, **__: Any) -> io.BytesIO:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    assert only_fault(path).got == "no permission to read it"


def test_a_hostile_name_does_not_reach_the_terminal_raw(tmp_path: Path) -> None:
    """Control characters and endless names of a hostile log are replaced and cut in messages."""
    records = [header_line(), draw_line("\x1b[2Jd" * 3, **{"\x1b[31m" + "x" * 9000: 1})]
    message = str(refusal(write_lines(tmp_path / "a.jsonl", records)))
    assert "\x1b" not in message
    assert len(message) < 1000


def test_a_field_given_twice_is_found_by_validation(tmp_path: Path) -> None:
    """Readers disagree which of two values counts, so that a validated line has each field once."""
    line = (
        b'{"record":"draw","draw_id":"d","task_id":"t","arm":"A0","correct":false,"correct":true,"billed":1}'
    )
    head = log_bytes([header_line()], footer=False)
    from verdiv.runlog.chain import line_digest

    link = b'"prev":"%s",' % line_digest(head.rstrip(b"\n")).encode()
    path = tmp_path / "a.jsonl"
    path.write_bytes(head + line.replace(b'"record"', link + b'"record"', 1) + b"\n")
    report = validate(path)
    (fault,) = report.faults
    assert (fault.line, fault.field, fault.got) == (2, "correct", "it twice")


def test_these_are_not_errors(tmp_path: Path) -> None:
    """One arm only, all right, all wrong, missing outcomes and no footer read well."""
    worlds = {
        "right": [draw_line(f"d{i}", correct=True) for i in range(3)],
        "wrong": [draw_line(f"d{i}", correct=False) for i in range(3)],
        "missing": [draw_line(f"d{i}", correct=None) for i in range(3)],
    }
    for name, draws in worlds.items():
        for footer in (True, False):
            path = write_lines(tmp_path / f"{name}{footer}.jsonl", [header_line(), *draws], footer=footer)
            log = read_run_log(path)
            assert log.inputs[0].status == ("complete" if footer else "incomplete")
            assert log.draws["correct"].isna().sum() == (3 if name == "missing" else 0)
            assert len(list(iter_draws(path))) == 3
