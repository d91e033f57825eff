"""Registrations: what is read, what is refused, and where the message points."""

from __future__ import annotations

import hashlib
import io
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from verdiv import fixtures
from verdiv.errors import InputRefused, UsageRefused, VerdivError
from verdiv.preregistration import (
    RULE_IDS,
    check_coverage,
    default_preregistration,
    read_preregistration,
)
from verdiv.preregistration.defaults import DEFAULT_HYPOTHESES, default_rules
from verdiv.preregistration.positions import key_lines
from verdiv.preregistration.reader import MAX_BYTES, parse_preregistration
from verdiv.preregistration.schema import implied_schema, shipped_schema

PAPER = fixtures.read_bytes("preregistrations", "verifiers-dividend").decode()


def refused(text: str | bytes) -> InputRefused:
    """Return the refusal that a text must meet."""
    with pytest.raises(InputRefused) as caught:
        parse_preregistration(text if isinstance(text, bytes) else text.encode(), "plan.toml")
    return caught.value


def line_of(text: str, piece: str) -> int:
    """Return the 1-based line of a piece that occurs once."""
    assert text.count(piece) == 1, piece
    return text[: text.index(piece)].count("\n") + 1


def test_the_papers_protocol_is_shipped_with_its_numbers() -> None:
    """The shipped registration states the protocol's own numbers; each is compared, none implied."""
    plan = read_preregistration("verifiers-dividend")
    assert plan.suite.tasks_by_family == {"arithmetic": 14, "date": 13, "filter": 13}
    assert plan.families == {"arithmetic": 14 / 40, "date": 13 / 40, "filter": 13 / 40}
    assert {name: arm.budget for name, arm in plan.arms.items()} == {
        "A0": 1,
        "A1": 5,
        "A2": 5,
        "A2s": 5,
        "A3": 5,
        "A4": 1,
        "A5": 2,
    }
    assert plan.seeds == (1, 2, 3)
    assert plan.greedy_reruns == 1
    assert plan.rate_card.rho == 2.5
    assert plan.rate_card.declared_bound_units == plan.worst_case_units == 28.5
    stated = plan.estimands.stated()
    assert {k: stated[k] for k in ("q0", "p_d", "p_s", "sigma", "s1", "phi", "q_t", "p_d_t", "eta_ox")} == {
        "q0": 0.80,
        "p_d": 0.18,
        "p_s": 0.02,
        "sigma": 0.60,
        "s1": 0.99,
        "phi": 0.05,
        "q_t": 0.90,
        "p_d_t": 0.08,
        "eta_ox": 0.90,
    }
    assert plan.estimands.delta == pytest.approx(0.18 / (1 - 0.80), abs=1e-12)
    assert plan.estimands.delta_t == pytest.approx(0.08 / (1 - 0.90), abs=1e-12)
    assert plan.estimands.s2 == pytest.approx(0.80 + 0.05, abs=1e-12)
    assert plan.rules == default_rules()
    assert plan.decision.gamma == 0.95
    assert tuple(plan.hypotheses) == RULE_IDS


def test_the_digest_is_over_the_bytes_of_the_file(tmp_path: Path) -> None:
    """A changed comment changes the digest, although it changes no field."""
    one, two = tmp_path / "a.toml", tmp_path / "b.toml"
    one.write_text(PAPER)
    two.write_text("# looked at again\n" + PAPER)
    first, second = read_preregistration(one), read_preregistration(two)
    assert first.digest == hashlib.sha256(PAPER.encode()).hexdigest()
    assert first.digest != second.digest
    assert first.model_dump() == second.model_dump()
    assert first.registered


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dash means standard input."""

    class Stdin:
        buffer = io.BytesIO(PAPER.encode())

    monkeypatch.setattr(sys, "stdin", Stdin())
    assert read_preregistration("-").source == "standard input"


@pytest.mark.parametrize(
    "rule, field",
    [
        ("P1", "fraction"),
        ("P2", "headroom_margin"),
        ("P2", "quality_margin"),
        ("P3", "quality_margin"),
        ("P4", "margin"),
        ("P5", "fraction"),
        ("P6", "tolerance"),
        ("R1", "margin"),
        ("R2", "margin"),
        ("R3", "margin"),
        ("R4", "margin"),
    ],
)
def test_no_smallest_effect_has_a_silent_default(rule: str, field: str) -> None:
    """Leaving out a smallest effect of interest is a fault that names the rule's table and the field."""
    head, table, rest = PAPER.partition(f"[rules.{rule}]\n")
    lines = rest.split("\n")
    place = next(i for i, line in enumerate(lines) if line.startswith(f"{field} ="))
    text = head + table + "\n".join(lines[:place] + lines[place + 1 :])
    error = refused(text)
    assert [fault.field for fault in error.faults] == [f"rules.{rule}.{field}"]
    assert error.faults[0].line == line_of(text, f"[rules.{rule}]")
    assert "no default" in error.faults[0].remedy


