"""Rules: the interval of each component against its claim region and the noise floor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from verdiv.reports.blocks import Panel, clean
from verdiv.reports.figures.svg import Scale, drawing, element, join, text, ticks
from verdiv.reports.words import VERDICTS
from verdiv.rounding import estimate, exact, width

__all__ = ["claim_words", "component_panel"]

WIDTH, HEIGHT = 360.0, 58.0
LEFT, RIGHT, AXIS = 10.0, 350.0, 38.0
MIDDLE = 20.0


def claim_words(low: float | None, high: float | None) -> str:
    """Write a claim region; a missing end is unbounded.

    Examples
    --------
    >>> claim_words(-0.05, None), claim_words(None, 0.05), claim_words(-0.25, 0.25), claim_words(None, None)
    ('at least −0.05', 'at most 0.05', '−0.25 to 0.25', 'no region')
    """
    if low is None and high is None:
        return "no region"
    if high is None:
        return f"at least {exact(low)}"
    if low is None:
        return f"at most {exact(high)}"
    return f"{exact(low)} to {exact(high)}"


def _domain(component: Mapping[str, Any]) -> tuple[float, float]:
    floor = component.get("floor")
    claims = [component.get("claim_low"), component.get("claim_high")]
    anchors = [component["low"], component["high"], component["estimate"], *claims]
    if floor is not None:
        anchors += [-floor, floor]
    values = [float(value) for value in anchors if value is not None]
    low, high = min(values), max(values)
    span = (high - low) or abs(high) or 1.0
    # An unbounded claim needs room to show that its region goes on.
    below = 0.28 if claims[0] is None and claims[1] is not None else 0.1
    above = 0.28 if claims[1] is None and claims[0] is not None else 0.1
    return low - below * span, high + above * span


def _region(component: Mapping[str, Any], x: Scale) -> Markup:
    low, high = component.get("claim_low"), component.get("claim_high")
    if low is None and high is None:
        return Markup("")
    start = x.start if low is None else x(low)
    end = x.end if high is None else x(high)
    parts = [element("rect", x=start, y=4.0, width=max(end - start, 0.0), height=AXIS - 4, class_="claim")]
    parts += [
        element("line", x1=x(edge), x2=x(edge), y1=4.0, y2=AXIS, class_="claim-edge")
        for edge in (low, high)
        if edge is not None
    ]
    return join(parts)


def _whisker(component: Mapping[str, Any], x: Scale, style: str) -> Markup:
    low, high, middle = component["low"], component["high"], component["estimate"]
    parts = []
    if low is not None and high is not None:
        parts.append(element("line", x1=x(low), x2=x(high), y1=MIDDLE, y2=MIDDLE, class_=f"whisker {style}"))
        parts += [
            element("line", x1=x(end), x2=x(end), y1=MIDDLE - 5, y2=MIDDLE + 5, class_=f"whisker {style}")
            for end in (low, high)
        ]
    if middle is not None:
        parts.append(element("circle", cx=x(middle), cy=MIDDLE, r=4.5, class_=f"dot {style}"))
    return join(parts)


def component_panel(
    identifier: str, rule: str, part: Mapping[str, Any], component: Mapping[str, Any]
) -> Panel:
    """Draw one component of a rule on its own scale.

    The tinted field is the claim region, the outlined one (around zero) the noise floor, the whisker the
    interval of the component and the dot its estimate.

    Parameters
    ----------
    identifier
        Identifier of the drawing on its page.
    rule
        Rule id, for the label.
    part, component
        The part of the rule (its verdict gives the colour) and the component in the document's form.

    Returns
    -------
    Panel
        Without a drawing where the component has no estimate and no interval.
    """
    verdict = VERDICTS[part["verdict"]]
    filled = {"estimate": None, "low": None, "high": None, **component}
    label = clean(f"{rule} {part['id']} · {component.get('label') or component['id']}")
    claim = claim_words(filled.get("claim_low"), filled.get("claim_high"))
    if filled["estimate"] is None and filled["low"] is None:
        reason = clean(part.get("reason") or "no estimate")
        return Panel(label, None, note=f"{verdict.word}: {reason}", tone=verdict.tone)
    x = Scale(*_domain(filled), LEFT, RIGHT)
    shown = estimate(filled["estimate"], filled["low"], filled["high"])
    parts = [_region(filled, x)]
    floor = filled.get("floor")
    words = f"{shown}; claim: {claim}"
    if floor is not None:
        start, end = x(-floor), x(floor)
        parts.append(
            element("rect", x=start, y=MIDDLE - 9, width=max(end - start, 1.0), height=18.0, class_="floor")
        )
        words += f"; noise floor {width(floor)}"
    parts.append(element("line", x1=LEFT, x2=RIGHT, y1=AXIS, y2=AXIS, class_="axis"))
    for value in ticks(x.low, x.high, 4):
        at = x(value)
        parts.append(element("line", x1=at, x2=at, y1=AXIS, y2=AXIS + 3, class_="axis"))
        anchor = "start" if at < LEFT + 12 else "end" if at > RIGHT - 12 else "middle"
        parts.append(text(at, AXIS + 15, exact(value), anchor=anchor))
    parts.append(_whisker(filled, x, verdict.tone))
    svg = drawing(identifier, WIDTH, HEIGHT, label, words, *parts)
    return Panel(label, svg, note=f"{verdict.word}; {words}", tone=verdict.tone)
