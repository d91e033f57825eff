"""Figures: scales, marks and drawings."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sample_document import HOSTILE, sample_document
from verdiv.reports.figures.breakeven import break_even_panel, most_probable
from verdiv.reports.figures.densities import density_panel
from verdiv.reports.figures.forest import component_panel
from verdiv.reports.figures.frontier import BreakEvenMark, frontier_panel
from verdiv.reports.figures.hazards import hazard_panels, hazards, wilson
from verdiv.reports.figures.svg import MARKS, Scale, drawing, element, mark, ticks


def _parsed(drawn: str | None) -> ElementTree.Element:
    assert drawn is not None
    return ElementTree.fromstring(drawn)


def test_scale_maps_ends_middle_and_beyond() -> None:
    """Linear and logarithmic scales hit both ends, and values outside stay inside the drawing."""
    x = Scale(0.0, 10.0, 100.0, 300.0)
    assert (x(0.0), x(5.0), x(10.0), x(-1.0), x(11.0)) == (100.0, 200.0, 300.0, 100.0, 300.0)
    y = Scale(1.0, 100.0, 0.0, 200.0, logarithmic=True)
    assert y(10.0) == pytest.approx(100.0, abs=1e-9)
    assert (y(1.0), y(0.0), y(1000.0)) == (0.0, 0.0, 200.0)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(2, 8))
def test_ticks_are_inside_rising_and_few(low: float, span: float, wanted: int) -> None:
    """Ticks lie inside their range, in ascending order, and are about as many as asked for."""
    found = ticks(low, low + span, wanted)
    slack = 1e-6 * span + abs(low) * 1e-9
    assert all(low - slack <= value <= low + span + slack for value in found)
    assert list(found) == sorted(set(found))
    assert len(found) <= 2 * wanted + 1


def test_logarithmic_ticks_are_round() -> None:
    """A scale from 1 to 5 small draws is labelled with round bills."""
    assert Scale(0.9, 5.5, 0.0, 1.0, logarithmic=True).ticks(5) == (1.0, 1.5, 2.0, 3.0, 5.0)


def test_elements_escape_texts_and_attributes() -> None:
    """Neither a text nor an attribute can leave its element."""
    assert str(element("text", "</text><script>", class_='"><script>')) == (
        '<text class="&#34;&gt;&lt;script&gt;">&lt;/text&gt;&lt;script&gt;</text>'
    )
    root = _parsed(drawing("a", 10, 10, HOSTILE, HOSTILE))
    assert len(root) == 2
    assert "\u202e" not in "".join(root.itertext())


def test_marks_differ_by_shape() -> None:
    """Series are told apart without colour: no two marks have the same outline."""
    shapes = {str(mark(0, 0, index)).replace(f"c{index}", "") for index in range(MARKS)}
    assert len(shapes) == MARKS


def test_wilson_equals_scipy() -> None:
    """The interval of the hazard figure is Wilson's, to twelve digits, at the edges too."""
    for k, n in ((0, 7), (7, 7), (8, 37), (24, 294), (1, 1), (0, 1)):
        ends = wilson(k, n)
        ours = stats.binomtest(k, n).proportion_ci(0.95, method="wilson")
        assert ends is not None
        assert ends == pytest.approx((ours.low, ours.high), abs=1e-12)
    assert wilson(0, 0) is None


def _texts(root: ElementTree.Element) -> list[str]:
    return ["".join(node.itertext()) for node in root.iter("text")]


def test_frontier_draws_every_point_the_teacher_and_the_ring() -> None:
    """One mark a point, the teacher's level and bill, the ceiling, and the ring around the break-even point."""
    frontier = sample_document()["frontier"]
    panel = frontier_panel("f", frontier, 0.984, BreakEvenMark("A3", 2, "B* = 2"))
    for drawn in (panel.drawing, panel.narrow):
        root = _parsed(drawn)
        marks = [node for node in root.iter() if (node.get("class") or "").startswith("mark")]
        assert len(marks) == len(frontier)
        assert len([n for n in root.iter("line") if n.get("class") == "teacher"]) == 2
        assert len([n for n in root.iter("line") if n.get("class") == "ceiling"]) == 1
        assert len([n for n in root.iter("circle") if n.get("class") == "ring"]) == 1
        assert {"B* = 2", "teacher 0.897", "static ceiling 0.984"} <= set(_texts(root))


def test_frontier_ring_lies_on_its_point() -> None:
    """The break-even ring is centred on the mark of A3 at B*."""
    frontier = [point for point in sample_document()["frontier"] if point["arm"] == "A3"]
    root = _parsed(frontier_panel("f", frontier, None, BreakEvenMark("A3", 2, "B* = 2")).drawing)
    ring = next(node for node in root.iter("circle") if node.get("class") == "ring")
    dots = [n for n in root.iter("circle") if (n.get("class") or "").startswith("mark")]
    assert (ring.get("cx"), ring.get("cy")) in [(dot.get("cx"), dot.get("cy")) for dot in dots]