def test_all_faults_of_a_file_come_at_once_with_their_lines() -> None:
    """Faults in different tables are reported together, in the order of the file."""
    text = (
        PAPER.replace('gate = "verifier"', 'gate = "coin"')
        .replace("tasks = 40\n", 'tasks = "forty"\n', 1)
        .replace("rho = 2.5", "rho = -1")
        .replace("[decision]\ngamma = 0.95", "[decision]\ngamma = nan\nsurprise = 1")
    )
    error = refused(text)
    assert [(fault.field, fault.line) for fault in error.faults] == [
        ("gate", line_of(text, 'gate = "coin"')),
        ("suite.tasks", line_of(text, 'tasks = "forty"')),
        ("rate_card.rho", line_of(text, "rho = -1")),
        ("decision.gamma", line_of(text, "gamma = nan")),
        ("decision.surprise", line_of(text, "surprise = 1")),
    ]


@pytest.mark.parametrize(
    "old, new, field",
    [
        ("arithmetic = 0.35", "arithmetic = 0.36", "families"),
        ("arithmetic = 0.35\n", "arithmetic = 0.35\nother = 0.0\n", "suite.tasks_by_family"),
        ("\ntasks = 40\n", "\ntasks = 41\n", "suite.tasks"),
        ("seeds = [1, 2, 3]", "seeds = [1, 2, 2]", "seeds"),
        ("max_budget = 5 ", "max_budget = 4 ", "arms.A2.budget"),
        ("break_even_budget = 2", "break_even_budget = 6", "break_even_budget"),
        ("cost_units = 2.5 ", "cost_units = 3.5 ", "tiers.teacher.cost_units"),
        ("k = 5\nheadroom", "k = 3\nheadroom", "rules.P2.k"),
        ('condition = "nvfp4"', 'condition = "int4"', "rules.R3.condition"),
        ('condition = "heavy-load"', 'condition = "primary"', "rules.R4.condition"),
        ('P1 = "', 'P7 = "', "hypotheses.P7"),
        ('[arms.A4]\ntier = "teacher"', '[arms.A4]\ntier = "boss"', "arms.A4.tier"),
    ],
)
def test_contradictions_between_tables_are_refused(old: str, new: str, field: str) -> None:
    """Each pair of fields that must agree is checked, and the fault points at a line of the file."""
    assert PAPER.count(old) == 1
    error = refused(PAPER.replace(old, new))
    assert field in [fault.field for fault in error.faults]
    assert all(fault.line for fault in error.faults)


def test_a_sampled_draw_cannot_be_shared() -> None:
    """Only a deterministic first draw is the same in two arms, hence only that one may be shared."""
    text = PAPER.replace('temperature = 0.0\nprompt = "feedback"', 'temperature = 0.7\nprompt = "feedback"')
    assert [fault.field for fault in refused(text).faults] == ["arms.A3.shares_initial_with"]


