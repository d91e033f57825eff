"""The claims' expression language: what it computes, and what it refuses."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verdiv.audit.claims.evaluate import Budget, Scope, evaluate
from verdiv.audit.claims.functions import FUNCTIONS, describe_functions
from verdiv.audit.claims.language import ExpressionRefused, parse
from verdiv.errors import Fault, VerdivError

WORKED = {
    "q0": 0.8, "p_d": 0.18, "sigma": 0.6, "s1": 0.99, "phi": 0.05, "rho": 2.5, "q_T": 0.9, "p_dT": 0.08, "k": 5.0,
}  # fmt: skip
SCOPE = Scope(WORKED, {"s2": parse("q0 + phi"), "loop": parse("loop + 1")})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7.0),
        ("-2 ** 2", -4.0),
        ("2 ** -1", 0.5),
        ("2 ** 3 ** 2", 512.0),
        ("(1 + 2) * 3 / 4", 2.25),
        ("1 - 2 - 3", -4.0),
        ("8 / 2 / 2", 2.0),
        (".5 + 1e1", 10.5),
        ("s2", 0.85),
        ("Q_A3(B = 2)", 0.96812),
        ("Q_A3(2)", 0.96812),
        ("Q_A3(B = 2, phi = 0)", 0.8 + 0.18 * (0.6 * 0.99 + 0.4 * 0.8)),
        ("min(3, 1, 2) + max(1, 2)", 3.0),
        ("first(B, 1, 9, Q_A3() > q_T)", 2.0),
        ("first(B, 1, 9, Q_A3() > 2)", 0.0),
        ("total(i, 1, 4, i)", 10.0),
        ("peak(i, 1, 9, i, step = 3)", 7.0),
        ("if(1 < 2, 5, 1 / 0)", 5.0),
        ("round(2.5)", 2.0),
        ("bill_A3(B = inf)", 1 + 0.18 * (0.6 / 0.99 + 0.4 / 0.85)),
    ],
)
def test_numbers(text: str, value: float) -> None:
    """Precedence, associativity, definitions, overrides and searches give the arithmetic of the page."""
    assert evaluate(parse(text), replace(SCOPE, budget=Budget())) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 < 2 < 3", True),
        ("1 < 2 < 2", False),
        ("0.1 + 0.2 == 0.3", True),
        ("0.1 + 0.2 > 0.3", False),
        ("0.1 + 0.2 <= 0.3", True),
        ("0.1 + 0.2 != 0.3", False),
        ("not 1 > 2 and (1 > 2 or 2 > 1)", True),
        ("every(k, 1, 7, Q_A3(B = k) >= Q_A1(), step = 2)", True),
        ("every(k, 1, 9, Q_A3(B = k) >= Q_A1(), step = 2)", False),
        ("some(k, 9, 9, Q_A3(B = k) < Q_A1())", True),
        ("1 > 2 and 1 / 0 > 0", False),
    ],
)
def test_conditions(text: str, value: bool) -> None:
    """Comparisons chain, ties of decimal arithmetic are ties, conditions stop early."""
    assert evaluate(parse(text), replace(SCOPE, budget=Budget())) is value


HOSTILE = [
    "", "1 +", "(1", "1)", "1 2", "q0.", "a..b", "__import__('os')", "().__class__", "q0[0]", "lambda: 1", "x := 1",
    "1 if 2 else 3", "'a'", "1; 2", "f(a=1, 2)", "Q_A3(B=2, B=3)", "1 = 2", "@", "\\x00", "1_000", "0x10", "é",
    "not", "and", "1 or", "1 < ", "3(4)", "(q0)(1)", "1" * 40, "1e9999", "(" * 50 + "1" + ")" * 50, "-" * 60 + "1",
    "1+" * 400 + "1", "a" * 3000,
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_refused(text: str) -> None:
    """What the grammar does not know is refused as a fault, and never reaches an interpreter."""
    with pytest.raises(ExpressionRefused):
        evaluate(parse(text), replace(SCOPE, budget=Budget()))


@pytest.mark.parametrize(
    "text",
    [
        "nothing", "Q_A9(B = 2)", "Q_A3(b = 2)", "Q_A3(B = 0)", "Q_A3(B = 1.5)", "Q_A1(k = 4)", "1 / 0", "10 ** 999",
        "(0 - 1) ** 0.5", "inf - inf", "1 + (2 > 1)", "1 and 2", "not 1", "if(1, 2, 3)", "every(i, 1, 2)",
        "every(1, 1, 2, 2 > 1)", "every(i, 1, 99999, i > 0)", "every(i, 2, 1, i > 0)", "every(i, 1, 2, i)",
        "every(i, 1, 2, i > 0, step = 0)", "peak(i, 1, 2, i > 0)", "loop", "b_star(B_max = 1e6)", "log(0)", "sqrt(-1)",
        "Q_A3(2, 3, 4, 5, 6, 7, 8)", "results.estimates.q0.mean", "round(1, 0.5)", "min()", "exp(1000)",
    ],
)  # fmt: skip
def test_what_has_no_value_is_refused(text: str) -> None:
    """Unknown names, wrong kinds, divisions by zero, overflows and endless definitions are faults, not values."""
    with pytest.raises(VerdivError):
        evaluate(parse(text), replace(SCOPE, budget=Budget()))


def test_work_is_bounded() -> None:
    """Nested searches end by the budget of steps, long before anybody waits."""
    node = parse("every(i, 1, 10000, every(j, 1, 10000, every(k, 1, 10000, i + j + k > 0)))")
    began = time.monotonic()
    with pytest.raises(ExpressionRefused, match="bounded work"):
        evaluate(node, Scope({}, budget=Budget(steps=20_000)))
    assert time.monotonic() - began < 5


def test_time_is_bounded() -> None:
    """The clock stops a search that the steps would still allow."""
    with pytest.raises(ExpressionRefused, match="bounded work"):
        evaluate(parse("every(i, 1, 10000, i > 0)"), Scope({}, budget=Budget(seconds=-1.0)))


def answered(text: str) -> float | bool | tuple[Fault, ...]:
    """Give an expression's value, or its faults."""
    try:
        return evaluate(parse(text), Scope(WORKED, budget=Budget(steps=2000)))
    except VerdivError as error:
        return tuple(error.faults)


@given(st.text(max_size=60))
@settings(max_examples=400, deadline=None)
def test_any_text_gets_an_answer(text: str) -> None:
    """Parsing and working out are total: a value, or a fault with its remedy."""
    answer = answered(text)
    assert answer if isinstance(answer, tuple) else not math.isnan(answer)


@given(st.text(alphabet="0123456789.+-*/()<=> ,qQ_A3BkandorI", max_size=40))
@settings(max_examples=400, deadline=None)
def test_any_token_soup_gets_an_answer(text: str) -> None:
    """The same for text made of the language's own characters."""
    answer = answered(text)
    assert answer if isinstance(answer, tuple) else not math.isnan(answer)


def test_every_function_is_described() -> None:
    """A function without a line of help cannot be found by who writes a claims file."""
    assert len(describe_functions()) == len(FUNCTIONS)
    assert all(function.text for function in FUNCTIONS.values())
