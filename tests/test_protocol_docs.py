"""The worked example of the documentation is a family that keeps the rules which the page states."""

from __future__ import annotations

import json
import random
import re
import sys
from pathlib import Path

import pytest

from verdiv.protocol.calls.verdict import EXACTLY, IN_PLACE
from verdiv.protocol.suite.generate import generate_suite
from verdiv.protocol.suite.plugins import families_with
from verdiv.protocol.suite.task import Family

PAGE = Path(__file__).resolve().parent.parent / "docs" / "own-family.md"


@pytest.fixture
def family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Family:
    """The page's first example, saved as a module and found by its place."""
    source = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)[0]
    (tmp_path / "myfamilies.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    try:
        return families_with(["myfamilies:Seconds"])["seconds"]
    finally:
        sys.modules.pop("myfamilies", None)


def test_the_worked_example_keeps_the_rules(family: Family) -> None:
    """No correct output is flagged, structural messages mend, the prompt does not hold its answer."""
    suite = generate_suite(1, {"seconds": 40}, families={"seconds": family})
    for task in suite.tasks:
        assert str(task.answer["seconds"]) not in task.public.prompt
        for output in family.spellings(task):
            assert not family.verify(output, task.public).flagged
            assert family.is_correct(output, task)
        for broken in (
            f"Sure: {family.spellings(task)[0]}",
            "no",
            '{"name": "wait", "arguments": {"seconds": "x"}}',
        ):
            message = family.verify(broken, task.public).message or ""
            fixed = message.split(EXACTLY)[-1].split(IN_PLACE)[-1]
            fixed = fixed.replace('"..."', json.dumps(task.answer["seconds"]))
            assert family.is_correct(fixed, task)


def test_the_worked_example_has_all_classes(family: Family) -> None:
    """A type is structural, no whole minute is semantic, a wrong minute is silent."""
    task = family.generate(random.Random(1), 2, "t")
    classes = []
    for seconds in ('"60"', "61", str(task.answer["seconds"] + 60)):
        verdict = family.verify(f'{{"name": "wait", "arguments": {{"seconds": {seconds}}}}}', task.public)
        classes.append(str(verdict.error_class))
    assert classes == ["structural", "semantic", "None"]