@pytest.mark.parametrize(
    "version, word", [("2", "upgrade"), ("0", "write"), ("true", "write"), ('"1"', "write")]
)
def test_other_versions_are_refused_before_anything_else(version: str, word: str) -> None:
    """A newer format asks for an upgrade; the number 1 is not the same as true or "1"."""
    error = refused(PAPER.replace("schema = 1", f"schema = {version}").replace("rho = 2.5", "rho = -1"))
    assert [fault.field for fault in error.faults] == ["schema"]
    assert error.faults[0].remedy.startswith(word)
    assert "no schema version" in str(refused(PAPER.replace("schema = 1\n", "")))


@pytest.mark.parametrize(
    "data, said, line",
    [
        (b"", "an empty file", None),
        (b"schema = 1\ntitle = \xff", "byte 0xff", 2),
        (b"schema = 1\ntitle = = 2\n", "Invalid value", 2),
        (b"schema = 1\na = " + b"[" * 30_000 + b"]" * 30_000, "RecursionError", None),
        (b"schema = 1\n" + b".".join([b"a"] * 5_000) + b" = 1\n", "a deeper file", None),
        (b"schema = 1\na = " + b"9" * 5_000, "ValueError", None),
        (b"#" * (MAX_BYTES + 1), "a larger file", None),
    ],
    ids=["empty", "encoding", "syntax", "nesting", "dotted", "digits", "size"],
)
def test_hostile_bytes_are_refused_in_words(data: bytes, said: str, line: int | None) -> None:
    """No content of a file leads to anything but a refusal that says what stood where."""
    error = refused(data)
    assert said in error.faults[0].got
    assert error.faults[0].line == line


