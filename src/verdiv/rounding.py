"""The one rounding rule: an estimate is printed to two significant digits of its interval's half width.

Every number that a person reads (HTML, Markdown, terminal) passes through this module, so the same
estimate never appears with two different roundings. Functions return text and never raise on a missing
value: ``None`` and NaN become :data:`MISSING`, infinity becomes ``∞``; a missing value is never ``0``.

The rule: with half width ``h = (high - low)/2`` rounded to two significant digits, the place value of the
second digit is ``10**-d`` with ``d = 1 - floor(log10(h))``; the estimate and both interval ends are rounded
to ``d`` decimals (``d < 0`` rounds to tens, hundreds …). This is the usual convention for stating a value
with its uncertainty: digits beyond the second of the uncertainty carry no information.
"""

from __future__ import annotations

import math

__all__ = [
    "MISSING",
    "count",
    "decimals",
    "estimate",
    "exact",
    "interval",
    "number",
    "percent",
    "points",
    "probability",
    "share",
    "usd",
    "width",
]

MISSING = "n/a"
"""What stands where there is no value."""

MINUS = "\N{MINUS SIGN}"
DEFAULT_DIGITS = 3
"""Significant digits of a value that comes without an interval."""

NOISE = 1e-9
"""Share of a value below which its half width is the noise of floating-point sums: the value is exact."""

MAX_DECIMALS = 8
"""More decimals than this are written in scientific notation."""

MAX_PLAIN = 1e9
"""From this size on, numbers are written in scientific notation."""

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def decimals(half_width: float) -> int:
    """Decimals that show two significant digits of a half width.

    Parameters
    ----------
    half_width
        Half the width of the interval, in the estimate's unit; must be positive and finite.

    Returns
    -------
    int
        Number of decimals, negative when tens or more are rounded.

    Raises
    ------
    ValueError
        If the half width is not positive and finite: such a width says nothing about digits.

    Examples
    --------
    >>> decimals(0.037), decimals(0.0996), decimals(12.0), decimals(1234.0)
    (3, 2, 0, -2)
    """
    if not (math.isfinite(half_width) and half_width > 0):
        raise ValueError(f"half width must be positive and finite, got {half_width!r}")
    exponent = int(f"{half_width:.1e}".partition("e")[2])
    return 1 - exponent


def _scientific(value: float, digits: int) -> str:
    mantissa, _, exponent = f"{value:.{max(digits - 1, 0)}e}".partition("e")
    return f"{mantissa}×10{str(int(exponent)).translate(_SUPERSCRIPTS)}"


def _fixed(value: float, places: int) -> str:
    """Write ``value`` with ``places`` decimals (negative: round to tens, hundreds …)."""
    if abs(value) >= MAX_PLAIN:
        digits = math.floor(math.log10(abs(value))) + 1 + places
        return _scientific(value, min(max(digits, 2), 4))
    if places > MAX_DECIMALS:
        return _scientific(value, 2) if value else "0"
    rounded = round(value, places)
    return f"{rounded:,.{max(places, 0)}f}"


def _dressed(text: str, signed: bool) -> str:
    """Use the real minus sign, drop the sign of a zero, add a plus where it is asked for."""
    negative = text.startswith("-")
    bare = text.removeprefix("-").replace("e-", f"e{MINUS}")
    if not any(ch in "123456789" for ch in bare.partition("×")[0]):
        return bare
    if negative:
        return MINUS + bare
    return f"+{bare}" if signed else bare


def exact(value: float | None) -> str:
    """Write a value that was set rather than estimated (a margin, a budget), without padding.

    Six significant digits at most, trailing zeros dropped.

    Examples
    --------
    >>> exact(0.05), exact(2.5), exact(-0.02), exact(3.0), exact(None)
    ('0.05', '2.5', '−0.02', '3', 'n/a')
    """
    if value is None or math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    size = abs(value)
    if size >= MAX_PLAIN or (size and size < 10.0**-MAX_DECIMALS):
        return _dressed(_scientific(value, 3), signed=False)
    places = max(5 - (math.floor(math.log10(size)) if size else 0), 0)
    text = f"{value:,.{places}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return _dressed(text, signed=False)


def number(value: float | None, half_width: float | None = None, *, signed: bool = False) -> str:
    """Write a number to two significant digits of its interval's half width.

    Parameters
    ----------
    value
        The estimate, in any unit.
    half_width
        Half the width of its interval, same unit. Without one (``None``, NaN, infinite) three significant
        digits are shown; a half width of 0 (or of rounding noise, below 1e-9 of the value) means that the value
        is known exactly and is written by :func:`exact`.
    signed
        Write a plus sign before positive values (differences).

    Examples
    --------
    >>> number(0.80123, 0.037), number(0.80123, 0.0996), number(-0.0168, 0.0022)
    ('0.801', '0.80', '−0.0168')
    >>> number(1234.0, 567.0), number(0.5), number(None), number(-0.0001, 0.05)
    ('1,230', '0.500', 'n/a', '0.000')
    >>> number(3.0, 4e-16), number(0.0, 0.0)
    ('3', '0')
    """
    if value is None or math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    if half_width is not None and half_width <= NOISE * abs(value):
        text = exact(value)
        return f"+{text}" if signed and value > 0 else text
    if half_width is not None and math.isfinite(half_width) and half_width > 0:
        return _dressed(_fixed(value, decimals(half_width)), signed)
    size = abs(value)
    if not size:
        return "0"
    places = DEFAULT_DIGITS - 1 - math.floor(math.log10(size))
    if size >= 10.0**DEFAULT_DIGITS:
        places = 0
    return _dressed(_fixed(value, places), signed)


def _half_width(low: float | None, high: float | None) -> float | None:
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return None
    return abs(high - low) / 2


