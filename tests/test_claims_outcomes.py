"""Claims: the paper's own figures, the comparison at printed precision, and what makes an outcome."""

from __future__ import annotations

import json
import tomllib
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verdiv import fixtures
from verdiv.audit.claims.claimsfile import parse_claims, read_claims
from verdiv.audit.claims.figures import Printed, printings
from verdiv.audit.claims.judge import judge_claims
from verdiv.audit.claims.outcomes import ClaimOutcome, ClaimResult
from verdiv.cli.app import run
from verdiv.errors import InputRefused


def judged(text: str) -> dict[str, ClaimResult]:
    """Judge a claims file written in a test."""
    return {result.id: result for result in judge_claims(parse_claims(text.encode(), "claims.toml"))}


def one(claim: str, more: str = "") -> ClaimResult:
    """Judge a file of one claim over the worked rates."""
    text = f'title = "t"\n{more}\n[parameters]\nq0 = 0.8\np_d = 0.18\n[[claim]]\nid = "c"\n{claim}\n'
    return judged(text)["c"]


@pytest.fixture(scope="module")
def paper() -> dict[str, ClaimResult]:
    """Outcomes of the shipped claims file."""
    return {result.id: result for result in judge_claims(read_claims("paper"))}


def test_paper_arrives_at_every_expectation(paper: dict[str, ClaimResult], shared_spec: Path) -> None:
    """Each printed figure of the paper comes out, by computation, as an independent reading of it expects."""
    listed = tomllib.loads((shared_spec / "paper-claims.toml").read_text("utf-8"))["claim"]
    assert {c["id"]: c["expect"] for c in listed} == {i: r.outcome.value for i, r in paper.items()}
    ours = {claim.id: claim for claim in read_claims("paper").claims}
    for claim in listed:
        assert ours[claim["id"]].value == claim["value"]
        assert ours[claim["id"]].unit == claim.get("unit")


def test_no_outcome_is_typed_in() -> None:
    """The shipped file states figures and forms; an outcome or expectation in it would be no computation."""
    text = fixtures.read_bytes("claims", "paper").decode()
    body = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    assert "expect =" not in body
    assert not any(f'"{outcome}"' in body for outcome in ClaimOutcome)


@pytest.mark.parametrize(
    ("claim", "right"),
    [
        ("worst-case-per-task", "28.5"),
        ("worst-case-small-draws", "21"),
        ("worst-case-run-usd", "1.14"),
        ("expected-run-usd", "0.61"),
        ("fresh-gap-B3", "-0.08"),
        ("dominates-A1-every-budget", "false"),
    ],
)
def test_the_right_value_is_named(paper: dict[str, ClaimResult], claim: str, right: str) -> None:
    """A figure that fails comes with the value that would be right."""
    assert paper[claim].right == right


def test_conflicts_name_the_assumptions_that_would_print_them(paper: dict[str, ClaimResult]) -> None:
    """The worst case prints under four pairs of budgets, and under two more that break the expected bill."""
    rescues = {rescue.text: rescue.breaks for rescue in paper["worst-case-per-task"].rescues}
    assert len(rescues) == 6
    assert [text for text, breaks in rescues.items() if not breaks] == [
        "A2s has budget 4 and A3 budget 5",
        "A2s has budget 5 and A3 budget 4",
        "A2s has budget 3 and A3 budget 6",
        "A2s has budget 6 and A3 budget 3",
    ]
    assert rescues["A0 reads the first draw of A2 instead of making its own"] == ("expected-bill-per-task",)
    assert paper["fresh-gap-B3"].rescues
    assert paper["dominates-A1-every-budget"].rescues


def test_inheritance(paper: dict[str, ClaimResult]) -> None:
    """A figure built on one in conflict, or without a form, inherits that; 1.10 alone would pass as rounded."""
    assert paper["worst-case-run-usd"].inherited_from == ("worst-case-per-task",)
    assert Printed.of("1.10", "USD").coarsely(1.14)
    assert paper["contrast-22-fold"].inherited_from == ("confident-wrong-A1-k3",)
    assert any("22.5, prints as 22" in reading for reading in paper["contrast-22-fold"].readings)