@given(st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_bytes_meet_a_plan_or_a_refusal(data: bytes) -> None:
    """The reader is total: random bytes, alone or behind a version line, raise InputRefused only."""
    for content in (data, b"schema = 1\n" + data):
        with pytest.raises(InputRefused):
            parse_preregistration(content, "plan.toml")


@given(st.integers(0, len(PAPER.encode()) - 1), st.integers(0, 255))
@settings(max_examples=200, deadline=None)
def test_a_damaged_byte_meets_a_plan_or_a_refusal(place: int, value: int) -> None:
    """A flipped byte of a sound file either keeps it sound, with another digest, or is refused."""
    data = bytearray(PAPER.encode())
    if data[place] == value:
        return
    data[place] = value
    try:
        plan = parse_preregistration(bytes(data), "plan.toml")
    except InputRefused:
        return
    assert plan.digest != hashlib.sha256(PAPER.encode()).hexdigest()


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    """What cannot be read is refused with the names that ship."""
    for path in (tmp_path, tmp_path / "none.toml", "no\0name"):
        with pytest.raises(InputRefused) as caught:
            read_preregistration(path)
        assert caught.value.exit_code == 2
    with pytest.raises(InputRefused, match="verifiers-dividend"):
        read_preregistration(str(tmp_path / "none.toml"))


def test_a_byte_order_mark_is_no_fault() -> None:
    """Editors that write a byte order mark do not break a plan."""
    assert parse_preregistration(b"\xef\xbb\xbf" + PAPER.encode(), "plan.toml").title.startswith("The Verif")


def test_the_exploratory_plan_follows_the_log() -> None:
    """Weights are the shares of tasks, budgets the largest attempts, the vote of P2 that of the log."""
    plan = default_preregistration(
        {"b": 30, "a": 10, "none": 0}, ["A3", "A1", "own"], {"A1": 7, "A3": 10}, "truth"
    )
    assert plan.families == {"b": 0.75, "a": 0.25}
    assert not plan.registered
    assert plan.digest is None
    assert (plan.arms["A1"].k, plan.rules.P2.k, plan.max_budget) == (7, 7, 10)
    assert (plan.arms["own"].prompt, plan.arms["own"].budget) == ("none", 1)
    assert plan.rules.P3.quality_margin == 0.05
    assert plan.gate == "truth"
    assert plan.hypotheses == dict(DEFAULT_HYPOTHESES)
    with pytest.raises(InputRefused):
        default_preregistration({}, [], {}, "none")


@given(st.dictionaries(st.text(min_size=1, max_size=5), st.integers(1, 10**6), min_size=1, max_size=40))
@settings(max_examples=60, deadline=None)
def test_weights_of_any_log_sum_to_one(families: dict[str, int]) -> None:
    """Task shares of any mix make a sound plan."""
    assert default_preregistration(families, ["A0"], {}, "none").suite.tasks == sum(families.values())


def test_unknown_families_and_arms_are_refused_together() -> None:
    """A family without a weight has no place in a suite-level rate; every unknown name is listed."""
    plan = read_preregistration("verifiers-dividend")
    check_coverage(plan, ["arithmetic", "date"], ["A0"])
    with pytest.raises(InputRefused) as caught:
        check_coverage(plan, ["arithmetic", "poems", "maps"], ["A9"])
    assert [(fault.field, fault.got) for fault in caught.value.faults] == [
        ("families", "maps"),
        ("families", "poems"),
        ("arms", "A9"),
    ]


def test_a_plan_is_frozen() -> None:
    """Nobody moves a margin after reading it."""
    plan = read_preregistration("verifiers-dividend")
    with pytest.raises(ValidationError):
        plan.rules.P3.quality_margin = 0.5


def test_the_template_is_a_sound_registration() -> None:
    """What `verdiv init` writes is accepted as it stands and states every smallest effect."""
    plan = parse_preregistration(fixtures.read_bytes("templates", "preregistration"), "template")
    assert plan.rules == default_rules()


def validates(tables: dict[str, Any]) -> bool:
    """Tell whether the shipped JSON Schema accepts a document."""
    return bool(jsonschema.Draft202012Validator(shipped_schema()).is_valid(tables))


def test_the_shipped_schema_is_the_implied_one() -> None:
    """The JSON Schema in the package is the one that the records imply."""
    assert shipped_schema() == implied_schema()


def test_the_shipped_schema_accepts_and_refuses_like_the_reader() -> None:
    """The schema accepts the shipped plan and refuses a missing margin, an unknown field, a wrong type."""
    assert validates(tomllib.loads(PAPER))
    for old, new in (
        ("fraction = 0.25\n", ""),
        ("schema = 1\n", "schema = 1\nmode = 2\n"),
        ("rho = 2.5", "rho = true"),
    ):
        assert PAPER.count(old) == 1
        assert not validates(tomllib.loads(PAPER.replace(old, new)))


def test_lines_are_found_under_every_spelling_of_a_key() -> None:
    """Quoted keys, dotted keys, arrays of tables and values over several lines do not move the count."""
    text = (
        'a.b = 1\n"c d" = """\n[x]\ny = 1\n"""\nlist = [\n  "]", # ]\n  1,\n]\n'
        "[[t]]\nid = 1\n[[t]]\nid = 2\n[t.sub]\nz = 3\r\n['q.r'.s]\nv = { w = 1 }\n"
    )
    tomllib.loads(text)
    lines = key_lines(text)
    assert lines[("a", "b")] == 1
    assert lines[("c d",)] == 2
    assert ("x",) not in lines
    assert lines[("list",)] == 6
    assert lines[("t", 0, "id")] == 11
    assert lines[("t", 1, "id")] == 13
    assert lines[("t", 1, "sub", "z")] == 15
    assert lines[("q.r", "s", "v")] == 17


def test_shipped_names_cannot_leave_their_folder() -> None:
    """Only listed names are opened; paths, other kinds and the loader's own file are refused."""
    assert fixtures.names("preregistrations") == ("smollm2-135m", "verifiers-dividend")
    for kind, name in (
        ("preregistrations", "../__init__"),
        ("preregistrations", "../templates/preregistration"),
        ("preregistrations", "verifiers-dividend.toml"),
        ("templates", "/etc/passwd"),
        ("..", "errors"),
    ):
        with pytest.raises(UsageRefused):
            fixtures.read_bytes(kind, name)
    with fixtures.as_path("templates", "preregistration") as path:
        assert path.read_bytes() == fixtures.read_bytes("templates", "preregistration")
    assert issubclass(UsageRefused, VerdivError)
