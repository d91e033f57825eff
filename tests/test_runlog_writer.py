"""A run log appears whole or not at all; a durable one loses nothing that was appended."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from runlog_files import HEADER, draw_line, header_line, write_lines
from verdiv.errors import InputRefused, UsageRefused, VerdivError, WriteFailed
from verdiv.runlog.reader import read_run_log, validate
from verdiv.runlog.records import Draw, DrawError, Gate, Header, PromptKind
from verdiv.runlog.storage import OutputFile, atomic_file
from verdiv.runlog.writer import RunLogWriter, write_run_log

ENDINGS = ["jsonl", "jsonl.gz", "jsonl.zst", "parquet"]


def draw(name: str, **changes: object) -> Draw:
    """Return a plain draw."""
    fields: dict[str, object] = {"task_id": "t", "arm": "A0", "correct": True, "billed": 1.0, **changes}
    return Draw(draw_id=name, **fields)  # type: ignore[arg-type]


class FullDisk:
    """A disk with room for so many bytes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, room: int) -> None:
        self.room = room
        real = OutputFile.put

        def put(file: OutputFile, data: memoryview) -> int:
            if self.room == 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            taken = real(file, data[: self.room])
            self.room -= taken
            return taken

        monkeypatch.setattr(OutputFile, "put", put)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("room", [0, 1, 100, 3000])
def test_a_full_disk_leaves_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, room: int
) -> None:
    """When the disk is full the error says so, and neither the file nor a part of it is left."""
    FullDisk(monkeypatch, room)
    path = tmp_path / f"a.{ending}"
    with pytest.raises(WriteFailed, match="No space left"):
        write_run_log(path, HEADER, (draw(f"d{i}", output=os.urandom(40).hex()) for i in range(2000)))
    assert list(tmp_path.iterdir()) == []


