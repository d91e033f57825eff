"""The frontier: quality against bill for every arm and budget, with the teacher and the break-even marked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from verdiv.reports.blocks import LegendEntry, Panel
from verdiv.reports.figures.svg import (
    Scale,
    drawing,
    element,
    group,
    join,
    mark,
    path,
    shortened,
    swatch,
    text,
    text_width,
)
from verdiv.reports.words import arm_label
from verdiv.rounding import exact, number

__all__ = ["BreakEvenMark", "frontier_legend", "frontier_panel"]

ARM_ORDER = ("A3", "A4", "A2s", "A1", "A2", "A5", "A0", "blended")
"""Arms in the order of their marks; the two that the break-even compares get the clearest ones."""

MOST_NAMES = 10
"""Arms whose names have room in the drawing; with more, only the protocol's own arms are named there."""

LOG_FROM = 3.0
"""Ratio of the largest to the smallest bill from which the axis is logarithmic."""


@dataclass(frozen=True, slots=True)
class BreakEvenMark:
    """Where the break-even is drawn."""

    arm: str
    budget: int
    label: str


@dataclass(frozen=True, slots=True)
class _Spot:
    """One arm at one budget: where it lies and how sure that is."""

    arm: str
    budget: int
    bill: float
    quality: float
    bill_low: float | None
    bill_high: float | None
    quality_low: float | None
    quality_high: float | None


@dataclass(frozen=True, slots=True)
class _Box:
    """A rectangle that a text or a mark takes up, in pixels."""

    x: float
    y: float
    width: float
    height: float

    @property
    def area(self) -> float:
        return self.width * self.height

    def overlap(self, other: _Box) -> float:
        """Return the area that both cover."""
        wide = min(self.x + self.width, other.x + other.width) - max(self.x, other.x)
        high = min(self.y + self.height, other.y + other.height) - max(self.y, other.y)
        return max(wide, 0.0) * max(high, 0.0)


def _spots(frontier: Iterable[Mapping[str, Any]], source: str) -> list[_Spot]:
    spots = []
    for point in frontier:
        side = point.get(source)
        if side is None:
            continue
        quality, bill = side.get("quality"), side.get("bill")
        if quality is None or bill is None or quality.get("mean") is None or bill.get("mean") is None:
            continue
        spots.append(
            _Spot(
                arm=point["arm"],
                budget=point["budget"] or 1,
                bill=float(bill["mean"]),
                quality=float(quality["mean"]),
                bill_low=bill.get("low"),
                bill_high=bill.get("high"),
                quality_low=quality.get("low"),
                quality_high=quality.get("high"),
            )
        )
    return sorted(spots, key=lambda spot: (spot.arm, spot.budget))


