"""Printed figures: a decimal whose digits are its precision, and what it means that a value prints as it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Self

from verdiv.errors import Fault, InputRefused

__all__ = ["UNITS", "Printed", "printings"]

UNITS = {"points": 2, "%": 2}
"""Units in which a share is printed a hundredfold: percent, and percentage points."""

SLACK = Decimal("1e-9")
"""Rounding of floating-point work, relative to a unit of the last printed digit, within which a tie is a tie."""

_FIGURE = re.compile(r"[+-]?[0-9]{1,15}(?:\.[0-9]{1,15})?\Z")


def printings(value: Decimal, decimals: int) -> frozenset[Decimal]:
    """Return what a value may print as at some decimals: one figure, or both neighbours of a tie.

    Parameters
    ----------
    value
        The value, exact.
    decimals
        Digits after the point, from 0.

    Returns
    -------
    frozenset of Decimal
        One or two figures.

    Examples
    --------
    >>> sorted(map(str, printings(Decimal("0.125"), 2))), sorted(map(str, printings(Decimal("0.126"), 2)))
    (['0.12', '0.13'], ['0.13'])
    """
    unit = Decimal(1).scaleb(-decimals)
    low = (value / unit).to_integral_value(ROUND_FLOOR)
    high = (value / unit).to_integral_value(ROUND_CEILING)
    middle = (low + high) / 2
    if low != high and abs(value / unit - middle) <= SLACK:
        return frozenset((low * unit, high * unit))
    return frozenset(((value / unit).to_integral_value(ROUND_HALF_EVEN) * unit,))


@dataclass(frozen=True, slots=True)
class Printed:
    """One printed figure."""

    value: Decimal
    """As printed, in its printed unit."""
    decimals: int
    """Digits after the point: the precision it claims."""
    shift: int
    """Places by which the unit moves the point: 2 for percent and points, 0 else."""

    @classmethod
    def of(cls, text: str, unit: str | None, where: str = "claim") -> Self:
        """Read a figure as printed.

        Raises
        ------
        InputRefused
            It is no plain decimal number.
        """
        if not _FIGURE.match(text):
            fault = Fault(where, "a plain decimal, as printed", repr(text), "copy the figure", field="value")
            raise InputRefused("the printed figure cannot be read", [fault])
        _, _, fraction = text.partition(".")
        return cls(Decimal(text), len(fraction), UNITS.get(unit or "", 0))

    def in_print(self, value: float) -> Decimal:
        """Return a value in the printed unit, exactly: percent and points move the point by two places."""
        return Decimal(repr(float(value))).scaleb(self.shift)

    @property
    def natural(self) -> float:
        """The printed figure as a plain share or count."""
        return float(self.value.scaleb(-self.shift))

    @property
    def half_unit(self) -> float:
        """Half a unit of the last printed digit, as a plain share or count."""
        return float((Decimal(1).scaleb(-self.decimals) / 2).scaleb(-self.shift))

    def shown(self, value: float) -> str:
        """Write a value as it would have been printed; both figures of a tie."""
        figures = sorted(printings(self.in_print(value), self.decimals))
        return " or ".join(f"{figure + 0:.{self.decimals}f}" for figure in figures)

    def reproduces(self, value: float) -> bool:
        """Tell whether a value prints as this figure.

        Examples
        --------
        >>> Printed.of("16.8", "points").reproduces(0.16812), Printed.of("0.60", None).reproduces(0.6133)
        (True, False)
        """
        return self.value in printings(self.in_print(value), self.decimals)

    def coarsely(self, value: float) -> bool:
        """Tell whether a value agrees with this figure only with its last digit dropped.

        Both must print alike with one decimal fewer, and lie within half a unit of it. A figure without
        decimals is a count, and one of a single digit is all digit: neither has one to spare.

        Examples
        --------
        >>> Printed.of("0.60", "USD").coarsely(0.6133), Printed.of("27.5", None).coarsely(28.5)
        (True, False)
        """
        if self.decimals == 0 or len(self.value.as_tuple().digits) < 2:
            return False
        exact = self.in_print(value)
        alike = printings(exact, self.decimals - 1) & printings(self.value, self.decimals - 1)
        return bool(alike) and abs(exact - self.value) <= Decimal(1).scaleb(1 - self.decimals) / 2