def test_decision_errors_are_marked(paper: dict[str, ClaimResult]) -> None:
    """Where the decision that rests on a figure turns with the right value, the claim says so; elsewhere not."""
    assert {name for name, result in paper.items() if result.decision_error} == {
        "worst-case-per-task", "worst-case-run-usd", "fresh-gap-B3", "dominates-A1-every-budget",
    }  # fmt: skip


def _moved(value: str) -> str:
    """Move the last printed digit by one, away from zero."""
    digits = Decimal(value)
    step = Decimal(1).scaleb(digits.as_tuple().exponent)  # type: ignore[arg-type]
    return str(digits + step)


def test_one_digit_off_is_never_reproduced() -> None:
    """Moving the last digit of a reproduced figure takes that outcome away.

    One claim asks only whether a count is possible: 718 of 800 is 89.75 %, which may print as 89.7.
    """
    file = read_claims("paper")
    moved = tuple(
        claim if claim.statement else claim.model_copy(update={"value": _moved(claim.value)})
        for claim in file.claims
        if not claim.statement
    )
    before = {result.id: result.outcome for result in judge_claims(file)}
    after = judge_claims(file.model_copy(update={"claims": moved}))
    kept = [r.id for r in after if before[r.id] == "reproduced" and r.outcome == "reproduced"]
    assert kept == ["teacher-anchor-count"]


@pytest.mark.parametrize(
    ("printed", "unit", "value", "reproduced", "coarse"),
    [
        ("0.12", None, 0.125, True, True),
        ("0.13", None, 0.125, True, True),
        ("0.14", None, 0.125, False, True),
        ("47", "%", 0.472, True, False),
        ("47", "%", 0.475, True, False),
        ("48", "%", 0.475, True, False),
        ("49", "%", 0.475, False, False),
        ("0.0320", None, 0.032, True, True),
        ("16.8", "points", 0.16812, True, True),
        ("27.5", None, 28.5, False, False),
        ("20", None, 21.0, False, False),
        ("0", "points", -1e-18, True, False),
        ("1.19", "%", 0.011850000000000001, True, True),
        ("0.29", "%", 0.0029, True, True),
    ],
)
def test_comparison_at_printed_precision(
    printed: str, unit: str | None, value: float, reproduced: bool, coarse: bool
) -> None:
    """Ties accept both neighbours, counts have no digit to spare, percent moves the point exactly."""
    figure = Printed.of(printed, unit)
    assert figure.reproduces(value) is reproduced
    assert figure.coarsely(value) is coarse


@given(st.integers(-(10**9), 10**9), st.integers(0, 6), st.integers(1, 6))
def test_a_printing_is_never_further_than_half_a_unit(number: int, decimals: int, more: int) -> None:
    """A value prints as one figure within half a unit, or as two exactly half a unit away."""
    value = Decimal(number).scaleb(-decimals - more)
    figures = printings(value, decimals)
    half = Decimal(1).scaleb(-decimals) / 2
    gaps = {abs(figure - value) for figure in figures}
    assert len(figures) in (1, 2)
    assert max(gaps) <= half
    assert (len(figures) == 2) is (gaps == {half})


@pytest.mark.parametrize(
    ("percent", "cases", "outcome"),
    [
        ("89.6", 800, "reproduced"),
        ("89.7", 30, "conflict"),
        ("90.0", 30, "reproduced"),
        ("33", 3, "reproduced"),
    ],
)
def test_a_share_must_be_a_count(percent: str, cases: int, outcome: str) -> None:
    """A printed share of n cases is possible only if some whole count prints as it."""
    assert one(f'value = "{percent}"\nunit = "%"\nof = {cases}').outcome == outcome


def test_simulated_figures_are_judged_by_their_error() -> None:
    """A Monte-Carlo figure three standard errors off passes, and says by what; a fourth does not."""
    near = one('value = "0.82"\nexpression = "q0"\nmc_error = "0.005"')
    assert near.outcome == "reproduced"
    assert "Monte-Carlo" in near.reason
    assert one('value = "0.82"\nexpression = "q0"\nmc_error = "0.004"').outcome != "reproduced"


