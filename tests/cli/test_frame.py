"""The frame of the command: speed, help, exit codes, and what an accident leaves behind."""

from __future__ import annotations

import errno
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from verdiv import __version__
from verdiv.cli import failures
from verdiv.cli.app import COMMANDS, run
from verdiv.errors import ChainBroken, Fault, FitFailed, InputRefused, UsageRefused, VerdivError

HEAVY = ("numpy", "pandas", "scipy", "pymc", "arviz", "matplotlib", "rich", "msgspec", "pyarrow")


def command(*words: str, stdin: int | None = None, cwd: Path | None = None) -> subprocess.Popen[str]:
    """Start the command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "verdiv", *words],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
    )


def finished(*words: str, cwd: Path | None = None) -> tuple[int, str, str]:
    """Run the command in a process of its own to its end."""
    process = command(*words, cwd=cwd)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def test_help_starts_within_half_a_second() -> None:
    """The help costs less than half a second of processor time, the best of three."""
    spent = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert finished("--help")[0] == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(spent) < 0.5


@pytest.mark.parametrize("words", [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)])
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    """No help page pays for what it does not use; in particular not for Rich."""
    script = (
        "import sys; from verdiv.cli.app import run; code = run(sys.argv[1:]);"
        f"loaded = [name for name in {HEAVY!r} if name in sys.modules];"
        "sys.exit(f'code {code}, loaded {loaded}' if code or loaded else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_run_from_log_to_report_imports_no_second_opinion(tmp_path: Path) -> None:
    """The default engine, rules, audit and report do without the libraries that tests hold them to."""
    slow = ("arviz", "matplotlib", "nutpie", "pymc", "scipy.stats", "statsmodels", "xarray")
    script = (
        "import sys; from verdiv.cli.app import run; code = run(sys.argv[1:]);"
        f"loaded = [name for name in {slow!r} if name in sys.modules];"
        "sys.exit(f'code {code}, loaded {loaded}' if code or loaded else 0)"
    )
    words = ["demo", "-o", str(tmp_path / "out"), "--draws", "100"]
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "report.html").exists()


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_help_page_has_examples_that_parse(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each subcommand shows how it is called, and the examples name it."""
    assert run([name, "--help"]) == 0
    page = capsys.readouterr().out
    examples = re.split(r"Examples?:\n", page)
    assert len(examples) == 2, page
    assert f"verdiv {name}" in examples[1]


