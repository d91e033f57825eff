"""Several logs become one; where they clash it is said, and what must not be counted twice is refused."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from runlog_files import draw_line, header_line, write_lines
from verdiv.errors import InputRefused
from verdiv.runlog.columns import DRAW_COLUMNS
from verdiv.runlog.reader import read_run_log, read_run_logs
from verdiv.runlog.table import RunLog


def checks(log: RunLog) -> set[str]:
    """Return the names of what was noticed."""
    return {finding.check for finding in log.findings}


def log_of(
    path: Path,
    names: list[str],
    *,
    run: str = "r",
    draws: dict[str, Any] | None = None,
    header: dict[str, Any] | None = None,
) -> Path:
    """Write a log with such draws."""
    return write_lines(
        path,
        [header_line(run_id=run, **(header or {})), *(draw_line(name, **(draws or {})) for name in names)],
    )


def test_joined_logs_stand_one_after_the_other(tmp_path: Path) -> None:
    """Draws keep their order and say which input they come from; the columns stay the contract."""
    paths = [log_of(tmp_path / f"{n}.jsonl", [f"{n}{i}" for i in range(3)], run=f"r{n}") for n in "ab"]
    log = read_run_logs(paths)
    assert log.draws["draw_id"].tolist() == ["a0", "a1", "a2", "b0", "b1", "b2"]
    assert log.draws["log"].tolist() == [0, 0, 0, 1, 1, 1]
    assert {name: str(dtype) for name, dtype in log.draws.dtypes.items()} == DRAW_COLUMNS
    assert [one.path for one in log.inputs] == [str(path) for path in paths]
    assert [one.draws for one in log.inputs] == [3, 3]
    assert [header.run_id for header in log.headers] == ["ra", "rb"]
    assert checks(log) == set()


def test_one_log_alone_is_itself(tmp_path: Path) -> None:
    """Joining one log changes nothing."""
    path = log_of(tmp_path / "a.jsonl", ["d1"])
    one, same = read_run_log(path), read_run_logs([path])
    pd.testing.assert_frame_equal(one.draws, same.draws)
    assert (one.inputs, one.findings) == (same.inputs, same.findings)


def test_no_log_is_refused() -> None:
    """There is nothing to say about no log."""
    with pytest.raises(InputRefused):
        read_run_logs([])


def test_the_same_file_twice_is_refused(tmp_path: Path) -> None:
    """A log named twice, also under another name, would count every draw twice."""
    path = log_of(tmp_path / "a.jsonl", ["d1"])
    other = tmp_path / "b.jsonl"
    other.write_bytes(path.read_bytes())
    for pair in ([path, path], [path, other]):
        with pytest.raises(InputRefused, match="the same bytes"):
            read_run_logs(pair)


def test_the_same_draws_in_two_files_are_refused(tmp_path: Path) -> None:
    """Two copies of one run, or of its draws under another run's name, would count draws twice."""
    first = log_of(tmp_path / "a.jsonl", ["d1", "d2"])
    longer = log_of(tmp_path / "b.jsonl", ["d1", "d2", "d3"])
    renamed = log_of(tmp_path / "c.jsonl", ["d2", "d4"], run="other")
    for second in (longer, renamed):
        with pytest.raises(InputRefused, match="stand in another log"):
            read_run_logs([first, second])


def test_ids_that_two_runs_both_use_are_told_apart(tmp_path: Path) -> None:
    """Two runs that number their draws alike are joined; ids, parents and originals follow, and it is said."""
    first = log_of(tmp_path / "a.jsonl", ["d1", "d2"], draws={"correct": True})
    second = write_lines(
        tmp_path / "b.jsonl",
        [
            header_line(run_id="other"),
            draw_line("d1", correct=False),
            draw_line("x", parent="d1", attempt=2, copy_of="d1", correct=False),
        ],
    )
    log = read_run_logs([first, second])
    assert log.draws["draw_id"].tolist() == ["d1", "d2", "other/d1", "other/x"]
    assert log.draws["parent"].tolist() == [None, None, None, "other/d1"]
    assert log.draws["copy_of"].tolist() == [None, None, None, "other/d1"]
    assert "log.draw_ids_clash" in checks(log)
    assert log.draws["draw_id"].is_unique


def test_gates_that_mean_different_retries_are_refused(tmp_path: Path) -> None:
    """What a retry answers depends on the gate: verifier and truth do not join; none joins either."""
    logs = {
        gate: log_of(tmp_path / f"{gate}.jsonl", [gate], run=gate, header={"gate": gate})
        for gate in ("verifier", "truth", "none")
    }
    with pytest.raises(InputRefused) as caught:
        read_run_logs([logs["none"], logs["verifier"], logs["truth"]])
    assert caught.value.faults[0].field == "gate"
    for gate in ("verifier", "truth"):
        assert len(read_run_logs([logs["none"], logs[gate]]).draws) == 2


@pytest.mark.parametrize(
    "field, check",
    [("preregistration_sha256", "log.registrations_differ"), ("suite_sha256", "log.suites_differ")],
)
def test_headers_that_disagree_are_noticed(tmp_path: Path, field: str, check: str) -> None:
    """Logs of different registrations or suites are joined with a high finding; one without digest, a low one."""
    first = log_of(tmp_path / "a.jsonl", ["a"], run="a", header={field: "a" * 64})
    other = log_of(tmp_path / "b.jsonl", ["b"], run="b", header={field: "b" * 64})
    silent = log_of(tmp_path / "c.jsonl", ["c"], run="c")
    for pair, severity in (([first, other], "high"), ([first, silent], "low")):
        (finding,) = read_run_logs(pair).findings
        assert (finding.check, finding.severity) == (check, severity)