def test_direction() -> None:
    """A difference of the right size and the wrong sign is in conflict, and the sentence says which."""
    wrong = one('value = "0.62"\ndirection = "p_d above q0"\nexpression = "p_d - q0"')
    assert wrong.outcome == "conflict"
    assert "direction" in wrong.reason
    assert one('value = "0.62"\ndirection = "q0 above p_d"\nexpression = "q0 - p_d"').outcome == "reproduced"


def test_errors_are_outcomes() -> None:
    """What cannot be worked out is an error that names the cause, never a pass and never a crash."""
    assert one('value = "0.8"\nexpression = "results.estimates.q0.mean"').outcome == "error"
    assert one('value = "true"\nexpression = "q0"').outcome == "error"
    assert one('value = "0.8"\nexpression = "q0 > 0"').outcome == "error"
    assert one('value = "0.8"\nexpression = "1 / (q0 - q0)"').outcome == "error"


def test_circles_of_claims_are_errors() -> None:
    """Two claims that use each other have no value."""
    text = """title = "t"
[[claim]]
id = "a"
value = "1"
expression = "x"
uses = { x = "b" }
[[claim]]
id = "b"
value = "1"
expression = "x"
uses = { x = "a" }
"""
    assert {result.outcome.value for result in judged(text).values()} == {"error"}


def test_an_expectation_changes_nothing() -> None:
    """``expect`` is compared with the outcome and plays no part in it."""
    lied = one('value = "0.9"\nexpression = "q0"\nexpect = "reproduced"')
    assert lied.outcome == "conflict"
    assert lied.as_expected is False


@pytest.mark.parametrize(
    "text",
    [
        "", "title = 1", 'title = "t"', 'title = "t"\nschema = 2\n[[claim]]\nid="a"\nvalue="1"',
        'title = "t"\n[[claim]]\nid = "a"\nvalue = "1"\nextra = 1',
        'title = "t"\n[[claim]]\nid = "../a"\nvalue = "1"',
        'title = "t"\n[[claim]]\nid = "a"\nvalue = "1"\nexpression = "1 +"',
        'title = "t"\n[[claim]]\nid = "a"\nvalue = "1"\nuses = { x = "b" }',
        'title = "t"\n[[claim]]\nid = "a"\nvalue = "1"\n[[claim]]\nid = "a"\nvalue = "1"',
        'title = "t"\n[parameters]\nq = nan\n[[claim]]\nid = "a"\nvalue = "1"',
        'title = "t"\n[[claim]]\nid = "a"\nvalue = 1',
        'title = "t"\n[[assumption]]\nid = "x"\ntext = "t"\nset = { y = 1 }\n[[claim]]\nid = "a"\nvalue = "1"',
    ],
)  # fmt: skip
def test_files_that_break_the_format_are_refused(text: str) -> None:
    """Unknown fields, versions, expressions, repeated ids and NaN are refused with a place."""
    with pytest.raises(InputRefused):
        parse_claims(text.encode(), "claims.toml")


def test_command_json(capsys: pytest.CaptureFixture[str]) -> None:
    """``--claims paper --json`` gives id to outcome and recomputed value, and conflicts end with 1."""
    assert run(["audit", "--claims", "paper", "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["worst-case-per-task"]["outcome"] == "conflict"
    assert said["worst-case-per-task"]["recomputed"] == 28.5
    assert said["B-star"] == said["B-star"] | {"outcome": "reproduced", "recomputed": 2.0}


def test_command_text_and_bar(capsys: pytest.CaptureFixture[str]) -> None:
    """The terminal shows failures in full and counts the rest; ``--fail-on never`` ends with 0."""
    assert run(["audit", "--claims", "paper", "--fail-on", "never"]) == 0
    said = capsys.readouterr().out
    assert "45 claims: 37 reproduced" in said
    assert "DECISION ERROR" in said