def test_the_top_help_lists_every_subcommand(capsys: pytest.CaptureFixture[str]) -> None:
    """The table of subcommands and the help agree, and the exit codes are said."""
    assert run(["--help"]) == 0
    page = capsys.readouterr().out
    for name, (_, line) in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(line.split()[0])}", page, re.MULTILINE)
    assert "130  interrupted" in page


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    """`--version` and `version` start with the same number."""
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"verdiv {__version__}\n"
    assert run(["version"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"verdiv {__version__}"
    assert any(line.startswith("pymc ") for line in lines)


@pytest.mark.parametrize(
    "words, said",
    [
        (["anlyze"], "Did you mean: analyze?"),
        (["analyze"], "Missing"),
        (["analyze", "x", "-o", "out", "--draws", "1"], "--draws"),
        (["analyze", "x", "-o", "out", "--engine", "magic"], "magic"),
        (["init", "poem"], "poem"),
        (["--nonsense"], "nonsense"),
    ],
)
def test_unusable_arguments_end_with_2(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong word is refused with what would have been right, before anything is done."""
    assert run(words) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "error, code, said",
    [
        (
            InputRefused("Refused.", [Fault("a.jsonl", "x", "y", "fix", line=3, field="billed")]),
            2,
            "a.jsonl:3: billed",
        ),
        (UsageRefused("No."), 2, "No."),
        (ChainBroken("Broken."), 3, "Broken."),
        (FitFailed("Failed."), 4, "Failed."),
        (KeyboardInterrupt(), 130, "interrupted; nothing was written"),
        (OSError(errno.ENOSPC, "No space left on device", "out/fit.nc"), 2, "out/fit.nc: No space left"),
        (PermissionError(errno.EACCES, "Permission denied", "log"), 2, "check the permissions"),
        (IsADirectoryError(errno.EISDIR, "Is a directory", "log"), 2, "name a file"),
        (MemoryError(), 2, "out of memory"),
        (ZeroDivisionError("oh"), 70, "a fault of verdiv"),
    ],
)
def test_each_failure_has_its_code_and_its_words(
    error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Deliberate errors and those of the system come without a traceback; only a fault of verdiv has one."""
    failures.keep(failures.NOTHING_KEPT)
    assert failures.exit_code_of(error) == code
    shown = capsys.readouterr().err
    assert said in shown
    assert ("Traceback" in shown or "ZeroDivisionError" in shown) == (code == 70)


def test_an_interruption_says_what_was_kept(capsys: pytest.CaptureFixture[str]) -> None:
    """After results are written, the line names them."""
    failures.keep("the results are complete in out")
    assert failures.exit_code_of(KeyboardInterrupt()) == 130
    assert "the results are complete in out" in capsys.readouterr().err


def test_an_interrupted_command_ends_with_130_and_leaves_nothing(tmp_path: Path) -> None:
    """Ctrl-C while a registration is awaited on standard input: 130, one line, no folder."""
    out = tmp_path / "out"
    process = command("analyze", "x.runlog.jsonl", "--prereg", "-", "-o", str(out), stdin=subprocess.PIPE)
    time.sleep(4)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    shown = process.stderr.read()
    assert process.wait(timeout=60) == 130
    assert "interrupted; nothing was written" in shown
    assert "Traceback" not in shown
    assert not out.exists()
    assert process.stdin is not None
    assert process.stdout is not None
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()


def test_a_closed_pipe_is_no_error() -> None:
    """`verdiv … | head` does not end in a traceback."""
    read, write = os.pipe()
    os.close(read)
    process = subprocess.Popen(
        [sys.executable, "-m", "verdiv", "init", "-o", "-"], stdout=write, stderr=subprocess.PIPE, text=True
    )
    os.close(write)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")


def test_a_full_disk_is_said_and_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the system refuses to write, the file that stood there still stands, alone."""
    target = tmp_path / "preregistration.toml"
    target.write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert run(["init", "-o", str(target), "--force"]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["preregistration.toml"]


def test_init_writes_templates_and_spares_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The default names are used, a file in the way is refused without --force, a dash prints."""
    monkeypatch.chdir(tmp_path)
    assert run(["init"]) == 0
    assert run(["init", "mapping"]) == 0
    assert sorted(os.listdir()) == ["mapping.toml", "preregistration.toml"]
    Path("mapping.toml").write_text("mine")
    assert run(["init", "mapping"]) == 2
    assert Path("mapping.toml").read_text() == "mine"
    assert run(["init", "mapping", "--force"]) == 0
    capsys.readouterr()
    assert run(["init", "mapping", "-o", "-"]) == 0
    assert capsys.readouterr().out == Path("mapping.toml").read_text()
    assert run(["init", "-o", str(tmp_path)]) == 2


def test_doctor_finds_this_installation_sound(capsys: pytest.CaptureFixture[str]) -> None:
    """Every self-check passes here, and the parts that are asked about are named."""
    assert run(["doctor"]) == 0
    page = capsys.readouterr().out
    for word in ("python", "cores", "memory", "compiled models", "pymc", "pyspark"):
        assert re.search(rf"^{word} ", page, re.MULTILINE)
    assert "FAILED" not in page
    assert page.count("ok  ") >= 5


def test_doctor_says_what_is_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A part that does not work ends the check-up with 1 and its reason."""
    from verdiv.cli import doctor

    def broken() -> None:
        raise ValueError("seven is not eight")

    monkeypatch.setattr(doctor, "CHECKS", (("counting", broken),))
    assert run(["doctor"]) == 1
    assert "FAILED  counting: seven is not eight" in capsys.readouterr().out


def test_every_deliberate_error_has_one_of_the_documented_codes() -> None:
    """No class of error ends the command with an undocumented code."""
    kinds: list[type[VerdivError]] = [VerdivError, *VerdivError.__subclasses__()]
    assert {kind.exit_code for kind in kinds} <= {2, 3, 4}