def test_one_tier_under_two_models_is_noticed(tmp_path: Path) -> None:
    """A tier that is another model in another log is a finding: its draws are not of one kind."""
    paths = [
        log_of(tmp_path / f"{n}.jsonl", [n], run=n, header={"models": {"small": {"name": n}}})
        for n in ("one", "two")
    ]
    (finding,) = read_run_logs(paths).findings
    assert finding.check == "log.models_differ"
    assert "one" in finding.message


def test_findings_of_each_log_are_kept(tmp_path: Path) -> None:
    """What was noticed in one log is still said when it is joined."""
    first = write_lines(tmp_path / "a.jsonl", [header_line(run_id="a"), draw_line("a")], footer=False)
    log = read_run_logs([first, log_of(tmp_path / "b.jsonl", ["b"], run="b")])
    assert "log.incomplete" in checks(log)
    assert [one.status for one in log.inputs] == ["incomplete", "complete"]


ODDITIES: list[tuple[str, list[dict[str, Any]]]] = [
    (
        "log.ended_before_started",
        [{"started_at": "2026-01-31T09:30:00Z", "ended_at": "2026-01-31T09:30:00+01:00"}],
    ),
    (
        "log.parent_of_other_task",
        [{}, {"parent": "d0", "task_id": "u", "attempt": 2, "prompt_kind": "blind"}],
    ),
    ("log.copy_disagrees", [{"correct": True}, {"copy_of": "d0", "correct": False}]),
    (
        "log.copy_disagrees",
        [{"correct": True}, {"copy_of": "d0", "correct": None, "error": {"kind": "timeout"}}],
    ),
    ("log.copy_disagrees", [{"static": {"flagged": True}}, {"copy_of": "d0", "static": {"flagged": False}}]),
    ("log.copy_disagrees", [{}, {"copy_of": "d0", "task_id": "u"}]),
    ("log.retry_prompt", [{}, {"arm": "A2s", "attempt": 2}]),
    ("log.unscored", [{"correct": None}]),
    ("log.no_draws", []),
]


@pytest.mark.parametrize("check, draws", ODDITIES)
def test_oddities_are_noticed_and_alone(tmp_path: Path, check: str, draws: list[dict[str, Any]]) -> None:
    """Each oddity of a readable log is one finding that names a draw, and nothing else is cried."""
    path = write_lines(
        tmp_path / "a.jsonl", [header_line(), *(draw_line(f"d{i}", **one) for i, one in enumerate(draws))]
    )
    (finding,) = read_run_log(path).findings
    assert finding.check == check
    assert not draws or "'d" in finding.message


def test_ordinary_draws_raise_no_finding(tmp_path: Path) -> None:
    """A plain log with retries, a copy, a failure and parallel first draws has nothing odd."""
    draws = [
        draw_line("g", arm="A0"),
        draw_line("c", copy_of="g", static={"flagged": True}),
        draw_line("r", parent="c", attempt=2, prompt_kind="feedback", answered_class="semantic"),
        draw_line("f", correct=None, error={"kind": "timeout"}),
        draw_line("p", arm="A1", attempt=2),
        draw_line("n", started_at="2026-01-31T09:30:00Z", ended_at="2026-01-31T09:30:00Z"),
    ]
    path = write_lines(tmp_path / "a.jsonl", [header_line(expected_draws=6), *draws])
    assert read_run_log(path).findings == ()
    path = write_lines(tmp_path / "b.jsonl", [header_line(expected_draws=7), *draws])
    assert checks(read_run_log(path)) == {"log.expected_draws"}


def test_standard_input_and_streams_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dash reads standard input; an open stream, packed or Parquet too, reads as its file does."""
    from verdiv.runlog.reader import iter_draws
    from verdiv.runlog.records import Header
    from verdiv.runlog.writer import write_run_log

    plain = log_of(tmp_path / "a.jsonl", ["d1"])

    class Stdin:
        buffer = io.BytesIO(plain.read_bytes())

    monkeypatch.setattr("sys.stdin", Stdin)
    log = read_run_log("-")
    assert (log.inputs[0].path, log.inputs[0].draws) == ("-", 1)
    assert log.inputs[0].sha256 == read_run_log(plain).inputs[0].sha256
    header: Header = log.headers[0]
    for ending in ("jsonl.gz", "parquet"):
        path = tmp_path / f"b.{ending}"
        write_run_log(path, header, iter_draws(plain))
        with path.open("rb") as file:
            assert read_run_log(file).inputs[0].sha256 == read_run_log(path).inputs[0].sha256
        assert read_run_log(io.BytesIO(path.read_bytes())).inputs[0].draws == 1


def test_progress_tells_bytes_and_their_total(tmp_path: Path) -> None:
    """Progress is called with stored bytes that grow to the file's size."""
    path = log_of(tmp_path / "a.jsonl", [f"d{i}" for i in range(5000)])
    told: list[tuple[int, int | None]] = []
    read_run_log(path, progress=lambda done, total: told.append((done, total)))
    size = path.stat().st_size
    assert {total for _, total in told} == {size}
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1][0] == size
    assert len(told) > 2
