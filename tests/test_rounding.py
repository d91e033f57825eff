"""The rounding rule."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from verdiv import rounding

finite = st.floats(-1e6, 1e6, allow_nan=False)
widths = st.floats(1e-6, 1e5)


def _parsed(text: str) -> float:
    return float(text.replace(",", "").replace(rounding.MINUS, "-").replace("+", ""))


@given(finite, widths)
def test_number_is_within_half_a_unit_of_the_last_place(value: float, half_width: float) -> None:
    """What is printed differs from the value by at most half the place of the width's second digit."""
    assume(half_width > 1e-9 * abs(value))
    places = rounding.decimals(half_width)
    printed = _parsed(rounding.number(value, half_width))
    assert abs(printed - value) <= 0.5 * 10.0**-places * (1 + 1e-9) + abs(value) * 1e-12


@given(widths)
def test_half_width_keeps_two_significant_digits(half_width: float) -> None:
    """A half width printed by its own rule has two significant digits: its error is below 1/20 of itself."""
    printed = _parsed(rounding.width(half_width))
    assert abs(printed - half_width) <= half_width / 20 * (1 + 1e-9)
    digits = rounding.width(half_width).replace(".", "").replace(",", "").lstrip("0")
    assert len(digits) == 2 or half_width >= 99


@given(finite, finite)
def test_interval_ends_have_equal_decimals(one: float, other: float) -> None:
    """Both ends and the estimate are rounded to the same place."""
    low, high = min(one, other), max(one, other)
    if high - low < 1e-6:
        return
    text = rounding.interval(low, high).strip("[]").split(", ")
    assert len({part.partition(".")[2].__len__() for part in text}) == 1


@given(st.floats(0, 1))
def test_probability_is_never_certain(value: float) -> None:
    """A probability estimated from draws is never printed as 0 or 1."""
    text = rounding.probability(value)
    assert text.startswith((".", "<", ">"))
    assert set(text) - set(".<>0") or text == "n/a"


@given(st.floats(0.001, 0.999), st.sampled_from([0.5, 0.9, 0.95, 0.975, 0.99]))
def test_probability_stays_on_its_side_of_the_threshold(value: float, threshold: float) -> None:
    """A reader who compares the printed probability with γ comes to the verdict that was given."""
    text = rounding.probability(value, threshold)
    if text.startswith(("<", ">")):
        assert value < threshold
        assert math.isclose(float(f"0{text[1:]}"), threshold)
    else:
        assert (float(f"0{text}") >= threshold) == (value >= threshold)


@pytest.mark.parametrize("value", [-0.001, 1.001, 2.0])
def test_probability_refuses_other_numbers(value: float) -> None:
    """A number outside [0, 1] is no probability and must not be printed as one."""
    with pytest.raises(ValueError, match=r"lies in \[0, 1\]"):
        rounding.probability(value)


@pytest.mark.parametrize("half_width", [0.0, -1.0, math.nan, math.inf])
def test_decimals_refuses_widths_that_say_nothing(half_width: float) -> None:
    """Without a positive, finite width there is no second significant digit."""
    with pytest.raises(ValueError, match="positive and finite"):
        rounding.decimals(half_width)


@pytest.mark.parametrize(
    "text",
    [
        rounding.number(None),
        rounding.number(math.nan, 0.1),
        rounding.percent(None),
        rounding.points(math.nan),
        rounding.interval(None, None),
        rounding.estimate(None, 0.1, 0.2),
        rounding.probability(math.nan),
        rounding.count(None),
        rounding.share(None, None),
        rounding.usd(None),
        rounding.exact(None),
        rounding.width(None),
    ],
)
def test_missing_is_never_zero(text: str) -> None:
    """A missing value is printed as missing."""
    assert text == rounding.MISSING


def test_boundary_between_two_numbers_of_decimals() -> None:
    """Half widths are rounded before their digits are counted: .0995 is .10 (two decimals), .0994 is .099."""
    assert rounding.number(0.5, 0.0996) == "0.50"
    assert rounding.number(0.5, 0.0994) == "0.500"


def test_noise_of_sums_is_no_width() -> None:
    """A half width of floating-point noise adds no digits to an exact value; a real one does not vanish."""
    assert rounding.estimate(3.0000000000000004, 3.0, 3.000000000000001) == "3"
    assert rounding.estimate(3.0, 2.9999, 3.0001) == "3.00000 [2.99990, 3.00010]"


def test_huge_and_tiny_numbers_stay_short() -> None:
    """No number takes more than fifteen characters, so that none breaks a table."""
    for value in (1.23456e300, -9.87e12, 1.2e-200, 123456789.123, 1e9, 999999999.0):
        for text in (rounding.number(value), rounding.exact(value), rounding.number(value, abs(value) / 3)):
            assert len(text) <= 15, text
