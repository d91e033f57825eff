"""How cost grows: a power law by least squares on logarithms, and what it says beyond the largest size measured."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Growth", "extrapolated", "fit_growth"]


@dataclass(frozen=True)
class Growth:
    """A power law, cost = factor × size ** exponent."""

    exponent: float
    factor: float
    points: int
    """Sizes that it was fitted to."""
    largest: float
    """Largest of them."""

    def at(self, size: float) -> float:
        """Return the law's cost at a size."""
        return float(self.factor * size**self.exponent)


def fit_growth(costs: Mapping[float, float], *, decades: float | None = None) -> Growth | None:
    """Fit a power law to costs.

    Parameters
    ----------
    costs
        Size to cost, both positive.
    decades
        Use sizes of these last powers of ten only, where start-up no longer hides what grows; None uses all.

    Returns
    -------
    Growth or None
        None with fewer than two sizes.

    Examples
    --------
    >>> fit_growth({10.0: 2.0, 100.0: 20.0, 1000.0: 200.0}).exponent
    1.0
    """
    if any(size <= 0 or cost <= 0 for size, cost in costs.items()):
        raise ValueError("sizes and costs must be positive")
    largest = max(costs, default=0.0)
    # A twentieth of a decade of slack: sizes are about powers of ten, and never quite.
    least = 0.0 if decades is None else largest / 10 ** (decades + 0.05)
    points = [(math.log(size), math.log(cost)) for size, cost in costs.items() if size >= least]
    if len(points) < 2:
        return None
    middle_x = sum(x for x, _ in points) / len(points)
    middle_y = sum(y for _, y in points) / len(points)
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    slope = sum((x - middle_x) * (y - middle_y) for x, y in points) / spread
    return Growth(round(slope, 12), math.exp(middle_y - slope * middle_x), len(points), largest)


def extrapolated(costs: Mapping[float, float], size: float, *, decades: float = 2.0) -> float | None:
    """Carry the largest measured cost on to a larger size, along the law of the last powers of ten.

    The line starts at the largest measurement and not at the fitted law, so that it joins what was seen, and never
    falls.

    Parameters
    ----------
    costs
        Size to cost, both positive.
    size
        Where to, at least the largest size measured.
    decades
        As for :func:`fit_growth`.

    Returns
    -------
    float or None
        None where no law can be fitted.
    """
    law = fit_growth(costs, decades=decades)
    if law is None:
        return None
    if size < law.largest:
        raise ValueError(f"{size:g} lies inside what was measured, up to {law.largest:g}")
    return float(costs[law.largest] * (size / law.largest) ** max(law.exponent, 0.0))
