"""The decision rule and the traps it was chosen to avoid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verdiv.falsification.decision import Component, Part, decide, sides
from verdiv.falsification.floors import Floor
from verdiv.falsification.verdict import RuleResult, Verdict

RNG = np.random.default_rng(11)
Z = RNG.standard_normal(20_000)


def judge(*parts: Part, gamma: float = 0.95, void: str | None = None) -> RuleResult:
    """Decide a rule of some parts."""
    return decide("P0", "t", "c", "new tasks", parts, gamma=gamma, statistic="s", margin=0.05, void=void)


def two_sided(
    mean: float, sd: float, *, floor: float | None = 0.01, paired: bool = False, margin: float = 0.05
) -> Part:
    """One component claimed within ± margin."""
    noise = Floor(floor, 40, 3, 40) if floor is not None else None
    c = Component(
        "x",
        "x",
        mean + sd * Z,
        -margin,
        margin,
        n=40,
        tasks=40,
        paired=paired,
        floor=noise,
        margin=margin,
        alternative=0.1,
    )
    return Part("a", "claim", (c,))


def test_a_sharp_posterior_inside_is_supported_and_beyond_is_falsified() -> None:
    """The two clear cases, and their mirror image."""
    assert judge(two_sided(0.0, 0.01)).verdict is Verdict.SUPPORTED
    assert judge(two_sided(0.2, 0.01)).verdict is Verdict.FALSIFIED
    assert judge(two_sided(-0.2, 0.01)).verdict is Verdict.FALSIFIED


@given(st.floats(0.2, 50.0))
def test_ignorance_never_falsifies(sd: float) -> None:
    """A diffuse posterior has no mass in a narrow claim, yet lies beyond neither side: P(not claim) is no verdict."""
    result = judge(two_sided(0.0, sd))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.probability_claim is not None
    if sd > 2:
        assert result.probability_claim < 0.05


@given(st.floats(0.0, 0.2), st.floats(0.01, 0.3))
def test_noise_never_makes_a_claim_easier(floor: float, mean: float) -> None:
    """Raising the floor can turn a verdict into inconclusive, never into supported or falsified."""
    quiet = judge(two_sided(mean, 0.01, floor=0.0, paired=True)).verdict
    noisy = judge(two_sided(mean, 0.01, floor=floor, paired=True)).verdict
    assert noisy is quiet or noisy is Verdict.INCONCLUSIVE


def test_a_margin_below_the_floor_cannot_be_supported() -> None:
    """The margin is registered; where the noise floor exceeds it the rule says so instead of widening it."""
    result = judge(two_sided(0.0, 0.005, floor=0.06, paired=True))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "margin below the noise floor" in result.reason
    assert judge(two_sided(0.0, 0.005, floor=0.04, paired=True)).verdict is Verdict.SUPPORTED


def test_a_difference_within_the_floor_is_not_falsified() -> None:
    """Falsified also needs |estimate| above the floor."""
    assert judge(two_sided(0.08, 0.005, floor=0.07, paired=True)).verdict is Verdict.FALSIFIED
    assert judge(two_sided(0.08, 0.005, floor=0.09, paired=True)).verdict is Verdict.INCONCLUSIVE


def test_without_a_floor_a_paired_difference_decides_nothing() -> None:
    """No independent replicates, no floor, no verdict either way."""
    for mean in (0.0, 0.5):
        result = judge(two_sided(mean, 0.005, floor=None, paired=True))
        assert result.verdict is Verdict.INCONCLUSIVE
        assert "replicates" in result.reason


def test_threshold_counts_component_sides() -> None:
    """J is the number of component sides of the rule; a one-sided single component needs γ."""
    one = Part("a", "c", (Component("x", "x", Z, claim_low=0.0),))
    assert judge(one).threshold == 0.95
    assert judge(two_sided(0, 1)).threshold == pytest.approx(0.975)
    assert judge(two_sided(0, 1), one).threshold == pytest.approx(1 - 0.05 / 3)
    assert sides([one, two_sided(0, 1)]) == 3


def test_parts_are_combined_falsified_first_then_untestable() -> None:
    """Falsified if any testable part is; else untestable if any is; else supported jointly."""
    good, bad = two_sided(0.0, 0.001), two_sided(0.3, 0.001)
    lacking = Part("b", "c", missing=("arm A9",))
    assert judge(bad, lacking).verdict is Verdict.FALSIFIED
    result = judge(good, lacking)
    assert result.verdict is Verdict.UNTESTABLE
    assert result.missing == ("arm A9",)
    assert judge(good, good).verdict is Verdict.SUPPORTED


def test_a_reason_is_given_once_behind_its_parts() -> None:
    """What several parts lack is said once: without names where all lack it, behind their names otherwise."""
    lacking = [replace(two_sided(0, 1), id=name, components=(), missing=("arm A9",)) for name in "abc"]
    assert judge(*lacking).reason == "missing: arm A9"
    other = replace(lacking[0], id="d", missing=("arm A8",))
    assert judge(*lacking[:2], other).reason == "(a, b) missing: arm A9; (d) missing: arm A8"


def test_the_estimate_of_a_wild_ratio_lies_in_its_interval() -> None:
    """A mean outside the interval gives way to the median, and no number of tasks would decide."""
    ratio = Part("a", "c", (Component("x", "x", 1.0 / np.abs(Z) ** 9, claim_low=0.5, tasks=40),))
    component = judge(ratio).parts[0].components[0]
    assert np.mean(1.0 / np.abs(Z) ** 9) > component.high
    assert component.low < component.estimate < component.high
    assert component.tasks_to_decide is None


def test_support_is_joint_in_the_same_draws() -> None:
    """Two parts that hold with .96 each, in different draws, do not hold jointly."""
    low = Part("a", "c", (Component("x", "x", Z, claim_low=float(np.quantile(Z, 0.04))),))
    high = Part("b", "c", (Component("y", "y", Z, claim_high=float(np.quantile(Z, 0.96))),))
    result = judge(low, high)
    assert result.probability_claim == pytest.approx(0.92, abs=1e-3)
    assert result.verdict is Verdict.INCONCLUSIVE


def test_void_precedes_all() -> None:
    """A broken lock or a failed fit leaves no verdict, however clear the data."""
    result = judge(two_sided(0.0, 0.001), void="lock broken")
    assert (result.verdict, result.reason) == (Verdict.VOID, "lock broken")


def test_severity_is_the_chance_of_falsifying_under_the_alternative() -> None:
    """A sharp design would have caught the alternative, a blunt one would not; simulated beside the formula."""
    sharp = judge(two_sided(0.0, 0.01)).severity
    blunt = judge(two_sided(0.0, 0.2)).severity
    assert sharp is not None
    assert blunt is not None
    assert sharp > 0.99
    sd, threshold = 0.03, judge(two_sided(0.0, 0.03)).threshold
    estimates = 0.1 + sd * RNG.standard_normal(200_000)
    z = np.quantile(Z, threshold)
    simulated = float((estimates - z * sd >= 0.05).mean())
    found = judge(two_sided(0.0, sd)).severity
    assert found == pytest.approx(simulated, abs=0.01)
    assert blunt < 0.1


def test_tasks_to_decide_scales_with_the_root() -> None:
    """Half the distance to the margin needs four times the tasks."""
    near = judge(two_sided(0.025, 0.1)).tasks_to_decide
    far = judge(two_sided(0.0, 0.1)).tasks_to_decide
    assert near is not None
    assert far is not None
    assert near / far == pytest.approx(4.0, rel=0.15)


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.floats(0.001, 1)), min_size=1, max_size=4), st.floats(0.6, 0.99)
)
def test_regions_are_exclusive_and_exhaustive(components: list[tuple[float, float]], gamma: float) -> None:
    """Whatever the posterior, exactly one verdict; supported and falsified never both apply."""
    parts = [two_sided(m, s) for m, s in components]
    result = judge(*parts, gamma=gamma)
    assert result.verdict in (Verdict.SUPPORTED, Verdict.FALSIFIED, Verdict.INCONCLUSIVE)
    if result.verdict is Verdict.SUPPORTED:
        assert result.exceedance is not None
        assert result.exceedance <= 1 - gamma + 1e-12