def test_an_old_file_survives_a_failed_overwrite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Overwriting replaces the old log only by a whole new one."""
    path = tmp_path / "a.jsonl"
    write_run_log(path, HEADER, [draw("d1")])
    before = path.read_bytes()
    disk = FullDisk(monkeypatch, 50)
    with pytest.raises(WriteFailed):
        write_run_log(path, HEADER, [draw("d2")], overwrite=True)
    assert path.read_bytes() == before
    disk.room = 10**6
    write_run_log(path, HEADER, [draw("d2")], overwrite=True)
    assert read_run_log(path).draws["draw_id"].tolist() == ["d2"]


def test_the_full_device_is_a_clear_error() -> None:
    """Writing to a device without room is an error that names it, not a success."""
    with pytest.raises(WriteFailed, match="/dev/full"):
        write_run_log("/dev/full", HEADER, [draw("d1")])


def test_a_full_standard_output_is_a_clear_error() -> None:
    """The same for standard output."""
    code = (
        "from verdiv.runlog.writer import write_run_log\n"
        "from verdiv.runlog.records import Header, Gate\n"
        "from verdiv.errors import WriteFailed\n"
        "try: write_run_log('-', Header(schema=1, run_id='r', gate=Gate.NONE, harness='h'), [])\n"
        "except WriteFailed as error: raise SystemExit(7)\n"
    )
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([sys.executable, "-c", code], stdout=full, check=False)
    assert done.returncode == 7


def test_an_error_in_the_middle_leaves_no_file(tmp_path: Path) -> None:
    """A writer that is left by an error leaves no file and no part of one."""

    def interrupted(path: Path) -> None:
        with RunLogWriter(path, HEADER) as writer:
            writer.append(draw("d1"))
            raise KeyError

    for ending in ENDINGS:
        with pytest.raises(KeyError):
            interrupted(tmp_path / f"a.{ending}")
    assert list(tmp_path.iterdir()) == []


def test_what_stands_is_not_overwritten_unasked(tmp_path: Path) -> None:
    """A name that is taken, a folder and a missing folder are refused; the log that stands is untouched."""
    path = tmp_path / "a.jsonl"
    write_run_log(path, HEADER, [draw("d1")])
    before = path.read_bytes()
    for durable in (False, True):
        with pytest.raises(WriteFailed, match="stands there already"):
            RunLogWriter(path, HEADER, durable=durable)
    assert path.read_bytes() == before
    (tmp_path / "b.jsonl").mkdir()
    with pytest.raises(WriteFailed, match="a folder"):
        write_run_log(tmp_path / "b.jsonl", HEADER, [], overwrite=True)
    with pytest.raises(WriteFailed, match="does not exist"):
        write_run_log(tmp_path / "none" / "b.jsonl", HEADER, [])


def test_names_tell_the_form_and_others_are_refused(tmp_path: Path) -> None:
    """An unknown ending is refused before anything is written; durable logs are plain JSONL."""
    with pytest.raises(UsageRefused):
        write_run_log(tmp_path / "a.csv", HEADER, [])
    for ending in ("jsonl.gz", "parquet"):
        with pytest.raises(UsageRefused):
            RunLogWriter(tmp_path / f"a.{ending}", HEADER, durable=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "bad",
    [
        {"billed": -1.0},
        {"billed": float("nan")},
        {"billed": float("inf")},
        {"draw_id": ""},
        {"attempt": 0},
        {"replicate": 2**63},
        {"prompt_sha256": "abc"},
        {"started_at": "yesterday"},
        {"error": DrawError(kind="timeout")},
        {"prompt_kind": PromptKind.BLIND},
        {"output": "\ud800"},
        {"draw_id": "d1"},
        {"parent": "d2"},
    ],
)
@pytest.mark.parametrize("durable", [False, True])
def test_what_no_reader_takes_is_not_written(tmp_path: Path, bad: dict[str, object], durable: bool) -> None:
    """A draw that a reader would refuse is refused by the writer, which goes on without it."""
    path = tmp_path / "a.jsonl"
    wrong = msgspec.structs.replace(draw("d2"), **bad)
    with RunLogWriter(path, HEADER, durable=durable) as writer:
        writer.append(draw("d1"))
        with pytest.raises(InputRefused):
            writer.append(wrong)
        writer.append(draw("d3"))
    assert read_run_log(path).draws["draw_id"].tolist() == ["d1", "d3"]


def test_a_wrong_header_writes_nothing(tmp_path: Path) -> None:
    """A header that no reader takes leaves no file."""
    bad = Header(schema=2, run_id="r", gate=Gate.NONE, harness="h", started_at="noon")
    for durable in (False, True):
        with pytest.raises(InputRefused):
            RunLogWriter(tmp_path / "a.jsonl", bad, durable=durable)
    assert list(tmp_path.iterdir()) == []


def test_a_named_draw_that_never_came_fails_at_the_end(tmp_path: Path) -> None:
    """A log whose draw names a draw that is not there is not finished."""
    with pytest.raises(InputRefused, match="nowhere"):
        write_run_log(tmp_path / "a.jsonl", HEADER, [draw("d1", parent="nowhere")])
    assert list(tmp_path.iterdir()) == []
    write_run_log(tmp_path / "a.jsonl", HEADER, [draw("d1", parent="d2"), draw("d2")])
    assert validate(tmp_path / "a.jsonl").valid


def test_an_incomplete_log_stays_so_when_it_is_converted(tmp_path: Path) -> None:
    """Without a footer in, no footer out, in every form."""
    for ending in ENDINGS:
        path = tmp_path / f"a.{ending}"
        write_run_log(path, HEADER, [draw("d1")], complete=False)
        assert read_run_log(path).inputs[0].status == "incomplete"


def test_draws_of_a_durable_log_stand_at_once(tmp_path: Path) -> None:
    """Every appended draw can be read before the log is closed."""
    path = tmp_path / "a.jsonl"
    with RunLogWriter(path, HEADER, durable=True) as writer:
        for count in range(1, 4):
            writer.append(draw(f"d{count}"))
            log = read_run_log(path)
            assert (log.inputs[0].draws, log.inputs[0].status) == (count, "incomplete")
    assert read_run_log(path).inputs[0].status == "complete"


def test_an_interrupted_durable_log_is_resumed_as_if_never_interrupted(tmp_path: Path) -> None:
    """Interrupted anywhere, even in the middle of a line, and resumed: the same bytes as without."""
    whole, path = tmp_path / "whole.jsonl", tmp_path / "a.jsonl"
    draws = [draw(f"d{i}", parent=f"d{i - 1}" if i else None, attempt=1) for i in range(6)]
    write_run_log(whole, HEADER, draws)
    content = whole.read_bytes()
    lines = content.splitlines(keepends=True)
    for kept in range(1, 7):
        start = sum(map(len, lines[:kept]))
        for cut in (start, start + 1, start + len(lines[kept]) // 2, start + len(lines[kept]) - 1):
            path.write_bytes(content[:cut])
            with RunLogWriter.resume(path) as writer:
                assert writer.header == HEADER
                for one in draws:
                    if one.draw_id not in writer.draw_ids:
                        writer.append(one)
            assert path.read_bytes() == content


def test_what_cannot_be_resumed_is_refused_and_untouched(tmp_path: Path) -> None:
    """A complete log, a broken chain, a log without a whole header and a packed one are not resumed."""
    path = tmp_path / "a.jsonl"
    write_run_log(path, HEADER, [draw("d1"), draw("d2")])
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    for broken in (content, b"".join([lines[0], lines[2]]), content[:20], b"", lines[0] + b"{}\n"):
        path.write_bytes(broken)
        with pytest.raises(VerdivError):
            RunLogWriter.resume(path)
        assert path.read_bytes() == broken
    packed = tmp_path / "a.jsonl.gz"
    write_run_log(packed, HEADER, [], complete=False)
    with pytest.raises(UsageRefused):
        RunLogWriter.resume(packed)
    with pytest.raises(InputRefused):
        RunLogWriter.resume(tmp_path / "none.jsonl")


def test_a_draw_that_did_not_fit_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the disk fills in the middle of a durable line, the line is taken back and the log goes on later."""
    path = tmp_path / "a.jsonl"
    disk = FullDisk(monkeypatch, 10**6)
    with RunLogWriter(path, HEADER, durable=True) as writer:
        writer.append(draw("d1"))
        before = path.read_bytes()
        disk.room = 30
        with pytest.raises(WriteFailed, match="No space left"):
            writer.append(draw("d2"))
        assert path.read_bytes() == before
        disk.room = 10**6
        writer.append(draw("d2"))
    assert validate(path).valid
    assert read_run_log(path).draws["draw_id"].tolist() == ["d1", "d2"]


