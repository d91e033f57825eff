"""Wall time against rows on two logarithmic scales, as an SVG file."""

from __future__ import annotations

from verdiv.reports.figures import svg
from verdiv.reports.figures.standalone import standalone

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640.0, 400.0, 60.0, 20.0, 20.0, 50.0
LEGEND = 18.0


def picture(walls: dict[str, dict[int, float]]) -> str:
    """Draw one curve a program.

    Parameters
    ----------
    walls
        Program to rows to seconds.
    """
    points = [(r, s) for curve in walls.values() for r, s in curve.items()]
    height = HEIGHT + LEGEND * len(walls)
    x = svg.Scale(
        min(r for r, _ in points) * 0.8, max(r for r, _ in points) * 1.25, LEFT, WIDTH - RIGHT, True
    )
    y = svg.Scale(
        min(s for _, s in points) * 0.7, max(s for _, s in points) * 1.4, HEIGHT - BOTTOM, TOP, True
    )
    marks = [svg.text(x(v), HEIGHT - BOTTOM + 18, f"{v:,.0f}", anchor="middle") for v in x.ticks(6)]
    for value in y.ticks(6):
        marks.append(svg.text(LEFT - 8, y(value) + 4, f"{value:g}", anchor="end"))
        line = {"x1": LEFT, "x2": WIDTH - RIGHT, "y1": y(value), "y2": y(value)}
        marks.append(svg.element("line", **line, class_="grid"))
    for i, (name, curve) in enumerate(walls.items()):
        spots = [(x(float(r)), y(s)) for r, s in sorted(curve.items())]
        if len(spots) > 1:
            marks.append(svg.path(spots, f"curve c{i % svg.MARKS}"))
        marks += [svg.mark(a, b, i) for a, b in spots]
        at = HEIGHT + LEGEND * i
        marks += [svg.mark(LEFT, at, i), svg.text(LEFT + 14, at + 4, name)]
    marks.append(svg.text((LEFT + WIDTH) / 2, HEIGHT - 12, "draws in the log", anchor="middle"))
    marks.append(svg.text(8, 12, "seconds, whole process"))
    drawing = svg.drawing("cost", WIDTH, height, "Cost against rows", "Wall time of whole processes", *marks)
    return standalone(drawing)
