"""The README says what is so."""

from __future__ import annotations

import doctest
import re
import tomllib
from pathlib import Path

from verdiv.cli.app import COMMANDS, run

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_examples_in_python_give_what_they_show() -> None:
    """Each Python example of the README is run and compared."""
    result = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert result.attempted >= 5
    assert result.failed == 0


def test_every_command_shown_exists() -> None:
    """Each `verdiv X` of the README is a subcommand, and each subcommand but version is shown."""
    shown = set(re.findall(r"^\$ (?:\S+ \S+ \| )?verdiv (\w+)", README, re.MULTILINE))
    assert shown <= set(COMMANDS)
    assert set(COMMANDS) - shown <= {"version", "demo"}


def test_links_and_pictures_are_there() -> None:
    """Every relative link of the README leads to a file of the project."""
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_mapping_of_the_readme_converts(tmp_path: Path) -> None:
    """The mapping example is a whole mapping and reads the files it describes."""
    (block,) = [text for text in re.findall(r"```toml\n(.*?)```", README, re.DOTALL) if "[[files]]" in text]
    assert tomllib.loads(block)["schema"] == 1
    (tmp_path / "my-logs.toml").write_text(block)
    (tmp_path / "A3.csv").write_text(
        "task,attempt,passed,flagged,error_class\na,1,no,yes,structural\na,2,yes,no,\n"
    )
    out = tmp_path / "run.runlog.jsonl"
    words = ["convert", "--strict", "--mapping", str(tmp_path / "my-logs.toml"), str(tmp_path / "A3.csv")]
    assert run([*words, "-o", str(out)]) == 0
    assert out.read_text().count('"correct":true') == 1


def test_make_has_the_two_commands() -> None:
    """`make demo` and `make test`, which the README promises, are targets."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("demo", "test"):
        assert f"$ make {target} " in README
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