def test_two_programs_do_not_write_one_log(tmp_path: Path) -> None:
    """A durable log that is being written cannot be resumed by another writer."""
    path = tmp_path / "a.jsonl"
    with RunLogWriter(path, HEADER, durable=True) as writer:
        writer.append(draw("d1"))
        with pytest.raises(WriteFailed, match="a program is writing"):
            RunLogWriter.resume(path)
        writer.append(draw("d2"))
    assert validate(path).valid


def test_a_killed_program_loses_no_appended_draw(tmp_path: Path) -> None:
    """Killed outright after it said that a draw is appended, the draw stands; the log resumes."""
    path = tmp_path / "a.jsonl"
    code = (
        "import sys\n"
        "from verdiv.runlog.writer import RunLogWriter\n"
        "from verdiv.runlog.records import Header, Gate, Draw\n"
        f"writer = RunLogWriter({str(path)!r}, Header(schema=1, run_id='r', gate=Gate.NONE, harness='h'),"
        " durable=True)\n"
        "for i in range(10**6):\n"
        "    writer.append(Draw(draw_id=f'd{i}', task_id='t', arm='A0', correct=True, billed=1.0))\n"
        "    print(i, flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        said = -1
        while said < 50:
            said = int(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
        for line in child.stdout.read().split():
            said = int(line)
    log = read_run_log(path)
    assert log.inputs[0].draws in (said + 1, said + 2)
    with RunLogWriter.resume(path) as writer:
        assert f"d{said}" in writer.draw_ids
        writer.append(draw("more"))
    assert validate(path).valid


def test_threads_share_a_writer(tmp_path: Path) -> None:
    """Draws appended by several threads make one chain."""
    from concurrent.futures import ThreadPoolExecutor

    path = tmp_path / "a.jsonl"
    with RunLogWriter(path, HEADER, durable=True) as writer, ThreadPoolExecutor(8) as pool:
        list(pool.map(writer.append, [draw(f"d{i}") for i in range(200)]))
    assert validate(path).valid
    assert read_run_log(path).inputs[0].draws == 200


def test_a_closed_writer_takes_no_more(tmp_path: Path) -> None:
    """After the footer nothing can follow; closing twice is harmless."""
    writer = RunLogWriter(tmp_path / "a.jsonl", HEADER)
    writer.close()
    writer.close()
    with pytest.raises(UsageRefused):
        writer.append(draw("d1"))


def test_written_files_have_the_rights_that_the_system_gives(tmp_path: Path) -> None:
    """A log is as readable as any new file, not private as temporary files are."""
    (tmp_path / "plain").touch()
    write_run_log(tmp_path / "a.jsonl", HEADER, [])
    rights = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "a.jsonl")]
    assert rights[0] == rights[1]


def test_packed_files_of_equal_logs_are_equal(tmp_path: Path) -> None:
    """No clock and no name goes into a packed file: the same log gives the same bytes."""
    for ending in ENDINGS:
        for name in ("a", "b"):
            write_run_log(tmp_path / f"{name}.{ending}", HEADER, [draw("d1")])
        assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()


def test_an_error_of_the_caller_passes_through_atomic_file(tmp_path: Path) -> None:
    """An error while a file is being made is the caller's own, not one of writing."""

    def failing() -> None:
        with atomic_file(tmp_path / "a") as file:
            file.write(b"x")
            (tmp_path / "none").read_bytes()

    with pytest.raises(FileNotFoundError):
        failing()
    assert list(tmp_path.iterdir()) == []


def test_resuming_keeps_what_the_reader_keeps(tmp_path: Path) -> None:
    """A log by another program, without some fields and with its own spacing, is continued in place."""
    path = write_lines(tmp_path / "a.jsonl", [header_line(), draw_line("d1")], footer=False)
    with RunLogWriter.resume(path) as writer:
        writer.append(draw("d2", parent="d1"))
    assert validate(path).valid