def test_frontier_of_the_model_alone_is_hollow() -> None:
    """Where there are no direct estimates, marks are hollow: nothing measured is suggested."""
    frontier = [{**point, "direct": None} for point in sample_document()["frontier"]]
    root = _parsed(frontier_panel("f", frontier, None, None).drawing)
    kinds = {
        node.get("class", "").split()[1] for node in root.iter() if node.get("class", "").startswith("mark")
    }
    assert kinds == {"hollow"}


@pytest.mark.parametrize("frontier", [[], [{"arm": "A0", "budget": 1, "direct": None, "model": None}]])
def test_frontier_without_points_says_so(frontier: list[dict[str, Any]]) -> None:
    """No drawing without data, but a sentence."""
    panel = frontier_panel("f", frontier, None, None)
    assert panel.drawing is None
    assert panel.note


def _component(**values: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"id": "a", "verdict": "supported"}, {"id": "x", **values}


@pytest.mark.parametrize("claim", [(-0.05, None), (None, 0.05), (-0.05, 0.05)])
def test_forest_region_is_where_the_claim_holds(claim: tuple[float | None, float | None]) -> None:
    """The tinted field covers the claim: open ends reach the edge of the drawing, closed ends their value."""
    part, item = _component(estimate=0.0, low=-0.01, high=0.01, claim_low=claim[0], claim_high=claim[1])
    root = _parsed(component_panel("c", "P3", part, item).drawing)
    field = next(node for node in root.iter("rect") if node.get("class") == "claim")
    left = float(field.get("x", "nan"))
    right = left + float(field.get("width", "nan"))
    dot = next(node for node in root.iter("circle"))
    middle = float(dot.get("cx", "nan"))
    assert (left == 10.0) == (claim[0] is None)
    assert (right == 350.0) == (claim[1] is None)
    assert left < middle < right


def test_forest_shows_a_falsified_component_outside_its_region() -> None:
    """The whisker of a component beyond its claim does not touch the tinted field."""
    part, item = _component(estimate=0.12, low=0.08, high=0.16, claim_low=-0.05, claim_high=0.05, floor=0.03)
    root = _parsed(component_panel("c", "R4", {**part, "verdict": "falsified"}, item).drawing)
    field = next(node for node in root.iter("rect") if node.get("class") == "claim")
    whisker = next(node for node in root.iter("line") if node.get("class") == "whisker falsified")
    assert float(whisker.get("x1", "nan")) > float(field.get("x", "nan")) + float(field.get("width", "nan"))
    assert any(node.get("class") == "floor" for node in root.iter("rect"))


def test_forest_without_an_estimate_gives_the_reason() -> None:
    """An untestable component is a sentence, not a dot at zero."""
    panel = component_panel(
        "c", "P6", {"id": "a", "verdict": "untestable", "reason": "constant load"}, {"id": "x"}
    )
    assert panel.drawing is None
    assert panel.note == "untestable: constant load"


def test_density_of_equal_draws_is_not_drawn() -> None:
    """A posterior without width has no density."""
    panel = density_panel("d", "q0", {"x": [0.1, 0.1], "y": [1.0, 1.0], "prior": None}, {})
    assert panel.drawing is None
    drawn = density_panel("d", "q0", {"x": [0.1, 0.2, 0.3], "y": [0.0, 5.0, 0.0], "prior": [1, 1, 1]}, {})
    assert _parsed(drawn.drawing) is not None


def test_hazards_keep_empty_attempts_apart() -> None:
    """An attempt that nothing reached has no share and no interval; 0 of 63 has both."""
    found = hazards(
        [
            {"arm": "A2", "class": None, "attempt": 2, "k": 0, "n": 0},
            {"arm": "A3", "class": "semantic", "attempt": 5, "k": 0, "n": 63},
        ]
    )
    assert (found[0].low, found[1].low) == (None, 0.0)
    panels = hazard_panels("h", found)
    assert [panel.drawing is None for panel in panels] == [True, False]


def test_most_probable_break_even_prefers_the_smaller_budget() -> None:
    """At a tie the smaller budget is named; missing probabilities do not count."""
    assert most_probable({"3": 0.4, "2": 0.4, "none": 0.2}) == ("2", 0.4)
    assert most_probable({"2": None, "none": 0.2}) == ("none", 0.2)
    assert most_probable({}) is None
    assert break_even_panel("b", "direct", {}).drawing is None


def test_break_even_bars_have_the_height_of_their_probability() -> None:
    """Bars are proportional to probabilities."""
    root = _parsed(break_even_panel("b", "direct", {"1": 0.25, "2": 0.75}).drawing)
    heights = [float(node.get("height", "nan")) for node in root.iter("rect")]
    assert heights[1] / heights[0] == pytest.approx(3.0, abs=0.01)
