"""Pictures of the measurements on two logarithmic scales, as SVG files: pure functions of results.json."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from markupsafe import Markup

from benchmarks.plan import LABELS
from benchmarks.store import Results
from benchmarks.tables import COUNTED, FAR, axis_costs, carried_on
from verdiv.reports.figures import svg
from verdiv.reports.figures.standalone import standalone

__all__ = ["Curve", "axes_picture", "rows_picture"]

LINE = 18.0
"""Height of a line of the legend."""

DRAWN = ("report", "tally", "from-tally", "nuts", "gee", "pymc", "peer-tasks", "peer-rows")
"""Programs that are drawn; each keeps its mark and its colour in every picture."""

SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


@dataclass(frozen=True)
class Curve:
    """One program's costs."""

    subject: str
    points: Mapping[float, float]
    """Size to seconds."""
    stopped: tuple[tuple[float, float], ...] = ()
    """Sizes at which it was stopped, and after how many seconds."""
    onward: tuple[float, float] | None = None
    """Size and seconds that it is carried on to, on paper."""

    def all_points(self) -> list[tuple[float, float]]:
        """Return everything that is drawn."""
        return [*self.points.items(), *self.stopped, *([self.onward] if self.onward else [])]


@dataclass(frozen=True)
class Box:
    """Where a panel stands."""

    left: float
    top: float
    right: float
    bottom: float


def _power(value: float) -> str:
    if value < 10_000:
        return f"{value:,.10g}"
    return "10" + f"{value:.0e}".partition("e+")[2].lstrip("0").translate(SUPERSCRIPTS)


def _ticks(scale: svg.Scale) -> tuple[float, ...]:
    """Return the powers of ten of a scale, or closer values where there are only one or two."""
    found = tuple(10.0**e for e in range(-9, 13) if scale.low <= 10.0**e <= scale.high)
    return found if len(found) > 2 else scale.ticks(4)


def _panel(curves: Iterable[Curve], box: Box, low: float, high: float, words: str) -> list[Markup]:
    """Draw one panel: scales, curves, crosses of what was stopped."""
    curves = list(curves)
    sizes = [size for curve in curves for size, _ in curve.all_points()]
    x = svg.Scale(min(sizes) / 1.4, max(sizes) * 1.4, box.left, box.right, True)
    y = svg.Scale(low, high, box.bottom, box.top, True)
    drawn: list[Markup] = []
    for value in _ticks(y):
        line = {"x1": box.left, "x2": box.right, "y1": y(value), "y2": y(value)}
        drawn += [svg.element("line", **line, class_="gridline")]
        drawn += [svg.text(box.left - 6, y(value) + 4, _power(value), anchor="end")]
    across = _ticks(x) if max(sizes) > 1000 * min(sizes) else tuple(sorted(set(sizes)))
    for value in across:
        line = {"x1": x(value), "x2": x(value), "y1": box.bottom, "y2": box.bottom + 4}
        drawn += [svg.element("line", **line, class_="axis")]
        drawn += [svg.text(x(value), box.bottom + 17, _power(value), anchor="middle")]
    drawn += [svg.path([(box.left, box.top), (box.left, box.bottom), (box.right, box.bottom)], "curve axis")]
    for curve in curves:
        i = DRAWN.index(curve.subject)
        spots = [(x(size), y(cost)) for size, cost in sorted(curve.points.items())]
        if len(spots) > 1:
            drawn.append(svg.path(spots, f"curve c{i % svg.MARKS}"))
        if curve.onward is not None and spots:
            end = (x(curve.onward[0]), y(curve.onward[1]))
            drawn += [svg.path([spots[-1], end], f"curve loose c{i % svg.MARKS}")]
            drawn += [svg.mark(*end, i, hollow=True)]
        drawn += [svg.mark(a, b, i) for a, b in spots]
        for size, limit in curve.stopped:
            at, up = x(size), y(limit)
            if spots:
                drawn.append(svg.path([spots[-1], (at, up)], f"curve loose c{i % svg.MARKS}"))
            drawn += [svg.mark(at, up, i, hollow=True)]
            head = [(at - 4, up - 12), (at, up - 18), (at + 4, up - 12)]
            drawn += [svg.path([(at, up - 6), (at, up - 18)], f"curve c{i % svg.MARKS}")]
            drawn += [svg.path(head, f"curve c{i % svg.MARKS}")]
    drawn.append(svg.text((box.left + box.right) / 2, box.bottom + 36, words, anchor="middle"))
    return drawn


def _legend(subjects: Iterable[str], top: float, left: float) -> list[Markup]:
    drawn = []
    for line, subject in enumerate(subjects):
        at = top + LINE * line
        drawn += [svg.mark(left, at, DRAWN.index(subject)), svg.text(left + 14, at + 4, LABELS[subject])]
    return drawn


def _limits(curves: Iterable[Curve]) -> tuple[float, float]:
    costs = [cost for curve in curves for _, cost in curve.all_points()]
    return min(costs) / 1.6, max(costs) * 2.2


def rows_picture(results: Results) -> str:
    """Draw seconds against draws for every program; dashes are not measured."""
    curves = []
    for subject in DRAWN:
        points = {size: record.wall for size, record in axis_costs(results, "rows", subject).items()}
        stopped = tuple(
            (float(facts["draws"]), results.cells[f"{name}/{subject}"].wall)
            for name, facts in results.logs.items()
            if name.startswith("1e")
            and (found := results.cells.get(f"{name}/{subject}"))
            and found.ending == "limit"
        )
        if points or stopped:
            far = carried_on(points)
            curves.append(Curve(subject, points, stopped, None if far is None else (FAR, far)))
    if not curves:
        return ""
    width, box = 720.0, Box(56.0, 34.0, 700.0, 400.0)
    low, high = _limits(curves)
    drawn = _panel(curves, box, low, high, "draws in the log")
    legend = _legend([curve.subject for curve in curves], box.bottom + 62, box.left)
    end = box.bottom + 62 + LINE * len(curves)
    note = "Hollow: not measured. With an arrow: stopped at the limit; without: carried on by the fitted exponent."
    drawing = svg.drawing(
        "cost",
        width,
        end + 18,
        "Cost against draws",
        "Wall time of whole processes on two logarithmic scales",
        svg.text(8, 18, "seconds, whole process"),
        *drawn,
        *legend,
        svg.text(box.left - 6, end + 4, note),
    )
    return standalone(drawing)


def axes_picture(results: Results) -> str:
    """Draw three panels: seconds against tasks, families and patterns, all else held."""
    panels = []
    for axis in ("tasks", "families", "patterns"):
        curves = [
            Curve(one, {size: r.wall for size, r in axis_costs(results, axis, one).items()})
            for one in ("tally", "from-tally")
        ]
        panels.append((axis, [curve for curve in curves if curve.points]))
    every = [curve for _, curves in panels for curve in curves]
    if not every:
        return ""
    low, high = _limits(every)
    drawn: list[Markup] = []
    for i, (axis, curves) in enumerate(panels):
        if curves:
            box = Box(56.0 + 236 * i, 34.0, 236.0 * (i + 1), 240.0)
            drawn += _panel(curves, box, low, high, COUNTED[axis])
    legend = _legend(["tally", "from-tally"], 302.0, 56.0)
    drawing = svg.drawing(
        "axes",
        720.0,
        302.0 + 2 * LINE,
        "Cost against tasks, families and patterns",
        "Wall time of whole processes on two logarithmic scales, one panel for each",
        svg.text(8, 18, "seconds, whole process"),
        *drawn,
        *legend,
    )
    return standalone(drawing)