def _arms(frontier: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Give every arm of the frontier its mark; the protocol's own arms have the same one in every report."""
    present = {str(point["arm"]) for point in frontier}
    others = sorted(present - set(ARM_ORDER))
    return {arm: index for index, arm in enumerate((*ARM_ORDER, *others)) if arm in present}


def _limits(values: Sequence[float], pad: float) -> tuple[float, float]:
    low, high = min(values), max(values)
    span = (high - low) or max(abs(high), 1.0) * 0.1
    return low - pad * span, high + pad * span


def _axes(x: Scale, y: Scale, *, wide: bool) -> Markup:
    parts = []
    for value in y.ticks(6):
        parts.append(element("line", x1=x.start, x2=x.end, y1=y(value), y2=y(value), class_="gridline"))
        parts.append(text(x.start - 6, y(value) + 3.5, exact(value), anchor="end"))
    for value in x.ticks(8 if wide else 5):
        parts.append(element("line", x1=x(value), x2=x(value), y1=y.start, y2=y.start + 4, class_="axis"))
        parts.append(text(x(value), y.start + 16, exact(value), anchor="middle"))
    parts.append(element("line", x1=x.start, x2=x.end, y1=y.start, y2=y.start, class_="axis"))
    parts.append(
        text(
            x.end,
            y.start + 32,
            f"mean bill per task, in small draws{' (log scale)' if x.logarithmic else ''}",
            class_="label",
            anchor="end",
        )
    )
    parts.append(
        text(x.start - 34, y.end - 10, "quality (share of tasks answered correctly)", class_="label")
    )
    return join(parts)


def _bars(spot: _Spot, x: Scale, y: Scale, index: int) -> Markup:
    parts = []
    if spot.quality_low is not None and spot.quality_high is not None:
        at = x(spot.bill)
        parts.append(
            element(
                "line", x1=at, x2=at, y1=y(spot.quality_low), y2=y(spot.quality_high), class_=f"bar c{index}"
            )
        )
    if spot.bill_low is not None and spot.bill_high is not None and spot.bill_high > spot.bill_low:
        at = y(spot.quality)
        parts.append(
            element("line", x1=x(spot.bill_low), x2=x(spot.bill_high), y1=at, y2=at, class_=f"bar c{index}")
        )
    return join(parts)


def _apart(wanted: list[float], gap: float, low: float, high: float) -> list[float]:
    """Push heights apart until neighbours are at least ``gap`` away, keeping their order."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed = [0.0] * len(wanted)
    previous = low - gap
    for i in order:
        placed[i] = previous = max(wanted[i], previous + gap)
    overflow = previous - high
    if overflow > 0:
        following = high + gap
        for i in reversed(order):
            placed[i] = following = min(placed[i], following - gap)
    return placed


def _names(
    spots: list[_Spot], arms: Mapping[str, int], x: Scale, y: Scale, room: float
) -> tuple[Markup, list[_Box]]:
    """Write each arm's name beside its last point, on the side that is free; return where the names stand."""
    last = list({spot.arm: spot for spot in spots}.values())
    if len(last) > MOST_NAMES:
        last = [spot for spot in last if spot.arm in ARM_ORDER]
    heights = _apart([y(spot.quality) for spot in last], 13, y.end + 4, y.start - 4)
    parts: list[Markup] = []
    boxes: list[_Box] = []
    for spot, height in zip(last, heights, strict=True):
        words = shortened(spot.arm, 12)
        wide = text_width(words, 12)
        here = x(spot.bill)
        taken = [x(s.bill) for s in spots if abs(y(s.quality) - height) < 9 and x(s.bill) != here]
        right_free = here + 9 + wide < x.end + room and not any(here < at < here + 14 + wide for at in taken)
        left_free = here - 9 - wide > x.start and not any(here - 14 - wide < at < here for at in taken)
        leftwards = left_free and not right_free
        edge = here - 9 if leftwards else min(here + 9, x.end + room - wide)
        if abs(height - y(spot.quality)) > 6:
            near = here - 3 if leftwards else here + 3
            parts.append(element("line", x1=near, y1=y(spot.quality), x2=edge, y2=height, class_="leader"))
        style = f"name c{arms[spot.arm] % 8}"
        parts.append(text(edge, height + 4, words, class_=style, anchor="end" if leftwards else None))
        boxes.append(_Box(edge - wide if leftwards else edge, height - 6, wide, 12))
    return join(parts), boxes


def _levels(teacher: _Spot | None, ceiling: float | None, x: Scale, y: Scale) -> Markup:
    """Draw the teacher's level and bill, what lies in its favour, and the static ceiling."""
    parts = []
    labels: list[tuple[float, str]] = []
    if teacher is not None:
        left, top = x.start, y.end
        width, height = x(teacher.bill) - left, y(teacher.quality) - top
        parts.append(
            element("rect", x=left, y=top, width=max(width, 0.0), height=max(height, 0.0), class_="zone")
        )
        at = y(teacher.quality)
        parts.append(element("line", x1=x.start, x2=x.end, y1=at, y2=at, class_="teacher"))
        across = x(teacher.bill)
        parts.append(element("line", x1=across, x2=across, y1=y.start, y2=y.end, class_="teacher"))
        labels.append((at - 4, f"teacher {number(teacher.quality)}"))
    if ceiling is not None:
        at = y(ceiling)
        parts.append(element("line", x1=x.start, x2=x.end, y1=at, y2=at, class_="ceiling"))
        labels.append((at - 4, f"static ceiling {number(ceiling)}"))
    heights = _apart([at for at, _ in labels], 12, y.end + 8, y.start)
    parts += [
        text(x.end - 2, height, words, class_="level", anchor="end")
        for height, (_, words) in zip(heights, labels, strict=True)
    ]
    return join(parts)


def _ring(point: BreakEvenMark | None, spots: list[_Spot], names: list[_Box], x: Scale, y: Scale) -> Markup:
    """Ring the break-even point and write its label where it hides least."""
    spot = next((s for s in spots if point and (s.arm, s.budget) == (point.arm, point.budget)), None)
    if point is None or spot is None:
        return Markup("")
    across, height = x(spot.bill), y(spot.quality)
    wide = text_width(point.label, 12)
    marks = [_Box(x(s.bill) - 5, y(s.quality) - 5, 10, 10) for s in spots]
    field = _Box(x.start, y.end, x.end - x.start, y.start - y.end)
    places = [
        _Box(across - wide / 2, height + 13, wide, 13),
        _Box(across - wide / 2, height - 26, wide, 13),
        _Box(across - wide - 14, height - 7, wide, 13),
        _Box(across + 14, height - 7, wide, 13),
        _Box(across - wide / 2, height + 28, wide, 13),
        _Box(across - wide / 2, height - 41, wide, 13),
    ]

    def hidden(place: _Box) -> float:
        over_names = sum(place.overlap(name) for name in names)
        outside = place.area - place.overlap(field)
        # Rounded, so that places which hide equally little tie on every platform and the first of them is taken.
        return round(3 * over_names + sum(place.overlap(m) for m in marks) + 3 * outside, 3)

    best = min(places, key=hidden)
    return join(
        [
            element("circle", cx=across, cy=height, r=9.5, class_="ring"),
            text(best.x + wide / 2, best.y + 11, point.label, class_="strong", anchor="middle"),
        ]
    )


def _draw(
    identifier: str,
    frontier: Sequence[Mapping[str, Any]],
    ceiling: float | None,
    point: BreakEvenMark | None,
    *,
    wide: bool,
) -> Markup:
    width, height = (640.0, 400.0) if wide else (350.0, 330.0)
    left, right, top, bottom = 44.0, 40.0 if wide else 34.0, 28.0, 42.0
    direct, model = _spots(frontier, "direct"), _spots(frontier, "model")
    spots = direct or model
    arms = _arms(frontier)
    teacher = next((spot for spot in spots if spot.arm == "A4"), None)
    both = [*direct, *model]
    bills = [
        value for spot in both for value in (spot.bill, spot.bill_low, spot.bill_high) if value is not None
    ]
    levels = [
        value
        for spot in both
        for value in (spot.quality, spot.quality_low, spot.quality_high)
        if value is not None
    ]
    if ceiling is not None:
        levels.append(ceiling)
    x_low, x_high = _limits(bills, 0.04)
    y_low, y_high = _limits(levels, 0.05)
    x = Scale(max(x_low, 0.0), x_high, left, width - right)
    if min(bills) > 0 and max(bills) > LOG_FROM * min(bills):
        margin = (max(bills) / min(bills)) ** 0.05
        x = Scale(min(bills) / margin, max(bills) * margin, left, width - right, logarithmic=True)
    y = Scale(max(y_low, 0.0), min(y_high, 1.02), height - bottom, top)
    curves = []
    for arm, index in arms.items():
        line = [spot for spot in model if spot.arm == arm]
        style = f"curve c{index % 8}"
        if len(line) > 1:
            curves.append(path(((x(s.bill), y(s.quality)) for s in line), style))
        elif not line and len(loose := [spot for spot in direct if spot.arm == arm]) > 1:
            curves.append(path(((x(s.bill), y(s.quality)) for s in loose), f"{style} loose"))
    marks = []
    for spot in spots:
        index = arms[spot.arm] % 8
        marks.append(_bars(spot, x, y, index))
        marks.append(mark(x(spot.bill), y(spot.quality), index, hollow=not direct))
    names, boxes = _names(spots, arms, x, y, right - 2)
    best = max(spots, key=lambda spot: spot.quality)
    description = (
        f"{len(spots)} arms and budgets. The highest quality is {number(best.quality)}, of arm {best.arm} at "
        f"budget {best.budget} for {number(best.bill)} small draws a task."
    )
    if teacher is not None:
        description += (
            f" The teacher reaches {number(teacher.quality)} for {number(teacher.bill)} small draws;"
            " points in the shaded field at the upper left reach its quality for no more than its bill."
        )
    return drawing(
        identifier,
        width,
        height,
        "Quality against bill for every arm and budget",
        description,
        _levels(teacher, ceiling, x, y),
        _axes(x, y, wide=wide),
        group(*curves),
        group(*marks),
        names,
        _ring(point, spots, boxes, x, y),
    )


def frontier_legend(frontier: Sequence[Mapping[str, Any]]) -> tuple[LegendEntry, ...]:
    """Return the mark and the full name of every arm."""
    arms = _arms(frontier)
    lines = {spot.arm for source in ("direct", "model") for spot in _spots(frontier, source)}
    return tuple(LegendEntry(arm_label(arm), swatch(index)) for arm, index in arms.items() if arm in lines)


def frontier_panel(
    identifier: str,
    frontier: Sequence[Mapping[str, Any]],
    ceiling: float | None,
    point: BreakEvenMark | None,
) -> Panel:
    """Draw quality against bill: marks and bars are direct estimates, lines the model.

    Parameters
    ----------
    identifier
        Identifier of the drawing on its page.
    frontier
        The document's ``frontier``: quality in shares of 1, bills in units of one small draw.
    ceiling
        The static ceiling 1 - p_s ("The Verifier's Dividend", T1), or None where p_s is not estimable.
    point
        Which arm and budget to ring as the break-even, or None.

    Returns
    -------
    Panel
        A wide and a narrow drawing; a panel without a drawing where no arm has both quality and bill.
    """
    if not (_spots(frontier, "direct") or _spots(frontier, "model")):
        return Panel("", None, note="No arm has both a quality and a bill.", tone="missing")
    return Panel(
        "",
        _draw(identifier, frontier, ceiling, point, wide=True),
        _draw(f"{identifier}-narrow", frontier, ceiling, point, wide=False),
    )