def interval(low: float | None, high: float | None, *, scale: float = 1.0) -> str:
    """Write an interval, both ends to two significant digits of its half width.

    Parameters
    ----------
    low, high
        Ends of the interval; a missing end is written :data:`MISSING`, an infinite one ``∞``.
    scale
        Factor on both ends before rounding (100 for points or percent).

    Examples
    --------
    >>> interval(0.7641, 0.8383), interval(0.0, 0.0049), interval(-0.0312, 0.0104)
    ('[0.764, 0.838]', '[0.0000, 0.0049]', '[−0.031, 0.010]')
    >>> interval(None, 0.2), interval(float("-inf"), 0.05)
    ('[n/a, 0.200]', '[−∞, 0.0500]')
    """
    if low is None and high is None:
        return MISSING
    ends = [None if end is None else end * scale for end in (low, high)]
    half = _half_width(*ends)
    return f"[{number(ends[0], half)}, {number(ends[1], half)}]"


def estimate(value: float | None, low: float | None, high: float | None) -> str:
    """Write an estimate with its interval, all three by the same rule.

    Examples
    --------
    >>> estimate(0.8012, 0.7641, 0.8383), estimate(None, None, None), estimate(2.0, 2.0, 2.0)
    ('0.801 [0.764, 0.838]', 'n/a', '2')
    """
    if value is None or math.isnan(value):
        return MISSING
    if low is None and high is None:
        return number(value)
    half = _half_width(low, high)
    if half is not None and half <= NOISE * abs(value):
        return exact(value)
    return f"{number(value, _half_width(low, high))} {interval(low, high)}"


def width(value: float | None) -> str:
    """Write a width (a noise floor, a standard deviation) to the two significant digits of the rule.

    Examples
    --------
    >>> width(0.0341), width(0.1), width(0.0), width(None)
    ('0.034', '0.10', '0', 'n/a')
    """
    return number(value, None if value is None else abs(value))


def percent(value: float | None, half_width: float | None = None) -> str:
    """Write a share as a percentage; ``value`` and ``half_width`` are shares of 1.

    Examples
    --------
    >>> percent(0.8012, 0.037), percent(0.5), percent(None)
    ('80.1 %', '50.0 %', 'n/a')
    """
    if value is None or math.isnan(value):
        return MISSING
    return f"{number(value * 100, None if half_width is None else half_width * 100)} %"


def points(value: float | None, half_width: float | None = None) -> str:
    """Write a difference of shares in signed percentage points; both arguments are shares of 1.

    Examples
    --------
    >>> points(0.168, 0.021), points(-0.0042, 0.011), points(0.0, 0.01)
    ('+16.8 points', '−0.4 points', '0.0 points')
    """
    if value is None or math.isnan(value):
        return MISSING
    return f"{number(value * 100, None if half_width is None else half_width * 100, signed=True)} points"


def probability(value: float | None, threshold: float | None = None) -> str:
    """Write a probability with three decimals, never as a bare 0 or 1.

    Parameters
    ----------
    value
        A probability; values outside [0, 1] are refused.
    threshold
        A level the probability is judged against (γ). Decimals are added, up to six, until the printed
        figure stands on the same side of the threshold as the value.

    Raises
    ------
    ValueError
        If the value lies outside [0, 1]: that is not a probability.

    Examples
    --------
    >>> probability(0.97), probability(0.9996), probability(0.0002), probability(0.0), probability(1.0)
    ('.970', '>.999', '<.001', '<.001', '>.999')
    >>> probability(0.9497), probability(0.9497, 0.95), probability(0.95, 0.95), probability(None)
    ('.950', '.9497', '.950', 'n/a')
    >>> probability(0.99999999, 0.9999), probability(0.94999999, 0.95)
    ('>.999999', '<.95')
    """
    if value is None or math.isnan(value):
        return MISSING
    if not 0 <= value <= 1:
        raise ValueError(f"a probability lies in [0, 1], got {value!r}")
    if value < 0.001 and (threshold is None or threshold >= 0.001):
        return "<.001"
    if value > 0.999 and (threshold is None or threshold <= 0.999):
        return ">.999"
    for places in range(3, 7):
        rounded = round(value, places)
        same_side = threshold is None or (rounded >= threshold) == (value >= threshold)
        if same_side and 0 < rounded < 1:
            break
    else:
        if 0 < round(value, 6) < 1 and threshold is not None:
            return f"<{exact(threshold).removeprefix('0')}"
        return ">.999999" if value > 0.5 else "<.000001"
    return f"{value:.{places}f}".removeprefix("0")


def count(value: int | None) -> str:
    """Write a count in full, with thousands separated.

    Examples
    --------
    >>> count(1034), count(0), count(None)
    ('1,034', '0', 'n/a')
    """
    return MISSING if value is None else f"{value:,d}"


def share(k: int | None, n: int | None) -> str:
    """Write ``k`` of ``n``; 0 of 0 stays visible as such.

    Examples
    --------
    >>> share(703, 1034), share(0, 753), share(None, None)
    ('703/1,034', '0/753', 'n/a')
    """
    if k is None and n is None:
        return MISSING
    return f"{count(k)}/{count(n)}"


def usd(value: float | None) -> str:
    """Write an amount of US dollars: cents from one dollar up, three significant digits below.

    Examples
    --------
    >>> usd(1.1), usd(0.6133), usd(12345.678), usd(0.0), usd(None)
    ('USD 1.10', 'USD 0.613', 'USD 12,345.68', 'USD 0.00', 'n/a')
    """
    if value is None or math.isnan(value):
        return MISSING
    if value == 0 or abs(value) >= 1:
        return f"USD {_dressed(_fixed(value, 2), signed=False)}"
    return f"USD {number(value)}"
