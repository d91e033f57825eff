"""Hazards: how often the next draw succeeds, by attempt, for each arm and class of error."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from verdiv.reports.blocks import LegendEntry, Panel
from verdiv.reports.figures.svg import Scale, drawing, element, mark, path, swatch, text, ticks
from verdiv.reports.words import arm_label
from verdiv.rounding import exact, number

__all__ = ["Hazard", "hazard_legend", "hazard_panels", "hazards", "wilson"]

WIDTH, HEIGHT = 300.0, 200.0
LEFT, RIGHT, TOP, BASE = 38.0, 290.0, 12.0, 158.0

Z95 = 1.959963984540054
"""The .975 quantile of the standard normal distribution."""


@dataclass(frozen=True, slots=True)
class Hazard:
    """One arm's successes at one attempt after one class of error."""

    arm: str
    kind: str
    """Class of the error that the draw answers; empty where there is none."""
    attempt: int
    k: float
    n: float
    low: float | None
    high: float | None
    """Ends of the 95 % Wilson interval; None where nothing reached the attempt."""


def wilson(k: float, n: float) -> tuple[float, float] | None:
    r"""Return the 95 % Wilson score interval of a share.

    .. math:: \frac{p + z^2/2n \pm z\sqrt{p(1-p)/n + z^2/4n^2}}{1 + z^2/n}

    (Wilson 1927). It treats draws as independent, which within a task they are not: the intervals of the
    figure show the size of the sample, verdicts use the clustered ones.

    Parameters
    ----------
    k, n
        Successes and draws, 0 <= k <= n.

    Returns
    -------
    tuple of float or None
        Ends inside [0, 1]; None for ``n = 0``, where every share is possible.

    Examples
    --------
    >>> [round(end, 4) for end in wilson(8, 37)]
    [0.1139, 0.372]
    """
    if n <= 0:
        return None
    p, z2 = k / n, Z95 * Z95
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 * math.sqrt(max(p * (1 - p) / n + z2 / (4 * n * n), 0.0)) / (1 + z2 / n)
    low = 0.0 if k <= 0 else max(centre - half, 0.0)
    high = 1.0 if k >= n else min(centre + half, 1.0)
    return low, high


def hazards(rows: Iterable[Mapping[str, Any]]) -> tuple[Hazard, ...]:
    """Add Wilson intervals to the document's ``hazards`` and sort them by arm, class and attempt."""
    found = []
    for row in rows:
        k, n = row["k"], row["n"]
        ends = None if k is None or n is None or k > n else wilson(float(k), float(n))
        found.append(
            Hazard(
                arm=str(row["arm"]),
                kind=str(row.get("class") or ""),
                attempt=int(row["attempt"]),
                k=math.nan if k is None else float(k),
                n=math.nan if n is None else float(n),
                low=ends[0] if ends else None,
                high=ends[1] if ends else None,
            )
        )
    places = _kinds(found)
    return tuple(sorted(found, key=lambda h: (h.arm, places[h.kind], h.attempt)))


def _kinds(found: Iterable[Hazard]) -> dict[str, int]:
    known = ("structural", "semantic", "unclassified", "")
    present = {hazard.kind for hazard in found}
    ordered = [kind for kind in known if kind in present]
    return {kind: i for i, kind in enumerate([*ordered, *sorted(present - set(known))])}


def hazard_panels(identifier: str, found: tuple[Hazard, ...]) -> tuple[Panel, ...]:
    """Draw one panel an arm: success by attempt with Wilson intervals, one mark a class.

    Parameters
    ----------
    identifier
        Start of the drawings' identifiers.
    found
        From :func:`hazards`.
    """
    kinds = _kinds(found)
    panels = []
    for number_, arm in enumerate(dict.fromkeys(hazard.arm for hazard in found)):
        rows = [h for h in found if h.arm == arm and h.low is not None]
        if not rows:
            panels.append(Panel(arm_label(arm), None, note="no draw reached a retry", tone="missing"))
            continue
        attempts = sorted({h.attempt for h in rows})
        x = Scale(attempts[0] - 0.6, attempts[-1] + 0.6, LEFT, RIGHT)
        y = Scale(0.0, 1.0, BASE, TOP)
        parts = []
        for value in ticks(0.0, 1.0, 5):
            parts.append(element("line", x1=LEFT, x2=RIGHT, y1=y(value), y2=y(value), class_="gridline"))
            parts.append(text(LEFT - 6, y(value) + 3.5, exact(value), anchor="end"))
        stride = max(1, math.ceil(len(attempts) / 8))
        parts += [text(x(a), BASE + 16, str(a), anchor="middle") for a in attempts[::stride]]
        parts.append(element("line", x1=LEFT, x2=RIGHT, y1=BASE, y2=BASE, class_="axis"))
        parts.append(text(RIGHT, BASE + 33, "attempt", class_="label", anchor="end"))
        here = [kind for kind in kinds if any(h.kind == kind for h in rows)]
        for place, kind in enumerate(here):
            shift = (place - (len(here) - 1) / 2) * 7
            series = [h for h in rows if h.kind == kind]
            spots = [(x(h.attempt) + shift, y(h.k / h.n)) for h in series]
            index = kinds[kind] % 8
            if len(spots) > 1:
                parts.append(path(spots, f"curve loose c{index}"))
            for h, (across, height) in zip(series, spots, strict=True):
                parts.append(
                    element(
                        "line",
                        x1=across,
                        x2=across,
                        y1=y(h.low or 0.0),
                        y2=y(1.0 if h.high is None else h.high),
                        class_=f"bar c{index}",
                    )
                )
                parts.append(mark(across, height, index, size=3.8))
        first, last = rows[0], rows[-1]
        description = (
            f"From {number(first.k / first.n)} at attempt {first.attempt} ({first.kind or 'all errors'}) "
            f"to {number(last.k / last.n)} at attempt {last.attempt} ({last.kind or 'all errors'})."
        )
        title = f"Success by attempt, {arm_label(arm)}"
        svg = drawing(f"{identifier}-{number_}", WIDTH, HEIGHT, title, description, *parts)
        panels.append(Panel(arm_label(arm), svg))
    return tuple(panels)


def hazard_legend(found: tuple[Hazard, ...]) -> tuple[LegendEntry, ...]:
    """Return the mark of every class."""
    return tuple(
        LegendEntry(f"{kind} errors" if kind else "all errors", swatch(index))
        for kind, index in _kinds(found).items()
    )
